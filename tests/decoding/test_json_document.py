"""A JSON document's elements are cut out as they are written; a file of JSON lines is never taken for a document."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.decoding.formats import JsonDocument, JsonLines
from sqlrun.decoding.undecodable import Undecodable
from tests.support.decoded import faults, parsed, records

AUTO, ARRAY = JsonDocument(), JsonDocument("array")
EXACT = '{"a":0.10,"b":1e400,"c":123456789012345678901234567890,"a":-0.0,"d":"\\u00e9\\"]}\\\\"}'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=4)


def dumped(value: Any, indent: int | None, ascii: bool) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ascii, default=lambda number: float(number))


@pytest.mark.slow
@given(OBJECTS, st.sampled_from([None, 0, 3]), st.booleans(), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_elements_have_their_values(rows: list[Any], indent: int | None, ascii: bool, end: str, auto: bool) -> None:
    text = dumped(rows, indent, ascii).replace("\n", end)
    found = records(AUTO if auto else ARRAY, text.encode())

    assert [parsed(one) for one in found] == json.loads(text, parse_float=str, parse_int=str)
    assert not any({"\n", "\r"} & {*one} for one in found)


@pytest.mark.slow
@given(OBJECTS.filter(bool), st.booleans())
@settings(max_examples=100, deadline=None)
def test_json_lines_are_never_a_document(rows: list[Any], ascii: bool) -> None:
    data = "".join(dumped(row, None, ascii) + "\n" for row in rows).encode()
    assert records(AUTO, data) == records(JsonLines(), data) == data.decode().split("\n")[:-1]


@pytest.mark.parametrize("form", [AUTO, ARRAY])
def test_numbers_and_repeated_keys_stay(form: JsonDocument) -> None:
    assert records(form, f"\ufeff \n[\n {EXACT},\r\n{EXACT} ]\n".encode()) == [EXACT, EXACT]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1}', ['{"a":1}']),
        ('{\n  "a": [1,\n\t2]\n}\n', ['{ "a": [1, 2] }']),
        ('[{"a":1}]', ['{"a":1}']),
        ('[\n  {"a":1},\n  {"a":2}\n]', ['{"a":1}', '{"a":2}']),
        ('[\n{"a":1}\n,{"a":2}]', ['{"a":1}', '{"a":2}']),
        ("[]", []),
        ("", []),
        (" \n ", []),
        # JSON lines, among them broken ones
        ('{"a":1}\n{"b":\n', ['{"a":1}', '{"b":']),
        ('{"a":\n{"b":2}\n', ['{"a":', '{"b":2}']),
        ('{"a":1\n{"b":2}', ['{"a":1', '{"b":2}']),
        ('{"a":1} {"b":2}\n{"c":3}', ['{"a":1} {"b":2}', '{"c":3}']),
        ("[1]\n[2]", ["[1]", "[2]"]),
        ('[oops\n{"a":1}\n{"b":2}\n', ["[oops", '{"a":1}', '{"b":2}']),
        ('oops\n{"a":1}', ["oops", '{"a":1}']),
        ('{\n"a": 1\n}\n{\n"a": 2\n}\n', ["{", '"a": 1', "}", "{", '"a": 2', "}"]),
    ],
)
def test_a_file_s_form_is_recognized(text: str, expected: list[str]) -> None:
    assert records(AUTO, text.encode()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"a":1 2}, {"b":1}]', ['{"a":1 2}', '{"b":1}']),
        # A blank replaces the line break: 1 and 2 don't become 12.
        ('[{"a":1\n2}, {"b":1}]', ['{"a":1 2}', '{"b":1}']),
        # A line break inside of a text isn't JSON, and isn't repaired.
        ('[{"a":"x\ny"}, {"b":\n1}]', ['{"a":"x\ny"}', '{"b": 1}']),
        ('[{"a":NaN}, nope, 5, "x", [1]]', ['{"a":NaN}', "nope", "5", '"x"', "[1]"]),
        ('[{"a":[1}, {"b":2]}]', ['{"a":[1}, {"b":2]}']),
        ('[{"a":"\\ud800"}, {"b":2}]', ['{"a":"\\ud800"}', '{"b":2}']),
        ('[{"a":1,}, {"b":2}, {,}]', ['{"a":1,}', '{"b":2}', "{,}"]),
    ],
)
def test_a_malformed_element_is_cut_out_alone(text: str, expected: list[str]) -> None:
    assert records(ARRAY, text.encode()) == expected


def test_an_element_of_many_levels_is_cut_out() -> None:
    deep = '{"a":' + "[" * 50_000 + "]" * 50_000 + "}"
    assert records(ARRAY, f'[{deep},{{"b":1}}]'.encode()) == [deep, '{"b":1}']


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[{"a":1},', "line 1, column 10: a value is missing"),
        ('[\n{"a":1},\n{"a":', "line 3, column 1: an object or a list doesn't end"),
        ('[{"a":1}', "line 1, column 9: the array doesn't end"),
        ('[{"a":1},]', "line 1, column 10: a value is missing"),
        ('[{"a":1} {"b":1}]', "line 1, column 10: a comma or the end of the array is missing"),
        ('[{"a":1}]\n]', "line 2, column 1: the document has ended, and more text follows"),
        ('[{"a":"x}]', "line 1, column 7: a text doesn't end"),
        ('{"a":1}\n{"b":1}', "line 2, column 1: the document has ended, and more text follows"),
    ],
)
def test_a_malformed_document_is_one_record(text: str, fault: str) -> None:
    assert faults(ARRAY, text.encode()) == [
        (json.dumps(text) if text[0] == "{" else text, "not a JSON document: " + fault)
    ]


def test_a_truncated_document_never_lands_in_part() -> None:
    text = json.dumps([{"a": i, "b": [1, {"c": "}]"}]} for i in range(3)], indent=1)
    for length in range(1, len(text)):
        for form in (AUTO, ARRAY):
            ((value, fault),) = faults(form, text[:length].encode())
            assert value == text[:length] and fault.startswith("not a JSON document")


@pytest.mark.long
@pytest.mark.slow
def test_a_malformed_document_is_cut_at_16_mib() -> None:
    ((value, _),) = faults(ARRAY, b"[" + b'{"a":"\xc3\xbc"},' * 2_000_000)
    assert len(value.encode()) <= 16 * 1024 * 1024 < len(value.encode()) + 8
    assert value.endswith("…")


def test_a_large_document_says_how_to_read_it() -> None:
    small = JsonDocument(max_document=10)
    for text in ('[{"a":1},{"a":2}]', '{\n"a":1234567\n}'):
        with pytest.raises(Undecodable, match="raise `max_document`"):
            records(small, text.encode())
    assert len(records(small, b'{"a":1}\n{"a":2}\n{"a":3}')) == 3


def test_a_document_with_many_errors_takes_no_quadratic_time() -> None:
    text = "[" + '{"a":1 "b"},\n' * 100_000 + "1]"
    assert len(records(ARRAY, text.encode())) == 100_001


def test_random_changes_of_lines_and_documents_lose_no_text() -> None:
    """Each letter and digit of a changed file is in one of its records."""
    rand = random.Random(7)
    rows = [{"a": i, "b": "x y", "c": [1, {"d": None}]} for i in range(3)]
    kept = {*string.ascii_letters, *string.digits}
    for text in (json.dumps(rows), json.dumps(rows, indent=1), "\n".join(map(json.dumps, rows))):
        for _ in range(400):
            changed = list(text)
            for _ in range(rand.randrange(1, 3)):
                changed[rand.randrange(len(changed))] = rand.choice('{}[]",:\n 1x')
            data = "".join(changed)
            found = "".join(r if f is None else (json.loads(r) if r[0] == '"' else r) for r, f in every(data))
            assert [c for c in found if c in kept] == [c for c in data if c in kept]


def every(text: str) -> list[tuple[str, str | None]]:
    from sqlrun.decoding.decode import decode

    return [(row["value"], row["fault"]) for row in decode(AUTO, text.encode(), ()).to_pylist()]
