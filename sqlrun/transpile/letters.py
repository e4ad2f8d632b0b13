"""Spark's upper, lower and initcap, as DuckDB's: letters that become several, and the sigma that ends a word. Pure.

DuckDB maps a letter to one letter, whatever stands beside it. Spark maps by Unicode's special casing.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlrun.transpile.templates import piece

# Letters whose upper case is several letters.
_SEVERAL = "ßŉǰΐΰևẖẗẘẙẚὐὒὔὖᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯᾲᾳᾴᾶᾷᾼῂῃῄῆῇῌῒΐῖῗῢΰῤῦῧῲῳῴῶῷῼﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗ"
# Letters whose title case is another one than their upper case.
_TITLED = "ǄǅǆǇǈǉǊǋǌǱǲǳაბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰჱჲჳჴჵჶჷჸჹჺჽჾჿ"
_CASED = r"\p{Lu}\p{Ll}\p{Lt}"
# What may stand between a letter and a sigma, and between a sigma and the letter that follows.
_BETWEEN = r"''.:^`´¨·’‘․…\x{AD}\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}"


def _mapped(letters: str, change: Callable[[str], str], text: str) -> str:
    """Write the upper case of a text of DuckDB's, letter by letter where some are among those given."""
    keys, values = (", ".join(f"'{one}'" for one in ones) for ones in (letters, map(change, letters)))
    return (
        f"case when regexp_matches({text}, '[{letters}]') "
        f"then array_to_string(list_transform(string_split({text}, ''), "
        f"lambda _u: coalesce(list_extract([{values}], list_position([{keys}], _u)), upper(_u))), '') "
        f"else upper({text}) end"
    )


_UP = _mapped(_SEVERAL, str.upper, "arg_s")
_FINAL = f"([{_CASED}][{_BETWEEN}]*)Σ([{_BETWEEN}]*(?:[^{_CASED}{_BETWEEN}]|\\z))"
_LOW = (
    "case when contains(arg_s, 'Σ') or contains(arg_s, 'İ') "
    rf"then lower(regexp_replace(replace(arg_s, 'İ', 'i̇'), '{_FINAL}', '\1ς\2', 'g')) else lower(arg_s) end"
)
_WORDS = (
    "array_to_string(list_transform(string_split(arg_s, ' '), lambda _w: "
    f"{_mapped(_SEVERAL + _TITLED, str.title, 'left(_w, 1)')} || substring(_w, 2)), ' ')"
)


def upper(node: exp.Upper) -> exp.Expr:
    """Translate upper and ucase."""
    return piece(_UP, s=node.this)


def lower(node: exp.Lower) -> exp.Expr:
    """Translate lower and lcase."""
    return piece(_LOW, s=node.this)


def initcap(node: exp.Initcap) -> exp.Expr:
    """Translate initcap: words are parted by spaces alone."""
    return piece(_WORDS, s=piece(_LOW, s=node.this))
