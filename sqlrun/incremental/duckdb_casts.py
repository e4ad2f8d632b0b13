"""Spark's casts and indexes, as DuckDB's, whatever the type of the operand turns out to be. Pure."""

from __future__ import annotations

from sqlglot import exp

from sqlrun.incremental.duckdb_pieces import number, piece, text

_WHOLE = exp.DataType.SIGNED_INTEGER_TYPES
_COUNTS = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Length, exp.BitwiseCount)
_COUNTING = {"epoch_us", "len", "cardinality", "strpos", "length", "list_position", "strlen"}
_DOUBLE = "typeof(arg_x) in ('DOUBLE', 'FLOAT')"
_NESTED = (
    "typeof(arg_x) like '%]' or typeof(arg_x) like 'STRUCT%' or typeof(arg_x) like 'MAP%' or typeof(arg_x) = 'BLOB'"
)
_SIZE = "abs(try_cast(cast(arg_x as varchar) as double))"


def cast(node: exp.Cast) -> exp.Expr:
    """Mend a cast: it cuts off to whole numbers, rounds what is shown to decimals, writes as Spark does."""
    value = node.this
    if isinstance(value, exp.Null) or is_whole(value):
        return node
    template = _template(node, text(value) is not None)
    return piece(template, x=value) if template else node


def _template(node: exp.Cast, is_text: bool) -> str:
    word, other = ("try_cast", "null") if isinstance(node, exp.TryCast) else ("cast", "")
    kind = node.to.sql("duckdb")
    plain = f"{word}(arg_x as {kind})"
    if node.to.this in _WHOLE:
        wrong = other or f"error('cast: a text is no {kind}')"
        return (
            f"case when {_DOUBLE} then {word}(trunc({word}(arg_x as double)) as {kind}) "
            f"when typeof(arg_x) like 'DECIMAL%' then {word}(split_part(cast(arg_x as varchar), '.', 1) as {kind}) "
            "when typeof(arg_x) = 'VARCHAR' and "
            rf"not regexp_full_match(cast(arg_x as varchar), '\s*[+-]?[0-9]+\s*') then {wrong} else {plain} end"
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
    """Tell whether an expression surely gives a whole number."""
    match node:
        case exp.Literal():
            return not node.is_string and node.name.isdigit()
        case exp.Paren() | exp.Neg() | exp.Filter() | exp.Window():
            return is_whole(node.this)
        case exp.Cast():
            return node.to.this in _WHOLE
        case exp.Add() | exp.Sub() | exp.Mul():
            return is_whole(node.this) and is_whole(node.expression)
        case exp.IntDiv() | exp.Mod():
            return is_whole(node.this) and is_whole(node.expression)
        case exp.Anonymous():
            return node.name.lower() in _COUNTING
        case _:
            return isinstance(node, _COUNTS)


def whole_part(node: exp.IntDiv) -> exp.Expr:
    """Mend div: DuckDB's gives a fraction for decimals."""
    if is_whole(node.this) and is_whole(node.expression):
        return node
    template = (
        "case when typeof(arg_a) like 'DECIMAL%' or typeof(arg_b) like 'DECIMAL%' "
        "then error('div: of decimals it is another number on DuckDB; cast both to bigint') else arg_a // arg_b end"
    )
    return piece(template, a=node.this.unnest(), b=node.expression.unnest())


def element(node: exp.Bracket) -> exp.Expr:
    """Mend x[i] and element_at: an index outside an array is an error, a key that a map lacks is not."""
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
        return node
    outside = "arg_i < 0 or arg_i >= cardinality(arg_x)"
    if from_one:
        outside = "arg_i = 0 or abs(arg_i) > cardinality(arg_x)"
    known = number(key)
    after = exp.Literal.number(known + 1) if known is not None and known >= 0 else piece("arg_i + 1", i=key)
    template = (
        f"case when typeof(arg_x) like '%]' and ({outside}) then error('an array has no element of that index') "
        "when typeof(arg_x) like 'MAP%' then arg_x[arg_i] else arg_x[arg_j] end"
    )
    return piece(template, x=node.this, i=key, j=key if from_one else after)
