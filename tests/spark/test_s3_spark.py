"""Spark on a warehouse in S3: writers at once, and answers that are lost."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster_day import Day
from tests.support.servers import jars, moto_s3, s3_proxy
from tests.support.servers.s3_proxy import SOUND, Fault
from tests.support.waiting import HUNG

pytestmark = [pytest.mark.spark, pytest.mark.long]
ROOT = Path(__file__).parents[2]


def race(**work: Any) -> dict[str, Any]:
    """Run a race in a process of its own, whose JVM has the jars of S3A."""
    jars.spark_jar()
    # Tests need no network: Ivy would look for them there.
    work["settings"] = {"spark.jars": ",".join(map(str, jars.S3A.files())), **work.get("settings", {})}
    command = [sys.executable, "-m", "tests.support.race_on_s3", json.dumps(work)]
    environment = {**os.environ, **moto_s3.KEYS, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HUNG, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_of_writers_at_once_none_loses_a_commit():
    with moto_s3.running() as endpoint, s3_proxy.before(endpoint) as proxy:
        delays = itertools.cycle((0.5, 0.0, 0.5, 0.5, 0.0))
        # A late commit finds that another writer has taken its number meanwhile.
        proxy.fault = lambda request: Fault(seconds=next(delays)) if request.is_commit else SOUND
        found = race(endpoint=proxy.endpoint, upstream=endpoint, spark=2, rust=1, commits=3)

    refused = sum(status == 412 for _, status in proxy.seen)
    assert (found["lost"], found["doubled"], found["failed"]) == (0, 0, [])
    assert found["acknowledged"] == found["there"] == found["version"] > 2 * 3
    assert found["first"] == 1
    assert refused > 1, "the writers never met"


def test_the_checkpoint_of_a_stream_is_written_on_condition(tmp_path, s3):
    jars.spark_jar()
    settings = {"spark.master": "local[2]", "spark.jars": ",".join(map(str, jars.S3A.files()))}
    with s3_proxy.before(s3.endpoint) as proxy:
        variables = {**s3.environment, "AWS_ENDPOINT_URL": proxy.endpoint}
        day = Day(tmp_path / "project", settings, s3.warehouse(tmp_path), variables)
        for number in (0, 1):
            day.land(number)
            assert day.build(number, select="stg_order_events") == 0

    files = [seen for seen, _ in proxy.seen if "/checkpoints/" in seen.path and seen.method != "GET"]
    files = [seen for seen in files if not seen.path.endswith("/")]  # S3A marks folders
    written = [one.path.rpartition("/")[2] for one in files if one.method == "PUT"]
    assert sorted(written) == ["0", "0", "0", "1", "1", "1", "metadata"]
    assert all(one.conditional for one in files if one.method == "PUT")
    assert not any(".tmp" in one.path for one in files)
