"""Compile each model of a project to the tables that maintain it, with strategy and reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlrun.engine_api import Dialect, StoredColumn
from sqlrun.errors import Problem, ProjectError
from sqlrun.incremental import (
    clocks,
    cte_names,
    determinism,
    hidden_partitions,
    histories,
    properties,
    stages,
    ties,
    window_orders,
)
from sqlrun.incremental.algebra import Node, Type
from sqlrun.incremental.landing import line_types
from sqlrun.incremental.landing.shape import shape_of
from sqlrun.incremental.operators.project import Project as Projection
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import ORDER, Stage, Target
from sqlrun.incremental.translate import distinct_counts, in_over_nulls
from sqlrun.incremental.translate.newest_per_key import newest_per_key
from sqlrun.incremental.translate.translate import translate
from sqlrun.parse import located_problems, select_list
from sqlrun.parse.parse import REF, SOURCE, Query, source_place
from sqlrun.project import HISTORY, Column, Model, Project, Seed, Source
from sqlrun.runtime.serialize import Partial
from sqlrun.transpile import parameters
from sqlrun.transpile import writer as sql
from sqlrun.transpile.refusals import Reason, Refusal

# Errors with any strategy: the result would not be a function of the inputs.
ALWAYS_WRONG = {"SR301", "SR501", "SR502", "SR503", "SR504", "SR505", "SR511", "SR512", "SR519", "SR553"}


@dataclass(frozen=True, slots=True)
class Compiled(Partial):
    """A model and its `stages` in the order of writing, the model's own table last; () for a view.

    `source`: the source whose lines land in the model's table.
    """

    query: Query
    stages: tuple[Stage, ...]
    source: Source | None = None

    @property
    def source_tables(self) -> tuple[str, ...]:
        """Return the sources that the model reads as tables, by their names in compiled SQL."""
        return self.query.rendered.sources if self.source is None else ()

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.query.name

    @property
    def is_view(self) -> bool:
        """Return whether the model is inlined into its readers instead of being stored as a table."""
        return not self.stages

    @property
    def own(self) -> Stage:
        """Return the stage of the model's own table."""
        return self.stages[-1]


@dataclass(slots=True)
class _Catalog:
    """The relations that a query may read; it grows as models are compiled in graph order."""

    project: Project
    nodes: dict[str, Node]
    sources: dict[str, Source]
    views: dict[str, Query]
    models: dict[str, Model]

    def resolve(self, database: str, name: str) -> Node:
        if database == SOURCE:
            source = self.sources[name]
            known = tuple(Type(c.type, c.nullable) for c in source.columns)
            return Scan(name, tuple(c.name for c in source.columns), known, only_grows=source.lands)
        return self.nodes[name]


def project(queries: Iterable[Query], project: Project) -> tuple[Compiled, ...]:
    """Compile models in graph order. Raise one `ProjectError` with all errors that hold for every strategy."""
    catalog = new_catalog(project)
    done: list[Compiled] = []
    problems: list[Problem] = []
    unsure = set[str]()
    for query in queries:
        is_below = not unsure.isdisjoint(query.rendered.refs)
        if is_below:
            unsure.add(query.name)
        try:
            compiled = model(query, catalog)
        except ProjectError as error:
            unsure.add(query.name)
            # Below a wrong model the strategy may be another one when that model is right.
            problems.extend(found for found in error.problems if found.code != "SR530" or not is_below)
            add(catalog, query, None)
        else:
            done.append(compiled)
            add(catalog, query, compiled)
    if problems:
        raise ProjectError(problems)
    return tuple(done)


def new_catalog(project: Project) -> _Catalog:
    """Return a catalog of the relations that exist before any model: sources and seeds."""
    catalog = _Catalog(
        project,
        {},
        {source.table: source for source in project.sources},
        {},
        {model.name: model for model in project.models},
    )
    for seed in project.seeds:
        catalog.nodes[seed.name] = _scan(seed, only_grows=False)
    return catalog


def add(catalog: _Catalog, query: Query, compiled: Compiled | None) -> None:
    """Add a model to the catalog, unless `model` has done so. `compiled` is None if the model is invalid."""
    if query.name not in catalog.nodes:
        grows = compiled is not None and bool(compiled.stages) and compiled.own.strategy == "append"
        catalog.nodes[query.name] = _scan(query.rendered.model, only_grows=grows)


def _scan(noun: Model | Seed, *, only_grows: bool) -> Scan:
    known = tuple(Type(c.type, c.nullable) for c in noun.columns)
    repeats = isinstance(noun, Model) and noun.repeats
    return Scan(noun.name, tuple(c.name for c in noun.columns), known, noun.grain or None, repeats, only_grows)


