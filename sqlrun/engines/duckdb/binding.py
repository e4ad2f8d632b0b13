"""Check that DuckDB accepts a compiled model: bind it to empty tables of the contracts' types. Shell: DuckDB."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from sqlrun.engine_api import Append, Merge, Overwrite, Replace, Statement
from sqlrun.engines.duckdb.memory import LONGEST, connect, failures, relation
from sqlrun.errors import Problem
from sqlrun.incremental.compile import Compiled, whole_query
from sqlrun.incremental.script import WEIGHT, Moment
from sqlrun.incremental.statements import Tick, prepare
from sqlrun.parse import located_problems, spark_only
from sqlrun.parse.parse import Query, schema_of
from sqlrun.parse.source_map import source_place
from sqlrun.project import Project
from sqlrun.runtime.disk_cache import Cache, digest
from sqlrun.runtime.stopping import limited
from sqlrun.transpile import parameters
from sqlrun.transpile.writer import cast, identifier, type_name

BEFORE, NOW = datetime(2026, 1, 1, tzinfo=timezone.utc), datetime(2026, 1, 1, 0, 5, tzinfo=timezone.utc)
# Comment that `spark_alone.marked` adds to each column, to map a position in DuckDB's SQL back to the query.
MARK = re.compile(r"/\* (\d+):(\d+) \*/")
Columns = tuple[tuple[str, str], ...]


class Fit:
    """Decides which models of a project DuckDB answers as Spark does; `cache` holds earlier decisions."""

    def __init__(self, project: Project, models: Iterable[Compiled], cache: Cache | None = None) -> None:
        self._project, self._cache = project, cache or Cache(None)
        self._models = {model.name: model for model in models}
        self._bench: _Bench | None = None
        self._tables = schema_of(project)
        self._shapes: dict[str, str] = {}

    def fits(self, name: str) -> bool:
        """Return whether DuckDB can answer and maintain a model as Spark does."""
        model, functions = self._models[name], self._project.functions
        source = [model.query.canonical, functions, [self._shape(n) for n in (name, *_read(model.query))]]
        return bool(self._cache.get_or_make("duckdb", source, bool, lambda: None if self.problems(name) else True))

    def problems(self, name: str, advice: str = spark_only.ADVICE) -> tuple[Problem, ...]:
        """Return the parts of a model that DuckDB can't execute as Spark does (SR310), in the analyst's own file.

        Problems of a view are reported for the view only, not again for its readers.
        """
        model = self._models[name]
        found = spark_only.problems([model.query], self._project.functions, advice)
        found = found or spark_only.mixed_problems(model.query, self._tables, advice)
        if found or any(self.problems(view) for view in self._views(model)):
            return found
        if self._bench is None:
            self._bench = _Bench(self._project, self._models)
        failure = self._bench.failure(model)
        return () if failure is None else (_problem(model.query, failure, advice),)

    def _views(self, model: Compiled) -> list[str]:
        return [ref for ref in model.query.rendered.refs if ref in self._models and self._models[ref].is_view]

    def _shape(self, name: str) -> str:
        """Return a hash of a relation as its readers depend on it: its columns, and for a view its query too."""
        if name not in self._shapes:
            model = self._models.get(name)
            inside = [model.query.canonical, *map(self._shape, _read(model.query))] if model and model.is_view else []
            keyed = [list(model.query.rendered.model.grain), model.query.rendered.config.materialized] if model else []
            self._shapes[name] = digest([_columns(self._project, name), keyed, inside])
        return self._shapes[name]


def _read(query: Query) -> tuple[str, ...]:
    return (*query.rendered.refs, *query.rendered.sources)


def _columns(project: Project, name: str) -> Columns:
    """Return the columns of a model, a seed or a source with their types."""
    known = {model.name: model.columns for model in project.models} | {
        seed.name: seed.columns for seed in project.seeds
    }
    known |= {source.table: source.columns for source in project.sources}
    return tuple((column.name, column.type) for column in known.get(name, ()))


@dataclass(frozen=True, slots=True)
class _Failure:
    """DuckDB's error message and its position in the rendered SQL; line 0 if unknown."""

    why: str
    line: int = 0
    column: int = 0


class _Tables:
    """Empty tables in memory."""

    def __init__(self) -> None:
        self._connection = connect(errors_as_json=True)
        self._held: set[str] = set()

    def failure_of(self, query: Query, write: Callable[[Any], str]) -> _Failure | None:
        """Return why DuckDB rejects a query over tables that exist, as `write` writes its tree; None if it doesn't."""
        found = self._refused(write(query.tree))
        if found is None:
            return None
        marked = self._refused(write(spark_only.marked(query.tree)))
        line, column = _query_position(*(marked or found))
        return _Failure(found[1][0], line, column)

    def hold(self, name: str, columns: Columns) -> None:
        """Create the empty tables of a relation; do nothing if they exist."""
        if name in self._held:
            return
        shape = ", ".join(f"{identifier(n, 'duckdb')} {type_name(kind, 'duckdb')}" for n, kind in columns)
        for row_set in ("new", "old", "changes"):
            more = f", {WEIGHT} bigint" if row_set == "changes" else ""
            self._connection.execute(f"create temp table {relation(name, row_set)} ({shape}{more})")
        self._held.add(name)

    def _refused(self, text: str) -> tuple[str, tuple[str, int]] | None:
        """Return a text that DuckDB rejects, with its message and the character's position; None if it accepts all."""
        statement = f"explain {text}"
        try:
            self._connection.execute(statement).fetchall()
        except failures() as error:
            return statement, _error_message(error)
        return None


