"""Spark's types as values, with Spark's rules of widening and arithmetic in ANSI mode. Pure.

Each rule returns the type that Spark's analyzer infers, or None if it isn't known; `tests/spark/test_types_spark.py`
compares them with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from sqlglot import exp

from sqlrun.transpile.trees import chained

MOST_DIGITS = 38
# Minimum scale that a division or a product keeps when 38 digits aren't enough for all.
LEAST_SCALE = 6
# Maps precision and scale of both operands to those of the result.
_Size = Callable[[int, int, int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type: `size` is a decimal's precision and scale, `parts` are the inner types of an array, a map or a struct."""

    name: str
    size: tuple[int, int] = (0, 0)
    parts: tuple[Kind, ...] = ()
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.name:
            case "decimal":
                return f"decimal({self.size[0]},{self.size[1]})"
            case "struct":
                named = zip(self.fields, self.parts, strict=True)
                return f"struct<{','.join(f'{name}:{part}' for name, part in named)}>"
            case "array" | "map":
                return f"{self.name}<{','.join(str(part) for part in self.parts)}>"
            case _:
                return self.name


TINYINT, INT, BIGINT, DOUBLE, FLOAT = Kind("tinyint"), Kind("int"), Kind("bigint"), Kind("double"), Kind("float")
STRING, BOOLEAN, BINARY = Kind("string"), Kind("boolean"), Kind("binary")
DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID = Kind("date"), Kind("timestamp"), Kind("timestamp_ntz"), Kind("void")
TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
# What an interval adds to a date: whole days, whole months, or times of a day.
OF_DAYS, OF_MONTHS, OF_TIMES, OF_BOTH = "days", "months", "times", "both"
_INTERVALS: Mapping[str, str] = {
    OF_DAYS: "day days week weeks",
    OF_MONTHS: "month months quarter quarters year years",
    OF_TIMES: "hour hours minute minutes second seconds millisecond milliseconds microsecond microseconds",
}
_SPANS: Mapping[str, str] = {unit: adds for adds, units in _INTERVALS.items() for unit in units.split()}
_MADE: Mapping[str, str] = {"make_dt_interval": OF_TIMES, "make_ym_interval": OF_MONTHS}
# From the narrowest to the widest, with the number of digits of each as a decimal.
INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_NAMES = {
    exp.DType.BOOLEAN: "boolean", exp.DType.TINYINT: "tinyint", exp.DType.SMALLINT: "smallint", exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint", exp.DType.FLOAT: "float", exp.DType.DOUBLE: "double", exp.DType.TEXT: "string",
    exp.DType.BINARY: "binary", exp.DType.DATE: "date", exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp", exp.DType.TIMESTAMPNTZ: "timestamp_ntz", exp.DType.NULL: "void",
}  # fmt: skip


def read(text: str) -> Kind | None:
    """Return a type from Spark SQL text; None for one without rules here, such as varchar(10).

    >>> str(read("ARRAY<STRUCT<a: INT, b: DECIMAL>>"))
    'array<struct<a:int,b:decimal(10,0)>>'
    """
    return of_tree(exp.DataType.build(text, dialect="databricks")) if text else None


def of_tree(tree: exp.Expr | None) -> Kind | None:
    """Return a type from a syntax tree; None for one without rules here."""
    if not isinstance(tree, exp.DataType):
        return None
    match tree.this:
        case exp.DType.DECIMAL:
            size = [int(part.name) for part in tree.expressions]
            return decimal(size[0] if size else 10, size[1] if len(size) > 1 else 0)
        case exp.DType.ARRAY | exp.DType.MAP:
            parts = [of_tree(part) for part in tree.expressions]
            return None if not parts else _nested("array" if tree.this == exp.DType.ARRAY else "map", parts)
        case exp.DType.STRUCT:
            named = [part for part in tree.expressions if isinstance(part, exp.ColumnDef)]
            return _nested("struct", [of_tree(part.args.get("kind")) for part in named], [part.name for part in named])
        case _:
            name = _NAMES.get(tree.this)
            return Kind(name) if name and not tree.expressions else None


def _nested(name: str, parts: Iterable[Kind | None], fields: Iterable[str] = ()) -> Kind | None:
    known = tuple(parts)
    whole = tuple(part for part in known if part is not None)
    return Kind(name, parts=whole, fields=tuple(fields)) if len(whole) == len(known) else None


