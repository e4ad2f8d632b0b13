"""`sqlrun quarantine`: list, show, discard and replay lines. Shell: the project, the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlrun import pipeline
from sqlrun.check.samples import MASK
from sqlrun.commands import quarantine_queue
from sqlrun.commands.quarantine_queue import Queue
from sqlrun.commands.selection import chosen
from sqlrun.errors import UsageError
from sqlrun.land import quarantine_log, quarantine_query
from sqlrun.land.quarantine_query import Counted
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.pipeline import Prepared, ledger_of, profile_of
from sqlrun.project import Connection
from sqlrun.publish import warehouse_format
from sqlrun.publish.ledger import Ledger
from sqlrun.report import log_lines
from sqlrun.report.console import Console
from sqlrun.runtime import text_table
from sqlrun.runtime.disk_cache import Cache
from sqlrun.sources import factory
from sqlrun.storage.factory import storage_of

# Maximum number of characters of a line's text in a table; --json prints all of it.
LONGEST = 120


def list_queues(root: Path, select: tuple[str, ...], name: str | None, env: str | None, as_json: bool) -> int:
    """Run `sqlrun quarantine list`."""
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name, env)
    names = chosen(prepared, select)
    found = _queues(prepared, ledger, names)
    counts = list(quarantine_queue.counted(prepared, ledger, found))
    discarded = [row for row in quarantine_log.discarded(ledger) if row["model"] in names]
    if as_json:
        Console().raw(
            f'{{"queues": {log_lines.as_json(map(asdict, counts))}, "discarded": {log_lines.as_json(discarded)}}}'
        )
    else:
        Console().lines(_listing(found, counts, discarded))
    return 0


def _queues(prepared: Prepared, ledger: Ledger, names: tuple[str, ...]) -> list[Queue]:
    """Return the queues of the named models; in an environment, only the queues of its own landing tables.

    Raises: UsageError if nothing has landed, or production owns all landing tables.
    """
    warehouse_format.require(ledger.warehouse, ledger.project)
    storage_of(ledger.warehouse).require_usable(ledger.warehouse)
    found = quarantine_queue.queues(prepared, ledger, names)
    if found:
        return found
    if ledger.env:
        raise UsageError(
            f"environment {ledger.env} has no landing table of its own. Leave out --env to see the lines of production."
        )
    raise UsageError(f"no line has landed in {ledger.warehouse} yet. Run `sqlrun build` with the same profile.")


def _listing(found: list[Queue], counts: list[Counted], discarded: list[dict[str, Any]]) -> list[str]:
    lines = []
    if counts:
        rows = [_row(each) for each in counts]
        head = ("model", "reason", "check", "pending", "replayed", "discarded", "first", "last", "ticks")
        lines += log_lines.table(head, rows)
    waiting = sum(each.waiting for each in counts)
    asked = sum(each.asked for each in counts)
    lines.append(
        f"{text_table.counted(waiting, 'line')} {'is' if waiting == 1 else 'are'} pending in quarantine"
        + (f", {asked:,} to replay in the next build." if asked else ".")
    )
    for row in discarded:
        lines.append(
            f"{row['written_at']:%Y-%m-%d %H:%M} {row['who']} discarded {text_table.counted(row['lines'], 'line')} of "
            f"{row['model']} ({row['reason']}): {row['because']}"
        )
    lines += [
        f"{each.model.name} was edited: the next build lands its source from scratch." for each in found if each.edited
    ]
    return lines


def _row(each: Counted) -> tuple[object, ...]:
    first, last = (
        f"{at:%Y-%m-%d %H:%M}" if isinstance(at, datetime) else None for at in (each.first_landed, each.last_landed)
    )
    ticks = sorted({tick for tick in (each.first_tick, each.last_tick) if tick is not None})
    between = "-".join(map(str, ticks)) or None
    return (
        each.model,
        each.reason,
        each.check_id or None,
        each.waiting,
        each.replayed,
        each.discarded,
        first,
        last,
        between,
    )


def show_lines(
    root: Path,
    model: str,
    name: str | None,
    env: str | None,
    reason: str,
    limit: int,
    raw: bool,
    discarded: bool,
    as_json: bool,
) -> int:
    """Run `sqlrun quarantine show`."""
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name, env)
    queue = _queue(prepared, ledger, model)
    found = quarantine_queue.lines(queue, ledger, reason, (), limit + 1 if limit else 0, gone=discarded)
    more, found = bool(limit) and len(found) > limit, found[:limit] if limit else found
    connections = profile_of(root, prepared, name).connections
    rows = _shown(prepared, ledger, queue, found, raw, connections)
    console = Console()
    if as_json:
        console.raw(log_lines.as_json(rows))
        return 0
    names = ("id", "state", "reason", "tick", "landed_at", "file", "line", "lines", "text")
    count = text_table.counted(len(rows), "line")
    ending = f"{'first ' if more else ''}{count} in quarantine of {model}"
    console.table(names, [_cells(row) for row in rows], ending, "--json", ("id",))
    if not raw and _private(queue):
        console.lines(
            ["The text of lines may contain pii columns, so only the other columns are shown. `--raw` shows the text."]
        )
    return 0


def _queue(prepared: Prepared, ledger: Ledger, model: str) -> Queue:
    return _queues(prepared, ledger, chosen(prepared, (model,)))[0]


def _private(queue: Queue) -> frozenset[str]:
    assert queue.model.source is not None
    return quarantine_query.private(queue.model.query.rendered.model, queue.model.source)


@dataclass(frozen=True, slots=True)
class Choice:
    """The lines of a queue that a command selects: by id, by reason, or all."""

    ids: tuple[str, ...]
    reason: str
    every: bool

    def require_one(self) -> None:
        """Raise UsageError unless exactly one of the three is given."""
        if [bool(self.ids), bool(self.reason), self.every].count(True) != 1:
            raise UsageError("select lines by one of --id (repeatable), --reason and --all")


def discard_lines(
    root: Path, model: str, name: str | None, env: str | None, choice: Choice, because: str, now: datetime
) -> int:
    """Run `sqlrun quarantine discard`."""
    choice.require_one()
    if not because.strip():
        raise UsageError("--because is empty; write down why you discard these lines")
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name, env)
    count, asked = _write(prepared, ledger, model, choice, quarantine_query.DISCARD, now, because.strip())
    lines = [
        f"Discarded {text_table.counted(count, 'line')} of {model}; `sqlrun quarantine list` shows who did it, and why."
    ]
    if asked:
        lines.append(f"{_are(asked)} to be replayed by the next build and can't be discarded before that.")
    Console().lines(lines)
    return 0


def replay_lines(root: Path, model: str, name: str | None, env: str | None, choice: Choice, now: datetime) -> int:
    """Run `sqlrun quarantine replay`."""
    choice.require_one()
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name, env)
    count, asked = _write(prepared, ledger, model, choice, quarantine_query.REPLAY, now, "")
    lines = [f"The next build evaluates {text_table.counted(count, 'line')} of {model} again, like new lines."]
    if asked:
        lines.append(f"{_are(asked)} scheduled for it already.")
    Console().lines(lines)
    return 0


def _are(lines: int) -> str:
    return f"{text_table.counted(lines, 'line')} {'is' if lines == 1 else 'are'}"


def _write(
    prepared: Prepared, ledger: Ledger, model: str, choice: Choice, kind: str, now: datetime, because: str
) -> tuple[int, int]:
    """Log a request for the chosen lines; return their number, and the number of lines with an earlier request.

    Raises: UsageError if a chosen line isn't pending.
    """
    queue = _queue(prepared, ledger, model)
    after = quarantine_log.relation(ledger.warehouse, ledger.env).version
    found = quarantine_queue.lines(queue, ledger, choice.reason, choice.ids)
    _require(queue, ledger, choice, found)
    rows = [{key: row[key] for key in ("id", "reason", "lines")} for row in found if row["state"] == "waiting"]
    entries = quarantine_log.entries(kind, model, queue.path, rows, now, because=because)
    quarantine_log.append(ledger.warehouse, ledger.env, entries, after)
    asked = sum(row["lines"] for row in found if row["state"] != "waiting")
    return sum(row["lines"] for row in rows), asked


def _require(queue: Queue, ledger: Ledger, choice: Choice, found: list[dict[str, Any]]) -> None:
    missing = sorted(set(choice.ids) - {row["id"] for row in found})
    if missing:
        raise UsageError(
            f"no pending line with the id `{missing[0]}` in the quarantine of {queue.model.name}. "
            f"`sqlrun quarantine show {queue.model.name}` lists them."
        )
    if choice.reason and not found:
        reasons = sorted({row["reason"] for row in quarantine_queue.lines(queue, ledger)})
        hint = did_you_mean(choice.reason, reasons) or f"Pending: {'; '.join(reasons) or 'none'}."
        raise UsageError(f"no pending line of {queue.model.name} has the reason `{choice.reason}`. {hint}")


def _shown(
    prepared: Prepared,
    ledger: Ledger,
    queue: Queue,
    found: list[dict[str, Any]],
    raw: bool,
    connections: Mapping[str, Connection],
) -> list[dict[str, Any]]:
    """Return each line with its state, origin and readable values.

    If the model has pii columns, `raw` False masks their values and omits the text: personal data can be anywhere in a
    broken line.
    """
    source = queue.model.source
    assert source is not None
    entries = ledger.entries()
    private, name = _private(queue), queue.model.name
    ids = quarantine_query.check_ids(queue.model.query.rendered.model, prepared.workspace.suites.get(name))
    values = quarantine_queue.values(queue, [row["id"] for row in found])
    reader = factory.reader_of(prepared.project.root, source, connections)
    origins = reader.describe([(str(row["file"]), str(row["raw"])) for row in found])
    return [
        {
            "id": row["id"],
            "state": row["state"],
            "reason": row["reason"],
            "check_id": ids.get(row["reason"], ""),
            "tick": quarantine_queue.tick_at(entries, row["landed_at"]),
            "landed_at": row["landed_at"],
            "file": origin.part,
            "line": origin.number,
            "lines": row["lines"],
            "raw": row["raw"] if raw or not private else None,
            "row": {
                column: MASK if column in private and not raw else value
                for column, value in values.get(row["id"], {}).items()
                if value is not None
            },
        }
        for row, origin in zip(found, origins, strict=True)
    ]


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    text = row["raw"]
    if text is None:
        text = ", ".join(f"{name}={value}" for name, value in row["row"].items())
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    landed_at = f"{row['landed_at']:%Y-%m-%d %H:%M:%S}" if row["landed_at"] else None
    return (
        *(row[key] for key in ("id", "state", "reason", "tick")),
        landed_at,
        row["file"],
        row["line"],
        row["lines"],
        text,
    )
