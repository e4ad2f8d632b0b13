"""Write the one statement that updates a stage's table in a tick. Pure.

Each method turns a query's signed changes into what a table can store. A bag with weights is exact, but a table has
rows and no weights. So each method derives inserts and deletes in its own way:
- `append` has inserts alone;
- `additive` adds weighted sums to stored ones;
- `newest` compares with the stored row;
- `rows` nets weights row by row;
- `keys` and `partitions` recompute what is affected;
- `full` recomputes everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlrun.engine_api import Append, Dialect, Merge, Overwrite, Prune, Replace, Statement, StoredColumn
from sqlrun.incremental import histories
from sqlrun.incremental.expressions import column, substitute
from sqlrun.incremental.operators.affected import restrict
from sqlrun.incremental.operators.affected_keys import numbers
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.latest import Latest, OrderKey
from sqlrun.incremental.operators.window import useful
from sqlrun.incremental.parts import split
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.incremental.stages import ONE, Earlier, Stage, Term, collapse, sums
from sqlrun.transpile import writer as sql


@dataclass(frozen=True, slots=True)
class Tick:
    """What a stage sees of a tick: the clock, the changed inputs, and whether its table is new.

    `whole`: the table exists but is recomputed from scratch in this tick; only rows that differ are written.
    `earlier`: a history's table before this new one.
    """

    moment: Moment
    changed: frozenset[str]
    fresh: bool
    whole: bool = False
    earlier: Earlier | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement with the tick's times as parameters, and the relations (table, row set) that it reads."""

    statement: Statement
    reads: tuple[tuple[str, str], ...]


def prepare(stage: Stage, tick: Tick, dialect: Dialect, full_query: str) -> Prepared | None:
    """Return the statement of a tick; None if nothing can have changed.

    `tick.moment.parameters` are the values of its parameters. `full_query` is the analyst's query over the relations
    `x__new`, for the method `full`.
    """
    if not tick.fresh and not tick.changed & set(stage.inputs) and not _time_moved(stage, tick):
        return None
    # A new table has no state, so every row of the inputs is a change with weight +1 and the same rules build it.
    script = Script(dialect, tick.moment.clock, tick.changed, tick.fresh or tick.whole)
    if tick.whole and stage.node is not None:
        return Prepared(_whole(stage, script), tuple(sorted(script.used)))
    match stage.method:
        case "append":
            statement: Statement | None = _append(stage, script)
        case "additive":
            statement = _additive(stage, script)
        case "newest":
            statement = _newest(stage, script)
        case "rows":
            statement = _rows(stage, script)
        case "keys":
            statement = _keys(stage, script)
        case "partitions":
            statement = _partitions(stage, script)
        case "history":
            statement = histories.statement(stage, script, full_query, tick.earlier, is_new=tick.fresh)
        case "full" | "land":
            statement = _full(stage, script, full_query)
    if statement is None:
        return None
    return Prepared(statement, tuple(sorted(script.used)))


def _time_moved(stage: Stage, tick: Tick) -> bool:
    return stage.moves and tick.moment.as_of != tick.moment.previous


def _items(stage: Stage, script: Script) -> str:
    """Return a stage's columns with their stored types; the hidden key of a table of one row is a constant."""
    return ", ".join(script.stored("1" if c.name == ONE else script.name(c.name), c) for c in stage.columns)


def _append(stage: Stage, script: Script) -> Statement | None:
    assert stage.node is not None
    source = script.changes(stage.node)
    if source is None:
        return None
    # The weights are dropped: no operator of such a stage deletes a row, so each is +1.
    items = ", ".join(script.stored(script.name(c.name), c) for c in stage.columns)
    return Append(script.text(f"select {items} from {source}"))


