"""Infer the types of a query's output columns by Spark's rules, and compare them with the contract. Pure.

sqlglot's own annotate_types ignores the precision of decimals and has its own widening rules. Here a type is Spark's or
unknown (None), and an unknown type is never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope

from sqlrun.errors import Problem
from sqlrun.parse.function_types import BY_UNIT, FIXED, FIXED_NAMES, SAME, TEXTS, WIDEST, of_array
from sqlrun.parse.scopes import Scopes, lateral_columns, scopes_of, selects, source_of, written
from sqlrun.parse.source_map import source_place
from sqlrun.project import Rendered
from sqlrun.transpile import spark_types as spark
from sqlrun.transpile.spark_types import Kind
from sqlrun.transpile.trees import place_of

Tables = Mapping[str, Mapping[str, Mapping[str, str]]]
# The parameters of a lambda (`x -> ...`) with their types.
Bound = Mapping[str, Kind | None]
DAYS = {"DAY", "DAYS", "WEEK", "WEEKS", "MONTH", "MONTHS", "YEAR", "YEARS"}
LONGEST = 60
# Calls that compute as an operator does.
CALCULATED: Mapping[str, type[exp.Expr]] = {"pmod": exp.Mod, "try_divide": exp.Div}


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
            case Scope() if isinstance(source.expression, exp.Query):
                names = source.expression.named_selects
                return self.outputs(source)[names.index(column.name)] if column.name in names else None
            case _:
                return None

    def _lateral(self, scope: Scope, name: str) -> Kind | None:
        lateral = cast(exp.Lateral, scope.expression)
        call, names = lateral.this, lateral_columns(lateral)
        if name not in names or not isinstance(call, exp.Explode | exp.Inline) or call.expressions:
            return None
        kind = self.of(call.this, scope, {})
        if kind is None or kind.name not in ("array", "map"):
            return None
        added = kind.parts
        if isinstance(call, exp.Inline):
            added = added[0].parts
        elif isinstance(call, exp.Posexplode | exp.PosexplodeOuter):
            added = (spark.INT, *added)
        return added[names.index(name)] if len(added) == len(names) else None

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
        names, owner = [e.name for e in one.expressions], one.parent
        array = self.of(owner.this, scope, bound) if owner is not None and isinstance(owner.this, exp.Expr) else None
        element = array.parts[0] if array is not None and array.name == "array" else None
        if isinstance(owner, exp.Reduce):
            # The accumulator has the type of the initial value, or Spark refuses the call.
            kinds = [self.of(owner.args["initial"], scope, bound), element if one.arg_key == "merge" else None]
        elif isinstance(owner, exp.Transform | exp.ArrayFilter):
            kinds = [element, spark.INT]
        else:
            kinds = [element] if len(names) == 1 else []
        return {name: kinds[at] if at < len(kinds) else None for at, name in enumerate(names)}

    def _of(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        match node:
            case exp.Column():
                return self.column(scope, node)
            case exp.Identifier():
                return bound.get(node.name)
            case exp.Literal():
                return _literal(node)
            case exp.Null():
                return spark.VOID
            case exp.Cast():
                return spark.of_tree(node.args["to"])
            case exp.Boolean() | exp.Predicate() | exp.Connector() | exp.Not():
                return spark.BOOLEAN
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._arithmetic(node, scope, bound)
            case exp.Dot():
                return _field(self.of(node.this, scope, bound), node.expression.name)
            case exp.Bracket():
                return _element(self.of(node.this, scope, bound))
            case exp.Subquery() if id(node.this) in self.scopes.inner:
                return self.outputs(self.scopes.inner[id(node.this)])[0]
            case exp.Anonymous() if node.name.lower() in CALCULATED and len(node.expressions) == 2:
                left, right = node.expressions
                return self._computed(CALCULATED[node.name.lower()], left, right, scope, bound)
            case exp.Anonymous():
                return self._named(node.name.lower(), [self.of(value, scope, bound) for value in node.expressions])
            case exp.Transform() | exp.Reduce() | exp.ArrayFilter():
                return self._lambda(node, scope, bound)
            case _:
                return self._function(node, scope, bound)

    def _named(self, name: str, kinds: list[Kind | None]) -> Kind | None:
        """Return the type of a call without a class in sqlglot."""
        if name in BY_UNIT:
            return BY_UNIT[name][len(kinds) == 3]
        if name in TEXTS:
            return spark.STRING if kinds and kinds[0] == spark.STRING else None
        return FIXED_NAMES.get(name) or of_array(name, kinds)

    def _function(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        fixed = FIXED.get(type(node))
        if fixed is not None:
            return fixed
        if type(node) in SAME:
            return self.of(node.this, scope, bound)
        if type(node) in WIDEST:
            return spark.widest(self.of(value, scope, bound) for value in _values(node))
        if isinstance(node, exp.Array):
            return spark.array(spark.widest([spark.VOID, *(self.of(e, scope, bound) for e in node.expressions)]))
        if isinstance(node, exp.Struct):
            return self._struct(node, scope, bound)
        kind = self.of(node.this, scope, bound) if isinstance(node.this, exp.Expr) else None
        match node:
            case exp.Sum():
                return spark.summed(_counted(node, self, scope, bound))
            case exp.Avg():
                return spark.averaged(_counted(node, self, scope, bound))
            case exp.RegrAvgx():
                return spark.averaged(self.of(node.expression, scope, bound))
            case exp.RegrAvgy():
                return spark.averaged(kind)
            case exp.Floor() | exp.Ceil() if not node.args.get("decimals"):
                return spark.floored(kind)
            case exp.Floor() | exp.Ceil() if kind is not None and kind.name == "decimal":
                digits = _whole(node.args["decimals"])
                return spark.rounded(kind, digits) if digits is not None else None
            case exp.Neg() | exp.Abs():
                return (_sized(_whole(node)) or kind) if spark.is_number(kind) else None
            case exp.RegexpSplit():
                return spark.array(spark.STRING)
            case exp.Flatten():
                return _element(kind) if kind and kind.name == "array" else None
            case exp.VarMap():
                keys, values = (self.of(node.args[key], scope, bound) for key in ("keys", "values"))
                return spark.mapping(_element(keys), _element(values))
            case exp.Round() if node.args.get("decimals") is None or _whole(node.args["decimals"]) is not None:
                return spark.rounded(kind, _whole(node.args.get("decimals")) or 0)
            case exp.ArrayAgg() | exp.ArrayUniqueAgg():
                return spark.array(_counted(node, self, scope, bound))
            case exp.Concat() if kind is None and node.expressions:
                return self._joined(node, scope, bound)
            case exp.Substring() | exp.DPipe():
                return self._text(node, scope, bound)
            case exp.Explode() | exp.ArrayMax() | exp.ArrayMin():
                return _element(kind) if kind and kind.name == "array" else None
            case exp.MapKeys():
                return spark.array(kind.parts[0]) if kind and kind.name == "map" else None
            case _:
                return None

    def _joined(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        """Return the type of concat(), which joins texts or arrays."""
        joined = spark.widest(self.of(part, scope, bound) for part in node.expressions)
        return joined if joined is not None and joined.name in ("string", "array") else None

    def _text(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        """Return the type of functions that take texts, but also arrays or bytes: known for texts alone."""
        parts = node.expressions or [p for p in (node.this, node.args.get("expression")) if p is not None]
        kinds = [self.of(part, scope, bound) for part in parts]
        return spark.STRING if all(kind == spark.STRING for kind in kinds) else None

    def _arithmetic(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        left, right = node.this, node.args["expression"]
        if isinstance(node, exp.Add | exp.Sub) and isinstance(right, exp.Interval):
            return _moved(self.of(left, scope, bound), right)
        return self._computed(type(node), left, right, scope, bound)

    def _computed(
        self, operator: type[exp.Expr], left: exp.Expr, right: exp.Expr, scope: Scope, bound: Bound
    ) -> Kind | None:
        one, other = self.of(left, scope, bound), self.of(right, scope, bound)
        if one is None or other is None:
            return None
        one, other = literal_beside(left, one, other), literal_beside(right, other, one)
        if operator is exp.Mul:
            return spark.multiply(one, other)
        if operator is exp.Div:
            return spark.divide(one, other)
        return spark.remainder(one, other) if operator is exp.Mod else spark.add(one, other)

    def _lambda(self, node: exp.Expr, scope: Scope, bound: Bound) -> Kind | None:
        """Return the type of transform(), filter() and aggregate(), whose lambdas name an array's elements."""
        array = self.of(node.this, scope, bound)
        if isinstance(node, exp.ArrayFilter):
            return array
        if isinstance(node, exp.Reduce):
            return None if node.args.get("finish") else self.of(node.args["initial"], scope, bound)
        body = node.args.get("expression")
        if not isinstance(body, exp.Lambda) or array is None or array.name != "array":
            return None
        inner = dict(zip([e.name for e in body.expressions], [array.parts[0], spark.INT], strict=False))
        return spark.array(self.of(body.this, scope, {**bound, **inner}))

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
    """Return the type of an aggregate's argument, with or without DISTINCT."""
    value = node.this
    if isinstance(value, exp.Distinct):
        value = value.expressions[0] if len(value.expressions) == 1 else None
    return walk.of(value, scope, bound) if isinstance(value, exp.Expr) else None


