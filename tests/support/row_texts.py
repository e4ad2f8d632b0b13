"""Rows of every column type, awkward values among them, for both engines to number."""

from __future__ import annotations

from sqlrun.engine_api import StoredColumn

COLUMNS = (
    StoredColumn("s", "string"),
    StoredColumn("b", "boolean"),
    StoredColumn("n", "bigint"),
    StoredColumn("small", "tinyint"),
    StoredColumn("d", "decimal(18,2)"),
    StoredColumn("fine", "decimal(38,18)"),
    StoredColumn("day", "date"),
    StoredColumn("at", "timestamp"),
    StoredColumn("inexact", "double"),
    StoredColumn("bytes", "binary"),
    StoredColumn("list", "array<string>"),
    StoredColumn("lines", "array<struct<id:string,price:decimal(9,2)>>"),
    StoredColumn("deep", "array<array<int>>"),
    StoredColumn("one", "struct<a:int,`b c`:string>"),
    StoredColumn("map", "map<string,bigint>"),
)
FULL = {
    "s": "'it''s ~|:,[é😀]'",
    "b": "true",
    "n": "-9223372036854775807",
    "small": "-128",
    "d": "-0.10",
    "fine": "0.000000000000000001",
    "day": "date '1583-01-02'",
    "at": "timestamp '1969-12-31 23:59:59.999999'",
    "inexact": "0.1",
    "bytes": "{bytes}",
    "list": "{array}('a', null, '')",
    "lines": "{array}({line})",
    "deep": "{array}({array}(1, 2), null, {array}(3))",
    "one": "{one}",
    "map": "{map}",
}
# Each changes one value of the row before. All numbers differ except the last, whose change is ignored.
CHANGES = (
    {},
    {"s": "''"},
    {"s": "null"},
    {"s": "'~'"},
    {"b": "false"},
    {"n": "0"},
    {"d": "null"},
    {"fine": "12345678901234567890.000000000000000000"},
    {"day": "date '9999-12-31'"},
    {"at": "timestamp '0001-01-01 00:00:00'"},
    {"list": "{array}('a', '', null)"},
    {"list": "null"},
    {"deep": "{array}({array}(1), {array}(2, 3))"},
    {"one": "null"},
    {"map": "null"},
    {"bytes": "null"},
    {"inexact": "0.2"},
)
DUCKDB = {
    "array": "list_value",
    "bytes": "'\\x00\\xff'::blob",
    "line": "{'id': 'x', 'price': 1.5}",
    "one": "{'a': 1, 'b c': 'two'}",
    "map": "map(['b', 'a'], [1, null])",
}
SPARK = {
    "array": "array",
    "bytes": "x'00ff'",
    "line": "named_struct('id', 'x', 'price', 1.5)",
    "one": "named_struct('a', 1, 'b c', 'two')",
    "map": "map('b', 1, 'a', null)",
}


def rows(words: dict[str, str], cast: object) -> list[str]:
    """Return a SELECT for each row of typed values; `cast(text, type)` writes a cast in the dialect."""
    values, found = dict(FULL), []
    for change in CHANGES:
        values |= change
        items = []
        for column in COLUMNS:
            text = values[column.name]
            for word, meaning in words.items():
                text = text.replace("{" + word + "}", meaning)
            items.append(f"{cast(text, column.type)} as {column.name}")  # type: ignore[operator]
        found.append("select " + ", ".join(items))
    return found
