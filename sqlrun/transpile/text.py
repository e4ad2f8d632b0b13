"""Spark's functions on text in DuckDB's SQL. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from sqlrun.transpile.casts import to_whole
from sqlrun.transpile.templates import Translation, UnlikeSparkError, call, number, of, piece, text

# Java's line ends, which its `.` doesn't match; RE2's `.` excludes \n alone.
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_GROUP = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\((?!\?)")


def regex(node: exp.Expr, *, boolean: bool = False) -> exp.Expr:
    """Return a Java pattern as RE2's. Raise UnlikeSparkError if it isn't constant or would match something else.

    `boolean`: only whether it matches matters, not what.
    """
    pattern = text(node)
    if pattern is None:
        raise UnlikeSparkError(
            "its patterns are RE2's, not Java's, so this one must be a literal", "Write the pattern as a literal."
        )
    return exp.Literal.string(_translated(pattern, boolean))


def _translated(pattern: str, boolean: bool) -> str:
    done, position, inside = [], 0, False
    while position < len(pattern):
        piece_ = pattern[position : position + 2] if pattern[position] == "\\" else pattern[position]
        done.append(_part(piece_, pattern[position + 1 :], inside, boolean))
        if piece_ == "[":
            inside = True
            for lead in ("^", "]"):
                if pattern[position + 1 : position + 2] == lead:
                    done.append(lead)
                    position += 1
        elif piece_ == "]":
            inside = False
        position += len(piece_)
    return "".join(done)


def _part(part: str, rest: str, inside: bool, boolean: bool) -> str:
    """Return one character or escape as RE2's, inside a class or not."""
    match part:
        case "\\s":
            return r"\t\n\x0B\f\r " if inside else r"[\t\n\x0B\f\r ]"
        case "\\S" if not inside:
            return r"[^\t\n\x0B\f\r ]"
        case "." if not inside:
            return f"[^{_LINE_ENDS}]"
        case "$" if not inside:
            if boolean and not rest.strip(")"):
                return rf"(?:\r\n|[{_LINE_ENDS}])?\z"
            raise _unlike("`$`", r"Use \\z for the end of the text.")
        case "[" if inside:
            raise _unlike("`[` inside a class", "Escape it with a backslash.")
        case "&" if inside and rest.startswith("&"):
            raise _unlike("`&&` inside a class")
        case "(" if rest.startswith("?") and not rest.startswith("?:") and not inside:
            raise _unlike(f"`({rest[:2]}`", "Use lower() to ignore the case." if rest.startswith("?i") else "")
        case "+" if not inside and rest.startswith("+"):
            raise _unlike("`++`")
        case _ if len(part) == 2 and (part[1] in "bBGZRhHvVXkuxcpPSNQE0" or (part[1].isdigit() and not inside)):
            raise _unlike(f"`{part}`")
        case _ if part in ("*", "?", "}") and not inside and rest.startswith("+"):
            raise _unlike(f"`{part}+`")
        case _:
            return part


def _unlike(what: str, instead: str = "") -> UnlikeSparkError:
    return UnlikeSparkError(f"its patterns are RE2's, which read {what} otherwise than Java's or not at all", instead)


def groups(pattern: str) -> int:
    """Return the number of a pattern's capturing groups."""
    return sum(1 for found in _GROUP.finditer(pattern) if found[0] == "(")


def replacement(node: exp.Expr) -> exp.Expr:
    """Return a Java replacement (`$1`, backslash as the escape) as RE2's."""
    written = text(node)
    if written is None or re.search(r"(?<!\\)\$(?!\d)", written):
        raise UnlikeSparkError(
            "its replacements are RE2's, not Java's, so this one must be a literal",
            "Write the replacement as a literal.",
        )
    done = re.sub(
        r"\\(.)|\$(\d)|(\\)$", lambda m: f"\\{m[2]}" if m[2] else "\\\\" if m[1] in ("\\", None) else m[1], written
    )
    return exp.Literal.string(done)


