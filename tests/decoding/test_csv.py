"""CSV: fields are read exactly as they are written, and a record that can't be read keeps its text."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.decoding import csv_records
from sqlrun.decoding.decode import decode
from sqlrun.decoding.formats import Csv
from sqlrun.decoding.undecodable import Undecodable
from tests.support.decoded import columns, faults, parsed, records

KINDS = {"id": "int", "name": "string"}
HOSTILE = st.text(st.sampled_from('a1",;\\#\n\r\t \x00{}[]üNU\u2028')) | st.text(max_size=5)


def read(text: str, form: Csv | None = None, **kinds: str) -> list[Any]:
    return [parsed(one) for one in records(form or Csv(), text.encode(), **(kinds or KINDS))]


def test_values_have_the_form_of_their_type() -> None:
    kinds = {"i": "int", "d": "decimal(10,2)", "f": "double", "b": "boolean", "s": "string", "a": "array<int>"}
    text = 'i,d,f,b,s,a,more\n1,1.10,1e400,true,5,"[1, 2.0]",7\n007,+1,nan,TRUE,true,oops,x\n,,,,,,\n'
    assert records(Csv(), text.encode(), **kinds) == [
        '{"i":1,"d":1.10,"f":1e400,"b":true,"s":"5","a":[1, 2.0],"more":"7"}',
        '{"i":"007","d":"+1","f":"nan","b":"TRUE","s":"true","a":"oops","more":"x"}',
        '{"i":null,"d":null,"f":null,"b":null,"s":null,"a":null,"more":null}',
    ]


def test_nested_json_is_inserted_only_if_it_is_json() -> None:
    texts = ['{"x":1,"x":2}', "[1,\n2]", "[1", "1]", "null", " [1] ", "[1],[2]", '["\\"]', "\ud7ff"]
    file = io.StringIO()
    csv.writer(file).writerows([["a"], *([text] for text in texts)])
    found = records(Csv(), file.getvalue().encode(), a="array<int>")
    assert found == [
        f'{{"a":{text}}}'
        for text in (
            '{"x":1,"x":2}',
            "[1, 2]",
            '"[1"',
            '"1]"',
            "null",
            "[1]",
            '"[1],[2]"',
            '"[\\"\\\\\\"]"',
            '"\ud7ff"',
        )
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('1,"a ""b"""\n', ["1", 'a "b"']),
        ('1,"a\r\nb\rc\nd"\n', ["1", "a\r\nb\rc\nd"]),
        ('1,5" disk\n', ["1", '5" disk']),
        ('1,a "b"\n', ["1", 'a "b"']),
        ('"1",\x00\r\n', ["1", "\x00"]),
        ("1, x \r", ["1", " x "]),
        ('1,""', ["1", ""]),
        ("1,", ["1", None]),
        ('1,""""', ["1", '"']),
        ("\n\n1,x\n\n", ["1", "x"]),
        ("1,\u2028\x85\x0b", ["1", "\u2028\x85\x0b"]),
    ],
)
def test_a_record(text: str, expected: list[str | None]) -> None:
    (row,) = read(text, Csv(header=False))
    assert row == dict(zip(KINDS, expected, strict=True))


@pytest.mark.parametrize(
    ("text", "value", "fault"),
    [
        ("1\n", "1", "1 field instead of 2"),
        ("1,a,b\r\n", "1,a,b", "3 fields instead of 2"),
        ('1,"a"b\n', '1,"a"b', "text after the closing quote of field 2"),
        ('1,"a" \n', '1,"a" ', "text after the closing quote of field 2"),
        ('1,"a\n2,b\n', '1,"a\n2,b', "a quote isn't closed, so the rest of the file is one record"),
        ('"', '"', "a quote isn't closed, so the rest of the file is one record"),
        # It looks like an object, which a reader that ignores the fault would land.
        ('{"id":1}\n', '"{\\"id\\":1}"', "1 field instead of 2"),
    ],
)
def test_a_faulty_record_keeps_its_text_and_harms_no_other(text: str, value: str, fault: str) -> None:
    rows = decode(Csv(), f"id,name\n7,x\n{text}".encode(), columns(**KINDS)).to_pylist()
    assert rows == [{"value": '{"id":7,"name":"x"}', "fault": None}, {"value": value, "fault": f"CSV: {fault}"}]
    if not fault.startswith("a quote"):
        assert read(f"id,name\n{text}8,y\n"[: len("id,name\n")] + "8,y\n") == [{"id": "8", "name": "y"}]
        assert faults(Csv(), f"id,name\n{text}8,y\n".encode(), **KINDS) == [(value, f"CSV: {fault}")]
        assert len(decode(Csv(), f"id,name\n{text}8,y\n".encode(), columns(**KINDS))) == 2


def test_a_changed_header_is_read_by_name() -> None:
    assert read("NAME,more,id\nx,y,1\n") == [{"name": "x", "more": "y", "id": "1"}]
    assert read("id\n1\n") == [{"id": "1"}]
    assert records(Csv(), b"id,ID,id\n1,2,3\n", **KINDS) == ['{"id":1,"ID":"2","id":3}']
    assert records(Csv(), b'id,"a ""b"",\nc",\n1,x,y\n', **KINDS) == ['{"id":1,"a \\"b\\",\\nc":"x","":"y"}']
    assert read("", Csv()) == read("id,name", Csv()) == read("\r\n\nid,name\n", Csv()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,x\n2,y\n", "none of the declared columns: `1, x`"),
        ("id;name\n1;x\n", "none of the declared columns: `id;name`"),
        ('id,"name\n1,x\n', "a quote isn't closed"),
        ('id,"name"x\n1,x\n', "text after the closing quote of field 2"),
    ],
)
def test_a_header_that_can_t_be_right_is_an_error(text: str, message: str) -> None:
    with pytest.raises(Undecodable, match=message):
        records(Csv(), text.encode(), **KINDS)


