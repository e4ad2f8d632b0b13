"""A JVM that somebody else has started and lends: joined instead of started, and left running. Shell: Spark.

Nothing of an earlier borrower may show: settings and views belong to a session, of which each borrower makes its own;
what Delta remembers of tables and what was cached is forgotten first, since files may have changed meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Asks for a JVM that was started with the settings of a key; gives its port and secret.
Ask = Callable[[str], tuple[int, str] | None]


class _Loan:
    """What this process may borrow, and has borrowed."""

    ask: Ask | None = None
    session: Any = None


def offer(ask: Ask) -> None:
    """Let this process ask for a JVM."""
    _Loan.ask, _Loan.session = ask, None


def join(key: str) -> SparkSession | None:
    """Return a session of a JVM that is lent for this key; None: start one."""
    if _Loan.session is not None:
        return None  # one borrower, one engine: a second engine has settings of its own
    found = _Loan.ask(key) if _Loan.ask is not None else None
    if found is None:
        return None
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    with _named(*found):
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    jvm: Any = gateway.jvm
    java = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    _Loan.session = SparkSession(context).newSession()
    _Loan.session.catalog.clearCache()
    return _Loan.session  # type: ignore[no-any-return]


def is_lent(session: SparkSession) -> bool:
    """Return whether a session's JVM belongs to somebody else."""
    return _Loan.session is not None and session.sparkContext is _Loan.session.sparkContext


def is_idle() -> bool:
    """Return whether a JVM was borrowed and nothing of this process runs there any more."""
    if _Loan.session is None:
        return False
    try:
        return not _Loan.session.sparkContext.statusTracker().getActiveJobsIds()
    except Exception:  # of any kind: then nobody else gets it
        return False


@contextmanager
def _named(port: int, secret: str) -> Iterator[None]:
    """Set the environment variables by which PySpark joins a JVM: it reads nothing else."""
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
