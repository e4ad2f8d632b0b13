"""What a query could see of the environment if it got past the checks: nothing."""

from __future__ import annotations

import os

import pytest

from sqlrun.engines.spark.session import session_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CANARY = "canary-93be02"


@pytest.mark.long
def test_the_jvm_sees_no_variable_of_ours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither by reflection nor by Spark's own substitution; and this process keeps its variables and its streams.

    A query that fails is told by an exception alone: what PySpark prints of it would show values.
    """
    from pyspark import SparkContext

    # It needs a JVM of its own, and stops it: it runs before the session that all others share is started.
    assert SparkContext._active_spark_context is None
    monkeypatch.setenv("CANARY", CANARY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    before = dict(os.environ)

    session = session_of({"spark.hadoop.secret": CANARY, "spark.sql.variable.substitute": "true"})
    try:
        environment = session.sql("select java_method('java.lang.System', 'getenv')").collect()[0][0]
        path = session.sql("select java_method('java.lang.System', 'getenv', 'PATH')").collect()[0][0]
        texts = session.sql(r"select '${env:CANARY}', '${spark.hadoop.secret}', '${hadoop.secret}'").collect()[0]
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            session.sql(f"select cast(value as int) from values ('{CANARY}') as t(value)").collect()
    finally:
        session.stop()

    assert CANARY not in str(environment)
    assert CANARY not in caplog.text + "".join(capfd.readouterr())
    assert path
    assert tuple(texts) == ("${env:CANARY}", "${spark.hadoop.secret}", "${hadoop.secret}")
    assert {k: v for k, v in os.environ.items() if "SPARK" not in k} == {
        k: v for k, v in before.items() if "SPARK" not in k
    }
