"""Names of a project that its unit tests can use. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlrun.project import Column, Row

INPUT = re.compile(r"""(ref|source)\(\s*(['"])(\w+)\2\s*(?:,\s*(['"])(\w+)\4\s*)?\)""")


@dataclass(frozen=True, slots=True)
class Input:
    """A model, a seed or a source; `columns` is empty if the contract is invalid.

    A source of the kind `table` doesn't land: its rows may leave, and it has no lines.
    `grain` is empty if rows repeat; `rows` are a seed's own.
    """

    kind: Literal["model", "seed", "source", "table"]
    columns: tuple[Column, ...]
    grain: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


def no_lines(noun: Input) -> str:
    """Return what an input without raw lines is, for a message."""
    return "a table" if noun.kind == "table" else "not a source"


@dataclass(frozen=True, slots=True)
class Fixture:
    """A file of rows under tests/fixtures/."""

    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """Known inputs by `ref('x')` or `source('a', 'b')`, names of macros, and fixtures by file name.

    Several folders may have a fixture of one name. `functions` come from the settings; `vars` are set or used
    somewhere.
    """

    inputs: Mapping[str, Input]
    macros: Collection[str] = ()
    fixtures: Mapping[str, tuple[Fixture, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    vars: Collection[str] = ()
    disabled: Collection[str] = ()  # models that aren't enabled: their tests are left out

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models."""
        return tuple(inner(text) for text, one in self.inputs.items() if one.kind == "model")


def input_name(text: str) -> str:
    """Return `ref("x")` and `source('a','b')` in one spelling; other text stays as it is.

    >>> input_name('source("a","b")'), input_name("orders")
    ("source('a', 'b')", 'orders')
    """
    found = INPUT.fullmatch(text)
    if not found or (found[1] == "ref") != (found[5] is None):
        return text
    return f"ref('{found[3]}')" if found[1] == "ref" else f"source('{found[3]}', '{found[5]}')"


def inner(text: str) -> str:
    """Return the table of an input: x for `ref('x')`, a__b for `source('a', 'b')`.

    >>> inner("ref('x')"), inner("source('a', 'b')")
    ('x', 'a__b')
    """
    return "__".join(re.findall(r"\w+", text)[1:])
