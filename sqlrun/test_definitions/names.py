"""What a project has that its unit tests can name. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlrun.project import Column, Row

INPUT = re.compile(r"""(ref|source)\(\s*(['"])(\w+)\2\s*(?:,\s*(['"])(\w+)\4\s*)?\)""")


@dataclass(frozen=True, slots=True)
class Input:
    """A model, a seed or a source. `columns` are none where a contract can't be read.

    `grain` is none where rows repeat; `rows` are a seed's own.
    """

    kind: Literal["model", "seed", "source"]
    columns: tuple[Column, ...]
    grain: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Fixture:
    """Rows in a file of their own, under tests/fixtures/."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """The inputs by `ref('x')` or `source('a', 'b')`, the names of macros, the fixtures by their files' names.

    A fixture's name may stand in several folders. `functions` are those that the settings add, `vars` those that are
    set or asked for.
    """

    inputs: Mapping[str, Input]
    macros: Collection[str] = ()
    fixtures: Mapping[str, tuple[Fixture, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    vars: Collection[str] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models."""
        return tuple(inner(text) for text, one in self.inputs.items() if one.kind == "model")


def input_name(text: str) -> str:
    """Write `ref("x")` and `source('a','b')` in one way; what is neither stays as it is.

    >>> input_name('source("a","b")'), input_name("orders")
    ("source('a', 'b')", 'orders')
    """
    found = INPUT.fullmatch(text)
    if not found or (found[1] == "ref") != (found[5] is None):
        return text
    return f"ref('{found[3]}')" if found[1] == "ref" else f"source('{found[3]}', '{found[5]}')"


def inner(text: str) -> str:
    """Turn `ref('x')` into x and `source('a', 'b')` into a__b, the names of their tables.

    >>> inner("ref('x')"), inner("source('a', 'b')")
    ('x', 'a__b')
    """
    return "__".join(re.findall(r"\w+", text)[1:])