def _literal(node: exp.Literal) -> Kind | None:
    if node.is_string:
        return spark.STRING
    if "e" in node.name.lower():
        return spark.DOUBLE
    return _sized(int(node.name)) if node.is_int else _digits(Decimal(node.name))


def _sized(value: int | None) -> Kind | None:
    """Return the type of an integer literal: the smallest that holds it, from int up."""
    if value is None:
        return None
    if -(2**31) <= value < 2**31:
        return spark.INT
    return spark.BIGINT if -(2**63) <= value < 2**63 else spark.decimal(len(str(abs(value))), 0)


def _digits(value: Decimal) -> Kind:
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    return spark.decimal(max(len(digits), scale), scale)


def literal_beside(node: exp.Expr, kind: Kind, other: Kind) -> Kind:
    """Return an operand's type; an integer literal beside a decimal has only the digits that it needs."""
    value = _whole(node)
    return _digits(Decimal(value)) if value is not None and other.name == "decimal" else kind


def _whole(node: exp.Expr | None) -> int | None:
    """Return the value of an integer literal with or without a sign; None for other expressions."""
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    return sign * int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def _moved(kind: Kind | None, interval: exp.Interval) -> Kind | None:
    """Return the type of a time plus or minus an interval."""
    if kind == spark.TIMESTAMP:
        return kind
    unit = interval.args.get("unit")
    return kind if kind == spark.DATE and unit is not None and unit.name.upper() in DAYS else None


def _field(kind: Kind | None, name: str) -> Kind | None:
    """Return the type of a struct's field; for an array of structs, an array of the field's type."""
    if kind is not None and kind.name == "array":
        return spark.array(_field(kind.parts[0], name))
    if kind is None or kind.name != "struct":
        return None
    named = dict(zip((field.lower() for field in kind.fields), kind.parts, strict=True))
    return named.get(name.lower())


def _element(kind: Kind | None) -> Kind | None:
    return kind.parts[-1] if kind is not None and kind.name in ("array", "map") else None
