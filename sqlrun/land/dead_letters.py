"""Dead letters: lines that a published tick quarantined, sent to a topic or a folder. Shell: the broker, files.

A mark beside the ledger has, for each landing table, the version up to which letters were sent. It is first written
before a tick is published, and moved on after delivery. So a crash at any step leaves the letters to the next tick. In
a folder there is one file for each tick and model, written once. A topic gets each letter at least once.

An environment sends nothing: its lines are production's, or an experiment's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlrun.engine_api import Relation
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, LockedError, SourceError, SqlrunError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing.query import LANDED_AT, ORIGIN, PROVENANCE, RAW, REASON
from sqlrun.land.drift_query import reader_of
from sqlrun.maintain.tick_context import TickContext
from sqlrun.project import DeadLetters
from sqlrun.publish.environment_paths import system_folder
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.table_state import Published
from sqlrun.runtime import atomic_files
from sqlrun.runtime.text_table import counted
from sqlrun.sources import kafka_producer
from sqlrun.sources.kafka_client import Client
from sqlrun.sources.kafka_producer import Outgoing
from sqlrun.storage.factory import storage_of

NAME = "dead_letters.json"
Letters = Generator[dict[str, Any], None, None]
# Number of lines that are read at once.
CHUNK = 10_000
# Number of files with one tick's name: a warehouse that was made again has the numbers of the one before.
MOST_FILES = 1000


@dataclass(frozen=True, slots=True)
class Mark:
    """Letters were sent up to a version of a landing table, which was published by `tick` or before."""

    version: int
    tick: int


def require(context: TickContext, model: Compiled) -> None:
    """Check that the profile has the connection to send dead letters.

    Raises: SourceError (SR749).
    """
    letters = _of(context, model)
    if letters is not None and letters.topic and letters.connection not in context.connections:
        assert model.source is not None
        raise SourceError(
            f"SR749 the dead letters of the source {model.source.group}.{model.source.name} need the connection "
            f"`{letters.connection}`, which the profile doesn't have. Add it under `connections:` of the profile"
        )


def begin(context: TickContext) -> None:
    """Write down where letters begin, before a tick is published: at the tick before, or at a new table's start.

    Marks of other tables, which send no letters any more, are deleted.

    Raises: EngineError if they can't be read or written.
    """
    wanted = [model for model in context.plan.models if _of(context, model) is not None]
    file = _file(context.warehouse, context.plan.env)
    if not wanted and storage_of(file).stamp(file) is None:
        return
    before = _read(file)
    # A tick of selected models says nothing about the others.
    selected = {model.name for model in context.plan.models if model.source is not None}
    after = {path: mark for path, mark in before.items() if path.partition("/")[0] not in selected}
    published = context.plan.published
    for model in wanted:
        table = context.plan.tables[model.name]
        start = Mark(table.state.version if table.state else 0, published.tick if published else 0)
        after[table.path] = before.get(table.path, start)
    if after != before:
        context.assert_lock_held()
        _put(file, after)


def send(context: TickContext, ledger: Ledger, say: Callable[[str], None]) -> None:
    """Send the letters of a tick that was just published, and of earlier ones that weren't sent.

    A failure doesn't change the tick: `say` gets a line, and the next tick sends them.
    """
    for model in context.plan.models:
        letters = _of(context, model)
        if letters is None or model.name not in context.states:
            continue
        left = f"The dead letters of {model.name} were not sent. The next tick sends them: "
        try:
            _send(context, ledger, model, letters, say)
        except LockedError:
            say(f"{left}another build has taken over the warehouse.")
            return
        except SqlrunError as error:
            say(f"{left}{error}")
        except OSError as error:
            say(f"{left}{error.filename or _shown(letters)}: {error.strerror or error}")
        except KeyboardInterrupt:
            say(f"{left}the build was interrupted.")
            return


def behind(warehouse: str, env: str, published: Published) -> frozenset[str]:
    """Return the paths of landing tables with letters that weren't sent: vacuum must leave their files.

    Raises: EngineError if the marks can't be read.
    """
    versions = {state.path: state.version for state in published.tables.values()}
    return frozenset(
        path for path, mark in _read(_file(warehouse, env)).items() if versions.get(path, 0) > mark.version
    )


def _of(context: TickContext, model: Compiled) -> DeadLetters | None:
    """Return where a model's letters go; None if it sends none here."""
    if model.source is None or context.plan.env or context.plan.tables[model.name].shared:
        return None
    return model.source.dead_letters


