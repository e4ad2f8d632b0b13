"""Console lines about verified tables, checksums and maintenance. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlrun.report.log_lines import Line
from sqlrun.runtime.text_table import counted, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlrun.maintain.checksums import Found
    from sqlrun.operations.compare import Compared
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


def comparison(found: Sequence[Compared], before: str, after: str) -> list[Line | str]:
    """Return lines that sum up the differences of tables between two sides, which have these names."""
    differing = [one for one in found if not one.is_same]
    rows = [_differing(one) for one in differing]
    head = ("table", "rows", f"only in {before}", f"only in {after}", "changed", "the same")
    lines: list[Line | str] = list(table(head, rows)) if rows else []
    for one in differing:
        lines += [f"{one.name}: {text}" for text in _details(one)]
    shared, same = sum(one.shared for one in found), sum(one.is_same and not one.shared for one in found)
    return [*lines, f"Tables that differ: {len(differing):,}, with the same rows: {same:,}, shared: {shared:,}."]


def _differing(one: Compared) -> tuple[object, ...]:
    before, after = one.rows
    if before is None or after is None:
        marks = ("all", "") if after is None else ("", "all")
        return (one.name, f"{before if after is None else after:,}", *marks, "", "")
    keys = one.keys
    left, came = (one.left, one.came) if keys is None else (keys.left, keys.came)
    share = "" if one.share is None else f"{100 * one.share:.1f} %"
    count = f"{after:,}" if before == after else f"{before:,} -> {after:,}"
    return (one.name, count, left, came, "" if keys is None else keys.changed, share)


def _details(one: Compared) -> Iterator[str]:
    """Yield what else differs: columns, and the share of changed values of each."""
    if one.columns:
        yield f"columns {', '.join(one.columns)}"
    if one.keys is not None and one.keys.changed:
        common = (one.rows[0] or 0) - one.keys.left
        yield "changed " + ", ".join(f"{name} in {100 * n / common:.1f} %" for name, n in one.keys.columns)
    elif one.keys is None and one.left + one.came and None not in one.rows:
        yield "has no grain, so rows are compared as a whole"


def checksum(found: Found) -> list[Line | str]:
    """Return lines that compare a table's checksum with the ledger's."""
    if found.ok:
        tag = f"[PASS {counted(found.recorded.rows, 'row')}]"
        return [Line(f"PASS {found.table} has the ledger's checksum", tag, "good")]
    if found.actual is None:
        return [Line(f"FAIL {found.table} can't be compared", "[FAIL]", "error"), f"  {found.message}"]
    tag = f"[FAIL {counted(found.actual.rows, 'row')}, {found.recorded.rows:,} expected]"
    lines: list[Line | str] = [Line(f"FAIL {found.table} differs from the ledger's checksum", tag, "error")]
    if found.actual.rows == found.recorded.rows:
        lines.append("  The number of rows is right, but rows differ.")
    return lines


def vacuumed(done: Done, keep: int) -> list[str]:
    """Say what a vacuum has done to the files of the tables."""
    old = f"{counted(done.files, 'old file')} and {counted(done.entries, 'file')} of Delta's logs"
    lines = [f"Compacted {counted(done.merged, 'small file')} into {done.made:,}."]
    lines += [f"Deleted {old}; retained the newest {counted(keep, 'tick')}."]
    lines += [f"Deleted the table {path}, which no retained tick reads." for path in done.tables]
    return [*lines, f"Readers see the same rows, now as tick {done.tick}."] if done.tick else lines
