"""Run by the suite: `python -m benchmarks.rivals.duckdb_by_hand`, in the contender's folder. Shell: DuckDB."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.rivals.resident import serve

HERE = Path(__file__).parent
SCHEMA, APPLY = ((HERE / f"{name}.sql").read_text() for name in ("schema", "apply"))
# Lines are parsed as in the full recompute.
PARSE = (HERE.parent / "duckdb_full" / "land.sql").read_text()


class ByHand:
    """A DuckDB file with orders and facts; a tick is a transaction."""

    def __init__(self) -> None:
        self._db = duckdb.connect("tables.duckdb", config={"threads": 2})
        self._db.execute("set timezone = 'UTC'")
        self._db.execute(SCHEMA)

    def tick(self, as_of: datetime) -> dict[str, str]:
        known = {file for (file,) in self._db.execute("select file from landed").fetchall()}
        files = [str(file) for file in sorted(Path("data/orders").glob("*.jsonl")) if file.name not in known]
        self._db.execute("begin")
        names = [Path(file).name for file in files]
        self._db.execute("insert into landed select unnest($names::varchar[])", {"names": names})
        if files:
            events = PARSE.replace("insert into events", "create or replace temp table events as")
            self._db.execute(events, {"files": files})
        else:
            self._db.execute("delete from events")
        self._db.execute(APPLY.replace("$as_of", f"'{as_of:%Y-%m-%d %H:%M:%S}'"))
        self._db.execute("commit")
        return {}

    def mart(self) -> list[dict[str, Any]]:
        rows = self._db.execute("from restaurant_windows")
        names = [column[0] for column in rows.description or ()]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]

    def close(self) -> None:
        self._db.close()


serve(ByHand)
