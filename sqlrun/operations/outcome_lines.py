"""Console lines about verified tables, checksums and maintenance. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlrun.report.log_lines import Line
from sqlrun.runtime.text_table import counted, table

if TYPE_CHECKING:
    from sqlrun.maintain.checksums import Found
    from sqlrun.operations.maintenance import Done
    from sqlrun.operations.verify import Verdict


def verdict(found: Verdict) -> list[Line | str]:
    """Return lines that compare a table with its query, and sample rows that differ."""
    if found.ok:
        tag = f"[PASS {counted(found.rows, 'sampled row' if found.sampled else 'row')} in {found.seconds:.2f}s]"
        holds = f": {found.scope}" if found.scope else " equals its query"
        lines: list[Line | str] = [Line(f"PASS {found.model}{holds}", tag, "good")]
        return [*lines, f"  Not compared: {found.uncompared}."] if found.uncompared else lines
    tag = f"[FAIL {found.wrong:,} wrong, {found.missing:,} missing in {found.seconds:.2f}s]"
    lines = [Line(f"FAIL {found.model} differs from its query", tag, "error")]
    if found.samples:
        lines += table(tuple(found.samples[0]), [tuple(row.values()) for row in found.samples])
    return lines


def checksum(found: Found) -> list[Line | str]:
    """Return lines that compare a table's checksum with the ledger's."""
    if found.ok:
        return [
            Line(f"PASS {found.table} has the ledger's checksum", f"[PASS {counted(found.told.rows, 'row')}]", "good")
        ]
    if found.there is None:
        return [Line(f"FAIL {found.table} can't be read", "[FAIL]", "error"), f"  {found.message}"]
    tag = f"[FAIL {counted(found.there.rows, 'row')}, {found.told.rows:,} expected]"
    lines: list[Line | str] = [Line(f"FAIL {found.table} differs from the ledger's checksum", tag, "error")]
    if found.there.rows == found.told.rows:
        lines.append("  The number of rows is right, but rows differ.")
    return lines


def vacuumed(done: Done, keep: int) -> list[str]:
    """Say what a vacuum has done to the files of the tables."""
    old = f"{counted(done.files, 'old file')} and {counted(done.entries, 'file')} of Delta's logs"
    lines = [f"Compacted {counted(done.merged, 'small file')} into {done.made:,}."]
    lines += [f"Deleted {old}; retained the newest {counted(keep, 'tick')}."]
    lines += [f"Deleted the table {path}, which no retained tick reads." for path in done.tables]
    return [*lines, f"Readers see the same rows, now as tick {done.tick}."] if done.tick else lines
