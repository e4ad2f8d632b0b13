"""What a dashboard's YAML says, what it leaves to defaults, and every way in which it can be wrong."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sqlrun import project_files
from sqlrun.dashboards.nouns import Dashboard
from sqlrun.load.load import Loaded
from tests.support import broken

KIND = "array<struct<page:string,n:bigint,paid:decimal(10,2)>>"
TABLES = {
    "windows": ("window_hours int", "site_id string", "clicks bigint", "paid decimal(18,2)", "day date", "at timestamp",
                f"top {KIND}", "words array<string>", "name string"),
    "slots": ("slot_at timestamp", "site_id string", "clicks bigint", "paid decimal(18,2)", "day date"),
    "pages": ("window_hours int", "site_id string", "page string", "n bigint"),
    "other": ("id int",),
}  # fmt: skip
GOOD: dict[str, Any] = {
    "entity": {"key": "site_id"},
    "windows": {"table": "windows", "hours": "window_hours"},
    "measures": ["clicks", {"column": "paid", "format": "money"}],
    "lists": [{"column": "top", "item": "page", "value": "n"}, {"table": "ref('pages')", "item": "page", "value": "n"}],
    "trend": {"slots": {"table": "slots", "at": "slot_at"}},
}


def contract(name: str) -> str:
    lines = ["models:", f"  - name: {name}", "    description: A row.", "    columns:"]
    for column in TABLES[name]:
        named, _, kind = column.partition(" ")
        lines.append(f"      - {{name: {named}, data_type: '{kind}', description: It.}}")
    return "\n".join(lines) + "\n"


def query(name: str) -> str:
    return "select " + ", ".join(f"cast(null as {c.partition(' ')[2]}) as {c.partition(' ')[0]}" for c in TABLES[name])


def loaded(folder: Path, *dashboards: Any, settings: str = broken.SETTINGS) -> Loaded:
    exposures = [
        {
            "name": f"clicks{number or ''}", "type": "dashboard", "description": "It.", "owner": {"name": "We"},
            "depends_on": ["ref('windows')"], "config": {"dashboard": one},
        }
        for number, one in enumerate(dashboards)
    ]  # fmt: skip
    files = {f"models/{name}.yml": contract(name) for name in TABLES}
    files |= {f"models/{name}.sql": query(name) for name in TABLES}
    files |= {"models/_exposures.yml": json.dumps({"exposures": exposures}, indent=1), "pyproject.toml": settings}
    return project_files.read(broken.write(folder, files))


def dashboard(folder: Path, *declared: Any, settings: str = broken.SETTINGS) -> Dashboard:
    found = loaded(folder, *declared, settings=settings)
    assert found.problems == ()
    made = found.project.exposures[0].dashboard
    assert made is not None
    return made


def changed(**parts: Any) -> dict[str, Any]:
    return {**deepcopy(GOOD), **parts}


def test_what_is_left_out_follows_from_names_and_types(tmp_path: Path) -> None:
    found = dashboard(tmp_path, GOOD)

    assert (found.api, found.entity.name, found.entity.plural) == ("clicks", "site", "sites")
    assert found.widths == (1, 24, 168)
    assert [(m.name, m.label, m.format, m.in_trend) for m in found.measures] == [
        ("clicks", (("", "Clicks"),), "count", True), ("paid", (("", "Paid"),), "money", True),
    ]  # fmt: skip
    assert [ranked.name for ranked in found.lists] == ["top", "page"]
    assert found.compare == ("before", "last_week")


def test_names_of_columns_match_in_any_case(tmp_path: Path) -> None:
    """Names that follow from a column, too: the addresses of a page don't depend on case."""
    capitals = changed(
        entity={"key": "Site_ID"},
        windows={"table": "windows", "hours": "WINDOW_hours"},
        measures=["Clicks", {"column": "PAID", "format": "money"}],
        lists=[
            {"column": "Top", "item": "PAGE", "value": "N"},
            {"table": "ref('pages')", "item": "Page", "value": "N"},
        ],
        trend={"slots": {"table": "slots", "at": "Slot_At"}},
    )

    assert dashboard(tmp_path / "a", capitals) == dashboard(tmp_path / "b", GOOD)


def test_windows_come_from_the_var_of_the_columns_name_or_from_the_dashboard(tmp_path: Path) -> None:
    settings = broken.SETTINGS + "[tool.sqlrun.vars]\nwindow_hours = [2, 48]\n"
    own = changed(windows={**GOOD["windows"], "of": [12]})

    assert dashboard(tmp_path / "a", GOOD, settings=settings).widths == (2, 48)
    assert dashboard(tmp_path / "b", own, settings=settings).widths == (12,)


