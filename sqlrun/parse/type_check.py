"""Infer the types of a query's output columns by Spark's rules, and compare them with the contract. Pure.

sqlglot's own annotate_types ignores the precision of decimals and has its own widening rules. Here a type is Spark's or
unknown (None), and an unknown type is never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope

from sqlrun.errors import Problem
from sqlrun.parse import function_types as functions
from sqlrun.parse.function_types import FIXED, SAME, WIDEST
from sqlrun.parse.scopes import Scopes, lateral_columns, scopes_of, selects, source_of, written
from sqlrun.parse.source_map import source_place
from sqlrun.project import Rendered
from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.spark_types import Kind, literal_beside, whole
from sqlrun.transpile.trees import place_of

Tables = Mapping[str, Mapping[str, Mapping[str, str]]]
# The parameters of a lambda (`x -> ...`) with their types.
Bound = Mapping[str, Kind | None]
LONGEST = 60
# Calls that compute as an operator does.
CALCULATED: Mapping[str, type[exp.Expr]] = {
    "pmod": exp.Mod, "try_add": exp.Add, "try_divide": exp.Div, "try_mod": exp.Mod, "try_multiply": exp.Mul,
    "try_subtract": exp.Sub,
}  # fmt: skip


def infer(tree: exp.Query, tables: Tables) -> tuple[Kind | None, ...]:
    """Return the type of each output column of a qualified query; None for unknown types.

    `tables` maps database, table and column to the text of a type.
    """
    return outputs(Walk(tree, tables))


def outputs(walk: Walk) -> tuple[Kind | None, ...]:
    """Return the types of a qualified query's output columns."""
    try:
        return walk.outputs(walk.scopes.root)
    except RecursionError:  # an expression of a thousand terms
        return tuple(None for _ in walk.tree.selects)


def misfits(rendered: Rendered, walk: Walk) -> Iterable[Problem]:
    """Yield a problem (SR311) for each column whose type isn't the contract's.

    A NULL without a cast and an array without elements are compatible with every type.
    """
    found = dict(zip(walk.tree.named_selects, outputs(walk), strict=True))
    items = {item.alias_or_name: item for item in walk.tree.selects}
    for column in rendered.model.columns:
        declared, given = declared_type(column.type), found.get(column.name)
        if declared is None or given is None or "void" in str(given) or spark.equal(declared, given):
            continue
        item = items[column.name]
        # Qualifying names unnamed items. Such names have no place, but the items have.
        line, at = place_of(cast(exp.Expression, item.unalias()))
        place, _ = source_place(rendered, line or 1, at or 1, column.name)
        value = item.unalias()
        value = value.this if type(value) is exp.Cast else value
        shown = written(value)
        shown = shown if len(shown) <= LONGEST else "..."
        message = f"column `{column.name}` is `{column.type}` in the contract, but `{given}` in the query"
        hint = f"Write cast({shown} as {column.type}) as {column.name} at {place}, or set data_type: {given} here."
        yield Problem("SR311", column.place, message, hint)


def of_branches(walk: Walk) -> Iterable[list[tuple[exp.Query, list[Kind | None]]]]:
    """Yield the branches of each set operation of a qualified query, with the types of their columns."""
    if not isinstance(walk.tree, exp.SetOperation) and walk.tree.find(exp.SetOperation) is None:
        return
    for scope in walk.scopes.inner.values():
        if scope.set_operation_scopes and not scope.expression.args.get("by_name"):
            parts = [(cast(exp.Query, part.expression), part) for part in selects(scope)]
            yield [(query, [walk.of(item.unalias(), part, {}) for item in query.selects]) for query, part in parts]


@lru_cache(maxsize=4096)
def declared_type(text: str) -> Kind | None:
    """Return the type of a contract's column; None if it is invalid or no rule handles it."""
    try:
        return spark.read(text)
    except (SqlglotError, ValueError, RecursionError):
        return None


