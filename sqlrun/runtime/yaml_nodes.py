"""Nodes of YAML with their places in a text, for editors that leave all other text as it is. Pure."""

from __future__ import annotations

import json
import re
from typing import Any


def composed(text: str) -> Any:
    """Return the root node of a text, as ruamel.yaml has it with its places; None for an empty text."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).compose(text)


def value(node: Any, key: str) -> Any:
    """Return the node under a key of a mapping; None if there is none."""
    return next((found for name, found in node.value if name.value == key), None)


def items(node: Any, key: str) -> list[Any]:
    """Return the nodes of the list under a key."""
    found = value(node, key)
    return list(found.value) if found is not None else []


def text_of(node: Any, key: str) -> str:
    """Return the text under a key; "" if there is none."""
    found = value(node, key)
    return str(found.value) if found is not None else ""


def end(node: Any) -> int:
    """Return the end of a value's text: a block's own end is behind the comments that follow it."""
    if node.id == "scalar" or node.flow_style:
        return int(node.end_mark.index)
    inner = node.value[-1]
    return end(inner[1] if isinstance(inner, tuple) else inner)


def line_after(text: str, at: int) -> int:
    """Return where the line after a place begins: a block scalar's end is there already.

    >>> line_after("a: b # c\\nd: e", 4), line_after("a: |\\n  b\\nc: d", 9), line_after("a: b", 4)
    (9, 9, 4)
    """
    return at if at and text[at - 1] == "\n" else (text.find("\n", at) + 1 or len(text))


def quoted_type(kind: str) -> str:
    """Return a type for YAML; in quotes if it has a comma, which would end a value of a flow mapping.

    >>> quoted_type("int"), quoted_type("decimal(9,2)")
    ('int', '"decimal(9,2)"')
    """
    return kind if re.fullmatch("[a-z0-9]+", kind) else json.dumps(kind)