def test_words_may_be_given_by_language(tmp_path: Path) -> None:
    label = {"en": "Clicks", "de": "Klicks"}
    measure = {"column": "clicks", "label": label, "unit": {"en": ["click", "clicks"], "de": "Klicks"}}
    (found,) = dashboard(tmp_path, changed(measures=[measure])).measures

    assert dict(found.label) == label
    assert (dict(found.one), dict(found.many)) == (
        {"en": "click", "de": "Klicks"}, {"en": "clicks", "de": "Klicks"},
    )  # fmt: skip


NO_SLOTS = {key: value for key, value in GOOD.items() if key != "trend"}
LIST = {"column": "top", "item": "page", "value": "n"}
WRONG: dict[str, tuple[Any, list[str]]] = {
    "no entity": ({**NO_SLOTS, "entity": None}, ["SR104: `dashboard` lacks `entity`"]),
    "no key": (changed(entity={}), ["SR104: `entity` lacks `key`"]),
    "unknown key": (changed(entitty={}), ["SR102: unknown key `entitty` of `dashboard`"]),
    "no measure": (changed(measures=[]), ["SR104: `measures` has none of the windows' table"]),
    "key of a time": (
        changed(entity={"key": "day"}),
        [
            "SR122: `day` in `key` is of type date, which can't be shown there",
            "SR108: pages has no column `day`, by which its rows are found",
        ],
    ),
    "label of a number": (
        changed(entity={"key": "site_id", "label": "clicks"}),
        ["SR122: `clicks` in `label` is of type bigint, which can't be shown there"],
    ),
    "entity's table": (
        changed(entity={"key": "site_id", "table": "other"}),
        ["SR108: `site_id` in `key` is not a column of other"],
    ),
    "no table": (changed(windows={"table": "window", "hours": "window_hours"}), ["SR202: unknown ref `window`"]),
    "no table of a measure": (
        changed(measures=["clicks", {"column": "n", "table": "x"}]),
        ["SR202: unknown ref `x`"],
    ),
    "no table of entities": (
        changed(entity={"key": "id", "table": "x", "label": "y"}, lists=[], trend=None),
        ["SR202: unknown ref `x`"],
    ),
    "no window column": (
        changed(windows={"table": "windows", "hours": "hours"}, lists=[]),
        ["SR108: `hours` in `hours` is not a column of windows"],
    ),
    "window of a text": (
        changed(windows={"table": "windows", "hours": "name"}, lists=[]),
        ["SR122: `name` in `hours` is of type string, which can't be shown there"],
    ),
    "windows of none": (
        changed(windows={**GOOD["windows"], "of": [0]}),
        ["SR110: `of` is no list of windows"],
    ),
    "windows twice": (changed(windows={**GOOD["windows"], "of": [24, 24]}), ["SR110: `of` is no list of windows"]),
    "measure of a list": (
        changed(measures=["clicks", "top"], lists=[]),
        ["SR122: `top` in `column` is of type " + KIND + ", which can't be shown there"],
    ),
    "measure of a text": (
        changed(measures=["clicks", "name"]),
        ["SR122: `name` in `column` is of type string, which can't be shown there"],
    ),
    "measure twice": (changed(measures=["clicks", "clicks"]), ["SR111: two parts of one answer are called `clicks`"]),
    "measure called as the answer's own": (
        changed(measures=[{"column": "clicks", "name": "tick"}]),
        ["SR116: `name` can't be `tick`, which is the server's own"],
    ),
    "a format": (changed(measures=[{"column": "clicks", "format": "euro"}]), ["SR110: invalid `format`: `euro`"]),
    "a ratio": (
        changed(measures=[{"column": "clicks", "ratios": [{"value": "clicks", "per": "x", "label": "y"}]}]),
        ["SR110: `per` can't be `x`: there is no such measure"],
    ),
    "a language": (
        changed(measures=[{"column": "clicks", "label": {"english": "x"}}]),
        ["SR110: `english` is no language"],
    ),
    "a unit of three": (
        changed(measures=[{"column": "clicks", "unit": ["a", "b", "c"]}]),
        ["SR110: `unit` has more than two forms"],
    ),
    "list of nothing": (
        changed(lists=[{"item": "a", "value": "b"}]),
        ["SR104: a list needs either `column` or `table`"],
    ),
    "list of texts": (
        changed(lists=[{**LIST, "column": "words"}]),
        ["SR122: `words` in `column` is of type array<string>, which can't be shown there"],
    ),
    "list's item": (changed(lists=[{**LIST, "item": "x"}]), ["SR108: `x` in `item` is not a column of windows.top"]),
    "list's value": (
        changed(lists=[{**LIST, "value": "page"}]),
        ["SR122: `page` in `value` is of type string, which can't be shown there"],
    ),
    "list called as a measure": (
        changed(lists=[{**LIST, "name": "clicks"}]),
        ["SR111: two parts of one answer are called `clicks`"],
    ),
    "trend of a day": (
        changed(trend={"slots": {"table": "slots", "at": "day"}}),
        ["SR122: `day` in `at` is of type date, which can't be shown there"],
    ),
    "trend of nothing": (changed(trend={"slots": {"table": "slots"}}), ["SR104: `slots` lacks `at`"]),
    "trend without measures": (
        changed(measures=[{"column": "clicks", "trend": False}]),
        ["SR108: no measure is a column of slots"],
    ),
    "compare without slots": (
        {**NO_SLOTS, "compare": ["before"]},
        ["SR104: `compare` needs `slots`, whose sums a window is compared with"],
    ),
    "compare with what": (changed(compare=["year"]), ["SR110: `compare` can't be `year`"]),
    "an address": (changed(api="a/b"), ["SR116: `a/b` can't be the `api` of a dashboard"]),
    "an address of the server": (
        changed(api="operator"),
        ["SR116: `api` can't be `operator`, which is the server's own"],
    ),
    "a claim of its own": (
        changed(entity={"key": "site_id", "plural": "exp"}),
        ["SR116: `plural` can't be `exp`, which is the server's own"],
    ),
}


