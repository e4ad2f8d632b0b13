"""Files of lines judged by an engine and by the strict reader; where they differ, the line and both answers."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.project import Source
from sqlrun.sources import folder as source_folder
from tests.line_fuzz.sources import judging
from tests.support.strict_reader import Reader, lines_of

Answers = dict[str, tuple[int, Any]]


@dataclass
class Counts:
    """What was judged so far."""

    lines: int = 0
    landed: int = 0


def plain(value: Any) -> Any:
    """Make values comparable: floats by their bits, times by their microseconds."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return (type(value).__name__, str(value))


def reader_of(source: Source) -> Reader:
    """Give the strict reader of a source's lines."""
    return Reader([(c.name, c.type, c.nullable, c.inside) for c in source.columns])


def by_python(source: Source, data: bytes) -> Answers:
    """Judge a file's lines by the strict reader: how often a line is there, and what it becomes."""
    reader = reader_of(source)
    found: Answers = {}
    for line, count in Counter(lines_of(data)).items():
        judged = reader.judge(line)
        said = (None, plain(judged.values), judged.rescued, judged.absent) if judged.reason is None else judged.reason
        found[line] = (count, said)
    return found


def of_rows(source: Source, rows: Iterable[dict[str, Any]]) -> Answers:
    """Bring an engine's rows into the same form."""
    names = [c.name for c in source.columns]
    found: Answers = {}
    for row in rows:
        said = row["_reason"]
        if said is None:
            said = (None, plain({name: row[name] for name in names}), row["_rescued"], row["_absent"])
        count, before = found.get(row["_raw"], (0, said))
        assert before == said, f"two answers for one line: {row['_raw']!r}"
        found[row["_raw"]] = (count + 1, said)
    return found


def by_duckdb(source: Source, data: bytes, engine: DuckDBEngine) -> Answers:
    """Judge a file's lines as a landing on DuckDB does."""
    lines = source_folder.table_of([source_folder.lines_of(data, "f")])
    rows = engine.query(judging(source, "duckdb"), (), {"lines": lines}).to_pylist()
    return of_rows(source, rows)


def differences(expected: Answers, found: Answers, counts: Counts) -> list[str]:
    """Compare the answers line by line."""
    counts.lines += sum(count for count, _ in expected.values())
    counts.landed += sum(count for count, said in expected.values() if not isinstance(said, str))
    nothing = (0, None)
    return [
        f"{line!r}\n  python: {expected.get(line, nothing)}\n  engine: {found.get(line, nothing)}"
        for line in expected.keys() | found.keys()
        if expected.get(line, nothing) != found.get(line, nothing)
    ]


Judge = Callable[[Source, bytes], Answers]


@contextmanager
def judge(engine: str) -> Iterator[Judge]:
    """Give what judges a source's file on an engine."""
    if engine == "duckdb":
        duckdb = DuckDBEngine()
        yield lambda source, data: by_duckdb(source, data, duckdb)
        return
    from tests.line_fuzz import spark_judge

    with spark_judge.judging_by_spark() as judged:
        yield judged
