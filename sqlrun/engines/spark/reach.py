"""Whether a cluster answers and lends executors: Spark itself waits for minutes, or for ever. Shell: sockets, Spark."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from sqlrun.errors import EngineError

SERVER_PORT, MASTER_PORT = 15002, 7077
# Seconds to connect in, and in which the first executor has to register.
CONNECT, REGISTER = 10.0, 120.0
AGAIN = 0.1


def require_server(url: str) -> None:
    """Check that something listens at the address of a Spark Connect server. Raises: EngineError (SR813)."""
    host, port = _address(url, "sc", SERVER_PORT)
    problem = _problem(host, port)
    if problem:
        raise EngineError(
            f"SR813 no Spark Connect server answers at {host}:{port}: {problem}. Start it, or correct `spark.remote` "
            "in the profile"
        )


def require_master(master: str) -> None:
    """Check that one of the masters of a standalone cluster is there; other clusters have addresses of their own."""
    if not master.startswith("spark://"):
        return
    problems = []
    for each in master.removeprefix("spark://").split(","):
        host, port = _address(f"spark://{each}", "spark", MASTER_PORT)
        problem = _problem(host, port)
        if not problem:
            return
        problems.append(f"{host}:{port}: {problem}")
    raise EngineError(
        f"SR813 no master of the Spark cluster answers at {'; '.join(problems)}. Start it, or correct `spark.master` "
        "in the profile"
    )


def await_executors(session: Any, seconds: float = REGISTER) -> None:
    """Wait for the first executor of a cluster. Raises: EngineError (SR815) if none registers."""
    conf = session.sparkContext.getConf()
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return  # Spark asks for executors when there is a job
    tracker = session.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + seconds
    while len(tracker.getExecutorInfos()) < 2:  # the driver is one of them
        if time.monotonic() > end:
            raise EngineError(_unserved(conf, seconds))
        time.sleep(AGAIN)


def _unserved(conf: Any, seconds: float) -> str:
    import pyspark

    memory, cores = conf.get("spark.executor.memory", "1g"), conf.get("spark.executor.cores", "1")
    return (
        f"SR815 no executor of {conf.get('spark.master')} registered in {seconds:.0f} s. The cluster has no worker "
        f"with {memory} of free memory and free cores ({cores} each); or it runs another version than Spark "
        f"{pyspark.__version__}; or its workers can't reach the driver at {conf.get('spark.driver.host')}. Look at "
        "the log of a worker, and correct the settings of the profile"
    )


def _problem(host: str, port: int) -> str:
    try:
        with closing(socket.create_connection((host, port), CONNECT)):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _address(url: str, scheme: str, port: int) -> tuple[str, int]:
    """Return host and port; the rest of the URL may contain a token.

    >>> _address("sc://spark.example:443/;token=abc", "sc", 15002), _address("sc://spark.example", "sc", 15002)
    (('spark.example', 443), ('spark.example', 15002))
    """
    try:
        parts = urlsplit(url)
        if parts.scheme == scheme and parts.hostname:
            return parts.hostname, parts.port or port
    except ValueError:
        pass
    raise EngineError(f"SR813 the address of Spark in the profile is wrong. Write {scheme}://HOST:PORT")