def test_dialects() -> None:
    tabs = Csv(delimiter="\t", quote=None, header=False, null="\\N")
    assert read('1\t"a\n\\N\tb"\n\tc,"d"\n', tabs) == [
        {"id": "1", "name": '"a'},
        {"id": None, "name": 'b"'},
        {"id": None, "name": 'c,"d"'},
    ]
    spark = Csv(escape="\\", header=False)
    assert read(r'1,"a\"b\\"' + "\n" + r'2,"a\nb"' + "\n3,a\\b\n", spark) == [
        {"id": "1", "name": 'a"b\\'},
        {"id": "2", "name": "a\\nb"},
        {"id": "3", "name": "a\\b"},
    ]
    assert faults(spark, b'1,"a""b"\n', **KINDS) == [('1,"a""b"', "CSV: text after the closing quote of field 2")]
    notes = Csv(comment="#", header=True, quote="'")
    assert read("# it's a note\nid,name\n#'\n1,'#\n#'\n#\n2,#x", notes) == [
        {"id": "1", "name": "#\n#"},
        {"id": "2", "name": "#x"},
    ]
    assert read('NULL,"NULL"\n', Csv(null="NULL", header=False)) == [{"id": None, "name": "NULL"}]


def test_one_column_has_empty_records() -> None:
    assert read('a\n\n""\n\n', Csv(header=False), name="string") == [{"name": n} for n in ("a", None, "", None)]


@pytest.mark.parametrize(
    ("encoding", "data", "expected"),
    [
        ("utf-8", b"\xef\xbb\xbf1,\xc3\xbc\xff", "ü�"),
        ("latin-1", b"1,\xfc\x80", "ü\x80"),
        ("windows-1252", b"1,\xfc\x80\x81", "ü€�"),
    ],
)
def test_encodings(encoding: Any, data: bytes, expected: str) -> None:
    assert parsed(*records(Csv(header=False, encoding=encoding), data, **KINDS))["name"] == expected


def test_utf_16_is_an_error_that_says_so() -> None:
    with pytest.raises(Undecodable, match="UTF-16"):
        records(Csv(), "id,name\n".encode("utf-16"), **KINDS)


@pytest.mark.parametrize(
    "options",
    [{"delimiter": ",,"}, {"delimiter": "\n"}, {"quote": ","}, {"comment": '"'}, {"escape": ","}, {"delimiter": ""}],
)
def test_marks_that_can_t_be_distinguished_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"have to differ|has to be one character"):
        Csv(**options)  # type: ignore[arg-type]


@pytest.mark.slow
@given(
    st.lists(st.tuples(HOSTILE | st.none(), HOSTILE | st.none(), HOSTILE | st.none()), max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.sampled_from([1, 7, 40, 1_000_000]),
)
@settings(max_examples=300, deadline=None)
def test_written_rows_are_read(rows: list[tuple[Any, ...]], end: str, quote_all: bool, piece: int) -> None:
    """A text is in quotes if it has to be; NULL isn't."""

    def written(text: str | None) -> str:
        if text is None:
            return ""
        needs = quote_all or text == "" or {*text} & {*'",\r\n'}
        return '"' + text.replace('"', '""') + '"' if needs else text

    names = ("a", "b", "c")
    text = end.join([",".join(names), *(",".join(map(written, row)) for row in rows)])
    before, csv_records.PIECE = csv_records.PIECE, piece
    try:
        found = [parsed(one) for one in records(Csv(), text.encode(), **dict.fromkeys(names, "string"))]
    finally:
        csv_records.PIECE = before
    assert found == [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.long
@pytest.mark.slow
@given(st.text(st.sampled_from('ab,"\n\r#\\'), max_size=40), st.sampled_from([1, 5, 1_000_000]), st.sampled_from('"\\'))
@settings(max_examples=500, deadline=None)
def test_any_text_is_read_in_pieces_of_any_size(text: str, piece: int, escape: str) -> None:
    """No piece changes a record, and what is read and what is faulty make up the text."""
    form = Csv(header=False, escape=escape)
    kinds = {"a": "string", "b": "string"}
    whole = decode(form, text.encode(), columns(**kinds)).to_pylist()
    before, csv_records.PIECE = csv_records.PIECE, piece
    try:
        assert decode(form, text.encode(), columns(**kinds)).to_pylist() == whole
    finally:
        csv_records.PIECE = before
    letters = "".join(
        row["value"] if row["fault"] else "".join(value or "" for value in json.loads(row["value"]).values())
        for row in whole
    )
    assert [c for c in letters if c in "ab#"] == [c for c in text if c in "ab#"]


@given(st.lists(st.lists(HOSTILE.filter(bool), min_size=2, max_size=2), min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_python_s_writer_is_understood(rows: list[list[str]]) -> None:
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    assert [list(row.values()) for row in read(file.getvalue(), Csv(header=False), a="string", b="string")] == rows


@pytest.mark.slow
def test_a_huge_field_is_read() -> None:
    text = "x" * 3_000_000 + '""\n' * 500_000
    assert read(f'id,name\n1,"{text}"\n2,y\n') == [
        {"id": "1", "name": text.replace('""', '"')},
        {"id": "2", "name": "y"},
    ]