class Walk:
    """The types of one query, each SELECT and expression inferred once; the tree must not change meanwhile."""

    def __init__(self, tree: exp.Query, tables: Tables) -> None:
        self.tree, self.tables = tree, tables
        self._done: dict[int, tuple[Kind | None, ...]] = {}
        self._kinds: dict[int, Kind | None] = {}

    @cached_property
    def scopes(self) -> Scopes:
        """Return the query's scopes, computed on first use."""
        return scopes_of(self.tree)

    def outputs(self, scope: Scope) -> tuple[Kind | None, ...]:
        """Return the types of a query's output columns; those of a union are widened position by position."""
        key = id(scope.expression)
        if key not in self._done:
            parts = [
                [self.of(item.unalias(), part, {}) for item in cast(exp.Query, part.expression).selects]
                for part in selects(scope)
            ]
            self._done[key] = tuple(spark.widest(column) for column in zip(*parts, strict=True))
        return self._done[key]

    def column(self, scope: Scope, column: exp.Column) -> Kind | None:
        """Return the type of a column of a table, another query, or a lateral view; None if unknown."""
        own = scope.expression.named_selects if isinstance(scope.expression, exp.Query) and not column.table else []
        if column.name in own:  # ORDER BY names an output column
            return self.outputs(scope)[own.index(column.name)]
        source = source_of(scope, column.table)
        match source:
            case exp.Table():
                columns = self.tables.get(source.db, {}).get(source.name, {})
                # A query's names are in lower case; a source's columns have the names of the fields of its lines.
                text = columns.get(column.name) or next((t for c, t in columns.items() if c.lower() == column.name), "")
                return declared_type(text) if text else None
            case Scope() if isinstance(source.expression, exp.Lateral):
                return self._lateral(source, column.name)
            case Scope() if isinstance(source.expression, exp.Values):
                return self._row_value(source, column.name)
            case Scope() if isinstance(source.expression, exp.Query):
                names = source.expression.named_selects
                return self.outputs(source)[names.index(column.name)] if column.name in names else None
            case _:
                return None

    def _row_value(self, scope: Scope, name: str) -> Kind | None:
        """Return the type of a column of VALUES."""
        alias = scope.expression.args.get("alias")
        names = [column.name for column in alias.columns] if alias is not None else []
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in scope.expression.expressions]
        if name not in names or any(len(row) != len(names) for row in rows):
            return None
        return spark.widest(self.of(row[names.index(name)], scope, {}) for row in rows)

    def _lateral(self, scope: Scope, name: str) -> Kind | None:
        lateral = cast(exp.Lateral, scope.expression)
        names, added = lateral_columns(lateral), self._generated(lateral.this, scope)
        return added[names.index(name)] if name in names and len(added) == len(names) else None

    def _generated(self, call: exp.Expr, scope: Scope) -> tuple[Kind | None, ...]:
        """Return the types of the columns that a generator returns; () if they aren't known."""
        if isinstance(call, exp.Stack):
            return functions.stacked(whole(call.this), [self.of(value, scope, {}) for value in call.expressions])
        is_inline = isinstance(call, exp.Inline)
        if isinstance(call, exp.Anonymous) and call.name.lower() == "inline_outer" and len(call.expressions) == 1:
            is_inline, value = True, call.expressions[0]
        elif isinstance(call, exp.Explode | exp.Inline) and not call.expressions:
            value = call.this
        else:
            return ()
        kind = self.of(value, scope, {})
        if kind is None or kind.name not in ("array", "map"):
            return ()
        if is_inline:
            return kind.parts[0].parts
        return (spark.INT, *kind.parts) if isinstance(call, exp.Posexplode | exp.PosexplodeOuter) else kind.parts

    def of(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        """Return the type of an expression in a scope; `bound` has the types of lambda parameters."""
        key = id(node)
        if key not in self._kinds:
            self._kinds[key] = self._of(node, scope, bound)
        return self._kinds[key]

    def anywhere(self, node: exp.Expr) -> Kind | None:
        """Return the type of an expression anywhere in the query, inside lambdas as well; None if unknown."""
        lambdas: list[exp.Lambda] = []
        above = node.parent
        while above is not None and id(above) not in self.scopes.inner:
            if isinstance(above, exp.Lambda):
                lambdas.append(above)
            above = above.parent
        if above is None:
            return None
        scope, bound = self.scopes.inner[id(above)], dict[str, Kind | None]()
        for one in reversed(lambdas):
            bound |= self._parameters(one, scope, bound)
        return self.of(node, scope, bound)

    def _parameters(self, one: exp.Lambda, scope: Scope, bound: Bound) -> dict[str, Kind | None]:
        """Return the types of a lambda's parameters."""
        owner, kinds = one.parent, tuple[Kind | None, ...]()
        if isinstance(owner, exp.Reduce):
            # The accumulator has the type of the initial value, or Spark refuses the call.
            kinds = (self.of(owner.args["initial"], scope, bound), _item(self.of(owner.this, scope, bound)))
        elif isinstance(owner, exp.Func):
            kinds = functions.parameters(owner, self._beside(owner, scope, bound))
        names = [parameter.name for parameter in one.expressions]
        return {name: kinds[at] if at < len(kinds) else None for at, name in enumerate(names)}

    def _beside(self, owner: exp.Expr, scope: Scope, bound: Bound) -> list[Kind | None]:
        """Return the types of a function's arguments that are no lambdas."""
        values = owner.expressions if isinstance(owner, exp.Anonymous) else [owner.this]
        return [self.of(value, scope, bound) for value in values if not isinstance(value, exp.Lambda)]

    def _of(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        match node:
            case exp.Column():
                return self.column(scope, node)
            case exp.Identifier():
                return bound.get(node.name)
            case exp.Literal():
                return spark.of_literal(node)
            case exp.Null():
                return spark.VOID
            case exp.Cast():
                return spark.of_tree(node.args["to"])
            case exp.Boolean() | exp.Predicate() | exp.Connector() | exp.Not():
                return spark.BOOLEAN
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._computed(type(node), node.this, node.args["expression"], scope, bound)
            case exp.Dot():
                return _field(self.of(node.this, scope, bound), node.expression.name)
            case exp.Bracket():
                return _element(self.of(node.this, scope, bound))
            case exp.Subquery() if id(node.this) in self.scopes.inner:
                return self.outputs(self.scopes.inner[id(node.this)])[0]
            case exp.Anonymous() if node.name.lower() in CALCULATED and len(node.expressions) == 2:
                left, right = node.expressions
                return self._computed(CALCULATED[node.name.lower()], left, right, scope, bound)
            case exp.Transform() | exp.Reduce() | exp.ArrayFilter():
                return self._lambda(node, scope, bound)
            case exp.Anonymous() if node.expressions and isinstance(node.expressions[-1], exp.Lambda):
                return functions.FIXED_NAMES.get(node.name.lower()) or self._lambda(node, scope, bound)
            case exp.Anonymous() | exp.AnonymousAggFunc() | exp.WithinGroup():
                return self._named(node, scope, bound)
            case _:
                return self._function(node, scope, bound)

    def _named(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        """Return the type of a call without a class in sqlglot, or of one with WITHIN GROUP."""
        call = node.this if isinstance(node, exp.WithinGroup) else node
        if not isinstance(call, exp.Anonymous | exp.AnonymousAggFunc):
            return self.of(call, scope, bound)
        kinds = [self.of(value, scope, bound) for value in call.expressions]
        if call.name.lower() == "percentile" and len(kinds) > 1:
            return functions.percentile(kinds[0], kinds[1])
        if call is not node and call.name.lower() in ("percentile_cont", "percentile_disc") and kinds:
            return functions.percentile(self.of(node.expression.expressions[0].this, scope, bound), kinds[0])
        return functions.of_call(call.name.lower(), kinds, call.expressions)

    def _function(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        fixed = FIXED.get(type(node))
        if fixed is not None:
            return fixed
        if type(node) in SAME:
            return _counted(node, self, scope, bound)
        if type(node) in WIDEST:
            return spark.widest(self.of(value, scope, bound) for value in _values(node))
        if isinstance(node, exp.Array):
            return spark.array(spark.widest([spark.VOID, *(self.of(e, scope, bound) for e in node.expressions)]))
        if isinstance(node, exp.Struct):
            return self._struct(node, scope, bound)
        kind = self.of(node.this, scope, bound) if isinstance(node.this, exp.Expr) else None
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node, kind, scope, bound)
        match node:
            case exp.Floor() | exp.Ceil() if not node.args.get("decimals"):
                return spark.floored(kind)
            case exp.Floor() | exp.Ceil() if kind is not None and kind.name == "decimal":
                digits = whole(node.args["decimals"])
                return spark.rounded(kind, digits) if digits is not None else None
            case exp.Round() if node.args.get("decimals") is None or whole(node.args["decimals"]) is not None:
                return spark.rounded(kind, whole(node.args.get("decimals")) or 0)
            case exp.Neg() | exp.Abs():
                value = whole(node)
                return (spark.sized(value) if value is not None else kind) if spark.is_number(kind) else None
            case exp.BitwiseAnd() | exp.BitwiseOr() | exp.BitwiseXor():
                widest = spark.widest([kind, self.of(node.expression, scope, bound)])
                return widest if spark.is_integer(widest) else None
            case exp.BitwiseNot():
                return kind if spark.is_integer(kind) else None
            case exp.BitwiseLeftShift() | exp.BitwiseRightShift():
                return functions.shifted(kind)
            case exp.Extract():
                return functions.part_of_time(node.name, self.of(node.expression, scope, bound))
            case exp.Concat() | exp.DPipe():
                parts = node.expressions or [node.this, node.expression]
                return functions.joined([self.of(part, scope, bound) for part in parts])
            case exp.Substring():
                return functions.text_of([kind])
            case exp.Overlay():
                return functions.text_of([kind, self.of(node.expression, scope, bound)])
            case _:
                return self._nested(node, kind, scope, bound)

    def _nested(self, node: exp.Expr, kind: Kind | None, scope: Scope, bound: Bound) -> Kind | None:
        """Return the type of a function of arrays or maps; `kind` is that of its first argument."""
        match node:
            case exp.Flatten() | exp.Explode() | exp.ArrayMax() | exp.ArrayMin():
                return _item(kind)
            case exp.VarMap() | exp.Map():
                keys, values = (self.of(node.args[key], scope, bound) for key in ("keys", "values"))
                return spark.mapping(_item(keys), _item(values))
            case exp.MapKeys():
                return spark.array(kind.parts[0]) if kind and kind.name == "map" else None
            case exp.MapFromEntries():
                return functions.of_entries(kind)
            case exp.GenerateSeries():
                step = node.args.get("step")
                first, last = (self.of(node.args[key], scope, bound) for key in ("start", "end"))
                stepped = self.of(step, scope, bound) if step is not None else spark.VOID
                return functions.sequence(first, last, stepped)
            case exp.ArrayAppend() | exp.ArrayPrepend():
                return functions.added(kind, self.of(node.expression, scope, bound))
            case exp.Reverse():
                return functions.reversed_of(kind)
            case _:
                return None

    def _aggregate(self, node: exp.AggFunc, kind: Kind | None, scope: Scope, bound: Bound) -> Kind | None:
        match node:
            case exp.Sum():
                return spark.summed(_counted(node, self, scope, bound))
            case exp.Avg():
                return spark.averaged(_counted(node, self, scope, bound))
            case exp.RegrAvgx():
                return spark.averaged(self.of(node.expression, scope, bound))
            case exp.RegrAvgy():
                return spark.averaged(kind)
            case exp.ArrayAgg() | exp.ArrayUniqueAgg():
                return spark.array(_counted(node, self, scope, bound))
            case exp.Median():
                return spark.DOUBLE if spark.is_number(kind) else None
            case exp.ApproxQuantile():
                return functions.percentile(kind, self.of(node.args["quantile"], scope, bound), exact=False)
            case exp.GroupConcat():
                return spark.STRING if _counted(node, self, scope, bound) == spark.STRING else None
            case _:
                return None

    def _computed(
        self, operator: type[exp.Expr], left: exp.Expr, right: exp.Expr, scope: Scope, bound: Bound
    ) -> Kind | None:
        span, moved = spark.span(right), left
        if span is None and operator is exp.Add:
            span, moved = spark.span(left), right
        if span is not None and operator in (exp.Add, exp.Sub):
            return spark.moved(self.of(moved, scope, bound), span)
        one, other = self.of(left, scope, bound), self.of(right, scope, bound)
        if one is None or other is None:
            return None
        one, other = literal_beside(left, one, other), literal_beside(right, other, one)
        if operator is exp.Mul:
            return spark.multiply(one, other)
        if operator is exp.Div:
            return spark.divide(one, other)
        if operator is exp.Mod:
            return spark.remainder(one, other)
        return spark.add(one, other) or functions.days_later(one, other, either=operator is exp.Add)

    def _lambda(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        """Return the type of a function whose lambda names elements or entries."""
        if isinstance(node, exp.ArrayFilter):
            return self.of(node.this, scope, bound)
        if isinstance(node, exp.Reduce) and not node.args.get("finish"):
            return self.of(node.args["initial"], scope, bound)
        body = node.expressions[-1] if isinstance(node, exp.Anonymous) else node.args.get("expression")
        body = node.args["finish"] if isinstance(node, exp.Reduce) else body
        if not isinstance(body, exp.Lambda):
            return None
        found = self.of(body.this, scope, {**bound, **self._parameters(body, scope, bound)})
        if isinstance(node, exp.Reduce):
            return found
        return functions.of_lambda(node, self._beside(node, scope, bound), found)

    def _struct(self, node: exp.Struct, scope: Scope, bound: Bound) -> Kind | None:
        fields: list[tuple[str, Kind | None]] = []
        for item in node.expressions:
            value = item.expression if isinstance(item, exp.PropertyEQ) else item.unalias()
            name = item.this.name if isinstance(item, exp.PropertyEQ) else item.alias_or_name
            if not name:
                return None  # Spark calls it col1, col2, ...
            fields.append((name, self.of(value, scope, bound)))
        return spark.struct(fields)


def _values(node: exp.Expr) -> list[exp.Expr]:
    """Return the expressions one of which becomes the value."""
    match node:
        case exp.Case():
            default = node.args.get("default")
            return [branch.args["true"] for branch in node.args["ifs"]] + [default or exp.Null()]
        case exp.If():
            return [node.args["true"], node.args.get("false") or exp.Null()]
        case exp.Nvl2():
            return [node.args["true"], node.args["false"]]
        case _:
            return [node.this, *node.expressions]


def _counted(node: exp.Expr, walk: Walk, scope: Scope, bound: Bound) -> Kind | None:
    """Return the type of an aggregate's argument, with or without DISTINCT and ORDER BY."""
    value = node.this
    while isinstance(value, exp.Distinct | exp.Order):
        values = value.expressions if isinstance(value, exp.Distinct) else [value.this]
        value = values[0] if len(values) == 1 else None
    return walk.of(value, scope, bound) if isinstance(value, exp.Expr) else None


def _field(kind: Kind | None, name: str) -> Kind | None:
    """Return the type of a struct's field; for an array of structs, an array of the field's type."""
    if kind is not None and kind.name == "array":
        return spark.array(_field(kind.parts[0], name))
    if kind is None or kind.name != "struct":
        return None
    named = dict(zip((field.lower() for field in kind.fields), kind.parts, strict=True))
    return named.get(name.lower())


def _item(kind: Kind | None) -> Kind | None:
    return kind.parts[0] if kind is not None and kind.name == "array" else None


def _element(kind: Kind | None) -> Kind | None:
    return kind.parts[-1] if kind is not None and kind.name in ("array", "map") else None