def _additive(stage: Stage, script: Script) -> Statement | None:
    """Return a MERGE that adds the changes' weighted sums to the stored ones: sum(A + dA) = sum(A) + sum(dA).

    `_n` counts a group's rows, since a sum of 0 doesn't imply that the group is empty (the counting algorithm, Gupta &
    Mumick 1995). A group is deleted when `_n` reaches 0 and never inserted with less. The same MERGE computes the
    public columns from the sums.
    """
    assert stage.node is not None
    top, node = collapse(stage.node)
    assert isinstance(node, Aggregate)
    source = script.changes(node.child)
    if source is None:
        return None
    # The delta has the public columns that read keys alone. A column that reads terms needs the stored sums, which only
    # the MERGE sees.
    state = sums(node)
    terms = {term.name for term in state.terms}
    values = [(name, substitute(item, state.values)) for name, item in top]
    from_key = [(name, value) for name, value in values if not _reads(value, terms)]
    from_state = [(name, value) for name, value in values if _reads(value, terms)]
    delta = script.text(_delta(stage, script, node, source, from_key))
    # A key of the select list is stored once, under its public name.
    names = {item.name: name for name, item in reversed(top) if isinstance(item, exp.Column)}
    stored: dict[str, exp.Expr] = {name: column(names.get(name, f"_key_{name}")) for name, _ in node.keys}
    columns = {c.name: c for c in stage.columns}
    count = script.name("_n")
    rows = f"t.{count} + s.{count}"

    def public(plus: bool) -> list[tuple[str, str]]:
        """Return the public columns over s.* alone, or over s.* added to t.*."""
        pairs = []
        for name, value in from_state:
            swapped = substitute(value, stored | {t.name: _term(t, plus) for t in state.terms})
            if script.dialect == "spark":
                swapped = swapped.transform(_exact_average)
            text = _qualified(script, swapped)
            if not isinstance(value, exp.Column):
                # An engine may evaluate it for a deleted group as well, where the count is zero.
                text = f"case when {rows if plus else f's.{count}'} > 0 then {text} end"
            pairs.append((name, sql.cast(text, columns[name].type, script.dialect)))
        return pairs

    added = [(t.name, _qualified(script, _term(t, plus=True))) for t in sorted(state.terms, key=lambda t: t.name)]
    first = [(c.name, f"s.{script.name(c.name)}") for c in stage.columns if c.name not in dict(from_state)]
    return Merge(
        delta=delta,
        key=stage.key,
        null_safe=stage.null_safe,
        update=(*public(plus=True), *_cast_terms(added, columns, script)),
        insert=(*public(plus=False), *first),
        delete_when=f"{rows} = 0",
        insert_when=f"s.{count} > 0",
        prune=Prune(partitions=tuple(p for p in stage.partition_by if p in stage.key)),
    )


def _exact_average(node: exp.Expr) -> exp.Expr:
    """Return a division with more digits than the average has, then rounded: Spark's quotient of decimals has fewer."""
    if not isinstance(node, exp.Div) or "average" not in node.meta:
        return node
    result, scale, _ = node.meta["average"]
    total = exp.cast(node.this, f"decimal(38,{scale})")
    return exp.cast(exp.Div(this=total, expression=node.expression), exp.DataType.build(result, dialect="databricks"))


def _cast_terms(
    pairs: Iterable[tuple[str, str]], columns: dict[str, StoredColumn], script: Script
) -> list[tuple[str, str]]:
    return [(name, sql.cast(text, columns[name].type, script.dialect)) for name, text in pairs]


def _reads(expression: exp.Expr, names: set[str]) -> bool:
    return any(c.name in names for c in expression.find_all(exp.Column))


def _term(term: Term, plus: bool) -> exp.Expr:
    new = exp.column(exp.to_identifier(term.name, quoted=True), table="s")
    if not plus:
        return new
    old = exp.column(exp.to_identifier(term.name, quoted=True), table="t")
    match term.kind:
        # MIN and MAX of append-only inputs are associative: least(min(A), min(dA)) = min(A + dA).
        case "min":
            return exp.Least(this=old, expressions=[new], ignore_nulls=True)
        case "max":
            return exp.Greatest(this=old, expressions=[new], ignore_nulls=True)
        case _:
            return exp.paren(exp.Add(this=old, expression=new))


