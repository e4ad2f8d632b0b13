"""Dropped lines: each line of a source lands, is quarantined, is dropped with a reason, or is blank."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Landing, LineCounts, Written
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import ProjectError
from sqlrun.project import BLANK_LINE, FILTERED
from tests.support import shops
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.shops import sale
from tests.support.strict_reader import Reader

RULES = """\
        drop_where:
          - {where: "shop <> 'ada' and shop <> 'bob'", reason: another team's}
          - where: amount * 2 > 100
            reason: too large
"""
ANOTHER, LARGE = "another team's", "too large"
DROPPED = (ANOTHER, LARGE, FILTERED, BLANK_LINE)
COLUMNS = [("id", "string", False, ""), ("shop", "string", True, ""), ("amount", "decimal(10,2)", True, "")]
COLUMNS += [("guest", "string", True, "")]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Written]:
    """Record what the engine reports about each landing."""
    found: list[Written] = []
    real = DuckDBEngine.land

    def recorded(self: DuckDBEngine, landing: Landing) -> Written:
        found.append(real(self, landing))
        return found[-1]

    monkeypatch.setattr(DuckDBEngine, "land", recorded)
    return found


def site(folder: Path, rules: str = RULES, **options: Any) -> Site:
    made = shops.project(folder, **options)
    sources = made / "models" / "_sources.yml"
    sources.write_text(sources.read_text() + rules)
    return Site(made, DuckDBEngine())


def held(made: Site) -> Counter[str]:
    """Return the numbers of landed and quarantined rows, by reason; "" for landed ones."""
    counts = Counter({"": len(made.rows(shops.NAME))})
    return counts + Counter(shops.waiting(made))


def expected(line: str) -> str:
    """Return what becomes of a line, by plain Python: a reason, or "" if it lands."""
    if not line.strip(" \t"):
        return BLANK_LINE
    judged = Reader(COLUMNS).judge(line)
    if judged.reason is not None:
        return judged.reason
    assert judged.values is not None
    id, shop, amount = (judged.values[name] for name in ("id", "shop", "amount"))
    if shop is not None and shop not in ("ada", "bob"):
        return ANOTHER
    if amount is not None and amount * 2 > 100:
        return LARGE
    if id == "test":
        return FILTERED
    if amount is not None and amount < 0:
        return shops.NEGATIVE
    return ""


def random_lines(chance: random.Random, count: int) -> Iterator[str]:
    for number in range(count):
        value: dict[str, Any] = {
            "id": chance.choice([str(number), "test", None, {"a": 1}]) if chance.random() < 0.4 else str(number),
            "shop": chance.choice(["ada", "bob", "ada", "cid", "", None, 3]),
            "amount": chance.choice(["1.00", "50.00", "50.01", "-1", "a", None, 7, 1e3]),
            "guest": chance.choice(["Ada", None, "'", "\\"]),
        }
        text = json.dumps(value)
        match chance.randrange(12):
            case 0:
                yield chance.choice(["", " ", "\t \t"])
            case 1:
                yield text[: chance.randrange(len(text))]
            case 2:
                yield f"  {text}\t"
            case 3:
                yield text.replace("shop", chance.choice(["shop", "id", "other"]))
            case _:
                yield text


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_line_has_one_state(seed: int, tmp_path: Path, written: list[Written]) -> None:
    made = site(tmp_path, suite=f"max_quarantined: 99%\n{shops.SUITE}")
    chance = random.Random(seed)
    files = {f"{number}.jsonl": list(random_lines(chance, 200)) for number in range(3)}
    for name, lines in files.items():
        shops.send(made, name, *lines)
    assert made.tick(START, select=(shops.NAME,)).published

    states = {name: Counter(map(expected, lines)) for name, lines in files.items()}
    total = sum(states.values(), Counter[str]())
    counts = written[-1].counts
    assert counts.lines == 600 == sum(total.values())
    dropped = {reason: total[reason] for reason in DROPPED}
    assert written[-1].dropped == dropped
    assert min(dropped.values()) > 0
    assert held(made) == total - Counter(dropped)
    by_part = {
        (name, reason): found[reason] for name, found in states.items() for reason in dropped if reason != BLANK_LINE
    }
    assert counts.by_part == {key: count for key, count in by_part.items() if count}


def test_a_broken_line_is_quarantined_not_dropped(tmp_path: Path, written: list[Written]) -> None:
    made = site(tmp_path)
    broken = {**sale("1", shop="cid"), "amount": "much"}
    unknown = sale("2") | {"shop": None, "amount": "60"}
    shops.send(made, "a.jsonl", json.dumps(broken), json.dumps(unknown), sale("3", "cid", "60"), "", sale("4"))
    assert made.tick(START, select=(shops.NAME,)).published

    # The first rule that is true gives the reason; one that is NULL doesn't drop.
    assert written[-1].dropped == {ANOTHER: 1, LARGE: 1, BLANK_LINE: 1}
    assert shops.waiting(made) == {"amount: not of type decimal(10, 2)": 1}
    assert [row["id"] for row in made.rows(shops.NAME)] == ["4"]
    samples = {sample.reason: sample for sample in written[-1].counts.samples}
    assert samples.keys() == {ANOTHER, LARGE}
    assert json.loads(samples[ANOTHER].text)["id"] == "3" and samples[ANOTHER].origin == "a.jsonl"


def test_the_console_names_the_reasons_once(tmp_path: Path, written: list[Written]) -> None:
    made = site(tmp_path, pii=True)
    shops.send(made, "a.jsonl", sale("1"), sale("2", "cid"), sale("3", "dan"), sale("test"), " ")
    result = made.tick(START, select=(shops.NAME,))
    (node,) = result.nodes
    assert node.dropped == ((ANOTHER, 2), (BLANK_LINE, 1), (FILTERED, 1))
    # The guest is tagged pii, so no one sees a line's text.
    samples = node.stages[-1].counts.samples
    assert len(samples) == 3 and {sample.text for sample in samples} == {""}
    assert made.tick(START + FIVE, select=(shops.NAME,)).nodes[0].status == "no-op"


@pytest.mark.slow
def test_a_build_prints_and_stores_the_numbers(tmp_path: Path) -> None:
    made = site(tmp_path)
    shops.send(made, "a.jsonl", sale("1"), sale("2", "cid"), sale("3", "dan"), sale("test"), " ", "{")
    printed = shops.run(made, "build", "--verbose")
    assert "[OK 1 row, 1 quarantined, 4 dropped in " in printed
    assert printed.count("dropped: 2 another team's, 1 blank line, 1 filtered by the model\n") == 1
    stored = json.loads((made.root / "target" / "run_results.json").read_text())
    (landing,) = (one for one in stored["results"] if one["unique_id"].endswith(f".{shops.NAME}"))
    response = landing["adapter_response"]
    assert response["rows_dropped"] == 4
    assert response["drop_reasons"] == {ANOTHER: 2, BLANK_LINE: 1, FILTERED: 1}
    assert [sample["origin"] for sample in response["drop_samples"]] == ["a.jsonl"] * 3

    shops.send(made, "b.jsonl", sale("4"), sale("5", "dan"))
    assert ", 1 dropped" in shops.run(made, "build")


def test_counts_are_added() -> None:
    one = LineCounts(2, {"a": 1}, {("p", "a"): 1})
    two = LineCounts(3, {"b": 2, "a": 1}, {("p", "a"): 1, ("q", "b"): 2})
    assert one + two == LineCounts(5, {"a": 2, "b": 2}, {("p", "a"): 2, ("q", "b"): 2})
    assert (one + LineCounts()).lines is None


def test_rules_are_part_of_the_tables_meaning(tmp_path: Path) -> None:
    plain = site(tmp_path / "plain", rules="").prepared.workspace.prints
    ruled = site(tmp_path / "ruled").prepared.workspace.prints
    assert plain[shops.NAME] != ruled[shops.NAME]
    reworded = site(tmp_path / "reworded", RULES.replace("too large", "large").replace("* 2", "*  2"))
    assert reworded.prepared.workspace.prints == ruled


@pytest.mark.slow
def test_an_edited_rule_lands_the_source_again(tmp_path: Path) -> None:
    made = site(tmp_path, rules="")
    shops.send(made, "a.jsonl", sale("1"), sale("2", "bob", "60"), sale("3", "dan"))
    made.tick(START)
    assert shops.waiting(made) == {shops.UNKNOWN: 1}

    sources = made.root / "models" / "_sources.yml"
    sources.write_text(sources.read_text() + RULES)
    ruled = Site(made.root, made.engine)
    assert "drop rules of its source were added" in shops.run(ruled, "plan")
    explained = shops.run(ruled, "explain", shops.NAME)
    assert "drops      lines where amount * 2 > 100: too large (models/_sources.yml:16:20)" in explained
    (landing,) = (node for node in ruled.tick(START + FIVE).nodes if node.name == shops.NAME)
    assert landing.dropped == ((ANOTHER, 1), (LARGE, 1))
    assert [row["id"] for row in ruled.rows(shops.NAME)] == ["1"]
    assert shops.waiting(ruled) == {}

    laxer = shops.edit(ruled, "> 100", "> 200", "models/_sources.yml")
    assert "its query, columns, layout or drop rules were edited" in shops.run(laxer, "plan")
    laxer.tick(START + 2 * FIVE)
    assert sorted(row["id"] for row in laxer.rows(shops.NAME)) == ["1", "2"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{where: shop = 'a'}", "a drop rule lacks `reason`"),
        ("{reason: a}", "a drop rule lacks `where`"),
        ("{where: shop = 'a', reason: blank line}", "the reason `blank line` of a drop rule is sqlrun's own"),
        ("{where: shop = 'a', reason: too large}", "the reason `too large` of a drop rule occurs twice"),
        ("{where: shop = 'a', reason: b, on: c}", "unknown key `on` of a drop rule"),
        ("{where: \"shop = '{{ x }}'\", reason: b}", "`where` contains `{{`"),
        ("{where: amount, reason: b}", "the condition `amount` is of type `decimal(10,2)`, not boolean"),
        ("{where: amount > 1 group by id, reason: b}", "it is more than one condition"),
        ("{where: a) or (b, reason: b}", "syntax error: unexpected `)`"),
        ("{where: current_timestamp() > timestamp '2026-01-01', reason: b}", "_sources.yml:18:21"),
        ("{where: 'true', reason: b}", "it is no test of a line"),
        ("{where: shop > amount, reason: b}", "A drop rule must mean the same on both engines"),
    ],
)
def test_a_wrong_rule_is_reported(rule: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        site(tmp_path, f"{RULES}          - {rule}\n")
    assert message in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("given", ["rows", "lines"])
def test_unit_tests_apply_the_rules(given: str, tmp_path: Path) -> None:
    made = site(tmp_path)
    rows = [sale("1"), sale("2", "cid"), sale("3", "ada", "99"), sale("test")]
    listed = ", ".join(f"'{json.dumps(row)}'" if given == "lines" else json.dumps(row) for row in rows)
    contract = made.root / "models" / f"{shops.NAME}.yml"
    contract.write_text(
        f"{contract.read_text()}"
        "unit_tests:\n"
        "  - name: rules\n"
        f"    model: {shops.NAME}\n"
        "    given:\n"
        "      - input: source('shops', 'sales')\n"
        f"        format: {'lines' if given == 'lines' else 'dict'}\n"
        f"        rows: [{listed}]\n"
        "    expect:\n"
        "      rows: [{id: '1'}]\n"
    )
    assert "PASS=1 FAIL=0" in shops.run(made, "test")
