"""Delta tables of sources at a tick's start: checked, and compared with the versions read before. Shell: Delta files.

A tick reads one version of each. Whatever a source's writer commits meanwhile is the next tick's change.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

from sqlrun.engine_api import StoredColumn
from sqlrun.engines.delta import file_rows, outside_table
from sqlrun.engines.delta.outside_table import Facts, Unreadable
from sqlrun.errors import EngineError, Problem
from sqlrun.incremental import types
from sqlrun.incremental.algebra import Type
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.plan.values import SourceTable, TablePlan, TickPlan, Workspace
from sqlrun.project import Source
from sqlrun.publish.table_state import SOURCE, Published, source_path, table_of
from sqlrun.runtime.text_table import counted

WHOLE = ("tinyint", "smallint", "int", "bigint")


def read(workspace: Workspace, names: Collection[str], published: Published | None) -> dict[str, SourceTable]:
    """Return the newest versions of the Delta tables that the named models read, by their names in compiled SQL.

    Raises: EngineError with all differences between the declared columns and the tables.
    """
    models = (model for model in workspace.tables if model.name in names)
    needed = {table for model in models for stage in model.stages for table in stage.inputs}
    sources = [source for source in workspace.project.sources if source.table in needed and not source.lands]
    problems: list[Problem] = []
    found = {}
    for source in sources:
        folder = folder_of(workspace.project.root, source)
        facts = outside_table.facts(folder)
        if isinstance(facts, Unreadable):
            message = f"`{source.path}` of source `{source.group}.{source.name}` {facts.why}"
            problems.append(Problem("SR780", source.place, message, facts.hint))
            continue
        problems += misfits(source, facts)
        path = source_path(f"{source.group}.{source.name}", facts.table_id, facts.commit)
        if table_of(path) not in _known(published):
            outside_table.require_vectors_inside(folder, facts.version)
        found[source.table] = SourceTable(folder, facts.version, path)
    if problems:
        raise EngineError("\n".join(map(str, problems)))
    return found


def folder_of(root: str, source: Source) -> str:
    """Return the absolute path of a source's folder."""
    return posixpath.normpath(str(PurePosixPath(root) / source.path))


def _known(published: Published | None) -> set[str]:
    """Return the tables among the inputs of published ones."""
    states = published.tables.values() if published else ()
    return {table_of(path) for state in states for path, _ in state.inputs.values()}


def misfits(source: Source, facts: Facts) -> Iterator[Problem]:
    """Yield a problem (SR781) for each declared column that the table lacks, or has with another type."""
    there = {column.name.lower(): column for column in facts.columns}
    table = f"the table of source `{source.group}.{source.name}`"
    for column in source.columns:
        stored = there.get(column.name.lower())
        if stored is None:
            names = [one.name for one in facts.columns]
            hint = f"It has: {', '.join(names)}.{did_you_mean(column.name, names)}"
            yield Problem("SR781", column.place, f"{table} has no column `{column.name}`", hint)
        elif not fits(stored.type, column.type):
            message = f"the column `{column.name}` of {table} is {stored.type}, not {column.type}"
            hint = f"Set `data_type: {stored.type}`, and cast the column in a model."
            yield Problem("SR781", column.place, message, hint)
        elif not column.nullable and stored.nullable:
            message = f"the column `{column.name}` of {table} may be NULL"
            yield Problem("SR781", column.place, message, "Remove what declares it NOT NULL here; check it in a model.")


def fits(stored: str, declared: str) -> bool:
    """Return whether each value of a stored type is the same value of the declared type.

    >>> fits("int", "bigint"), fits("bigint", "int"), fits("decimal(10,2)", "decimal(12,3)"), fits("int", "string")
    (True, False, True, False)
    """
    was, now = _plain(stored), _plain(declared)
    if was == now or (was, now) == ("float", "double"):
        return True
    if was in WHOLE and now in WHOLE:
        return WHOLE.index(was) < WHOLE.index(now)
    digits, wanted = types.decimal(Type(was, True)), types.decimal(Type(now, True))
    if digits is None or wanted is None or now in WHOLE:
        return False
    return wanted[1] >= digits[1] and wanted[0] - wanted[1] >= digits[0] - digits[1]


def _plain(text: str) -> str:
    """Return a type without the spellings that mean the same."""
    kind = types.parse(text)
    assert kind is not None
    return types.text(kind).replace(" ", "").replace("`", "")


def why_unreadable(folder: str, path: str, version: int) -> str:
    """Return why the version that a `source_path` names can't be read in a folder; "" if it can."""
    return outside_table.why_unreadable(folder, version, path.rpartition("@")[2])


def lost(plan: TickPlan) -> dict[str, str]:
    """Return the models of a plan that can't continue from the version of a source that they read last, and why.

    Raises: EngineError (SR782) for a file outside of a table's folder.
    """
    reasons: dict[tuple[str, str, int], str] = {}
    found: dict[str, str] = {}
    for model in plan.models:
        for stage in model.stages:
            state = plan.tables[stage.name].state
            for name, (path, version) in (state.inputs if state else {}).items():
                table = plan.tables.get(name)
                if table is None or not table.is_source:
                    continue
                key = (name, path, version)
                if key not in reasons:
                    reasons[key] = _reason(path, version, table)
                if reasons[key]:
                    found.setdefault(model.name, reasons[key])
    return found


def pending(plan: TickPlan, table: str) -> str:
    """Return the changes of a source's table since the plan's models have read it, as text; "" if there are none."""
    source = plan.tables[table]
    assert source.state is not None
    read = set()
    for model in plan.models:
        states = (plan.tables[stage.name].state for stage in model.stages)
        read |= {state.inputs[table][1] for state in states if state is not None and table in state.inputs}
    if not read:
        return f"version {source.state.version}, which no table has read"
    found = file_rows.between(source.spec.path, min(read), source.state.version)
    changes = f"about {counted(found.count, 'changed row')} up to version {source.state.version}"
    return changes if found.parts else ""


def _reason(path: str, version: int, table: TablePlan) -> str:
    """Return why a tick can't continue from a version of a source that it has read; "" if it can."""
    assert table.state is not None
    now, label = table.state, path.removeprefix(SOURCE).rpartition("/")[0]
    found = outside_table.later_columns(table.spec.path, version, now.version)
    if changed := next(filter(None, (_other_type(columns, table.public) for columns in found)), ""):
        return f"its source {label} had {changed} for a while"
    why = outside_table.why_lost(table.spec.path, version, path.rpartition("@")[2], now.version)
    if not why:
        return ""
    oldest = outside_table.oldest_readable(table.spec.path, now.version)
    return (
        f"version {version} of its source {label}, which it read last, can't be read any more: {why}. The oldest "
        f"readable version is {oldest}"
    )


def _other_type(there: Iterable[StoredColumn], declared: Iterable[StoredColumn]) -> str:
    """Return the first declared column that a version of a table had with another type; "" if there is none."""
    kinds = {column.name.lower(): column.type for column in there}
    for column in declared:
        stored = kinds.get(column.name.lower(), column.type)
        if not fits(stored, column.type):
            return f"the column {column.name} as {stored}"
    return ""