def extract(node: exp.RegexpExtract | exp.RegexpExtractAll) -> exp.Expr:
    """Return regexp_extract() or regexp_extract_all()."""
    group = node.args.get("group")
    index = 1 if group is None else number(group)
    pattern = text(node.expression)
    if index is None or node.args.get("position") is not None:
        raise UnlikeSparkError("the number of the group must be a literal")
    one = isinstance(node, exp.RegexpExtract)
    if pattern is not None and index > groups(pattern):
        none = "''" if one else "[]"
        template = (
            "case when regexp_matches(arg_s, arg_p) then error('regexp_extract: there is no such group') "
            f"when arg_s is not null then {none} end"
        )
        return piece(template, s=node.this, p=regex(node.expression))
    name = "regexp_extract" if one else "regexp_extract_all"
    return call(name, node.this, regex(node.expression), exp.Literal.number(index))


def matched(node: exp.RegexpLike) -> exp.Expr:
    """Return rlike."""
    return call("regexp_matches", node.this, regex(node.expression, boolean=True))


def counted(node: exp.RegexpCount) -> exp.Expr:
    """Return regexp_count()."""
    return call("len", call("regexp_extract_all", node.this, regex(node.expression)))


def found_at(node: exp.RegexpInstr) -> exp.Expr:
    """Return regexp_instr(): Java counts characters beyond 16 bits twice, and the number of the group has no effect."""
    if any(node.args.get(key) is not None for key in ("occurrence", "option", "parameters", "group")):
        raise UnlikeSparkError("it doesn't support this form")
    if node.args.get("position") is not None and number(node.args["position"]) is None:
        raise UnlikeSparkError("the number of the group must be a literal")
    pattern = regex(node.expression)
    before = exp.Literal.string(rf"(?s)\A(.*?)(?:{pattern.name})")
    template = (
        "case when not regexp_matches(arg_s, arg_p) then 0 when arg_s is not null "
        "then cast(length(regexp_extract(arg_s, arg_b, 1)) "
        "+ len(regexp_extract_all(regexp_extract(arg_s, arg_b, 1), '[\\x{10000}-\\x{10FFFF}]')) + 1 as int) end"
    )
    return piece(template, s=node.this, p=pattern, b=before)


def replaced(node: exp.RegexpReplace) -> exp.Expr:
    """Return regexp_replace(): all matches."""
    if node.args.get("position") is not None:
        raise UnlikeSparkError("it has no start position")
    new = replacement(node.args.get("replacement") or exp.Literal.string(""))
    return call("regexp_replace", node.this, regex(node.expression), new, exp.Literal.string("g"))


def split(node: exp.RegexpSplit) -> exp.Expr:
    """Return split(): its separator is a pattern."""
    limit = node.args.get("limit")
    if limit is not None and (number(limit) is None or (number(limit) or 0) > 0):
        raise UnlikeSparkError("it has no limit", "Use slice(split(x, y), 1, n).")
    pattern = text(node.expression)
    if pattern is not None:
        plain = re.sub(r"\\([^\w\s])|\[([^\w\s^\\])\]", lambda m: m[1] or m[2], pattern)
        if not re.search(r"[\\\[\](){}.*+?^$|]", re.sub(r"\\[^\w\s]|\[[^\w\s^\\]\]", "", pattern)):
            return call("string_split", node.this, exp.Literal.string(plain))
    return call("string_split_regex", node.this, regex(node.expression))


def like(node: exp.Like | exp.ILike) -> exp.Expr:
    """Return LIKE: Spark's escape character is the backslash."""
    pattern = text(node.expression)
    if isinstance(node.parent, exp.Escape) or (pattern is not None and "\\" not in pattern):
        return node
    if isinstance(node.expression, exp.Any | exp.All | exp.Tuple):
        raise UnlikeSparkError("it has no LIKE ANY or LIKE ALL", "Combine LIKEs with OR.")
    return exp.paren(exp.Escape(this=node.copy(), expression=exp.Literal.string("\\")), copy=False)