def _qualified(script: Script, expression: exp.Expr) -> str:
    """Return an expression whose columns without a table belong to s."""

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table:
            return exp.column(exp.to_identifier(node.name, quoted=True), table="s")
        return node

    return script.expr(expression.copy().transform(swap, copy=False))


def _delta(stage: Stage, script: Script, node: Aggregate, source: str, from_key: list[tuple[str, exp.Expr]]) -> str:
    """Return a SELECT of the changes' sums by group, with the group's columns as they are stored."""
    keys = [(name, script.expr(key)) for name, key in node.keys]
    kept_terms = sums(node).terms
    terms = [(t.name, _weighted(script, t)) for t in kept_terms]
    items = ", ".join(f"{text} as {script.name(name)}" for name, text in [*keys, *terms])
    groups = script.groups(key for _, key in node.keys)
    body = script.part(f"select {items} from {source} group by {groups}", "sums")
    columns = {c.name: c for c in stage.columns}
    public = [script.stored(script.expr(value), columns[name]) for name, value in from_key]
    hidden = [
        script.stored(script.name(name.removeprefix("_key_")), columns[name])
        for name in stage.key
        if name.startswith("_key_") and name not in dict(from_key)
    ]
    stored = [script.stored(script.name(name), columns[name]) for name, _ in terms]
    # A row that is inserted and deleted in one tick nets to 0 in every sum and count. Its group is left out, so that
    # MERGE neither reads nor writes the stored row.
    some = " or ".join(f"{script.name(t.name)} <> 0" for t in kept_terms if t.kind in ("sum", "count"))
    return f"select {', '.join([*public, *hidden, *stored])} from {body} where {some}"


def _weighted(script: Script, term: Term) -> str:
    """Return the exact sum of the weights or of argument times weight, or the extremes of the inserted rows."""
    if term.argument is None:
        return f"sum({WEIGHT})"
    text = script.expr(term.argument)
    match term.kind:
        case "count":
            return f"sum(case when ({text}) is not null then {WEIGHT} else 0 end)"
        case "sum":
            # A decimal times a BIGINT would get 20 more digits than a sum may have; a weight has at most ten.
            weight = WEIGHT if term.type == "bigint" else sql.cast(WEIGHT, "decimal(10,0)", script.dialect)
            return f"coalesce(sum(({text}) * {weight}), 0)"
        case _:
            return f"{term.kind}({text})"


def _newest(stage: Stage, script: Script) -> Statement | None:
    """Return a MERGE that compares the latest row of the changes with the stored one, which is the latest so far.

    The order is total except for copies, so the winner doesn't depend on the tick in which a row lands.
    """
    assert stage.node is not None
    top, node = collapse(stage.node)
    assert isinstance(node, Latest)
    source = script.changes(node.child)
    if source is None:
        return None
    names = {item.name: name for name, item in reversed(top) if isinstance(item, exp.Column)}
    columns = {c.name: c for c in stage.columns}
    items = [script.stored(script.expr(value), columns[name]) for name, value in top]
    for name in dict.fromkeys([*node.keys, *(one.name for one in node.order)]):
        if name not in names:
            names[name] = f"_{name}" if not name.startswith("_") else name
            items.append(script.stored(script.name(name), columns[names[name]]))
    # The changes have one winner for each key, so MERGE matches each stored row at most once.
    body = script.part(node.newest(script, source), "newest")
    order = [(replace(one, name=names[one.name]), columns[names[one.name]].nullable) for one in node.order]
    every = tuple((c.name, f"s.{script.name(c.name)}") for c in stage.columns)
    # New versions of a key tend to be near the old one, such as order ids by day. So files of a partition are pruned by
    # the range of the first key column in that partition. A range says nothing about NULL keys.
    ranges = tuple(
        (stage.key[0], p) for p in stage.partition_by if p not in stage.key and stage.key[0] not in stage.null_safe
    )
    return Merge(
        delta=script.text(f"select {', '.join(items)} from {body}"),
        key=stage.key,
        null_safe=stage.null_safe,
        update=every,
        insert=every,
        update_when=_newer(script, order),
        prune=Prune(tuple(p for p in stage.partition_by if p in stage.key), ranges[:1]),
    )


