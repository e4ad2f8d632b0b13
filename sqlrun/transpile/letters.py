"""Spark's upper, lower and initcap in DuckDB's SQL, with Unicode's special casing. Pure.

DuckDB maps each letter to one letter, regardless of its neighbors. In Spark a letter may become several letters, and a
sigma at the end of a word has its own form.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlrun.transpile.templates import piece

# Letters whose upper case is several letters.
_SEVERAL = "ßŉǰΐΰևẖẗẘẙẚὐὒὔὖᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯᾲᾳᾴᾶᾷᾼῂῃῄῆῇῌῒΐῖῗῢΰῤῦῧῲῳῴῶῷῼﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗ"
# Letters whose title case differs from their upper case.
_TITLED = "ǄǅǆǇǈǉǊǋǌǱǲǳაბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰჱჲჳჴჵჶჷჸჹჺჽჾჿ"
_CASED = r"\p{Lu}\p{Ll}\p{Lt}"
# Characters that may separate a letter and a sigma, or a sigma and the next letter.
_BETWEEN = r"''.:^`´¨·’‘․…\x{AD}\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}"


def _mapped(letters: str, change: Callable[[str], str], text: str) -> str:
    """Return SQL for a text's upper case, letter by letter if it contains any of `letters`."""
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
    """Return upper() or ucase()."""
    return piece(_UP, s=node.this)


def lower(node: exp.Lower) -> exp.Expr:
    """Return lower() or lcase()."""
    return piece(_LOW, s=node.this)


def initcap(node: exp.Initcap) -> exp.Expr:
    """Return initcap(): only spaces separate words."""
    return piece(_WORDS, s=piece(_LOW, s=node.this))
