"""The reference project on a standalone cluster of a master and two workers, which tests kill while ticks run.

Its warehouse is in S3, so that executors and the driver share nothing but the store.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.cluster_day import LONGEST, Day
from tests.support.servers import jars, spark_cluster
from tests.support.servers.object_stores import S3
from tests.support.servers.spark_cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.long]


# Seconds that a tick goes on before something dies.
PAUSE = 4


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with spark_cluster.running(tmp_path / "cluster") as made:
        yield made


def executors(cluster: Cluster) -> list[int]:
    """Return the processes of executors, by the workers that started them."""
    parents = {str(node.process.pid) for node in cluster.workers if node.process.running}
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, parent, args in rows if parent in parents and "CoarseGrainedExecutorBackend" in args]


def await_executors(cluster: Cluster, process: subprocess.Popen[bytes]) -> list[int]:
    """Wait until a build's executors run."""
    end = time.monotonic() + LONGEST
    while not (found := executors(cluster)):
        assert process.poll() is None, "the build ended before its executors were there"
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def test_numbers_are_right_whatever_dies(tmp_path: Path, cluster: Cluster, s3: S3) -> None:
    """An executor, then a worker, then the driver die in the middle of ticks; every tick is there once."""
    jars.spark_jar()
    # Tests need no network: Ivy would look for the jars there.
    settings = {**cluster.settings, "spark.jars": ",".join(map(str, jars.S3A.files()))}
    day = Day(tmp_path / "project", settings, s3.warehouse(tmp_path), s3.environment)

    def kill_an_executor_and_a_worker(process: subprocess.Popen[bytes]) -> None:
        os.kill(await_executors(cluster, process)[0], signal.SIGKILL)
        time.sleep(PAUSE)
        cluster.workers[1].process.kill()

    def kill_the_driver(process: subprocess.Popen[bytes]) -> None:
        await_executors(cluster, process)
        time.sleep(PAUSE)
        os.killpg(process.pid, signal.SIGKILL)

    day.land(0, timedelta(hours=2))
    assert day.build(0, kill_an_executor_and_a_worker) == 0
    day.land(1)
    assert day.build(1, kill_the_driver) == -signal.SIGKILL
    assert day.build(2) == 0
    day.check(2)