def substring(node: exp.Substring) -> exp.Expr:
    """Return substring(): a start of 0 counts as 1, a negative length as 0."""
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        raise UnlikeSparkError("it requires a start")
    known = number(start)
    first: exp.Expr = exp.Literal.number(1) if known == 0 else start
    if known is None:
        first = piece("case when arg_p = 0 then 1 else arg_p end", p=start)
    if length is None:
        return call("substring", _as_text(node.this), first)
    many = number(length)
    taken: exp.Expr = exp.Literal.number(max(many or 0, 0))
    if many is None:
        taken = piece("case when arg_n < 0 then 0 else arg_n end", n=length)
    return call("substring", _as_text(node.this), first, taken)


def position(node: exp.StrPosition) -> exp.Expr:
    """Return instr(), locate() or position()."""
    start = node.args.get("position")
    if start is None:
        return call("strpos", node.this, node.args["substr"])
    found = "strpos(substring(arg_s, arg_p), arg_x)"
    template = f"case when arg_p < 1 then arg_p * 0 when {found} = 0 then 0 else {found} + arg_p - 1 end"
    return piece(template, s=node.this, p=start, x=node.args["substr"])


def _as_text(node: exp.Expr) -> exp.Expr:
    return node if text(node) is not None else exp.cast(node, "text", dialect="duckdb")


def _charset(arguments: list[exp.Expr], name: str) -> exp.Expr:
    charset = text(arguments[1]) if len(arguments) == 2 else None
    if charset is None or charset.lower() not in ("utf-8", "utf8"):
        raise UnlikeSparkError("it supports UTF-8 only")
    return call(name, arguments[0])


def _decode(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) == 2:
        return _charset(arguments, "decode")
    value, rest = arguments[0], arguments[1:]
    branches = [
        exp.If(this=exp.NullSafeEQ(this=value.copy(), expression=key.copy()), true=then.copy())
        for key, then in zip(rest[::2], rest[1::2], strict=False)
    ]
    return exp.Case(ifs=branches, default=rest[-1].copy() if len(rest) % 2 else None)


def encode(node: exp.Encode) -> exp.Expr:
    """Return encode()."""
    charset = node.args.get("charset")
    return _charset([node.this, *([charset] if charset is not None else [])], "encode")


def _pad(name: str) -> Translation:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        if len(arguments) == 2:
            arguments = [*arguments, exp.Literal.string(" ")]
        return call(name, _as_text(arguments[0]), *arguments[1:])

    return build


def space(node: exp.Space) -> exp.Expr:
    """Return space()."""
    return piece("repeat(' ', arg_n)", n=to_whole(node.this, "int"))


def _character(arguments: list[exp.Expr]) -> exp.Expr:
    (code,) = arguments
    template = "case when arg_n < 0 then '' else chr(cast(arg_n % 256 as int)) end"
    return piece(template, n=to_whole(code, "bigint"))


_LETTERS = "list_distinct(string_split(arg_a || arg_b, ''))"
# DuckDB counts bytes, so each letter outside ASCII is replaced by a letter of one byte.
_CODED = (
    "array_to_string(list_transform(string_split({0}, ''), lambda _c: "
    f"case when list_position({_LETTERS}, _c) > 127 then error('levenshtein: more than 127 different letters') "
    f"else coalesce(chr(cast(list_position({_LETTERS}, _c) as int)), '') end), '')"
)
_DISTANCE = (
    "case when strlen(arg_a) = length(arg_a) and strlen(arg_b) = length(arg_b) then levenshtein(arg_a, arg_b) "
    "when arg_a is not null and arg_b is not null "
    f"then levenshtein({_CODED.format('arg_a')}, {_CODED.format('arg_b')}) end"
)
_BASE64 = "regexp_replace(arg_s, '[^A-Za-z0-9+/=]', '', 'g')"
# Java's decoder ignores characters outside the alphabet, and needs no padding.
_DECODED = (
    f"case when regexp_full_match({_BASE64}, '(.{{4}})*([^=]{{2}}(==)?|[^=]{{3}}=?)?') "
    f"and not regexp_matches({_BASE64}, '=[^=]|===') then from_base64(rtrim({_BASE64}, '=') || "
    f"repeat('=', cast((4 - length(rtrim({_BASE64}, '=')) % 4) % 4 as int))) "
    "when arg_s is not null then error('unbase64: a text is no base64') end"
)


