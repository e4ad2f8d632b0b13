"""Validation of expectations' arguments: none reaches outside the project, runs forever or uses up all memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.expectations.arguments import TYPES, mistakes
from sqlrun.expectations.catalogue import CATALOGUE
from sqlrun.expectations.json_schemas import NAMED, ONE, PLAIN, SchemaError, require_closed
from sqlrun.expectations.sql import batch_text

OUT = st.sampled_from(
    [
        "http://localhost/a",
        "file:///etc/passwd",
        "a.json",
        "//host/a",
        "#a",
        "",
        "urn:x",
        "https://json-schema.org/schema",
    ]
)
LEADS = st.sampled_from(["$ref", "$dynamicRef", "$recursiveRef", "$id", "id", "$schema", "$anchor", "$vocabulary"])
LEAF: st.SearchStrategy[Any] = st.one_of(
    st.just(True), st.just({}), st.fixed_dictionaries({"type": st.sampled_from(["object", "string"])}),
    st.fixed_dictionaries({"const": st.just({"$ref": "file:///etc/passwd"})}),
)  # fmt: skip


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw schemas around schemas, by each kind of keyword."""
    return st.one_of(
        st.tuples(st.sampled_from(ONE), inner).map(lambda pair: {pair[0]: pair[1]}),
        st.tuples(st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda pair: {pair[0]: pair[1]}
        ),
        st.tuples(st.sampled_from(NAMED), st.dictionaries(st.sampled_from("abc"), inner, min_size=1)).map(
            lambda pair: {pair[0]: pair[1]}
        ),
    )


SOUND = st.recursive(LEAF, grown, max_leaves=6)
LEADING = st.recursive(st.builds(lambda key, value: {key: value}, LEADS, OUT), grown, max_leaves=4)


@settings(max_examples=100, deadline=None)
@given(SOUND)
def test_a_self_contained_schema_is_accepted(schema: Any) -> None:
    """The contents of a constant are a value, whatever they look like."""
    require_closed(schema)


@settings(max_examples=100, deadline=None)
@given(LEADING)
def test_references_outside_a_schema_are_refused_at_any_depth(schema: Any) -> None:
    """Each keyword that could make a validator fetch something, below each keyword that contains schemas."""
    with pytest.raises(SchemaError):
        require_closed(schema)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/const", "#/nowhere"]), lambda i: st.lists(i, max_size=3)
    )
)
def test_a_reference_names_a_schema_and_ends(targets: Any) -> None:
    """The validator itself accepts the accepted schemas, and quickly."""
    jsonschema = pytest.importorskip("jsonschema")

    def schema(target: Any) -> Any:
        return {"$ref": target} if isinstance(target, str) else {"allOf": [schema(each) for each in target] or [True]}

    whole = {
        "properties": {"x": schema(targets)},
        "$defs": {"a": schema(targets), "b": {"type": "object"}},
        "const": {},
    }
    try:
        require_closed(whole)
    except SchemaError:
        return
    jsonschema.Draft202012Validator(whole).is_valid({"x": {"x": {}}})


def test_every_argument_of_every_expectation_has_a_type() -> None:
    """A new expectation or argument is rejected until its type is defined."""
    named = {name for kind in CATALOGUE.values() if not kind.refused for name in kind.allowed}

    assert named <= TYPES.keys()
    assert set(PLAIN).isdisjoint({"$id", "$ref", "id"})


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(TYPES)), st.sampled_from([{"$ref": "a"}, [["x", {}]], object, {"url": "http://x"}, {1: 2}])
)
def test_unexpected_mappings_are_refused(name: str, value: Any) -> None:
    """Except for arguments that sqlrun reads itself, which have their own messages."""
    if name in ("mostly", "min_ratio", "max_ratio", "weeks"):
        return
    assert [found for found, _ in mistakes({name: value})] == [name]


PIECES = st.sampled_from(
    ["{", "}", "{{", "}}", "{batch}", "{batch:>9}", "{batch!r}", "{batch.x}", "{0}", " a ", "where", "'"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=6))
def test_a_query_is_formatted_like_str_format_or_refused(pieces: list[str]) -> None:
    """Where braces contain only the plain `{batch}`, the text is that of `str.format`."""
    text = "select * from {batch} " + "".join(pieces)
    plain = not any(piece in ("{batch:>9}", "{batch!r}", "{batch.x}", "{0}") for piece in pieces)
    try:
        formatted = text.format(batch="batch")
    except (ValueError, KeyError, IndexError, AttributeError):
        plain, formatted = False, ""
    try:
        written = batch_text(text)
    except ValueError:
        assert not plain
    else:
        assert written == formatted
