"""A session on a Spark Connect server: no JVM here, and the server's own jars and settings. Shell: Spark.

All that reaches Spark past its DataFrames (py4j, the SparkContext, RDDs) is missing there; modules that use it ask
`is_remote`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import util
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sqlrun.engines.spark import jars, object_store, reach
from sqlrun.errors import EngineError
from sqlrun.runtime import packages
from sqlrun.runtime.text_lines import text_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REMOTE = "spark.remote"
PACKAGES = tuple(packages.EXTRAS["connect"])
# Settings that a server has from its start. A profile with one of them expects what the server may not do.
STATIC = (
    "spark.master", "spark.jars", "spark.jars.packages", "spark.jars.excludes", "spark.driver.", "spark.executor.",
    "spark.hadoop.", "spark.delta.logStore.", "spark.sql.extensions", "spark.sql.catalog.", "spark.pyspark.",
)  # fmt: skip
# Settings of SQL that Spark takes at its start alone.
FROM_START = (
    "spark.sql.codegen.cache.maxEntries", "spark.sql.hive.filesourcePartitionFileCacheSize",
    "spark.sql.streaming.numRecentProgressUpdates", "spark.sql.execution.arrow.pyspark.enabled",
    "spark.sql.streaming.stopTimeout", "spark.sql.ui.explainMode",
)  # fmt: skip
# Settings that aren't Spark's, or that say where Spark is.
OWN = (REMOTE, jars.CONNECTORS)
_OWN: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()
NEEDED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def is_remote(session: Any) -> bool:
    """Return whether a session, or an object that was made by one, is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def session_of(settings: Mapping[str, str]) -> SparkSession:
    """Connect to the server of a profile's settings, and check that it can do what a build needs.

    Raises: EngineError (SR811 to SR814) before anything is written.
    """
    _require_packages()
    static = sorted(key for key in settings if key.startswith(STATIC))
    if static:
        raise EngineError(
            f"SR812 the profile has {REMOTE} and the setting {static[0]}, which only the server's own start can set. "
            f"Remove it from the profile, and start the server with --conf {static[0]}=..."
        )
    reach.require_server(settings[REMOTE])
    # PySpark's functions ask for this at each call.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    session = _connected(settings)
    _require_same_version(session.version)
    wanted = dict.fromkeys(object_store.STORES, object_store.LOG_STORE) if "s3" in jars.words(settings) else {}
    for key, value in (NEEDED | wanted).items():
        found = session.conf.get(key, "") or ""
        if value not in found.split(","):
            raise EngineError(
                f"SR814 the Spark Connect server has {key}={found or '(nothing)'}. sqlrun needs {value}: start the "
                f"server with --conf {key}={value} and the jars of docs/howto/run-on-a-cluster.md"
            )
    return session


def another(settings: Mapping[str, str]) -> SparkSession:
    """Return a session of its own on the server."""
    return _connected(settings)


def named(value: Any) -> Any:
    """Return an observed metric of a stream with the fields of its rows by their names.

    The client of Spark Connect leaves such a row as it came: its values, and its schema.

    >>> named({"values": [2], "schema": {"fields": [{"name": "lines"}]}})
    {'lines': 2}
    """
    row = value.asDict() if hasattr(value, "asDict") else value
    if not isinstance(row, dict) or set(row) != {"values", "schema"}:
        return value
    names = [field["name"] for field in row["schema"]["fields"]]
    return {name: named(each) for name, each in zip(names, row["values"], strict=True)}


def end(session: SparkSession, idle: SimpleQueue[SparkSession]) -> None:
    """Close the sessions; the server continues."""
    with suppress(Empty):
        while True:
            idle.get_nowait().stop()
    session.stop()


def own_settings(session: Any) -> Iterable[str]:
    """Return the names of the settings that the profile gave a session."""
    return _OWN.get(session, ())


def _connected(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.session import SparkSession as Remote

    from sqlrun.engines.spark.session import SETTINGS

    try:
        # A builder of its own: the class's one keeps the options of earlier sessions.
        session: Any = Remote.Builder().remote(settings[REMOTE]).create()
        for key, value in {**_of_sessions(SETTINGS), **settings}.items():
            if key not in OWN:
                session.conf.set(key, value)
    except PySparkException as error:
        first = text_lines(str(error))[0][:300]
        raise EngineError(f"the Spark Connect server refuses the session: {first}") from error
    _OWN[session] = tuple(settings)
    return session  # type: ignore[no-any-return]


def _of_sessions(defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the defaults that each session may set; the server keeps its own tasks and sizes."""
    kept = ("spark.sql.", "spark.databricks.delta.")
    left = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions", *STATIC, *FROM_START)
    return {k: v for k, v in defaults.items() if k.startswith(kept) and not k.startswith(left)}


def _require_packages() -> None:
    missing = [name for name in PACKAGES if util.find_spec(name) is None]
    if missing:
        raise EngineError(
            f"SR811 a profile with {REMOTE} needs the package {missing[0]}. Install it: pip install 'sqlrun[connect]'"
        )


def _require_same_version(server: str) -> None:
    import pyspark

    own = pyspark.__version__
    if list(_parts(server))[:2] != list(_parts(own))[:2]:
        raise EngineError(
            f"SR814 the Spark Connect server runs Spark {server}, and sqlrun here PySpark {own}: Delta's jar and the "
            f"dialect belong to one minor version. Start a server of Spark {own.rpartition('.')[0]}"
        )


def _parts(version: str) -> Iterator[str]:
    yield from version.split(".")
