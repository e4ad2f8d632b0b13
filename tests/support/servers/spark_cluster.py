"""A cluster of Spark: a master and two workers of one core, and a Spark Connect server. Shell: processes, ports."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.servers import jars
from tests.support.servers.process import LONGEST, SMALL, Process, StartError, free_port

ROOT = Path(__file__).parents[3]
HOST = "127.0.0.1"
WORKERS = 2
# Megabytes of an executor, and of what a worker lends.
EXECUTOR, WORKER = 640, 1100


# What a server needs of Delta, beside its jars.
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class Node:
    """One process of a cluster."""

    def __init__(self, folder: Path, name: str, main: str, *arguments: str, memory: str = "256m") -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        variables = {
            "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": memory, "SPARK_DAEMON_JAVA_OPTS": " ".join(SMALL), "SPARK_CONF_DIR": str(folder),
        }  # fmt: skip
        command = ["env", *(f"{key}={value}" for key, value in variables.items()), str(home / "bin" / "spark-class")]
        self.process = Process([*command, main, *arguments], folder / f"{name}.log")


class Cluster:
    """A standalone cluster; `workers` are its processes, which tests may kill."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self._page = free_port(), free_port()
        package = "org.apache.spark.deploy"
        place = ("--host", HOST, "--port", str(self.port), "--webui-port", str(self._page))
        self.master = Node(folder, "master", f"{package}.master.Master", *place)
        self.workers = [
            Node(
                folder, f"worker{n}", f"{package}.worker.Worker", "--host", HOST, "--webui-port", str(free_port()),
                "-c", "1", "-m", f"{WORKER}m", "-d", str(folder / f"work{n}"), self.url,
            )
            for n in range(WORKERS)
        ]  # fmt: skip

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of a profile for this cluster."""
        return {
            "spark.master": self.url, "spark.driver.host": HOST, "spark.driver.bindAddress": HOST,
            "spark.driver.memory": "1g", "spark.executor.memory": f"{EXECUTOR}m", "spark.executor.cores": "1",
            "spark.pyspark.python": sys.executable, "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.executorEnv.PYTHONPATH": str(ROOT),
        }  # fmt: skip

    def start(self) -> None:
        self.master.process.start(lambda: self.state() is not None)
        for worker in self.workers:
            worker.process.start(lambda: True)
        for number, worker in enumerate(self.workers, 1):
            self.await_workers(number, worker)

    def await_workers(self, number: int, worker: Node) -> None:
        """Wait until the master knows a number of workers."""
        end = time.monotonic() + LONGEST
        while (self.state() or {"aliveworkers": 0})["aliveworkers"] < number:
            if not worker.process.running or time.monotonic() > end:
                raise StartError(f"a worker didn't register:\n{worker.process.last_output()}")
            time.sleep(0.1)

    def state(self) -> Mapping[str, int] | None:
        address = f"http://{HOST}:{self._page}/json/"
        with suppress(URLError, ConnectionError, TimeoutError), urlopen(address, timeout=5) as page:
            found: Mapping[str, int] = json.load(page)
            return found
        return None

    def stop(self) -> None:
        for node in (*self.workers, self.master):
            node.process.stop()


class Connect:
    """A Spark Connect server on this machine, without executors of its own."""

    def __init__(self, folder: Path, settings: Mapping[str, str] = DELTA) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        given = {
            "spark.master": "local[2]", "spark.driver.memory": "1g", "spark.driver.host": HOST,
            "spark.ui.enabled": "false", "spark.driver.bindAddress": HOST, "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self.port), "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1", "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.jars": ",".join(map(str, sorted(jars.needed(jars.DELTA).glob("*.jar")))), **settings,
        }  # fmt: skip
        confs = [word for key, value in given.items() for word in ("--conf", f"{key}={value}")]
        service = "org.apache.spark.sql.connect.service.SparkConnectServer"
        self.node = Node(
            folder,
            "connect",
            "org.apache.spark.deploy.SparkSubmit",
            "--class",
            service,
            *confs,
            "spark-internal",
            memory="1g",
        )

    @property
    def url(self) -> str:
        return f"sc://{HOST}:{self.port}"

    def start(self) -> None:
        self.node.process.start(lambda: _listens(self.port))

    def stop(self) -> None:
        self.node.process.stop()


def _listens(port: int) -> bool:
    with closing(socket.socket()) as tried:
        return tried.connect_ex((HOST, port)) == 0


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Run a cluster."""
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
