"""Fingerprint: a model's meaning as a short hash, equal for equal meanings. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple

from sqlrun.incremental import hidden_partitions
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import drops
from sqlrun.incremental.landing.query import HIDDEN, Rule
from sqlrun.incremental.stages import Stage
from sqlrun.plan import deletion_vectors
from sqlrun.project import CSV, Column, Files, Seed, Source
from sqlrun.runtime.lru import Recent

# Increase this if the same query is stored in another way.
LAYOUT = 1
# Columns that a landing table has in addition to the model's.
_HIDDEN = [c.name for c in HIDDEN]
# Maximum number of seeds whose rows are kept with their hash.
SEEDS = 64
WRITE = json.JSONEncoder(sort_keys=True, default=str).encode

_contents: Recent[int, tuple[object, str]] = Recent(SEEDS)


def of_seed(seed: Seed) -> str:
    """Return the hash of a seed's columns; its rows are data, not meaning."""
    return _hash([LAYOUT, "seed", seed.name, _columns(seed.columns)])


def of_source(source: Source) -> str:
    """Return the hash of what models depend on that read a source as a table: its folder and the declared columns."""
    return _hash([LAYOUT, source.format, source.path, _columns(source.columns)])


def of_content(seed: Seed) -> str:
    """Return the hash of a seed's rows, computed once for each tuple of rows: a warm process asks in every tick."""
    rows = seed.rows
    # The rows are kept with their hash, so that no other tuple gets their id.
    return _contents.get(id(rows), lambda: (rows, _hash(rows)))[1]


def of_rules(compiled: Compiled, rules: Iterable[Rule]) -> str:
    """Return the hash of what quarantines readable lines: quarantine rules and NOT NULL columns.

    They aren't part of a landing table's meaning: they are applied to a line when it lands or is replayed.
    """
    never = sorted(c.name for c in compiled.own.columns if not c.nullable)
    return _hash([never, sorted(rule.passes for rule in rules)])


def of_model(compiled: Compiled, inputs: Mapping[str, str]) -> str:
    """Return the hash of a model's query, columns, layout and inputs; comments and formatting don't change it."""
    source = compiled.source
    return _hash(
        [
            LAYOUT,
            compiled.query.canonical,
            [[c.name, c.type] for s in compiled.stages for c in s.columns],
            [[s.name, s.method, list(s.key), _partitions(s)] for s in compiled.stages],
            sorted(inputs.items()),
            _source(source) if source else None,
            # Another layout is another table.
            *_history(compiled),
            ["plain"] if deletion_vectors.is_plain(compiled) and deletion_vectors.marks(compiled.own) else [],
        ]
    )


def _history(compiled: Compiled) -> list[object]:
    """Return what begins and ends the versions of a history; nothing for any other model."""
    return [list(astuple(one)) for one in (stage.history for stage in compiled.stages) if one is not None]


def _partitions(stage: Stage) -> list[object]:
    """Return the partition columns of a table, with the hidden column that names a partition if there is one."""
    hidden = hidden_partitions.hidden(stage.columns, stage.partition_by)
    return [[name, hidden[name]] if name in hidden else name for name in stage.partition_by]


def _source(source: Source) -> list[object]:
    """Return what a landing table depends on. The broker isn't part of it: a topic moves with its id."""
    known: list[object] = [source.path, source.format, _columns(source.columns), _HIDDEN]
    if source.topic is not None:
        one = source.topic
        known += [one.topic, one.pattern, one.value_format, one.tombstones]
        known.append([[column.name, column.comes_from] for column in source.attached])
    if source.files is not None:
        known += _files(source, source.files)
    if source.changes is not None:
        described = [[column.name, column.comes_from] for column in source.columns if column.comes_from]
        known.append(["changes", *map(str, astuple(source.changes)), described])
    if source.drop_where:
        # Not the reasons: no table stores them.
        known.append(["drop_where", drops.canonical(source)])
    if source.recent is not None:
        known.append(["recent", source.recent.column, source.recent.since])
    return known


def _files(source: Source, files: Files) -> list[object]:
    """Return what the records of a source's files depend on; a limit of their size isn't part of it."""
    csv = [str(value) for value in astuple(files.csv)] if source.format == CSV else []
    attached = [[column.name, column.comes_from] for column in source.attached]
    return [["files", files.pattern, files.document, csv, attached]]


def _columns(columns: tuple[Column, ...]) -> list[list[object]]:
    return [[c.name, c.type, c.nullable, *([c.inside] if c.inside else [])] for c in columns]


def _hash(value: object) -> str:
    return hashlib.sha256(WRITE(value).encode()).hexdigest()[:12]
