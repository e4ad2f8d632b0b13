"""Infer types and nullability of expressions, as far as stored state needs them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sqlglot import exp

from sqlrun.incremental.algebra import Type
from sqlrun.parse.function_types import FIXED

UNKNOWN = Type("", True)
BIGINT = Type("bigint", False)
PARTS_OF_TIME = (
    exp.Year,
    exp.Quarter,
    exp.Month,
    exp.Day,
    exp.Hour,
    exp.Minute,
    exp.DayOfWeek,
    exp.DayOfYear,
    exp.Extract,
)
WHOLE_PARTS = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "DOW", "DOY"}
TEXTS = (exp.Substring, exp.Left, exp.Right, exp.Lower, exp.Upper, exp.Trim)
# Functions that return NULL only for a NULL argument.
STRICT = (
    exp.Cast,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.IntDiv,
    exp.Neg,
    exp.Paren,
    exp.TimestampTrunc,
    exp.DateTrunc,
    exp.TsOrDsToDate,
    exp.Date,
    exp.Lower,
    exp.Upper,
    exp.Trim,
    exp.Concat,
    exp.Floor,
    exp.Ceil,
    exp.Abs,
    exp.UnixMicros,
    exp.UnixSeconds,
    *PARTS_OF_TIME,
    exp.Substring,
    exp.Left,
    exp.Right,
    exp.Length,
)
STRICT_NAMES = {
    "timestamp_seconds",
    "timestamp_micros",
    "unix_micros",
    "unix_seconds",
    "date_trunc",
}


def widest(types: list[Type]) -> Type:
    """Return the type that holds the values of all `types`: of the branches of a CASE, the inputs of a union."""
    nullable = any(t.nullable for t in types)
    texts = {t.text for t in types}
    if len(texts) == 1:
        return Type(texts.pop(), nullable)
    if texts <= {"int", "bigint", "smallint", "tinyint"}:
        return Type("bigint", nullable)
    decimals = [decimal(t) for t in types]
    if all(decimals):
        known = [d for d in decimals if d]
        # Spark's common decimal: the most digits before the point and the most behind it.
        scale = max(s for _, s in known)
        return Type(f"decimal({min(38, max(p - s for p, s in known) + scale)},{scale})", nullable)
    return Type("", nullable)


def parse(type_text: str) -> exp.DataType | None:
    """Return a Spark SQL type as a syntax tree; None for the empty text."""
    return exp.DataType.build(type_text, dialect="databricks") if type_text else None


def text(data_type: exp.DataType) -> str:
    """Return a type as Spark SQL in lower case."""
    if any(value for key, value in data_type.args.items() if key != "this"):
        return data_type.sql("spark").lower()
    return _word(data_type.this)


@lru_cache(maxsize=256)
def _word(kind: exp.DType) -> str:
    """Return the name of a type without parameters."""
    return exp.DataType(this=kind).sql("spark").lower()


@lru_cache(maxsize=4096)  # types are few
def decimal(column: Type) -> tuple[int, int] | None:
    """Return (precision, scale) of an exact number, with scale 0 for integers; None for other types."""
    known = parse(column.text)
    if known is None:
        return None
    match known.this:
        case exp.DataType.Type.DECIMAL:
            sizes = [int(p.name) for p in known.expressions]
            return (sizes[0], sizes[1] if len(sizes) > 1 else 0) if sizes else (10, 0)
        case exp.DataType.Type.TINYINT | exp.DataType.Type.SMALLINT | exp.DataType.Type.INT:
            return (10, 0)
        case exp.DataType.Type.BIGINT:
            return (19, 0)
        case _:
            return None


def is_integer(column: Type) -> bool:
    """Return whether a type is an integer type."""
    return column.text in {"tinyint", "smallint", "int", "integer", "bigint", "long"}


def keeps_apart(column: Type, other: Type) -> bool:
    """Return whether different values of a column stay different when `=` casts them to another type.

    The strings 1 and 01 are both equal to the number 1.
    """
    if decimal(column) is not None:
        return decimal(other) is not None or (is_integer(column) and other.text == "string")
    if column.text in ("date", "timestamp"):
        return other.text in ("date", "timestamp", "string")
    return column.text == other.text and column.text not in ("", "double", "float", "real")


def of(expression: exp.Expr, columns: Mapping[str, Type]) -> Type:
    """Return the type of an expression over these input columns; "" as its text if it is unknown."""
    match expression:
        case exp.Column():
            return columns.get(expression.name, UNKNOWN)
        case exp.Paren() | exp.Neg() | exp.Abs():
            return of(expression.this, columns)
        case exp.Alias() | exp.Filter():
            return of(expression.this, columns)
        case exp.Cast():
            nullable = of(expression.this, columns).nullable or isinstance(expression, exp.TryCast)
            return Type(text(expression.to), nullable)
        case exp.Literal():
            return Type(_literal(expression), False)
        case exp.Dot():
            return _field(expression, columns)
        case exp.Sum() | exp.Avg() | exp.Min() | exp.Max():
            return _aggregate(expression, columns)
        case exp.Count() | exp.CountIf():
            return BIGINT
        case exp.LogicalAnd() | exp.LogicalOr():
            return Type("boolean", True)
        case exp.Coalesce():
            parts = [of(part, columns) for part in (expression.this, *expression.expressions)]
            return Type(widest(parts).text, all(part.nullable for part in parts))
        case exp.Add() | exp.Sub() | exp.Mul():
            return _arithmetic(expression, columns)
        case exp.Case():
            return _case(expression, columns)
        case exp.If():
            branches = [of(e, columns) for e in (expression.args["true"], expression.args.get("false")) if e]
            return Type(widest(branches).text, len(branches) < 2 or any(b.nullable for b in branches))
        case _:
            return _other(expression, columns)


def _literal(expression: exp.Literal) -> str:
    if expression.is_string:
        return "string"
    whole, _, part = expression.name.partition(".")
    if not part:
        return "int" if len(whole) < 10 else "bigint"
    return f"decimal({len(whole.lstrip('0')) + len(part)},{len(part)})"


def _field(expression: exp.Dot, columns: Mapping[str, Type]) -> Type:
    outer = parse(of(expression.this, columns).text)
    if outer is not None:
        for field in outer.expressions:
            if isinstance(field, exp.ColumnDef) and field.name == expression.name:
                return Type(text(field.args["kind"]), True)
    return UNKNOWN


def _aggregate(expression: exp.Expr, columns: Mapping[str, Type]) -> Type:
    argument = of(expression.this, columns)
    if isinstance(expression, exp.Min | exp.Max):
        return Type(argument.text, True)
    if isinstance(expression, exp.Sum):
        if is_integer(argument):
            return Type("bigint", True)
        size = decimal(argument)
        return Type(f"decimal(38,{size[1]})" if size else "", True)
    return Type(average(argument), True)


def average(argument: Type) -> str:
    """Return the type of avg() by Spark's rule: four more digits for a decimal, double for the rest; "" if unknown."""
    if is_integer(argument) or argument.text in ("double", "float"):
        return "double"
    size = decimal(argument)
    return f"decimal({min(38, size[0] + 4)},{min(38, size[1] + 4)})" if size else ""


