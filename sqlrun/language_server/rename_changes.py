"""All changes that rename a column, through the graph and through all files that name it. Shell: the project's files.

A rename changes one column of one model, and all that names it: contracts, unit tests, checks, exposures, and the
queries that read it. A reader's own column keeps its name by `new as old`, unless it takes the column by a star: then
it is the same column, and is renamed too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlrun.graph.column_names import ROOT, Edit, Names, Symbol
from sqlrun.language_server import template_names, yaml_changes
from sqlrun.language_server.positions import offset_of
from sqlrun.language_server.refusal import RefusedError
from sqlrun.language_server.template_names import Change
from sqlrun.language_server.yaml_changes import Wanted
from sqlrun.language_server.yaml_names import FIXTURE, Mentions
from sqlrun.load.folder import Folder
from sqlrun.load.yaml_reader import Reader
from sqlrun.parse import parse
from sqlrun.parse.parse import Query
from sqlrun.pipeline import Prepared
from sqlrun.project import Model, Rendered, Seed
from sqlrun.render import render
from sqlrun.runtime.disk_cache import Cache

FIXTURES = "tests/fixtures"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a file: a line from 0, and a character in UTF-16 units."""

    file: str
    line: int
    character: int


@dataclass(slots=True)
class Renaming:
    """One rename, with what was read for it. `chosen` has the names to change by model or check."""

    prepared: Prepared
    new: str
    old: str = ""
    chosen: dict[str, set[Symbol]] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    _names: dict[str, Names] = field(default_factory=dict)
    checks: dict[str, tuple[Rendered, Any]] = field(default_factory=dict)
    edits: dict[str, list[Edit]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        project = self.prepared.project
        self.queries = {query.name: query for query in self.prepared.queries}
        nouns: tuple[Model | Seed, ...] = (*project.models, *project.seeds)
        self.columns = {noun.name: [column.name for column in noun.columns] for noun in nouns}

    @property
    def folder(self) -> Folder:
        """Return the folder of the project; it reads texts that aren't saved."""
        return Folder(Path(self.prepared.project.root), [], Cache(None))

    # ── what the cursor is at ────────────────────────────────────────────────────────────────────────────────────

    def at(self, cursor: Cursor) -> list[tuple[str, Symbol]]:
        """Return the columns that the word at the cursor may mean, by model, the likeliest first."""
        text = self.text(cursor.file)
        offset = offset_of(text, (cursor.line, cursor.character))
        word = next((found for found in re.finditer(r"\w+", text) if found.start() <= offset <= found.end()), None)
        if word is None:
            raise RefusedError("there is no name at the cursor")
        self.old = word[0]
        line = text.count("\n", 0, word.start()) + 1
        column = word.start() - text.rfind("\n", 0, word.start())
        if not cursor.file.endswith(".sql"):
            return self._at_yaml(cursor.file, line, column)
        owner = next((name for name, one in self.queries.items() if one.rendered.model.file == cursor.file), None)
        if owner is None:
            raise RefusedError("only columns in models and in YAML files can be renamed")
        names = self.names(owner)
        for node in names.identifiers(self.old):
            edit = Edit(node.meta["start"], node.meta["end"] + 1, "")
            made = template_names.changes(names.rendered, [edit], self.old, self.new)
            if any(one.line == line and one.column <= column < one.column + one.length for one in made.changes):
                found = names.at(edit.start)
                if found:
                    return [(owner, symbol) for symbol in found]
        raise RefusedError(f"`{self.old}` is no column here")

    def _at_yaml(self, file: str, line: int, column: int) -> list[tuple[str, Symbol]]:
        mentions = self.mentions(file, self.text(file))
        for mention in mentions.names if mentions else ():
            place = mention.place
            if place.line == line and place.column <= column <= place.column + len(mention.column):
                tables = [name for name in mention.tables if self.old in self.columns.get(name, ())]
                return [(name, Symbol(ROOT, self.old.lower())) for name in tables[:1]]
        raise RefusedError(f"`{self.old}` is no column here")

    # ── all that means the same column ───────────────────────────────────────────────────────────────────────────

    def names(self, model: str) -> Names:
        """Return the names of a model's query."""
        if model not in self._names:
            query = self.queries[model]
            self._names[model] = Names(query.rendered, query.tree)
        return self._names[model]

    def spread(self, start: Iterable[tuple[str, Symbol]]) -> None:
        """Follow a column through stars, and to all models that read it."""
        left = list(start)
        while left:
            model, symbol = left.pop()
            known = self.chosen.setdefault(model, set())
            if symbol in known:
                continue
            self._require_model(symbol if symbol.owner != ROOT else Symbol(f"{parse.REF}.{model}", symbol.column))
            known.add(symbol)
            left += [(model, other) for other in self.names(model).links.get(symbol, ())]
            table = model if symbol.owner == ROOT else symbol.owner.removeprefix(f"{parse.REF}.")
            if symbol.owner == ROOT or table != symbol.owner:
                left.append((table, Symbol(ROOT, symbol.column)))
                readers = (name for name in self.prepared.graph.children[table] if name in self.queries)
                left += [(name, Symbol(f"{parse.REF}.{table}", symbol.column)) for name in readers]

    def _require_model(self, symbol: Symbol) -> None:
        """Check that a column is one of a model, or of a query inside of one."""
        kind, _, name = symbol.owner.partition(".")
        if kind == parse.SOURCE:
            raise RefusedError(
                f"`{self.old}` is a column of the source `{name.replace('__', '.', 1)}`, which others write. Rename it "
                f"in the model that reads it: `{self.old} as {self.new}`"
            )
        if kind != parse.REF:
            return
        if name not in self.queries:
            raise RefusedError(f"`{self.old}` is a column of the seed `{name}`: rename it in its CSV and its contract")
        config = self.queries[name].rendered.config
        if config.materialized == "history" and symbol.column in config.version_columns:
            raise RefusedError(f"`{self.old}` is a column that sqlrun adds to the history `{name}`")

    # ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────

    def changes(self) -> list[Change]:
        """Return all changes of files.

        Raises: RefusedError.
        """
        found = self._of_queries()
        self._require_no_override()
        found |= self._of_checks()
        found |= set(self._of_yaml())
        return sorted(found)

    def _of_queries(self) -> set[Change]:
        while True:
            found, follow = set[Change](), list[tuple[str, Symbol]]()
            for model, chosen in self.chosen.items():
                names = self.names(model)
                self._require_unnamed(names, model, chosen)
                self.edits[model] = names.edits(chosen, self.old, self.new)
                made = self._templated(names.rendered, self.edits[model])
                found |= made.changes
                follow += [(model, symbol) for symbol in made.follow]
            if not follow:
                return found | {
                    change
                    for model in self.tables
                    if model in self.queries
                    for change in template_names.config_changes(self.queries[model].rendered, self.old, self.new)
                }
            self.spread(follow)

    def _require_unnamed(self, names: Names, model: str, chosen: Iterable[Symbol]) -> None:
        for symbol in chosen:
            if symbol in names.joined:
                raise RefusedError(
                    f"`{model}` joins by USING ({self.old}). Write the join with ON, then rename the column"
                )
            taken = self.columns[model] if symbol.owner == ROOT else names.columns.get(symbol.owner, [])
            if self.new.lower() in (name.lower() for name in taken):
                where = f"`{model}`" if symbol.owner == ROOT else f"a query in `{model}`"
                raise RefusedError(f"{where} has a column `{self.new}` already")

    def _templated(self, rendered: Rendered, edits: Iterable[Edit]) -> template_names.Template:
        made = template_names.changes(rendered, edits, self.old, self.new)
        if made.lost:
            raise RefusedError(
                f"{rendered.model.file}:{made.lost} gets `{self.old}` from a macro or an expression of Jinja. Only "
                "names in the query itself, and in texts that a tag passes on, can be changed"
            )
        return made

    def _of_checks(self) -> set[Change]:
        """Return the changes of checks that are files of SQL."""
        found, project = set[Change](), self.prepared.project
        for name, text in self._files("expectations", ".sql"):
            rendered, _ = render.check(project, Model.of_text(Path(name).stem, name, text))
            tables = {f"{parse.REF}.{ref}" for ref in rendered.refs if ref in self.tables}
            if not tables:
                continue
            tree = parse.qualified(rendered, parse.schema_of(project), project.functions)
            names = Names(rendered, tree)
            chosen = set(_linked(names, {Symbol(table, self.old.lower()) for table in tables}))
            self.checks[name] = rendered, tree
            self.edits[name] = names.edits(chosen, self.old, self.new)
            made = self._templated(rendered, self.edits[name])
            while made.follow:
                chosen |= set(_linked(names, made.follow))
                self.edits[name] = names.edits(chosen, self.old, self.new)
                made = self._templated(rendered, self.edits[name])
            found |= made.changes
        return found

    @property
    def tables(self) -> dict[str, None]:
        """Return the models whose own column is renamed, and as `model.cte` such CTEs."""
        old = self.old.lower()
        found = {model: None for model, chosen in self.chosen.items() if Symbol(ROOT, old) in chosen}
        for model, chosen in self.chosen.items():
            for name, owners in self.names(model).aliased.items():
                if len(owners) == 1 and Symbol(owners[0], old) in chosen:
                    found[f"{model}.{name}"] = None
        return found

    @property
    def wanted(self) -> Wanted:
        """Return the rename, as YAML files need it."""
        return Wanted(self.old, self.new, self.tables, self.columns)

    def _of_yaml(self) -> Iterator[Change]:
        wanted = self.wanted
        for room in ("models", "expectations"):
            for name, text in self._files(room, ".yml"):
                mentions = self.mentions(name, text)
                if mentions is None:
                    continue
                yield from yaml_changes.changes(mentions, wanted, text.split("\n"))
        for name, text in self._files(FIXTURES, ""):
            yield from self._of_fixture(name, text, wanted)

    def _require_no_override(self) -> None:
        """Check that no unit test gives a macro a text that names the column: nothing would prove the new text."""
        word = re.compile(rf"(?<!\w){re.escape(self.old)}(?!\w)", re.IGNORECASE)
        for test in self.prepared.project.unit_tests:
            if test.model in self.chosen and any(word.search(str(value)) for value in test.macros.values()):
                raise RefusedError(f"{test.place}: the unit test {test.name} overrides a macro by `{self.old}`")

    def _of_fixture(self, file: str, text: str, wanted: Wanted) -> Iterator[Change]:
        """Yield the changes of rows in a file, if unit tests use it for renamed tables alone."""
        used = [table for name, table in self._fixtures if name in (Path(file).name, Path(file).stem)]
        if not set(used) & set(wanted.tables):
            return
        if other := [table for table in used if table not in wanted.tables]:
            raise RefusedError(f"the fixture {file} has rows of `{wanted.old}` in several tables, also in `{other[0]}`")
        yield from yaml_changes.of_fixture(file, text, wanted)

    @property
    def _fixtures(self) -> list[tuple[str, str]]:
        """Return the names of fixtures, with the tables that each has rows of."""
        folder, word = self.folder, re.compile(r"\bfixture:")
        texts = ((folder.name(file), folder.text(file) or "") for file in folder.files("models", ".yml"))
        read = (self.mentions(name, text) for name, text in texts if word.search(text))
        return [(w.text, w.table) for one in read if one is not None for w in one.words if w.kind == FIXTURE]

    def mentions(self, file: str, text: str) -> Mentions | None:
        """Return the columns that a YAML file names, with a text; None if it names none."""
        reader = Reader(file, text, [])
        mentions = Mentions(reader)
        if file.startswith("expectations/"):
            key = f"models/{file.removeprefix('expectations/').removesuffix('.yml')}.sql"
            mentions.suite(next((name for name, one in self.queries.items() if one.rendered.model.file == key), ""))
        elif Path(file).name == "_exposures.yml":
            mentions.exposures()
        elif Path(file).name == "_sources.yml":
            return None
        else:
            mentions.contracts()
        return mentions

    def _files(self, room: str, suffix: str) -> Iterator[tuple[str, str]]:
        """Yield the files of a folder that contain the old name, with their texts."""
        word = re.compile(rf"(?<!\w){re.escape(self.old)}(?!\w)", re.IGNORECASE)
        folder = self.folder
        for file in folder.files(room, suffix):
            text = folder.text(file) if file.suffix in (".sql", ".yml", ".csv") else None
            if text is not None and word.search(text):
                yield folder.name(file), text

    def text(self, name: str) -> str:
        """Return the text of a file of the project."""
        folder = self.folder
        text = folder.text(folder.root / name)
        if text is None:
            raise RefusedError(f"{name} can't be read")
        return text


def _linked(names: Names, start: Iterable[Symbol]) -> set[Symbol]:
    found, left = set[Symbol](), list(start)
    while left:
        symbol = left.pop()
        if symbol not in found:
            found.add(symbol)
            left += names.links.get(symbol, ())
    return found
