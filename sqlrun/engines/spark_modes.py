"""How Spark runs a statement: small ones are interpreted, large ones compiled. Shell: Spark.

Spark compiles Java code for each query and re-plans it after each exchange. For a change of some thousand rows that
takes several times as long as the work itself, since each tick's literals make new code (docs/benchmarks.md).
"""

from __future__ import annotations

from typing import Any

# Of Parquet files to be read, beyond which compiled code is worth its price.
SMALL_BYTES = 24 * 2**20
SMALL = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}


def choose(session: Any, size: int) -> None:
    """Set the session up for a statement that reads files of `size` bytes; what the profile sets stays as it is."""
    given = session.sparkContext.getConf()
    for key, value in SMALL.items():
        if given.contains(key):
            continue
        if size <= SMALL_BYTES:
            session.conf.set(key, value)
        else:
            session.conf.unset(key)
