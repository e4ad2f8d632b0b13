"""Land changes of a database beside plain lines of the same rows, with current rows and history: seconds of each tick.

python -m benchmarks.change_events --rows 1000000 --changes 20000
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from tests.sources.test_changes import AT, ENGINE, project
from tests.support.projects import Site

TICKS = 5
# Number of events in a file of the first tick: ten million don't fit into memory at once.
IN_A_FILE = 250_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=20_000)
    chosen = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="sqlrun-change-events-"))
    try:
        measure(root, chosen.rows, chosen.changes)
    finally:
        shutil.rmtree(root)


def measure(root: Path, rows: int, changes: int) -> None:
    """Land a table of rows at once, then changes of random rows in each tick; print the medians."""
    random = Random(1)
    sites = {
        "changes": project(root / "changes", ENGINE),
        "plain": without_models(root / "plain", plain=True),
        "events": without_models(root / "events", plain=False),
    }
    for name, site in sites.items():
        for start in range(1, rows + 1, IN_A_FILE):
            keys = range(start, min(start + IN_A_FILE, rows + 1))
            write(site, f"000-{start:09}", (event(key, key, "c", random) for key in keys))
        print(f"{rows:,} rows, {name}: {timed(site, 0)['tick']:.1f} s", flush=True)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sites}
    for number in range(1, TICKS + 1):
        position = rows + number * changes
        batch = [event(random.randint(1, rows), position + n, "u", random) for n in range(changes)]
        for name, site in sites.items():
            write(site, f"{number:03}", batch)
            found[name].append(timed(site, number))
    report(found, changes)


def report(found: dict[str, list[dict[str, float]]], changes: int) -> None:
    """Print the medians of ticks with changes, and how many times those of ticks with plain lines they are."""

    def median(name: str, part: str) -> float:
        return statistics.median(seconds[part] for seconds in found[name])

    for beside in ("plain", "events"):
        for part in ("tick", "cpu"):
            base = median(beside, part)
            times = median("changes", part) / base
            print(
                f"{beside} alone, {part}: {base:.2f} s for {changes:,}; with current rows and history: {times:.1f} times"
            )
    base = median("plain", "changes")
    print(f"plain lines, landing: {base:.2f} s; models over changes, and times of it:")
    for part in ("changes", "docs", "docs_history"):
        print(f"  {part}: {median('changes', part):.2f} s, {median('changes', part) / base:.1f}")


def without_models(folder: Path, *, plain: bool) -> Site:
    """Write a project that lands the same rows and does nothing else: as plain lines, or as events of changes."""
    site = project(folder, ENGINE)
    declared = folder / "models/_sources.yml"
    if plain:
        declared.write_text(re.sub(r" +cdc: .*\n|, from: \w+", "", declared.read_text()))
    for name in ("docs", "docs_history"):
        (folder / f"models/{name}.sql").unlink()
        (folder / f"models/{name}.yml").unlink()
    return Site(site.root, ENGINE)


def event(key: int, lsn: int, op: str, random: Random) -> dict[str, Any]:
    source = {"db": "shop", "schema": "public", "table": "docs", "lsn": lsn, "txId": lsn, "snapshot": "false"}
    row = {"id": key, "name": f"n{random.random()}", "body": "b" * 40}
    return {"op": op, "before": None, "after": row, "source": source | {"ts_us": 1795502213791000 + lsn}}


def write(site: Site, name: str, events: Iterable[dict[str, Any]]) -> None:
    is_plain = "cdc:" not in (site.root / "models/_sources.yml").read_text()
    site.write(f"{name}.json", [json.dumps(line(one) if is_plain else one) for one in events])


def timed(site: Site, number: int) -> dict[str, float]:
    """Run one tick; return its seconds and those of each model."""
    start, cpu = time.monotonic(), time.process_time()
    result = site.tick(AT + timedelta(minutes=5 * number))
    whole = {"tick": time.monotonic() - start, "cpu": time.process_time() - cpu}
    assert result.published, [node.message for node in result.nodes]
    return {node.name: node.seconds for node in result.nodes} | whole


def line(one: dict[str, Any]) -> dict[str, Any]:
    """Return the plain line of an event."""
    about = {"op": one["op"], "position": f"{one['source']['lsn']:020}/2", "committed_at": "2026-11-24T06:36:53Z"}
    return one["after"] | about | {"unavailable": []}


if __name__ == "__main__":
    main()