def model(query: Query, catalog: _Catalog) -> Compiled:
    """Compile one model and add its views and landing tables to the catalog.

    A query that the algebra refuses is compiled to one stage of the strategy `full`, unless the error is in
    `ALWAYS_WRONG`.
    """
    contract = query.rendered.model
    _check_partitions(query)
    if catalog.project.landed(query.rendered.sources):
        return _landing(query, catalog)
    target = Target(_stored(contract.columns), contract.grain, query.rendered.config.partition_by, _place_of(contract))
    config = query.rendered.config
    is_history = config.materialized == HISTORY
    try:
        written = select_list.without_versions(query.tree, config)
        determinism.check(written)
        translated = translate(written, catalog.resolve)
        window_orders.check_orders(translated)
        # The check above needs the analyst's own ORDER BY, so content is appended to it only now.
        decided = ties.settled(query, catalog.models, catalog.views)
        if decided is not query.tree:
            translated = translate(select_list.without_versions(decided, config), catalog.resolve)
        # Both rewrites give operators with a smaller state: fewer groups are recomputed.
        root = distinct_counts.in_two_steps(newest_per_key(translated))
        if config.materialized == "view":
            catalog.nodes[query.name] = _typed(root, contract)
            catalog.views[query.name] = query
            return Compiled(query, ())
        rest, hidden = stages.split(query.name, root)
        made = [stages.hidden_stage(name, query.name, node) for name, node in hidden]
        if is_history:
            made.append(histories.stage(query.name, rest, target, config))
        else:
            made.append(stages.own_stage(query.name, query.name, rest, target))
    except Refusal as refusal:
        if refusal.reason.code in ALWAYS_WRONG or config.materialized == "view":
            raise ProjectError([_problem(query, refusal.reason)]) from None
        # The query is correct, only no rule maintains it: it is recomputed in each tick.
        made = [_whole(query, target, refusal.reason, catalog)]
        if is_history:
            made = [histories.of_whole(made[0], config)]
    compiled = Compiled(query, tuple(made))
    _check_contract(compiled)
    return compiled


def _place_of(contract: Model) -> str:
    """Return where a model's contract is, or where it can be."""
    beside = contract.file.removesuffix(".sql") + ".yml"
    return f"of `{contract.name}` in " + (contract.contract_file or f"a contract, such as {beside}")


def _stored(columns: tuple[Column, ...]) -> tuple[StoredColumn, ...]:
    return tuple(StoredColumn(c.name, c.type, c.nullable) for c in columns)


def _typed(root: Node, contract: Model) -> Node:
    """Return a projection that casts a view's columns to the types of its contract."""
    items, known = [], root.types()
    for name in root.columns:
        declared = contract.column(name)
        value: exp.Expr = exp.column(exp.to_identifier(name, quoted=True))
        if declared is not None and known[name].text != declared.type:
            value = exp.cast(value, exp.DataType.build(declared.type, dialect="databricks"))
        items.append((name, value))
    return Projection(root, tuple(items))


def _landing(query: Query, catalog: _Catalog) -> Compiled:
    contract = query.rendered.model
    unknown = [
        Problem(
            "SR730",
            c.place,
            f"source fields don't support the type {c.type}",
            f"Use one of these types: {line_types.NAMES}.",
        )
        for source in catalog.project.landed(query.rendered.sources)
        for c in source.columns
        if not line_types.known(c.type)
    ]
    if unknown:
        raise ProjectError(unknown)
    try:
        root = translate(query.tree, catalog.resolve)
    except Refusal as refusal:
        raise ProjectError([_problem(query, refusal.reason)]) from None
    read = properties.tables(root)
    # A landing query sees only new lines, and each is one row or none: its rows may never leave.
    if shape_of(root) is None or not properties.only_grows(root):
        why = "a model that reads a source may only filter and compute columns: each line is one row or none"
        instead = "Land one source here. Join, group, union and explode in another model that reads this one."
        clauses = (exp.AggFunc, exp.Window, exp.Join, exp.Group, exp.Distinct, exp.SetOperation, exp.Lateral)
        found = query.tree.find(*clauses)
        # A set operation has no place, but its second branch has.
        landed = Refusal("SR531", why, instead, found.expression if isinstance(found, exp.SetOperation) else found)
        raise ProjectError([_problem(query, landed.reason)])
    reason = Reason("SR546", "sqlrun appends the new lines of the source as rows")
    columns = _stored(contract.columns)
    stage = Stage(
        name=query.name,
        model=query.name,
        strategy="append",
        method="land",
        reason=reason,
        columns=columns,
        node=root,
        inputs=read,
        key=contract.grain,
        null_safe=(),
        partition_by=query.rendered.config.partition_by,
        moves=False,
    )
    catalog.nodes[query.name] = _scan(contract, only_grows=True)
    return Compiled(query, (stage,), catalog.sources[read[0]])


