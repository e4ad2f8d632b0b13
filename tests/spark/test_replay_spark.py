"""Lines that were set aside come in on Spark as they do on DuckDB: once, beside a stream that goes on landing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlrun.engine_api import Merge
from sqlrun.engines.spark.engine import SparkEngine
from tests.land.test_replay import EVES, MILDER, OWING, Stop, is_true, note, tick
from tests.support.projects import Site
from tests.support.script import FIVE, START
from tests.support.shops import (
    NAME,
    NEGATIVE,
    UNKNOWN,
    by_shop,
    edit,
    quarantine_rows,
    run,
    sale,
    send,
    site,
    sums,
    waiting,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("unchecked"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# Spark would end the statement at a guest who isn't a number, where it reads as strictly as it does elsewhere.
STRICT = ("amount, guest", "amount, cast(cast(guest as int) as string) as guest")
WIDE = sale("ünï 🍕", "eve", "7.00")


def test_a_replay_on_spark(engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fix, a tick that dies after its merge, the one that carries it out, a file that came meanwhile."""
    made = edit(site(tmp_path, engine), *STRICT, "models/stg_sales.sql")
    send(made, "0.jsonl", sale("1"), sale("2", "bob"), OWING, WIDE, *EVES, "{cut off")
    assert made.tick(START).published
    assert waiting(made) == {UNKNOWN: 4, NEGATIVE: 1, "not a JSON object": 1}
    assert {row["line"] for row in quarantine_rows(made, "show", NAME)} == {3, 4, 5, 6, 8}

    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")
    send(fixed, "1.jsonl", sale("8"))
    real = fixed.engine.write

    def dying(request: Any) -> Any:
        done = real(request)
        if isinstance(request.statement, Merge) and request.table.name == NAME:
            raise Stop
        return done

    with monkeypatch.context() as patched:
        patched.setattr(fixed.engine, "write", dying)
        with pytest.raises(Stop):
            tick(fixed, 1)
    assert by_shop(fixed) == sums(sale("1"), sale("2", "bob"))
    result = tick(fixed, 2)

    assert result.published, [node.message for node in result.nodes]
    assert note(result) == (
        f"stg_sales: replayed 6 lines of the quarantine: 4 came in, 2 still quarantined: {NEGATIVE} (1); "
        "not a JSON object (1)"
    )
    everything = (sale("1"), sale("2", "bob"), WIDE, *EVES, sale("8"))
    assert by_shop(fixed) == sums(*everything)
    assert waiting(fixed) == {NEGATIVE: 1, "not a JSON object": 1}
    send(fixed, "2.jsonl", sale("9", "zoe"))
    assert tick(fixed, 3).published
    assert by_shop(fixed) == sums(*everything)
    assert {row["reason"]: row["replayed"] for row in quarantine_rows(fixed, "list") if row["replayed"]} == {UNKNOWN: 4}
    is_true(fixed)


@pytest.mark.long
def test_an_engine_replays_what_another_has_landed(engine: SparkEngine, tmp_path: Path) -> None:
    """A line's id is the same to both."""
    made = site(tmp_path)
    send(made, "0.jsonl", sale("1"), WIDE, *EVES)
    assert made.tick(START).published
    fixed = edit(made, *MILDER)
    run(fixed, "quarantine", "replay", NAME, "--all")
    other = Site(fixed.root, engine)

    assert other.tick(START + FIVE).published
    assert by_shop(other) == sums(sale("1"), WIDE, *EVES)
    assert waiting(other) == {}
