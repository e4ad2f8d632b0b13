"""Spark's casts and indexes in DuckDB's SQL, for operands of any runtime type. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.transpile import decimals as duckdb_decimals
from sqlrun.transpile import spark_types
from sqlrun.transpile.templates import number, piece, text
from sqlrun.transpile.trees import chained

# A text in a message, of which the beginning suffices to find it.
_SHOWN = "left(cast(arg_x as varchar), 60)"
_NO_TIME = f"error(concat('cast: ''', {_SHOWN}, ''' is no time'))"
_WHOLE = exp.DataType.SIGNED_INTEGER_TYPES
_COUNTS = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Length, exp.BitwiseCount)
_COUNTING = {"epoch_us", "len", "cardinality", "strpos", "length", "list_position", "strlen"}
_DOUBLE = "typeof(arg_x) in ('DOUBLE', 'FLOAT')"
_NESTED = (
    "typeof(arg_x) like '%]' or typeof(arg_x) like 'STRUCT%' or typeof(arg_x) like 'MAP%' or typeof(arg_x) = 'BLOB'"
)
_SIZE = "abs(try_cast(cast(arg_x as varchar) as double))"
# An index of any type as a number: DuckDB binds the branch for arrays over a map, too, whose keys may be texts.
_PLACE = "try_cast(cast(arg_i as varchar) as bigint)"


def cast(node: exp.Cast) -> exp.Expr:
    """Return a cast by Spark's rules: truncate to integers, round displayed digits, format text as Spark does."""
    value = node.this
    if isinstance(value, exp.Null) or is_whole(value):
        return node
    # A parameter is a text literal.
    template = _template(node, text(value) is not None or isinstance(value, exp.Placeholder))
    return piece(template, x=value) if template else node


def to_whole(value: exp.Expr, kind: str) -> exp.Expr:
    """Return an argument cast to an integer type, as Spark does implicitly: Spark truncates, DuckDB rounds."""
    return cast(exp.Cast(this=value.copy(), to=exp.DataType.build(kind, dialect="duckdb")))


def _template(node: exp.Cast, is_text: bool) -> str:
    word, other = ("try_cast", "null") if isinstance(node, exp.TryCast) else ("cast", "")
    kind = node.to.sql("duckdb")
    plain = f"{word}(arg_x as {kind})"
    if node.to.this in _WHOLE:
        wrong = other or f"error(concat('cast: ''', {_SHOWN}, ''' is no {kind}'))"
        return (
            f"case when {_DOUBLE} then {word}(trunc({word}(arg_x as double)) as {kind}) "
            f"when typeof(arg_x) like 'DECIMAL%' then {word}(split_part(cast(arg_x as varchar), '.', 1) as {kind}) "
            "when typeof(arg_x) = 'VARCHAR' and "
            rf"not regexp_full_match(cast(arg_x as varchar), '\s*[+-]?[0-9]+\s*') then {wrong} else {plain} end"
        )
    if node.to.is_type("date", "timestamp", "timestamptz", "timestampltz", "timestampntz") and not is_text:
        return (
            rf"case when typeof(arg_x) = 'VARCHAR' and regexp_matches(cast(arg_x as varchar), '^\s*-?[a-zA-Z]') "
            f"then {other or _NO_TIME} else {plain} end"
        )
    if node.to.is_type("decimal") and not is_text:
        return f"case when {_DOUBLE} then {word}(cast(arg_x as varchar) as {kind}) else {plain} end"
    if node.to.this in exp.DataType.TEXT_TYPES and not is_text:
        return (
            rf"case when typeof(arg_x) like 'TIMESTAMP%' then regexp_replace(cast(arg_x as varchar), '\+00$', '') "
            f"when {_DOUBLE} and {_SIZE} <> 0 and not ({_SIZE} >= 0.001 and {_SIZE} < 10000000) "
            "then error('cast: Spark writes so small and so large a double in another way') "
            f"when {_NESTED} then error('cast: Spark writes arrays, structs, maps and binaries in another way') "
            f"else {plain} end"
        )
    return ""


def is_whole(node: exp.Expr) -> bool:
    """Return whether an expression is certainly an integer."""
    match node:
        case exp.Literal():
            return not node.is_string and node.name.isdigit()
        case exp.Paren() | exp.Neg() | exp.Filter() | exp.Window():
            return is_whole(node.this)
        case exp.Cast():
            return node.to.this in _WHOLE
        case exp.Add() | exp.Sub() | exp.Mul() | exp.IntDiv() | exp.Mod():
            return all(map(is_whole, chained(node, exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod)))
        case exp.Anonymous():
            return node.name.lower() in _COUNTING
        case _:
            return isinstance(node, _COUNTS)


