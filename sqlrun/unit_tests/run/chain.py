"""The computation of a unit test: given inputs, and the models between them and the tested one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from sqlrun.errors import ProjectError
from sqlrun.incremental import compile as compiler
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.parse.parse import Query
from sqlrun.project import Change, Column, Given, Project, Source, UnitTest
from sqlrun.test_definitions.names import inner


@dataclass(frozen=True, slots=True)
class Input:
    """A relation with given rows, or an empty one; `label` is its name in the test.

    `grows`: it is append-only, like a source that lands. `source`: the source whose lines these rows are.
    """

    name: str
    label: str
    columns: tuple[Column, ...]
    grain: tuple[str, ...] = ()
    repeats: bool = False
    grows: bool = False
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """The inputs, and the models maintained over them in order of computation, the tested one last.

    `landing` has by source the models whose rows come from its raw lines; these are inputs, even the tested one. A
    macro's query reads nothing and isn't maintained.
    """

    tested: Query
    inputs: tuple[Input, ...]
    models: tuple[Compiled, ...]
    views: tuple[str, ...]
    landing: Mapping[str, tuple[Compiled, ...]]

    @property
    def kept(self) -> Compiled | None:
        """Return the tested model as it is maintained; None for a landing model and for a macro's query."""
        return self.models[-1] if self.models and self.models[-1].stages else None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the maintained tables, in order."""
        return tuple(stage for model in self.models for stage in model.stages)

    def input(self, name: str) -> Input:
        """Return an input by its relation's name."""
        return next(one for one in self.inputs if one.name == name)


class NotGiven(ValueError):
    """A test gives an input that its model doesn't read."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a test cuts the graph: names of given relations, and of sources given as raw lines."""

    given: frozenset[str]
    lines: frozenset[str]


def cut_of(test: UnitTest) -> Cut:
    """Return the inputs that a test gives, in its first tick or a later one."""
    changes: list[Given | Change] = [*test.given, *(change for step in test.steps for change in step.changes)]
    given = frozenset(inner(one.input) for one in changes)
    return Cut(given, frozenset(inner(one.input) for one in changes if one.lines is not None))


def chain(
    project: Project,
    queries: Mapping[str, Query],
    known: Mapping[str, Compiled],
    model: str,
    cut: Cut,
    *,
    plays: bool,
) -> Chain:
    """Return the computation of a test of `model`; `known` are models as the project compiles them.

    The plain query runs if it can't be maintained, or if the test doesn't play further ticks (`plays`) and there is no
    model in between.

    Raises: NotGiven for a given input that the model never reads, ProjectError for a query that can't be maintained.
    """
    tested = queries[model]
    found = _Walk(project, queries, cut)
    between = found.between(model)
    unread = sorted(cut.given - found.read)
    if unread:
        raise NotGiven(
            f"{found.label(unread[0])} is an input of the test, but {model} doesn't read it: {_reads(found, model)}"
        )
    inputs = tuple(found.input(name, known) for name in sorted(found.read))
    models = tuple(_compiled(project, queries, known, between, inputs, plays=plays))
    landing = {
        source: tuple(_lands(project, queries, known, name) for name in ns) for source, ns in found.landing.items()
    }
    kept = tuple(m for m in models if m.name == model or not m.is_view)
    views = tuple(m.name for m in models if m.is_view and m.name != model)
    if not plays and len(kept) == 1:
        # One tick needs one result; a maintained table of it would run the same query twice.
        kept = (replace(kept[0], stages=()),)
    return Chain(tested, inputs, kept, views, landing)


def alone(query: Query) -> Chain:
    """Return the chain of a query that reads no table."""
    return Chain(query, (), (Compiled(query, ()),), (), {})


def _lands(project: Project, queries: Mapping[str, Query], known: Mapping[str, Compiled], name: str) -> Compiled:
    if name in known and known[name].query is queries[name]:
        return known[name]
    return compiler.model(queries[name], compiler.new_catalog(project))


def _reads(found: _Walk, model: str) -> str:
    hidden = sorted(found.label(name) for name in found.read)
    return f"it reads {', '.join(hidden) or 'nothing'}. Inputs upstream of another input have no effect"


