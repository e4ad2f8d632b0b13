"""What a query could see of the environment if it got past the checks: nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from tests.support.projects import ROOT
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.spark, pytest.mark.long]

CANARY = "canary-93be02"
# It needs a JVM of its own: the JVM outlives its session, and a later session would get it without its own jars.
ALONE = """\
import os
import sys
from sqlrun.engines.spark.session import session_of

canary = sys.argv[1]
before = dict(os.environ)
session = session_of({"spark.hadoop.secret": canary, "spark.sql.variable.substitute": "true"})
environment, path = session.sql(
    "select java_method('java.lang.System', 'getenv'), java_method('java.lang.System', 'getenv', 'PATH')"
).collect()[0]
texts = session.sql(r"select '${env:CANARY}', '${spark.hadoop.secret}', '${hadoop.secret}'").collect()[0]
try:
    session.sql(f"select cast(value as int) from values ('{canary}') as t(value)").collect()
except Exception as error:
    failed = type(error).__name__
after = dict(os.environ)
changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
print(repr((canary in environment, path, tuple(texts), failed, changed)))
session.stop()
"""


def test_the_jvm_sees_no_variable_of_ours() -> None:
    """Neither by reflection nor by Spark's own substitution; and this process keeps its variables and its streams.

    A query that fails is told by an exception alone: what PySpark prints of it would show values.
    """
    done = subprocess.run(
        [sys.executable, "-c", ALONE, CANARY], cwd=ROOT, capture_output=True, text=True, timeout=HUNG,
        env=os.environ | {"CANARY": CANARY, "AWS_SECRET_ACCESS_KEY": CANARY},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout + done.stderr
    seen, path, texts, failed, changed = ast.literal_eval(done.stdout)
    assert not seen
    assert path
    assert texts == ("${env:CANARY}", "${spark.hadoop.secret}", "${hadoop.secret}")
    assert failed == "NumberFormatException"
    assert [name for name in changed if "SPARK" not in name] == []