def _newer(script: Script, order: list[tuple[OrderKey, bool]]) -> str:
    """Return SQL for whether s wins against t in the order; each column comes with whether it may be NULL."""
    if not order:
        return "false"
    (key, nullable), *rest = order
    s, t = f"s.{script.name(key.name)}", f"t.{script.name(key.name)}"
    wins = f"{s} > {t}" if key.descending else f"{t} > {s}"
    if nullable:
        some, null = (t, s) if key.nulls_first else (s, t)
        wins = f"({some} is not null and ({null} is null or {wins}))"
    if not rest:
        return wins
    return f"({wins} or ({script.same(s, t)} and {_newer(script, rest)}))"


def _rows(stage: Stage, script: Script) -> Statement | None:
    """Return a MERGE of the changes netted row by row: a key with a row left is updated, one without is deleted.

    The changes of a join or a filter may insert and delete the same row in one tick; rows whose weights add up to 0 are
    dropped. An updated key has two rows: the old one with -1 and the new one with +1. The new one is written. The old
    one is ignored, because `_best` shows that the key still has a row.
    """
    assert stage.node is not None
    source = script.changes(stage.node)
    if source is None:
        return None
    public = _items(stage, script)
    names = script.names(c.name for c in stage.columns)
    typed = script.part(f"select {public}, {WEIGHT} from {source}", "typed")
    net = script.part(
        f"select {names}, sum({WEIGHT}) as _net from {typed} group by {names} having sum({WEIGHT}) <> 0", "net"
    )
    # `_best` is the highest net weight of the key: positive if a row stays, negative if the key is deleted.
    best = f"max(_net) over (partition by {script.names(stage.key)}) as _best"
    ranked = script.part(f"select {names}, _net, {best} from {net}", "judged")
    final = f"select {names}, cast(_net > 0 as boolean) as _stays from {ranked} where _net > 0 or _best < 0"
    return _replacing(stage, script, final)


def _keys(stage: Stage, script: Script) -> Statement | None:
    """Return a MERGE of the recomputed affected groups; an affected key without a row is deleted.

    A row of the result can differ only if its key is affected, and so are the values of any columns of the key. So the
    query restricted to affected values has every row to write, and the stored keys with these values that it lacks are
    those to delete.
    """
    assert stage.node is not None
    node = stage.node
    old = None
    if not script.fresh:
        names = useful(stage.node, stage.key)
        # Keys of the changes before and after, so that a key whose last row was deleted is among them.
        pieces = stage.node.support(names, script)
        if not pieces:
            return None
        affected = script.distinct(pieces, "touched")
        node = restrict(stage.node, affected, numbers(names))
        old = script.part(_old_keys(stage, script, affected, names), "old_keys")
    return _replacing(stage, script, _recomputed(stage, script, script.rows(node, "new"), old))


def _partitions(stage: Stage, script: Script) -> Statement | None:
    """Return an overwrite of the affected partitions, recomputed."""
    assert stage.node is not None
    if script.fresh:
        return Append(script.text(f"select {_items(stage, script)} from {script.rows(stage.node, 'new')}"))
    # Without a key a row can't be found, but its partition can: the whole partition is replaced.
    names = stage.partition_by
    pieces = stage.node.support(names, script)
    if not pieces:
        return None
    affected = script.distinct(pieces, "touched")
    kinds = {c.name: c for c in stage.columns}
    listed = ", ".join(script.stored(number, kinds[name]) for name, number in numbers(names).items())
    values = script.text(f"select distinct {listed} from {affected}")
    node = restrict(stage.node, affected, numbers(names))
    return Overwrite(script.text(f"select {_items(stage, script)} from {script.rows(node, 'new')}"), values)