def _whole(query: Query, target: Target, reason: Reason, catalog: _Catalog) -> Stage:
    """Return the `full` stage of a query without operators; raise SR505 if the engines would disagree."""
    try:
        in_over_nulls.check(query.tree, catalog.resolve)
    except Refusal as refusal:
        raise ProjectError([_problem(query, refusal.reason)]) from None
    return _full(query, target, reason, catalog)


def _full(query: Query, target: Target, reason: Reason, catalog: _Catalog) -> Stage:
    inputs = tuple(dict.fromkeys(_tables(query, catalog)))
    key = target.grain
    null_safe = tuple(c.name for c in target.columns if c.name in key and c.nullable)
    clock = query.tree.find(exp.CurrentTimestamp, exp.CurrentDate) is not None
    return Stage(
        name=query.name,
        model=query.name,
        strategy="full",
        method="full",
        reason=reason,
        columns=target.columns,
        node=None,
        inputs=inputs,
        key=key,
        null_safe=null_safe,
        partition_by=target.partition_by,
        moves=clock,
    )


def _tables(query: Query, catalog: _Catalog) -> Iterable[str]:
    for name in (*query.rendered.refs, *query.rendered.sources):
        if name in catalog.views:
            yield from _tables(catalog.views[name], catalog)
        else:
            yield name


def _problem(query: Query, reason: Reason) -> Problem:
    place, excerpt = source_place(query.rendered, reason.line or 1, reason.column or 1)
    return located_problems.named(Problem(reason.code, place, reason.why, reason.instead, excerpt), query.rendered)


def _check_partitions(query: Query) -> None:
    """Raise SR735 for a partition column whose type can't name a partition."""
    contract = query.rendered.model
    for name in query.rendered.config.partition_by:
        column = contract.column(name)
        if column is not None and not hidden_partitions.may_part(column.type):
            message = f"`{query.name}` can't be partitioned by `{name}`, which is {column.type}"
            hint = "Partition by a date, whole number, boolean, string or timestamp, or remove `partition_by`."
            raise ProjectError([Problem("SR735", column.place, message, hint)])


def _check_contract(compiled: Compiled) -> None:
    """Raise SR530 if a stage is more expensive than the model's `at_worst` allows."""
    allowed = compiled.query.rendered.config.at_worst
    limit = ORDER.index(allowed) if allowed in ORDER else len(ORDER)
    for stage in compiled.stages:
        if ORDER.index(stage.strategy) > limit:
            reason = stage.reason
            message = (
                f"`{compiled.name}` needs the strategy `{stage.strategy}`, but its contract sets at_worst: {allowed}"
            )
            hint = f"{reason.code}: {reason.why}. {reason.instead}".rstrip()
            place, excerpt = source_place(compiled.query.rendered, reason.line or 1, reason.column or 1)
            problem = Problem("SR530", place, message, hint, excerpt)
            raise ProjectError([located_problems.named(problem, compiled.query.rendered)])


def whole_query(
    compiled: Mapping[str, Query],
    name: str,
    views: Iterable[str],
    moment: Moment,
    dialect: Dialect,
    relation: str = "{name}__new",
) -> str:
    """Return a model's query as the analyst wrote it, with ties decided by content: the oracle.

    Refs read the relations that `relation` names, views are inlined, and as_of is a literal.
    """
    return parameters.filled(query_of_any_tick(compiled, name, views, dialect, relation), moment.parameters, dialect)


def query_of_any_tick(
    compiled: Mapping[str, Query], name: str, views: Iterable[str], dialect: Dialect, relation: str = "{name}__new"
) -> str:
    """Return a model's whole query as `whole_query` does, but with as_of as a parameter."""
    written = frozenset(views)
    models = {known: query.rendered.model for known, query in compiled.items()}
    viewed = {known: query for known, query in compiled.items() if known in written}
    taken: set[str] = set()

    def decided(model: str) -> exp.Expr:
        return ties.settled(compiled[model], models, viewed)

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Table) and node.db == REF and node.name in written:
            inner = cte_names.made_unique(decided(node.name).copy(), taken, f"{node.name}__")
            inner = inner.transform(swap, copy=False)
            return exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(node.alias_or_name)))
        if isinstance(node, exp.Table) and node.db in (REF, SOURCE):
            table = exp.Table(this=exp.to_identifier(relation.format(name=node.name), quoted=True))
            table.set("alias", exp.TableAlias(this=exp.to_identifier(node.alias_or_name)))
            for key in ("joins", "laterals"):
                if node.args.get(key):  # transform() doesn't descend into nodes that it has inserted
                    table.set(key, [part.transform(swap, copy=False) for part in node.args[key]])
            return table
        return clocks.at_node(node, "as_of")

    tree = cte_names.made_unique(decided(name).copy(), taken)
    return sql.expression(tree.transform(swap, copy=False), dialect)
