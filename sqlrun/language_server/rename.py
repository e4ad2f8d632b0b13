"""Rename a column, and prove that the project means the same but for the name. Shell: the project's files.

The proof needs the project with the new texts. Its rendered queries must be the old ones with exactly the changed
names; without all names of columns, before and after, the queries must be equal; and so must all other columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from sqlrun.errors import ProjectError
from sqlrun.graph.column_names import applied
from sqlrun.graph.nameless import nameless
from sqlrun.language_server import yaml_changes
from sqlrun.language_server.positions import position_of, units
from sqlrun.language_server.refusal import RefusedError
from sqlrun.language_server.rename_changes import Cursor, Renaming
from sqlrun.language_server.template_names import Change
from sqlrun.load.forbidden_names import is_own
from sqlrun.parse import parse
from sqlrun.pipeline import Prepared
from sqlrun.project import Model, Rendered
from sqlrun.render import render

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# By file: lines from 0, characters and lengths in UTF-16 units, and the new texts.
Renames = dict[str, list[tuple[int, int, int, str]]]
# Reads the project again, with other texts of some files.
Again = Callable[[Mapping[str, str]], Prepared]


def renamed(prepared: Prepared, cursor: Cursor, new: str, again: Again) -> Renames:
    """Return the changes that rename the column at a cursor, by file.

    Raises: RefusedError, with one sentence for the editor.
    """
    if not PLAIN.fullmatch(new):
        raise RefusedError(f"`{new}` is no plain name: use letters, digits and _, and begin with a letter")
    if is_own(new):
        raise RefusedError(f"the column name `{new}` is reserved for sqlrun")
    found = Renaming(prepared, new)
    meant = found.at(cursor)
    if new == found.old:
        return {}
    if new.lower() == found.old.lower():
        raise RefusedError("column names are case-insensitive: the new name is the old one")
    for index, start in enumerate(meant):
        try:
            found.chosen = {}
            found.spread([start])
            break
        except RefusedError:
            # A column that can't be renamed may give its name to one that can.
            if index == len(meant) - 1:
                raise
    edits: Renames = {}
    texts: dict[str, str] = {}
    for file, changes in _by_file(found.changes()).items():
        edits[file], texts[file] = _changed(found.text(file), changes)
    try:
        after = again(texts)
    except ProjectError as error:
        problem = error.problems[0]
        why = f"{problem.place} would have the error {problem.code}, {problem.message}"
        raise RefusedError(f"`{found.old}` can't become `{new}`: {why}") from None
    _prove(found, after, texts)
    return edits


def _by_file(changes: list[Change]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.file, []).append(change)
    return found


def _changed(text: str, changes: list[Change]) -> tuple[list[tuple[int, int, int, str]], str]:
    """Return a file's changes as an editor counts them, and its new text."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    spans = sorted((starts[one.line - 1] + one.column - 1, one.length, one.text) for one in changes)
    edits = [(*position_of(text, at), units(text[at : at + length]), new) for at, length, new in spans]
    end = len(text) + 1
    for at, length, new in reversed(spans):
        if at + length > end:
            raise RefusedError(f"two changes of {changes[0].file} overlap. Change it by hand")
        text, end = text[:at] + new + text[at + length :], at
    return edits, text


def _prove(found: Renaming, after: Prepared, texts: Mapping[str, str]) -> None:
    """Check that the project with the changed texts means the same, but for the names.

    Raises: RefusedError.
    """
    queries = {query.name: query for query in after.queries}
    readers = {name for table in found.tables for name in found.prepared.graph.children.get(table, ())}
    old, new = _tables(found.prepared), _tables(after)
    for before in found.prepared.queries:
        now = queries[before.name]
        wanted = [(_renamed(found, before.name, column.name), column.type) for column in before.rendered.model.columns]
        if [(column.name, column.type) for column in now.rendered.model.columns] != wanted:
            raise RefusedError(f"the new name would change other columns of `{before.name}`")
        named = [tuple(_renamed(found, before.name, name) for name in names) for names in _keys(before.rendered)]
        if named != _keys(now.rendered):
            raise RefusedError(f"`{before.name}` names `{found.old}` in its settings, in a form that can't be changed")
        if before.name in found.chosen or before.name in readers:
            expected = applied(before.rendered.sql, found.edits.get(before.name, ()))
            _require_same(found, now.rendered, expected, same=nameless(before.tree, old) == nameless(now.tree, new))
    for name, (rendered, tree) in found.checks.items():
        text = Model.of_text(Path(name).stem, name, texts.get(name, rendered.model.sql))
        changed, _ = render.check(after.project, text)
        now_tree = parse.qualified(changed, parse.schema_of(after.project), after.project.functions)
        same = nameless(tree, old) == nameless(now_tree, new)
        _require_same(found, changed, applied(rendered.sql, found.edits[name]), same=same)
    for name, text_now in texts.items():
        if name.endswith(".yml"):
            both = found.mentions(name, found.text(name)), found.mentions(name, text_now)
            if both[0] is None or both[1] is None or not yaml_changes.is_same(both[0], both[1], found.wanted):
                raise RefusedError(f"{name} names `{found.old}` in a form that can't be changed. Change it by hand")
    strategies = [{m.name: m.own.strategy for m in one.workspace.tables} for one in (found.prepared, after)]
    if strategies[0] != strategies[1]:
        raise RefusedError("the new name would change how a model is maintained")


def _keys(rendered: Rendered) -> list[tuple[str, ...]]:
    """Return the columns that a model's contract and settings name."""
    model, config = rendered.model, rendered.config
    return [model.grain, (model.event_time,), config.partition_by, (config.updated_at,), config.check_cols]


def _renamed(found: Renaming, model: str, column: str) -> str:
    return found.new if model in found.tables and column.lower() == found.old.lower() else column


def _require_same(found: Renaming, now: Rendered, expected: str, *, same: bool) -> None:
    if now.sql != expected:
        where = f"{now.model.file} has `{found.old}` in a macro or an expression of Jinja"
        raise RefusedError(f"{where}, where it also means something else. Change it by hand")
    if not same:
        raise RefusedError(f"the new name would change what {now.model.file} means")


def _tables(prepared: Prepared) -> dict[str, list[str]]:
    schema = parse.schema_of(prepared.project)
    return {f"{db}.{name}": list(columns) for db, tables in schema.items() for name, columns in tables.items()}