def _old_keys(stage: Stage, script: Script, affected: str, names: tuple[str, ...]) -> str:
    own = script.table(stage.name, "old")
    return script.affected(own, affected, numbers(names).items(), stage.null_safe, script.names(stage.key, "l"))


def _recomputed(stage: Stage, script: Script, new: str, old: str | None) -> str:
    items = _items(stage, script)
    fresh = script.part(f"select {items} from {new}", "fresh")
    names = script.names(c.name for c in stage.columns)
    final = f"select {names}, true as _stays from {fresh}"
    if old is None:
        return final
    # A stored, affected key without a new row is gone. Its other columns don't matter to the deletion.
    word = sql.anti_join(script.dialect)
    on = script.matching(((k, k) for k in stage.key), stage.null_safe)
    gone = ", ".join(
        f"l.{script.name(c.name)}" if c.name in stage.key else script.stored("null", c) for c in stage.columns
    )
    return f"{final}\nunion all\nselect {gone}, false as _stays from {old} as l {word} {fresh} as r on {on}"


def _replacing(stage: Stage, script: Script, final: str) -> Merge:
    """Return a MERGE of whole rows: `_stays` is true for rows to write and false for rows to delete."""
    every = tuple((c.name, f"s.{script.name(c.name)}") for c in stage.columns)
    # Rows that stay equal aren't written: the change feed stays minimal, and so do the ticks of downstream tables.
    differs = " or ".join(
        f"not ({script.same(f't.{script.name(c.name)}', f's.{script.name(c.name)}')})"
        for c in stage.columns
        if c.name not in stage.key
    )
    return Merge(
        delta=script.text(final),
        key=stage.key,
        null_safe=stage.null_safe,
        update=every,
        insert=every,
        delete_when="not s._stays",
        update_when=f"({differs})" if differs else "false",
        insert_when="s._stays",
        prune=Prune(partitions=tuple(p for p in stage.partition_by if p in stage.key)),
    )


def _whole(stage: Stage, script: Script) -> Statement:
    """Return a statement that recomputes the stored rows from all rows of the inputs and merges them."""
    assert stage.node is not None
    if stage.method == "partitions":
        return Replace(script.text(f"select {_items(stage, script)} from {script.rows(stage.node, 'new')}"))
    if stage.method == "newest":  # the latest of all rows wins again, and no key ever leaves
        statement = _newest(stage, script)
        assert statement is not None
        return statement
    if stage.method == "additive":
        merge = _additive(stage, script)
        assert isinstance(merge, Merge)
        values = dict(merge.insert)
        items = ", ".join(f"{values[c.name]} as {script.name(c.name)}" for c in stage.columns)
        _, delta = split(merge.delta)  # its parts are in the script already
        # Over all rows of the inputs the delta has the new sums themselves, not their change.
        stored = script.part(f"select {items} from ({delta}) as s where {merge.insert_when}", "stored")
    else:
        stored = script.rows(stage.node, "new")
    # All stored keys count as affected, so keys that the query no longer returns are deleted.
    old = script.part(f"select {script.names(stage.key)} from {script.table(stage.name, 'old')}", "old_keys")
    return _replacing(stage, script, _recomputed(stage, script, stored, old))


def _full(stage: Stage, script: Script, full_query: str) -> Statement:
    """Return a statement that runs the whole query; with a key it writes only rows that differ, else it replaces all.

    If hidden tables store inner results, the query starts from them.
    """
    if stage.node is not None:
        source = script.rows(stage.node, "new")
    else:
        for table in stage.inputs:
            script.table(table, "new")
        source = script.part(full_query, "query")
    if not stage.key:
        items = ", ".join(script.stored(script.name(c.name), c) for c in stage.columns)
        return Replace(script.text(f"select {items} from {source}"))
    old = None
    if not script.fresh:
        own = script.table(stage.name, "old")
        old = script.part(f"select {script.names(stage.key)} from {own}", "old_keys")
    return _replacing(stage, script, _recomputed(stage, script, source, old))
