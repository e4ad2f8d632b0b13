"""Messages of `sqlrun test` on the engine of the tests, without a JVM."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from sqlrun.engines.spark import session as spark_session
from sqlrun.errors import Place
from sqlrun.unit_tests.output.shown import failures
from sqlrun.unit_tests.run import run
from sqlrun.unit_tests.run.results import TestResult
from tests.support import broken, tested

HASHED = {
    "seeds/once.csv": "id\n1\n",
    "seeds/once.yml": broken.contract("once").replace("models:", "seeds:"),
    "models/hashed.sql": "select id, cast(hash(id) as string) as hashed from {{ ref('once') }}\n",
    "models/hashed.yml": broken.contract("hashed", "id", "hashed string")
    + """\
unit_tests:
  - name: one_is_hashed_as_spark_does
    model: hashed
    given:
      - {input: ref('once'), rows: [{id: 1}]}
    expect: {rows: [{id: 1, hashed: "-559580957"}]}
    then:
      - changes: [{input: ref('once'), left: [{id: 1}]}]
        expect: {rows: []}
""",
}


def test_the_error_of_a_spark_only_function_says_how_to_run_its_test(tmp_path: Path) -> None:
    result = tested.run(broken.write(tmp_path, HASHED))

    assert result.exit_code == 1
    text = " ".join(result.output.split())
    assert "SR310 models/hashed.sql:1:17" in text
    assert "`sqlrun test --engine spark` runs this test." in text


def test_without_java_no_test_passes(tmp_path: Path) -> None:
    with mock.patch.object(spark_session, "java_problem", return_value="Spark needs Java 17 or newer"):
        result = tested.run(tested.project(tmp_path), "--engine", "spark")

    assert result.exit_code == 1
    assert "Spark needs Java 17 or newer" in result.output
    assert "PASS" not in result.output


def test_an_unknown_engine_is_rejected(tmp_path: Path) -> None:
    result = tested.run(tested.project(tmp_path), "--engine", "flink")

    assert result.exit_code == 2
    assert "'flink' is not one of 'duckdb', 'spark'" in result.output


@pytest.mark.parametrize(
    ("compared", "step", "sentence"),
    [
        ("contract", 2, "The table after step 2: these rows break the contract, and no build would publish them."),
        ("contract", 0, "The table before the first step: these rows break the contract"),
        (
            "parity",
            1,
            "The whole query after step 1: expected is the result of DuckDB; that of Spark differs.",
        ),
    ],
)
def test_a_failure_names_the_comparison(compared: str, step: int, sentence: str) -> None:
    place = Place("m.yml", 1, 1)
    failed = TestResult("t", "m", place, "fail", 0.0, ("id",), (("1",),), (("2",),), step=step, compared=compared)

    assert sentence in "\n".join(line.text for line in failures([failed]))


ASKING = {
    "seeds/once.csv": "id\n1\n",
    "seeds/once.yml": broken.contract("once").replace("models:", "seeds:"),
    "models/asks.sql": "select id from {{ ref('once') }} where id < year(current_timestamp())\n",
    "models/asks.yml": broken.contract("asks")
    + """\
unit_tests:
  - name: no_time_is_given
    model: asks
    given:
      - {input: ref('once'), rows: [{id: 1}]}
    expect: {rows: [{id: 1}]}
""",
}
ENDLESS = {
    "models/endless.sql": "with a as (select explode(sequence(1, 9000)) as x)\n"
    "select count(*) as n from a as p cross join a as q cross join a as r where p.x * q.x + r.x = 7\n",
    "models/endless.yml": broken.contract("endless", "n bigint")
    + """\
unit_tests:
  - name: it_ends
    model: endless
    given: []
    expect: {rows: [{n: 1}]}
""",
}


@pytest.mark.slow
def test_a_missing_as_of_is_reported_with_its_place(tmp_path: Path) -> None:
    result = tested.run(broken.write(tmp_path, ASKING))

    assert result.exit_code == 1
    output = " ".join(result.output.split())
    assert "SR121 models/asks.yml:7:5 the model reads the time of the tick. Add `as_of` to the test" in output


@pytest.mark.slow
def test_an_endless_test_is_reported_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LONGEST", 0.05)
    result = tested.run(broken.write(tmp_path, ENDLESS))

    assert result.exit_code == 1
    assert "SR121 models/endless.yml:7:5 the test took longer than 0.05 s." in " ".join(result.output.split())
