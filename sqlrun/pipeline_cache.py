"""Prepare a project from cached results: only changed parts are computed again. Shell: target/.

Each model is rendered, parsed and compiled from an explicit list of values: its text, its contract, the macros, the
vars, and what its inputs expose. Their hash is the key of the result. A cached model has no syntax tree and no
operators until they are needed; then they are computed from the same values.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from functools import partial
from itertools import groupby
from typing import Any

from sqlrun.errors import ProjectError
from sqlrun.expectations import validate
from sqlrun.graph import graph
from sqlrun.graph.graph import Graph
from sqlrun.incremental import compile as compiler
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.landing import drops
from sqlrun.incremental.landing.query import Rule
from sqlrun.incremental.stages import Stage
from sqlrun.load.contract_files import facts
from sqlrun.load.load import Loaded
from sqlrun.parse import declared_types, parse, spark_only
from sqlrun.parse.parse import Query
from sqlrun.plan import plan
from sqlrun.plan.values import Workspace
from sqlrun.project import Config, Model, Project, Rendered, Seed, Source, Suite
from sqlrun.render import render
from sqlrun.runtime import fork
from sqlrun.runtime.disk_cache import Cache, digest
from sqlrun.runtime.serialize import Partial, form, partly

# Parts of a project that models depend on individually; every model depends on all other parts.
PARTS = ("root", "models", "seeds", "sources", "macros", "suites", "exposures", "selectors")


class _Wrong(Exception):
    """There is a problem; only the pipeline without a cache reports it."""


@dataclass(frozen=True, slots=True)
class _Text:
    """What rendering adds to a model."""

    sql: str
    refs: tuple[str, ...]
    sources: tuple[str, ...]
    lines: tuple[int, ...]
    config: Config


@dataclass(frozen=True, slots=True)
class _Kept(Partial):
    """The results of parsing and compiling; `shown` is the hash of how the model is stored."""

    columns: tuple[str, ...]
    canonical: str
    stages: tuple[Stage, ...]
    shown: str


def prepare(loaded: Loaded, cache: Cache) -> tuple[Graph, tuple[Query, ...], Workspace] | None:
    """Return a project prepared with the cache's help; None if it has any problem."""
    project = loaded.project
    if loaded.problems:
        return None
    try:
        rendered = _rendered(project, loaded.contracts, cache)
        made = graph.build(project, rendered)
        _check_types(project, cache)
        work = _Work(loaded, {item.model.name: item for item in rendered}, cache)
        done = work.all_done([name for name in made.order if name in work.rendered])
        _check_suites(loaded, rendered, cache)
        _check_drops(project, cache)
        rules = {model.name: _rules(loaded, model, cache) for _, model in done}
    except (ProjectError, _Wrong, *parse.TOO_DEEP_ERRORS):
        return None
    return made, tuple(query for query, _ in done), plan.workspace(project, tuple(c for _, c in done), rules)


def _rendered(project: Project, contracts: Any, cache: Cache) -> list[Rendered]:
    """Return the rendered models, cached by text, columns, settings, macros, vars and sources."""
    one = render.later(project)
    names = {model.name for model in project.models} | {seed.name for seed in project.seeds}
    shared = digest(
        [
            [[macro.name, macro.file, macro.text] for macro in project.macros],
            facts(project.seen_by_templates),
            sorted([source.group, source.name, source.lands] for source in project.sources),
        ]
    )
    if project.macros:
        _sure(cache.get_or_make("macros", shared, bool, lambda: render.macros_are_right(project) or None))
    found = []
    for model in project.models:
        source = [shared, model.file, model.sql, contracts[model.name], facts(model.config)]
        text: _Text = _sure(cache.get_or_make("rendered", source, _Text, partial(_text, one, model)))
        if not names.issuperset(text.refs):
            raise _Wrong
        found.append(Rendered(model, text.sql, text.refs, text.sources, text.lines, text.config))
    return found


def _text(one: Any, model: Model) -> _Text | None:
    made: Rendered | None = one(model)
    return None if made is None else _Text(made.sql, made.refs, made.sources, made.lines, made.config)


def _sure(value: Any) -> Any:
    if value is None:
        raise _Wrong
    return value


