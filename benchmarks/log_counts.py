"""What a Delta table's folder has: log entries, checkpoints, files, marks, removals. Shell: Delta files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote


def of(table: Path) -> dict[str, Any]:
    """Return the counts of a table, read from its files without sqlrun and delta-rs."""
    import pyarrow.parquet as pq

    log = table / "_delta_log"
    commits = sorted(int(file.stem) for file in log.glob("[0-9]*.json") if file.stem.isdigit())
    checkpoints = sorted(log.glob("*.checkpoint.parquet"))
    last = checkpoints[-1] if checkpoints else None
    rows = pq.ParquetFile(last).read().to_pylist() if last else []
    since = int(last.name[:20]) if last else -1
    live = {(_path(row["add"]), _vector(row["add"])): row["add"] for row in rows if row.get("add")}
    gone = sum(1 for row in rows if row.get("remove"))
    for version in (number for number in commits if number > since):
        for line in (log / f"{version:020d}.json").read_text().splitlines():
            action = json.loads(line)
            if "remove" in action:
                live.pop((_path(action["remove"]), _vector(action["remove"])), None)
            if "add" in action:
                live[_path(action["add"]), _vector(action["add"])] = action["add"]
    partitions: dict[str, int] = {}
    for add in live.values():
        values = add["partitionValues"]
        key = json.dumps(values if isinstance(values, dict) else dict(values or ()), sort_keys=True)
        partitions[key] = partitions.get(key, 0) + 1
    stored = [file for file in table.rglob("*.parquet") if "_delta_log" not in file.parts]
    return {
        "version": commits[-1],
        "commits": len(commits),
        "checkpoints": len(checkpoints),
        "tail": commits[-1] - max(since, -1),
        "live": len(live),
        "most_in_a_partition": max(partitions.values(), default=0),
        "vectors": sum(1 for add in live.values() if add.get("deletionVector")),
        "removals": gone,
        "stored": sum(1 for file in stored if "_change_data" not in file.parts),
        "changes": sum(1 for file in stored if "_change_data" in file.parts),
        "checkpoint_bytes": last.stat().st_size if last else 0,
    }


def _path(action: dict[str, Any]) -> str:
    return unquote(action["path"])


def _vector(action: dict[str, Any]) -> str:
    found = action.get("deletionVector") or {}
    return f"{found.get('storageType')}{found.get('pathOrInlineDv')}{found.get('offset')}" if found else ""
