"""What a look finds: the problems of the command line, with texts that aren't saved; what is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun import pipeline
from sqlrun.errors import ProjectError
from sqlrun.language_server import frames
from sqlrun.language_server.findings import Finding
from sqlrun.language_server.looking import Look, Looker
from tests.language_server.project import DAYS, FILES, ORDERS, written

BROKEN = {
    "models/orders.sql": [ORDERS + "selec x", ORDERS.replace("total as", "totl as"), "{{ ref('x') }}", "", "select"],
    "models/orders.yml": ["models: [", FILES["models/orders.yml"].replace("grain: [id]", "grain: [ix]"), "a: 😀\tb: c"],
    "models/days.sql": [DAYS.replace("o.id,", "o.ix,"), DAYS.replace("count(*)", "rand()"), "{% for %}"],
    "macros/doubled.sql": ["{% macro other() %}{% endmacro %}"],
    "pyproject.toml": ["[tool.sqlrun]\nnam = 1\n", "[tool"],
}


def cases() -> list[tuple[str, str]]:
    return [(file, text) for file, texts in BROKEN.items() for text in texts]


def codes(look: Look) -> list[tuple[str, str, int]]:
    return sorted((one.code, one.file, one.line + 1) for one in look.findings)


@pytest.mark.parametrize(("file", "text"), cases())
def test_the_same_problems_as_on_the_command_line(file: str, text: str, tmp_path: Path) -> None:
    root = written(tmp_path)
    looker = Looker(root)
    looker.look({})
    looked = looker.look({file: text})
    again = looker.look({file: text})
    (root / file).write_text(text)
    with pytest.raises(ProjectError) as error:
        pipeline.prepare(root)

    assert codes(looked) == sorted((p.code, p.place.file, p.place.line) for p in error.value.problems)
    assert again.findings == looked.findings


def test_a_sound_edit_has_no_finding_and_writes_nothing(tmp_path: Path) -> None:
    root = written(tmp_path)
    looker = Looker(root)

    assert looker.look({"models/orders.sql": ORDERS}).findings == ()
    before = (root / "target/cache.jsonl").read_bytes()
    assert looker.look({"models/orders.sql": ORDERS.replace("\n", "\r\n") + "-- 😀\r\n"}).findings == ()
    assert looker.look({"models/new.sql": "select id from {{ ref('orders') }}"}).findings == ()
    assert "new" in looker.look({"models/new.sql": "select id from {{ ref('orders') }}"}).nouns
    assert (root / "target/cache.jsonl").read_bytes() == before
    assert {file.name for file in root.iterdir()} == {name.partition("/")[0] for name in FILES} | {"target"}


def test_a_broken_text_keeps_what_was_known(tmp_path: Path) -> None:
    looker = Looker(written(tmp_path))
    sound = looker.look({})

    for file, text in cases():
        found = looker.look({file: text}).nouns
        assert {key: noun.columns for key, noun in found.items()} == {k: n.columns for k, n in sound.nouns.items()}, (
            file
        )
        assert found["days"].strategy == sound.nouns["days"].strategy
    assert looker.look({}).findings == ()


def test_an_edit_that_changes_a_strategy_is_shown_until_it_is_saved(tmp_path: Path) -> None:
    root = written(tmp_path)
    looker = Looker(root)
    looker.look({})
    edited = DAYS.replace("count(*) as n", "max(o.total) as n")
    (found,) = looker.look({"models/days.sql": edited}).findings

    assert (found.file, found.line, found.level, found.code) == ("models/days.sql", 0, "warning", "")
    assert found.message.startswith("this edit turns merge into keys: SR5")
    assert looker.look({"models/days.sql": edited + "\nselec"}).findings[0].code == "SR301"
    (root / "models/days.sql").write_text(edited)
    assert looker.look({"models/days.sql": edited}).findings == ()
    (back,) = looker.look({"models/days.sql": DAYS}).findings
    assert (back.level, back.message[:34]) == ("information", "this edit turns keys into merge: S")


def test_open_models_and_those_that_they_read_are_traced(tmp_path: Path) -> None:
    looker = Looker(written(tmp_path))
    counted = {"id": "copied from `orders.id`", "n": "computed from rows of orders by `count(*)`"}

    assert looker.look({}).origins == {}
    assert looker.look({"models/orders.yml": FILES["models/orders.yml"]}).origins.keys() == {"orders"}
    found = looker.look({"models/days.sql": DAYS}).origins
    assert (found.keys(), found["days"]) == ({"days", "orders"}, counted)
    # A star follows the model that it reads, and a broken text keeps what was known.
    star = "select * from {{ ref('orders') }}"
    assert looker.look({"models/days.sql": star}).origins["days"]["total"] == "copied from `orders.total`"
    wider = {"models/days.sql": star, "models/orders.sql": "select id, 'x' as day from {{ ref('raw_orders') }}",
             "models/orders.yml": "models:\n  - {name: orders}\n"}  # fmt: skip
    assert looker.look(wider).origins["days"].keys() == {"id", "day"}
    assert looker.look({"models/days.sql": star}).origins["orders"].keys() == {"id", "total"}
    assert looker.look({"models/days.sql": "selec"}).origins["days"].keys() == {"id", "total"}


@pytest.mark.slow
def test_a_huge_text_is_a_problem(tmp_path: Path) -> None:
    look = Looker(written(tmp_path)).look({"models/days.sql": DAYS + "-- a\n" * 250_000})

    assert [one.code for one in look.findings] == ["SR101", "SR208"]


def test_only_changed_nouns_are_sent_to_the_server(tmp_path: Path) -> None:
    looker = Looker(written(tmp_path))
    first = looker.look({}).nouns
    second = looker.look({"models/new.sql": "select id from {{ ref('orders') }}"}).nouns
    sent = [frames.nouns(part["nouns"]) for part in frames.chunks(first, second)]
    (gone,) = frames.chunks(second, first)

    assert [[noun.name for noun in nouns] for nouns in sent] == [["new"]]
    assert (gone["nouns"], gone["gone"]) == ([], ["new"])
    whole = [noun for part in frames.chunks({}, first) for noun in frames.nouns(part["nouns"])]
    assert {noun.key: noun for noun in whole} == first
    found = Finding("a", 1, 2, 3, "error", "SR301", "😀")
    origins = {"a": {"b": "c"}}
    assert frames.heard(frames.done_message((found,), (), origins)) == ((found,), (), origins)