@pytest.mark.parametrize("which", WRONG)
def test_a_mistake_is_reported_where_it_is(tmp_path: Path, which: str) -> None:
    declared, expected = WRONG[which]
    problems = loaded(tmp_path, declared).problems

    assert [f"{p.code}: {p.message}" for p in problems] == expected
    assert all(p.place.file == "models/_exposures.yml" and p.place.line > 1 and p.hint for p in problems)


def test_two_dashboards_have_names_of_their_own(tmp_path: Path) -> None:
    problems = loaded(tmp_path, GOOD, changed(api="clicks", entity={"key": "site_id", "plural": "places"})).problems

    assert [p.message for p in problems] == [
        "two dashboards are called `clicks`", "the entity `site` has two plurals, `sites` and `places`",
    ]  # fmt: skip


def test_another_type_of_exposure_has_no_dashboard(tmp_path: Path) -> None:
    loaded(tmp_path, GOOD)
    file = tmp_path / "models" / "_exposures.yml"
    file.write_text(file.read_text().replace('"type": "dashboard"', '"type": "notebook"'))

    assert [p.message for p in project_files.read(tmp_path).problems] == [
        "an exposure of type `notebook` has no `dashboard`"
    ]


ODD = (None, 3, True, "", "x", [], [None], [[1]], {}, {"a": None}, {"en": ["a"]}, "ref('", "é" * 300)
PLACES = [
    ("entity",),
    ("entity", "key"),
    ("entity", "label"),
    ("entity", "noun"),
    ("entity", "name"),
    ("entity", "table"),
    ("windows",),
    ("windows", "table"),
    ("windows", "hours"),
    ("windows", "of"),
    ("measures",),
    ("measures", 0),
    ("measures", 1, "unit"),
    ("measures", 1, "label"),
    ("measures", 1, "ratios"),
    ("measures", 1, "table"),
    ("measures", 1, "trend"),
    ("lists",),
    ("lists", 0),
    ("lists", 0, "column"),
    ("lists", 0, "item"),
    ("lists", 0, "all"),
    ("lists", 0, "empty"),
    ("trend",),
    ("trend", "slots"),
    ("trend", "hours"),
    ("trend", "slots", "at"),
    ("compare",),
    ("api",),
    ("title",),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_no_value_breaks_the_reading(tmp_path: Path, place: tuple[Any, ...]) -> None:
    """Problems at most, each with a place, and never a traceback."""
    for number, value in enumerate(ODD):
        declared = deepcopy(GOOD)
        node: Any = declared
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = value
        for problem in loaded(tmp_path / str(number), declared).problems:
            assert problem.code.startswith("SR") and problem.place.line >= 1