def _send(
    context: TickContext, ledger: Ledger, model: Compiled, letters: DeadLetters, say: Callable[[str], None]
) -> None:
    table, file = context.plan.tables[model.name], _file(context.warehouse, context.plan.env)
    marks = _read(file)
    mark = marks[table.path]
    if context.states[model.name].version <= mark.version:
        return
    this = Published(context.plan.number, context.plan.as_of, context.states)
    earlier = table.state is not None and table.state.version > mark.version
    for tick in ledger.published_after(mark.tick) if earlier else [this]:
        state = tick.tables.get(model.name)
        if state is None or state.path != table.path or state.version <= mark.version:
            continue
        commits = delta_table.effective_commits(table.spec.path, mark.version, state.version)
        landed = delta_table.landings(table.spec.path, commits)
        if landed:
            rows = partial(_letters, context, table.spec.path, landed)
            _delivered(context, model.name, tick.tick, letters, rows, say)
        mark = Mark(state.version, tick.tick)
        context.assert_lock_held()
        marks[table.path] = mark
        _put(file, marks)


def _letters(context: TickContext, path: str, commits: tuple[int, ...]) -> Letters:
    """Yield the lines that commits quarantined, always in the same order."""
    feed = Relation("feed", path, PROVENANCE, "changes", commits=commits)
    sql = (
        f"select {RAW} as raw, {REASON} as reason, {ORIGIN} as origin, {LANDED_AT} as landed_at from feed "
        f"where _weight > 0 and {REASON} is not null order by {ORIGIN}, {RAW}, {REASON}, {LANDED_AT}"
    )
    for part in reader_of(context).parts(sql, (feed,), CHUNK):
        yield from part.to_pylist()


def _delivered(
    context: TickContext,
    model: str,
    tick: int,
    letters: DeadLetters,
    rows: Callable[[], Letters],
    say: Callable[[str], None],
) -> None:
    """Send the letters of one tick; return after they are durable in a file or acknowledged by the broker.

    Raises: EngineError, OSError.
    """
    with closing(rows()) as found:
        if next(found, None) is None:
            return
    context.assert_lock_held()
    if letters.path:
        _to_folder(Path(context.workspace.project.root) / letters.path, model, tick, rows)
        return
    client = Client(letters.connection, context.connections[letters.connection])
    _, too_large = kafka_producer.send(client, letters.topic, (_message(row, model, tick) for row in rows()))
    if too_large:
        say(
            f"{counted(len(too_large), 'dead letter')} of {model} can't be sent to {_shown(letters)}, because the "
            f"broker refuses messages of their size. `sqlrun quarantine show {model}` shows them. The first one is "
            f"from {too_large[0]}."
        )


def _to_folder(folder: Path, model: str, tick: int, rows: Callable[[], Letters]) -> None:
    """Write one file for the tick and the model, unless it is there."""
    for number in range(MOST_FILES):
        name = f"{model}-{tick:08d}{f'-{number + 1}' if number else ''}.jsonl"
        if atomic_files.write_new_parts(folder / name, (_line(row, model, tick) for row in rows())):
            return
    raise EngineError(f"{folder} has {MOST_FILES:,} other files for tick {tick} of {model}. Move them away")


def _line(row: Mapping[str, Any], model: str, tick: int) -> bytes:
    record = {**row, "landed_at": row["landed_at"].isoformat(), "model": model, "tick": tick}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _message(row: Mapping[str, Any], model: str, tick: int) -> Outgoing:
    headers = {"reason": row["reason"], "origin": row["origin"], "model": model, "tick": str(tick)}
    return Outgoing(row["origin"], row["raw"], {f"sqlrun-{name}": text for name, text in headers.items()})


def _shown(letters: DeadLetters) -> str:
    return f"the topic {letters.topic}" if letters.topic else letters.path


def _file(warehouse: str, env: str) -> str:
    return f"{warehouse}/{system_folder(env)}/{NAME}"


def _read(file: str) -> dict[str, Mark]:
    """Return the marks by the table's path in the warehouse; empty if there are none.

    Raises: EngineError for a file that sqlrun hasn't written: without marks, letters would be left out or sent again.
    """
    try:
        return {path: Mark(**one) for path, one in json.loads(storage_of(file).text(file)).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise EngineError(
            f"{file} can't be read: {error}. It has the versions up to which dead letters were sent. Restore it, or "
            "delete it: letters that weren't sent yet are then left out"
        ) from error


def _put(file: str, marks: Mapping[str, Mark]) -> None:
    entries = {path: {"version": one.version, "tick": one.tick} for path, one in sorted(marks.items())}
    try:
        storage_of(file).put(file, json.dumps(entries).encode(), synced=True)
    except OSError as error:
        raise EngineError(f"{file} can't be written: {error.strerror or error}") from error