def array(element: Kind | None) -> Kind | None:
    """Return an array's type; None if the element's isn't known."""
    return _nested("array", [element])


def mapping(key: Kind | None, value: Kind | None) -> Kind | None:
    """Return a map's type; None if an inner type isn't known."""
    return _nested("map", [key, value])


def struct(fields: Iterable[tuple[str, Kind | None]]) -> Kind | None:
    """Return a struct's type; None if a field's type isn't known."""
    named = tuple(fields)
    return _nested("struct", [kind for _, kind in named], [name for name, _ in named])


def decimal(precision: int, scale: int) -> Kind:
    """Return a decimal's type, with at most 38 digits."""
    return Kind("decimal", (min(precision, MOST_DIGITS), min(scale, MOST_DIGITS)))


def equal(one: Kind, other: Kind) -> bool:
    """Return whether two types are equal in Spark, which ignores the case of field names."""
    return str(one).lower() == str(other).lower()


def is_number(kind: Kind | None) -> bool:
    """Return whether a type is numeric."""
    return kind is not None and kind.name in {*INTEGERS, "decimal", "float", "double"}


def is_integer(kind: Kind | None) -> bool:
    """Return whether a type is an integer type."""
    return kind is not None and kind.name in INTEGERS


def as_decimal(kind: Kind | None) -> tuple[int, int] | None:
    """Return (precision, scale) of an exact number; None for other types."""
    if kind is not None and kind.name == "decimal":
        return kind.size
    return (INTEGERS[kind.name], 0) if kind is not None and kind.name in INTEGERS else None


def widest(kinds: Iterable[Kind | None]) -> Kind | None:
    """Return Spark's common type of several values, as in unions, CASE and coalesce; None if unknown."""
    found = list(kinds)
    return reduce(_wider, found) if found else None


def _wider(one: Kind | None, other: Kind | None) -> Kind | None:
    if one is None or other is None:
        return None
    if one == other or other == VOID:
        return one
    if one == VOID:
        return other
    names = {one.name, other.name}
    if names <= INTEGERS.keys():
        return max(one, other, key=lambda kind: INTEGERS[kind.name])
    if names <= {*INTEGERS, "float", "double", "decimal"}:
        return _wider_number(one, other)
    if names == {"date", "timestamp"}:
        return TIMESTAMP
    if len(names) == 1 and one.name in ("array", "map"):
        return _nested(one.name, (_wider(a, b) for a, b in zip(one.parts, other.parts, strict=True)))
    if names == {"struct"} and one.fields == other.fields:
        return _nested("struct", (_wider(a, b) for a, b in zip(one.parts, other.parts, strict=True)), one.fields)
    return None


def _wider_number(one: Kind, other: Kind) -> Kind | None:
    a, b = as_decimal(one), as_decimal(other)
    if a is None or b is None:
        return DOUBLE
    scale, before = max(a[1], b[1]), max(a[0] - a[1], b[0] - b[1])
    # Above 38 digits Spark's rule depends on its version.
    return decimal(before + scale, scale) if before + scale <= MOST_DIGITS else None


def add(one: Kind, other: Kind) -> Kind | None:
    """Return the type of a sum or a difference of two numbers."""
    return _computed(one, other, lambda p, s, q, t: (max(p - s, q - t) + max(s, t) + 1, max(s, t)))


def multiply(one: Kind, other: Kind) -> Kind | None:
    """Return the type of a product."""
    return _computed(one, other, lambda p, s, q, t: (p + q + 1, s + t))


def remainder(one: Kind, other: Kind) -> Kind | None:
    """Return the type of a remainder."""
    return _computed(one, other, lambda p, s, q, t: (min(p - s, q - t) + max(s, t), max(s, t)))


def divide(one: Kind, other: Kind) -> Kind | None:
    """Return the type of `/`: a double for integers."""
    if is_integer(one) and is_integer(other):
        return DOUBLE

    def size(p: int, s: int, q: int, t: int) -> tuple[int, int]:
        scale = max(LEAST_SCALE, s + q + 1)
        return p - s + t + scale, scale

    return _computed(one, other, size)


def _computed(one: Kind, other: Kind, size: _Size) -> Kind | None:
    names = {one.name, other.name}
    if one == other and one in (FLOAT, DOUBLE):
        return one
    if names <= INTEGERS.keys():
        return max(one, other, key=lambda kind: INTEGERS[kind.name])
    a, b = as_decimal(one), as_decimal(other)
    if a is not None and b is not None:
        return _fitted(*size(*a, *b))
    return _wider_number(one, other) if names <= {*INTEGERS, "float", "double", "decimal"} else None