def decoded(node: exp.FromBase64) -> exp.Expr:
    """Return unbase64()."""
    return piece(_DECODED, s=node.this)


def binary(node: exp.ToBinary) -> exp.Expr:
    """Return to_binary(): hexadecimal unless it names a format."""
    form = node.args.get("format")
    match "hex" if form is None else (text(form) or "").lower():
        case "hex":
            template = (
                "case when regexp_full_match(arg_s, '[0-9A-Fa-f]*') then unhex(arg_s) "
                "when arg_s is not null then error('to_binary: a text is not hexadecimal') end"
            )
            return piece(template, s=node.this)
        case "base64":
            return piece(_DECODED, s=node.this)
        case "utf-8" | "utf8":
            return call("encode", node.this)
        case _:
            raise UnlikeSparkError("the form must be a literal")


def _sha2(arguments: list[exp.Expr]) -> exp.Expr:
    if number(arguments[1]) not in (0, 256):
        raise UnlikeSparkError("it has SHA-256 only", "Use sha2(x, 256).")
    return call("sha256", arguments[0])


def _elt(arguments: list[exp.Expr]) -> exp.Expr:
    index, values = arguments[0], exp.Array(expressions=arguments[1:])
    known = exp.Literal.number(len(arguments) - 1)
    template = (
        "case when arg_i between 1 and arg_k then list_extract(arg_v, arg_i) "
        "when arg_i is not null then error('elt: there is no such value') end"
    )
    return piece(template, i=index, k=known, v=values)


def _substring_index(arguments: list[exp.Expr]) -> exp.Expr:
    pieces = "string_split(arg_s, arg_d)"
    template = (
        "case when arg_n = 0 or arg_d = '' then substring(arg_s, 1, 0) "
        f"when arg_n > 0 then array_to_string({pieces}[1:arg_n], arg_d) "
        f"when -arg_n >= len({pieces}) then arg_s else array_to_string({pieces}[arg_n:], arg_d) end"
    )
    return piece(template, s=arguments[0], d=arguments[1], n=arguments[2])


CALLS: Mapping[str, Translation] = {
    "btrim": lambda arguments: call("trim", *arguments),
    "char": _character,
    "chr": _character,
    "decode": _decode,
    "elt": _elt,
    "find_in_set": of(
        "case when arg_x is null or arg_s is null then null when contains(arg_x, ',') then 0 "
        "else coalesce(list_position(string_split(arg_s, ','), arg_x), 0) end",
        "xs",
    ),
    "left": of("case when arg_n < 0 then left(arg_s, 0) else left(arg_s, arg_n) end", "sn"),
    "len": of("length(arg_s)", "s"),
    "levenshtein": of(_DISTANCE, "ab"),
    "lpad": _pad("lpad"),
    "octet_length": of("strlen(arg_s)", "s"),
    "regexp_substr": lambda a: piece(
        "case when regexp_matches(arg_s, arg_p) then regexp_extract(arg_s, arg_p) end", s=a[0], p=regex(a[1])
    ),
    "right": of("case when arg_n < 0 then left(arg_s, 0) else right(arg_s, arg_n) end", "sn"),
    "rpad": _pad("rpad"),
    "sha2": _sha2,
    "split_part": of(
        "case when arg_n = 0 then error('split_part: parts count from 1') "
        "when arg_d = '' then case when arg_n in (1, -1) then arg_s else '' end "
        "else split_part(arg_s, arg_d, arg_n) end",
        "sdn",
    ),
    "substring_index": _substring_index,
    "unhex": of("case when regexp_full_match(arg_s, '[0-9A-Fa-f]*') then unhex(arg_s) end", "s"),
}
