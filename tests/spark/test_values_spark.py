"""Hostile values on Spark, in every place of a project; `make values ENGINE=spark` plays more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlrun.engines.spark import session as spark_session
from sqlrun.engines.spark.engine import SparkEngine
from tests.load.test_names import run
from tests.support import broken, shops
from tests.values import playing

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("unchecked"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


@pytest.mark.slow
def test_hostile_values_are_kept_true_on_spark(engine: SparkEngine, tmp_path: Path) -> None:
    """Keys, group keys, partition values, below folders named like columns; small files are put together between."""
    play = playing.play(tmp_path / "city=x" / "day=1", 5, engine=engine)

    play.tick(20)
    play.maintain()
    play.tick(20)
    play.require_true()


@pytest.mark.slow
def test_writers_alternate_on_spark(engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits by sqlrun, then by Delta Lake, then by sqlrun: every table stays its query's answer."""
    play = playing.play(tmp_path, 12, engine=engine)
    for own in (True, False, True):
        monkeypatch.setattr(engine, "_own_commits", own)
        play.tick(15)
        play.require_true()


DAY = "date_add(date '9999-12-30', cast(amount as int)) as day"
WAYS = {
    "append": (f"select id, {DAY} from {{{{ ref('stg_sales') }}}}", ("id string",), "[id]"),
    "merge": (f"select count(*) as n, {DAY} from {{{{ ref('stg_sales') }}}} group by 2", ("n bigint",), "[day]"),
    "keys": (f"select max(id) as id, {DAY} from {{{{ ref('stg_sales') }}}} group by 2", ("id string",), "[day]"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_day_that_no_partition_can_have_ends_a_tick(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """SR736; what was published stays true, and the tick after a fix too."""
    monkeypatch.setattr(spark_session, "end", lambda _: None)
    root, (sql, columns, grain) = shops.project(tmp_path), WAYS[way]
    extra = f"    grain: {grain}\n    config: {{partition_by: [day]}}\n"
    files = {"models/far.sql": sql + "\n", "models/far.yml": broken.contract("far", *columns, "day date", extra=extra)}
    broken.write(root, {**files, "profiles/local.yml": "engine: spark\nwarehouse: warehouse\n"})
    for name, amount in (("1", "1.00"), ("2", "2.00")):
        line = {**shops.sale(name, "ada"), "amount": amount}
        (root / f"data/orders/{name}.jsonl").write_text(json.dumps(line) + "\n")
        code, output = run(root, "build")
        assert (code, "SR736" in output) == ((0, False) if name == "1" else (1, True)), output
    assert "far" in output and "years 1 to 9999" in output
    assert len(json.loads(run(root, "show", "far", "--output", "json")[1])) == 1
    (root / "models/far.sql").write_text(sql.replace(DAY, f"least({DAY[:-7]}, date '9999-12-31') as day") + "\n")
    for command in ("build", "verify"):
        code, output = run(root, command)
        assert code == 0, output
