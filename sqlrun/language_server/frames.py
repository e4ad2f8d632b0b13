"""Messages between the server and its worker: a length, then JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlrun.language_server.findings import Finding
from sqlrun.language_server.index import Noun, Origins, Template
from sqlrun.runtime.serialize import form, nothing

HEAD = 8
# Nouns in one message, so that the server answers editors between two of them.
CHUNK = 25


def packed(message: Mapping[str, Any]) -> bytes:
    """Return a message as bytes."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return len(body).to_bytes(HEAD, "big") + body


def chunks(sent: Mapping[str, Noun], nouns: Mapping[str, Noun]) -> Iterator[dict[str, Any]]:
    """Yield messages with the nouns that the server lacks, and the names that are gone."""
    write = form(Noun)
    assert write is not None
    changed = [noun for key, noun in nouns.items() if sent.get(key) != noun]
    gone = [key for key in sent if key not in nouns]
    for start in range(0, max(len(changed), 1), CHUNK):
        listed = [write.write(noun) for noun in changed[start : start + CHUNK]]
        yield {"do": "nouns", "nouns": listed, "gone": [] if start else gone}


def nouns(values: list[Any]) -> list[Noun]:
    """Return the nouns of a message."""
    found = form(Noun)
    assert found is not None
    return [found.read(value, nothing) for value in values]


def done_message(findings: tuple[Finding, ...], templates: tuple[Template, ...], origins: Origins) -> dict[str, Any]:
    """Return the message that ends a look."""
    one, other = form(tuple[Finding, ...]), form(tuple[Template, ...])
    assert one is not None and other is not None
    known = {name: dict(columns) for name, columns in origins.items()}
    return {"do": "done", "findings": one.write(findings), "templates": other.write(templates), "origins": known}


def heard(message: Mapping[str, Any]) -> tuple[tuple[Finding, ...], tuple[Template, ...], Origins]:
    """Return the findings, macros and origins of the message that ends a look."""
    one, other = form(tuple[Finding, ...]), form(tuple[Template, ...])
    assert one is not None and other is not None
    return one.read(message["findings"], nothing), other.read(message["templates"], nothing), message["origins"]