def _arithmetic(expression: exp.Binary, columns: Mapping[str, Type]) -> Type:
    left, right = of(expression.this, columns), of(expression.expression, columns)
    nullable = left.nullable or right.nullable
    if is_integer(left) and is_integer(right):
        return Type("bigint" if "bigint" in {left.text, right.text} else "int", nullable)
    a, b = decimal(left), decimal(right)
    if a is None or b is None:
        return Type("timestamp" if "timestamp" in {left.text, right.text} else "", nullable)
    # Spark's rules of decimal precision: p + q + 1 digits for a product, one carry digit for a sum.
    if isinstance(expression, exp.Mul):
        return Type(f"decimal({min(38, a[0] + b[0] + 1)},{a[1] + b[1]})", nullable)
    scale = max(a[1], b[1])
    return Type(f"decimal({min(38, max(a[0] - a[1], b[0] - b[1]) + scale + 1)},{scale})", nullable)


def _case(expression: exp.Case, columns: Mapping[str, Type]) -> Type:
    branches = [of(branch.args["true"], columns) for branch in expression.args["ifs"]]
    default = expression.args.get("default")
    if default is not None and not isinstance(default, exp.Null):
        branches.append(of(default, columns))
    closed = default is not None and not isinstance(default, exp.Null)
    return Type(widest(branches).text, not closed or any(b.nullable for b in branches))


def _other(expression: exp.Expr, columns: Mapping[str, Type]) -> Type:
    strict = isinstance(expression, STRICT) or (
        isinstance(expression, exp.Anonymous) and expression.name.lower() in STRICT_NAMES
    )
    nullable = not strict or any(columns.get(name, UNKNOWN).nullable for name in _columns(expression))
    match expression:
        case exp.TimestampTrunc() | exp.DateTrunc():
            return Type("timestamp", nullable)
        case exp.Date() | exp.TsOrDsToDate():
            return Type("date", nullable)
        case exp.Extract() if expression.name.upper() not in WHOLE_PARTS:
            return Type("", nullable)
        case exp.Length():
            return Type("int", nullable)
        case _ if isinstance(expression, PARTS_OF_TIME):
            return Type("int", nullable)
        case _ if isinstance(expression, TEXTS):
            return Type("string" if of(expression.this, columns).text == "string" else "", nullable)
        case exp.IntDiv() | exp.UnixMicros() | exp.UnixSeconds():
            return Type("bigint", nullable)
        case exp.Anonymous() if expression.name.lower().startswith("timestamp_"):
            return Type("timestamp", nullable)
        case exp.Condition() if isinstance(expression, exp.Predicate | exp.Connector | exp.Not):
            return Type("boolean", True)
        case _:
            return Type("", nullable)


def _columns(expression: exp.Expr) -> set[str]:
    # A field of a struct may be NULL even if the struct isn't.
    if expression.find(exp.Dot):
        return {""}
    return {column.name for column in expression.find_all(exp.Column)}


def advised(expression: exp.Expr, columns: Mapping[str, Type]) -> str:
    """Return a type to cast a number of unknown type to; whole numbers stay whole."""
    fixed = FIXED.get(type(expression))
    if fixed is not None and fixed.name in ("tinyint", "smallint", "int", "bigint"):
        return "bigint"
    known = [columns.get(name, UNKNOWN) for name in _columns(expression)]
    scales = [size[1] for kind in known if (size := decimal(kind)) is not None]
    divides = expression.find(exp.Div) is not None or any("." in n.name for n in expression.find_all(exp.Literal))
    if known and len(scales) == len(known) and not any(scales) and not divides:
        return "bigint"
    return f"decimal(18, {max([2, *scales])})"