def _fitted(precision: int, scale: int) -> Kind:
    """Return a decimal's type with at most 38 digits; the scale is cut down to no less than six."""
    # Spark's DecimalType.adjustPrecisionScale.
    if precision <= MOST_DIGITS:
        return decimal(precision, scale)
    return decimal(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), min(scale, LEAST_SCALE)))


def summed(kind: Kind | None) -> Kind | None:
    """Return the type of sum()."""
    if kind is not None and kind.name == "decimal":
        return decimal(kind.size[0] + 10, kind.size[1])
    if is_integer(kind):
        return BIGINT
    return DOUBLE if kind in (FLOAT, DOUBLE) else None


def averaged(kind: Kind | None) -> Kind | None:
    """Return the type of avg()."""
    if kind is not None and kind.name == "decimal":
        return decimal(kind.size[0] + 4, kind.size[1] + 4)
    return DOUBLE if is_integer(kind) or kind in (FLOAT, DOUBLE) else None


def rounded(kind: Kind | None, digits: int) -> Kind | None:
    """Return the type of round() to a constant number of digits."""
    if kind is None or kind.name != "decimal":
        return kind if is_integer(kind) or kind in (FLOAT, DOUBLE) else None
    precision, scale = kind.size
    if digits < 0:
        return decimal(max(precision - scale + 1, 1 - digits), 0)
    return decimal(precision - scale + 1 + min(scale, digits), min(scale, digits))


def floored(kind: Kind | None) -> Kind | None:
    """Return the type of floor() and ceil() without a number of digits."""
    if kind is not None and kind.name == "decimal":
        return decimal(kind.size[0] - kind.size[1] + 1, 0)
    return BIGINT if is_integer(kind) or kind in (FLOAT, DOUBLE) else None


def of_literal(node: exp.Literal) -> Kind:
    """Return the type of a literal."""
    if node.is_string:
        return STRING
    if "e" in node.name.lower():
        return DOUBLE
    return sized(int(node.name)) if node.is_int else _digits(Decimal(node.name))


def sized(value: int) -> Kind:
    """Return the type of an integer literal: the smallest that holds it, from int up."""
    if -(2**31) <= value < 2**31:
        return INT
    return BIGINT if -(2**63) <= value < 2**63 else decimal(len(str(abs(value))), 0)


def literal_beside(node: exp.Expr, kind: Kind, other: Kind) -> Kind:
    """Return an operand's type; an integer literal beside a decimal has only the digits that it needs."""
    value = whole(node)
    return _digits(Decimal(value)) if value is not None and other.name == "decimal" else kind


def whole(node: exp.Expr | None) -> int | None:
    """Return the value of an integer literal with or without a sign; None for other expressions."""
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    return sign * int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def _digits(value: Decimal) -> Kind:
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    return decimal(max(len(digits), scale), scale)


def span(node: exp.Expr) -> str | None:
    """Return what an interval adds to a date; "" if that isn't known, None if the expression is no interval."""
    match node:
        case exp.Interval():
            unit = node.args.get("unit")
            if isinstance(unit, exp.IntervalSpan):
                return OF_MONTHS if unit.this.name.lower() == "year" else OF_TIMES
            return _SPANS.get(unit.name.lower(), "") if unit is not None else ""
        case exp.MakeInterval():
            return OF_BOTH
        case exp.Anonymous():
            return _MADE.get(node.name.lower())
        case exp.Paren() | exp.Neg():
            return span(node.this)
        case exp.Add() | exp.Sub():
            spans = set()
            for operand in chained(node, exp.Add, exp.Sub):
                found = span(operand)
                if found is None:
                    return None
                spans.add(found)
            return spans.pop() if len(spans) == 1 else OF_TIMES if spans == {OF_DAYS, OF_TIMES} else ""
        case exp.Cast() if isinstance(node.to.this, exp.Interval) or node.to.this == exp.DType.INTERVAL:
            return ""
        case _:
            return None


def moved(kind: Kind | None, span: str) -> Kind | None:
    """Return the type of a date or time plus or minus an interval."""
    if kind == DATE:
        return TIMESTAMP if span == OF_TIMES else DATE if span in (OF_DAYS, OF_MONTHS) else None
    return kind if kind in TIMES else None