class _Work:
    """The models that are compiled, in this run or before, and the state for compiling others."""

    def __init__(self, loaded: Loaded, rendered: dict[str, Rendered], cache: Cache) -> None:
        self.rendered = rendered
        self._project, self._contracts, self._cache = loaded.project, loaded.contracts, cache
        self._sources = {source.table: source for source in self._project.sources}
        self._shared = digest([facts(getattr(self._project, f.name)) for f in fields(Project) if f.name not in PARTS])
        self._shown = {seed.name: self._contracts[seed.name] for seed in self._project.seeds}
        self._hashes: dict[str, str] = {}
        self._done: dict[str, tuple[Query, Compiled]] = {}
        self._real: dict[str, tuple[Query, Compiled]] = {}
        self._catalog = compiler.new_catalog(self._project)
        self._schema: parse.Schema | None = None
        self._lock = threading.RLock()

    def all_done(self, order: list[str]) -> list[tuple[Query, Compiled]]:
        """Return all models, each after its inputs; models of one depth are split between two processes."""
        depths: dict[str, int] = {}
        for name in order:
            depths[name] = 1 + max((depths[ref] for ref in self.rendered[name].refs if ref in depths), default=0)
        for _, level in groupby(sorted(order, key=depths.__getitem__), key=depths.__getitem__):
            names = list(level)
            missing = [name for name in names if not self._cache.knows("model", self._source(name))]
            fork.done([partial(self.done, name) for name in missing], self._cache)
            for name in names:
                self.done(name)
        return [self._done[name] for name in order]

    def _source(self, name: str) -> str:
        """Return the hash of everything that parsing and compiling a model depends on; its inputs are done already."""
        if name not in self._hashes:
            item = self.rendered[name]
            all_of_it = [
                self._shared,
                self._contracts[name],
                [item.model.file, item.sql, facts(item.config)],
                [[ref, self._shown[ref]] for ref in item.refs],
                [[table, facts(self._sources[table])] for table in item.sources],
            ]
            self._hashes[name] = digest(all_of_it)
        return self._hashes[name]

    def done(self, name: str) -> tuple[Query, Compiled]:
        """Return a model whose inputs are done; its tree and its operators are created only if needed."""
        if name in self._done:
            return self._done[name]
        item, source = self.rendered[name], self._source(name)
        whole = partial(self._whole, name)
        kept: _Kept = _sure(self._cache.get_or_make("model", source, _Kept, whole, whole))
        self._shown[name] = digest([source if not kept.stages else kept.shown, self._contracts[name]])
        known = {"rendered": item, "columns": kept.columns, "canonical": kept.canonical}
        query: Query = partly(Query, lambda: self._make(name)[0], known)
        landed = next(iter(self._project.landed(item.sources)), None)
        parts = {"query": query, "stages": kept.stages, "source": landed}
        self._done[name] = query, partly(Compiled, lambda: self._make(name)[1], parts)
        return self._done[name]

    def _whole(self, name: str) -> _Kept:
        query, compiled = self._make(name)
        write = form(tuple[Stage, ...])
        assert write is not None
        return _Kept(query.columns, query.canonical, compiled.stages, digest(write.write(compiled.stages)))

    def _make(self, name: str) -> tuple[Query, Compiled]:
        """Parse and compile a model, after the views that it reads.

        Raises: ProjectError.
        """
        with self._lock:
            if name not in self._real:
                if self._schema is None:
                    self._schema = parse.schema_of(self._project)
                item = self.rendered[name]
                query = parse.query(item, self._schema, self._project.functions)
                for ref in item.refs:
                    self._show(ref)
                compiled = compiler.model(query, self._catalog)
                compiler.add(self._catalog, query, compiled)
                self._real[name] = query, compiled
            return self._real[name]

    def _show(self, ref: str) -> None:
        """Add an input of a model to the catalog."""
        if ref in self._done and ref not in self._catalog.nodes:
            query, compiled = self._done[ref]
            if compiled.is_view:
                self._make(ref)
            else:
                compiler.add(self._catalog, query, compiled)


def calls_alike(query: Query, functions: tuple[str, ...], cache: Cache) -> bool:
    """Return whether every call in a query has the same result on DuckDB as on Spark."""

    def make() -> bool | None:
        return None if spark_only.problems([query], functions) else True

    return bool(cache.get_or_make("calls", [query.canonical, functions], bool, make))


def _check_types(project: Project, cache: Cache) -> None:
    listed: list[Model | Seed | Source] = [*project.models, *project.seeds, *project.sources]
    kinds = sorted({column.type for noun in listed for column in noun.columns})
    _sure(cache.get_or_make("types", kinds, bool, lambda: None if list(declared_types.problems(project)) else True))


def _check_suites(loaded: Loaded, rendered: list[Rendered], cache: Cache) -> None:
    items = {item.model.name: item for item in rendered}
    for suite in loaded.project.suites:
        item = items[suite.model]
        lands, is_view = bool(loaded.project.landed(item.sources)), item.config.materialized == "view"
        source = [_written(suite), loaded.contracts[suite.model], lands, is_view]
        _sure(cache.get_or_make("checks", source, bool, partial(_fine, suite, item.model, lands, is_view)))


def _check_drops(project: Project, cache: Cache) -> None:
    for source in project.sources:
        if source.drop_where:
            parts = [facts(source.columns), source.table, [rule.where for rule in source.drop_where]]
            _sure(cache.get_or_make("drops", parts, bool, partial(_droppable, source)))


def _droppable(source: Source) -> bool | None:
    return None if drops.problems([source]) else True


def _fine(suite: Suite, model: Model, lands: bool, is_view: bool) -> bool | None:
    return None if validate.problems(suite, model, lands=lands, is_view=is_view) else True


def _written(suite: Suite) -> object:
    written = form(Suite)
    assert written is not None
    return written.write(suite)


def _rules(loaded: Loaded, model: Compiled, cache: Cache) -> tuple[Rule, ...]:
    if model.source is None:
        return ()
    name = model.name
    suites = [_written(suite) for suite in loaded.project.suites if suite.model == name]
    make = partial(plan.rules_of, loaded.project, model)
    rules: tuple[Rule, ...] = cache.get_or_make("rules", [suites, loaded.contracts[name]], tuple[Rule, ...], make)
    return rules