def is_double(node: exp.Expr) -> bool:
    """Return whether an expression is certainly a double in DuckDB."""
    match node:
        case exp.Paren() | exp.Neg() | exp.Filter() | exp.Window():
            return is_double(node.this)
        case exp.Case():
            return node.args.get("default") is not None and is_double(node.args["default"])
        case exp.Cast():
            return node.to.is_type("double", "float")
        case exp.Add() | exp.Sub() | exp.Mul():
            return any(map(is_double, chained(node, exp.Add, exp.Sub, exp.Mul)))
        case exp.Bracket() if isinstance(node.this, exp.Anonymous) and node.this.name == "list_transform":
            return is_double(node.this.expressions[1].this)
        case exp.Div() | exp.Avg():
            return not duckdb_decimals.operands(node)
        case _:
            return isinstance(node, exp.Sqrt | exp.Stddev | exp.Variance)


def is_date(node: exp.Expr) -> bool:
    """Return whether an expression is certainly a date."""
    match node:
        case exp.Paren():
            return is_date(node.this)
        case exp.Cast():
            return node.to.is_type("date")
        case exp.Add() | exp.Sub():
            *days, start = chained(node, exp.Add, exp.Sub)
            return is_date(start) and all(map(is_whole, days))
        case _:
            return False


def rounded(node: exp.Round) -> exp.Expr:
    """Return round() of a double as Spark computes it, from its decimal digits; DuckDB rounds the binary number."""
    if not is_double(node.this):
        return node
    shown = "round(cast(cast(arg_x as varchar) as decimal(38, 20)), arg_n)"
    template = f"case when abs(arg_x) < 1e15 then cast({shown} as double) else round(arg_x, arg_n) end"
    return piece(template, x=node.this, n=node.args.get("decimals") or exp.Literal.number(0))


def moved(node: exp.Add | exp.Sub) -> exp.Expr:
    """Return a date plus or minus an interval as the type that Spark has for it: a date, or a time."""
    start, interval = node.this, spark_types.span(node.expression)
    if isinstance(node, exp.Add) and interval is None:
        start, interval = node.expression, spark_types.span(node.this)
    kind = spark_types.moved(spark_types.DATE, interval) if interval and is_date(start) else None
    if kind is None:
        return node
    return exp.cast(node.copy(), "date" if kind == spark_types.DATE else "timestamptz", dialect="duckdb")


def whole_part(node: exp.IntDiv) -> exp.Expr:
    """Return `div` as an integer division: DuckDB returns a fraction for decimals."""
    if is_whole(node.this) and is_whole(node.expression) and number(node.expression):
        return node
    template = (
        "case when arg_a is not null and arg_b = 0 then error('div: division by zero') "
        "when typeof(arg_a) like 'DECIMAL%' or typeof(arg_b) like 'DECIMAL%' "
        "then error('div: of decimals it is another number on DuckDB; cast both to bigint') else arg_a // arg_b end"
    )
    return piece(template, a=node.this.unnest(), b=node.expression.unnest())


def _safe_element(node: exp.Bracket, key: exp.Expr) -> exp.Expr:
    template = (
        "case when typeof(arg_x) like '%]' and cast(arg_i as varchar) = '0' "
        "then error('try_element_at: elements count from 1') else arg_x[arg_i] end"
    )
    return piece(template, x=node.this, i=key)


def element(node: exp.Bracket) -> exp.Expr:
    """Return x[i] or element_at: an index outside an array is an error, a key that a map lacks isn't."""
    if (
        len(node.expressions) != 1
        or isinstance(node.expressions[0], exp.Slice)
        or text(node.expressions[0]) is not None
    ):
        return node
    key, from_one = node.expressions[0], bool(node.args.get("offset"))
    if from_one and number(key) == 0:
        return piece("error('element_at: elements count from 1')")
    if node.args.get("safe"):
        return _safe_element(node, key) if from_one and number(key) is None else node
    plain = is_whole(key) or isinstance(key.unnest(), exp.Null)
    place = "arg_i" if plain else _PLACE
    outside = f"{place} < 0 or {place} >= cardinality(arg_x)"
    if from_one:
        outside = f"{place} = 0 or abs({place}) > cardinality(arg_x)"
    known = number(key)
    after = "arg_i + 1" if plain else f"cast_to_type(cast({place} + 1 as varchar), arg_i)"
    following = exp.Literal.number(known + 1) if known is not None and known >= 0 else piece(after, i=key)
    template = (
        f"case when typeof(arg_x) like '%]' and ({outside}) then error('an array has no element of that index') "
        "when typeof(arg_x) like 'MAP%' then arg_x[arg_i] else arg_x[arg_j] end"
    )
    return piece(template, x=node.this, i=key, j=key if from_one else following)
