"""A JVM borrowed from another process: join it instead of starting one, and leave it running. Shell: Spark.

An earlier borrower must leave no trace. Settings and views belong to a session, and each borrower creates its own;
Delta's caches of tables and cached data are cleared first, because files may have changed meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Requests a JVM that was started with the settings of a key; returns its port and secret.
Ask = Callable[[str], tuple[int, str] | None]


class _Loan:
    """The JVM that this process may borrow, or has borrowed."""

    ask: Ask | None = None
    session: Any = None


def offer(ask: Ask) -> None:
    """Allow this process to request a JVM."""
    _Loan.ask, _Loan.session = ask, None


def join(key: str) -> SparkSession | None:
    """Return a session of a JVM lent for this key; None: start one."""
    if _Loan.session is not None:
        return None  # one engine for each borrower: a second engine has settings of its own
    found = _Loan.ask(key) if _Loan.ask is not None else None
    if found is None:
        return None
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    with _environment(*found):
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    jvm: Any = gateway.jvm
    java = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    _Loan.session = SparkSession(context).newSession()
    _Loan.session.catalog.clearCache()
    return _Loan.session  # type: ignore[no-any-return]


def is_lent(session: SparkSession) -> bool:
    """Return whether a session's JVM belongs to another process."""
    return _Loan.session is not None and session.sparkContext is _Loan.session.sparkContext


def is_idle() -> bool:
    """Return whether a JVM was borrowed and this process no longer runs anything in it."""
    if _Loan.session is None:
        return False
    try:
        return not _Loan.session.sparkContext.statusTracker().getActiveJobsIds()
    except Exception:  # whatever the error, no other process may borrow this JVM
        return False


@contextmanager
def _environment(port: int, secret: str) -> Iterator[None]:
    """Set the environment variables by which PySpark joins a JVM; it has no other way."""
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