class _Walk:
    """The graph above a model, up to the given inputs."""

    def __init__(self, project: Project, queries: Mapping[str, Query], cut: Cut) -> None:
        self._project, self._queries, self._cut = project, queries, cut
        self._sources = {source.table: source for source in project.sources}
        self._above: dict[str, bool] = {}
        self.read: set[str] = set()
        self.landing: dict[str, tuple[str, ...]] = {}

    def label(self, name: str) -> str:
        """Return a relation's name as tests write it."""
        source = self._sources.get(name)
        return f"source('{source.group}', '{source.name}')" if source else f"ref('{name}')"

    def between(self, model: str) -> list[str]:
        """Return the names of the models to compute, each after its inputs, and record these inputs."""
        order: list[str] = []

        def visit(name: str) -> None:
            if name in order:
                return
            rendered = self._queries[name].rendered
            lines = [source for source in rendered.sources if source in self._cut.lines]
            if lines:  # its rows come from the lines
                self.read |= {name, *lines}
                self.landing[lines[0]] = (*self.landing.get(lines[0], ()), name)
                return
            self.read |= set(rendered.sources)
            for ref in rendered.refs:
                if self._is_computed(ref):
                    visit(ref)
                else:
                    self.read.add(ref)
            order.append(name)

        visit(model)
        return order

    def _is_computed(self, name: str) -> bool:
        """Return whether a model has a given input above it and isn't given itself."""
        if name in self._cut.given or name not in self._queries:
            return False
        if name not in self._above:
            rendered = self._queries[name].rendered
            reads = [*rendered.refs, *rendered.sources]
            self._above[name] = any(one in self._cut.given or self._is_computed(one) for one in reads)
        return self._above[name]

    def input(self, name: str, known: Mapping[str, Compiled]) -> Input:
        """Return an input for a relation that isn't computed."""
        if name in self._sources:
            source = self._sources[name]
            return Input(name, self.label(name), source.columns, grows=source.lands, source=source)
        seed = next((seed for seed in self._project.seeds if seed.name == name), None)
        if seed is not None:
            return Input(name, self.label(name), seed.columns, seed.grain)
        model = self._queries[name].rendered.model
        stages = known[name].stages if name in known else ()
        grows = bool(stages) and stages[-1].strategy == "append"
        return Input(name, self.label(name), model.columns, model.grain, model.repeats, grows)


def _compiled(
    project: Project,
    queries: Mapping[str, Query],
    known: Mapping[str, Compiled],
    between: Iterable[str],
    inputs: tuple[Input, ...],
    *,
    plays: bool,
) -> Iterable[Compiled]:
    """Return the models as the project compiles them if their inputs are the same, else compile them again."""
    order = list(between)
    cut = {one.name for one in inputs}
    catalog = compiler.new_catalog(project)
    for one in inputs:
        if one.name not in catalog.nodes and one.name in queries:
            compiler.add(catalog, queries[one.name], known.get(one.name))
    for name in order:
        query, is_last = queries[name], name == order[-1]
        if not _is_view(known, name) and not _is_changed(known, queries, name, cut):
            made = known[name]
        else:
            if is_last and query.rendered.config.materialized == "view":
                config = replace(query.rendered.config, materialized="table")
                query = replace(query, rendered=replace(query.rendered, config=config))
            try:
                made = compiler.model(query, catalog)
            except ProjectError:
                if plays or not is_last:
                    raise
                made = Compiled(query, ())
        if made.source is not None:  # rows of a source are given as if parsed from lines
            made = replace(made, stages=tuple(replace(stage, method="append") for stage in made.stages))
        compiler.add(catalog, query, made)
        yield made


def _is_view(known: Mapping[str, Compiled], name: str) -> bool:
    return name in known and known[name].is_view


def _is_changed(known: Mapping[str, Compiled], queries: Mapping[str, Query], name: str, cut: Collection[str]) -> bool:
    """Return whether a query, or a view inlined into it, differs from the project's or has a given input."""
    if name not in known or known[name].query is not queries[name]:
        return True
    views = [ref for ref in queries[name].rendered.refs if _is_view(known, ref)]
    return any(view in cut or _is_changed(known, queries, view, cut) for view in views)