class _Bench(_Tables):
    """Empty tables in memory, created on demand for a project's models."""

    def __init__(self, project: Project, models: Mapping[str, Compiled]) -> None:
        super().__init__()
        self._project, self._models = project, models
        self._queries = {name: model.query for name, model in models.items()}
        self._views = tuple(name for name, model in models.items() if model.is_view)

    def failure(self, model: Compiled) -> _Failure | None:
        """Return why DuckDB rejects a model's query, or one of the statements that maintain it; None if it doesn't."""
        with limited(self._connection.interrupt, LONGEST):
            return self._of_query(model) or self._of_statements(model)

    def _of_query(self, model: Compiled) -> _Failure | None:
        try:
            for name in self._inputs(model.query):
                self.hold(name, _columns(self._project, name))
        except failures() as error:
            return _Failure(_error_message(error)[0])
        return self.failure_of(model.query, lambda tree: self._whole(replace(model.query, tree=tree)))

    def _whole(self, query: Query) -> str:
        """Return a model's complete query, its columns cast to the contract's types."""
        text = whole_query({**self._queries, query.name: query}, query.name, self._views, Moment(NOW, None), "duckdb")
        kinds = {c.name: c.type for c in query.rendered.model.columns}
        names = [identifier(name, "duckdb") for name in query.columns]
        items = ", ".join(cast(n, kinds[c], "duckdb") for n, c in zip(names, query.columns, strict=True))
        return f"select {items} from ({text})"

    def _inputs(self, query: Query) -> Iterable[str]:
        for name in _read(query):
            if name in self._views:
                yield from self._inputs(self._queries[name])
            else:
                yield name

    def _of_statements(self, model: Compiled) -> _Failure | None:
        for stage in model.stages if model.source is None else ():
            self.hold(stage.name, tuple((c.name, c.type) for c in stage.columns))
            moment = Moment(NOW, BEFORE)
            tick = Tick(moment, frozenset(stage.inputs), fresh=False)
            whole = ""
            if stage.node is None:
                whole = whole_query(self._queries, model.name, self._views, Moment(NOW, None), "duckdb")
            made = prepare(stage, tick, "duckdb", whole)
            for text in _selects(made.statement) if made is not None else ():
                found = self._refused(parameters.filled(text, moment.parameters, "duckdb"))
                if found is not None:
                    return _Failure(f"in the incremental statement: {found[1][0]}")
        return None


def _selects(statement: Statement) -> Iterable[str]:
    match statement:
        case Merge(delta=text) | Append(sql=text) | Replace(sql=text):
            yield text
        case Overwrite(sql=text, partitions=partitions):
            yield from (text, partitions)


def _error_message(error: Exception) -> tuple[str, int]:
    """Return DuckDB's message without its lists of candidates, and the position of the character that it points at."""
    kind, _, body = str(error).partition(": ")
    try:
        parsed: Any = json.loads(body)
        text, position = str(parsed["exception_message"]), int(parsed.get("position", "0"))
    except (ValueError, KeyError, TypeError):
        text, position = body or kind, -1
    first = text.split("\n")[0].split(" You might need to add")[0].removeprefix("explain ").rstrip(". ")
    return first if first[1:2].isupper() else first[:1].lower() + first[1:], position


def _query_position(text: str, error: tuple[str, int]) -> tuple[int, int]:
    """Return the position in the query for a position in DuckDB's SQL: that of the next marked column."""
    found = MARK.search(text, max(error[1], 0)) if error[1] >= 0 else None
    return (int(found[1]), int(found[2])) if found is not None else (0, 0)


def _problem(query: Query, failure: _Failure, advice: str) -> Problem:
    place, excerpt = source_place(query.rendered, failure.line or 1, failure.column or 1)
    if not failure.line:
        place = replace(place, exact=False)
    why = f"DuckDB can't run this query: {failure.why}"
    found = Problem("SR310", place, why, f"{spark_only.instead(query, failure.why)} {advice}", excerpt)
    return located_problems.named(found, query.rendered)


def refusals(
    query: Query, write: Callable[[Any], str], tables: Mapping[str, Columns], advice: str
) -> tuple[Problem, ...]:
    """Return why DuckDB can't run a query (SR310), in the analyst's text; () if it can.

    `write` returns a tree's SQL, over `x__new` for each `x` of `tables`, which are given with their columns.
    """
    bench = _Tables()
    for name, columns in tables.items():
        bench.hold(name, columns)
    found = bench.failure_of(query, write)
    return () if found is None else (_problem(query, found, advice),)


def problems(fit: Fit, names: Collection[str], advice: str = spark_only.ADVICE) -> tuple[Problem, ...]:
    """Return the parts of these models that DuckDB can't execute as Spark does (SR310)."""
    return tuple(dict.fromkeys(p for name in names if not fit.fits(name) for p in fit.problems(name, advice)))
