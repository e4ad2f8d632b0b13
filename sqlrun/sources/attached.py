"""Values that come with a message, written into its text as members of the object. Pure.

A column with `from:` takes its value from the message's key, headers, offset and so on. The reader writes the value as
a member of the message's object, under the column's name, so that the landing query reads it like any other field: a
quarantined line keeps it, a replay finds it, and a member of the same name in the message is a duplicate key, which
quarantines the line instead of hiding one of the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from sqlrun.project import Column
from sqlrun.transpile.writer import identifier, string

HEADER = "header:"
_CONTROL = re.compile(r"\\u00[01][0-9a-f]")
_SPACE = " \t\r\n"


def text_of(value: bytes | str) -> str:
    """Return bytes as UTF-8 text; bytes that aren't UTF-8 are replaced, as in lines of files."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def quoted(text: str) -> str:
    r"""Return a text as JSON writes it; Spark's writer writes the same.

    >>> print(quoted('a"\x1fé'))
    "a\"\u001Fé"
    """
    return _CONTROL.sub(lambda found: "\\u" + found[0][2:].upper(), json.dumps(text, ensure_ascii=False))


def members(columns: Sequence[Column], message: Any) -> str:
    """Return the members of a message for these columns, with commas; `message` is the client library's."""
    return ",".join(f"{quoted(column.name)}:{_value(column.comes_from, message)}" for column in columns)


def _value(source: str, message: Any) -> str:
    match source:
        case "key":
            key = message.key()
            return "null" if key is None else quoted(text_of(key))
        case "value":
            value = message.value()
            return "null" if value is None else quoted(text_of(value))
        case "topic":
            return quoted(message.topic())
        case "partition":
            return str(message.partition())
        case "offset":
            return str(message.offset())
        case "timestamp":
            return _time(message.timestamp()[1])
        case "tombstone":
            return "true" if message.value() is None else "false"
        case "headers":
            each = (f'{{"key":{quoted(key)},"value":{_or_null(value)}}}' for key, value in message.headers() or ())
            return f"[{','.join(each)}]"
        case _:
            # The last of several headers of one name counts, as in Kafka's own `lastHeader`.
            found = [value for key, value in message.headers() or () if key == source.removeprefix(HEADER)]
            return _or_null(found[-1] if found else None)


def _or_null(value: bytes | None) -> str:
    return "null" if value is None else quoted(text_of(value))


def _time(milliseconds: int) -> str:
    """Return a message's time as ISO 8601 in UTC; null if the message has none.

    >>> _time(1_777_896_000_123), _time(-1)
    ('"2026-05-04T12:00:00.123Z"', 'null')
    """
    from datetime import datetime, timedelta, timezone

    if milliseconds < 0:
        return "null"
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)
    return f'"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"'


def joined(text: str | None, found: str) -> str:
    """Return an object's text with members written before its own; no text is an object with these members alone.

    A text that is no object stays as it is, so that it is quarantined.

    >>> joined('{"a":1}', '"k":2'), joined("{ }", '"k":2'), joined(None, '"k":2'), joined("[1]", '"k":2')
    ('{"k":2,"a":1}', '{"k":2}', '{"k":2}', '[1]')
    """
    if text is None:
        return f"{{{found}}}"
    inner = text.lstrip(_SPACE)
    if not found or not inner.startswith("{"):
        return text
    rest = inner[1:].lstrip(_SPACE)
    return f"{{{found}{'' if rest.startswith('}') else ','}{rest}"


def in_spark(columns: Sequence[Column], text: str) -> str:
    """Return Spark SQL for `joined` over the columns of Spark's Kafka connector; `text` is SQL for a message's text."""
    if not columns:
        return text
    written, found = _written(columns), members_in_spark(columns)
    space = r"'[ \\t\\r\\n]'"
    inner = f"regexp_replace({text}, concat('^', {space}, '*[{{]', {space}, '*'), '')"
    return (
        f"case when {text} is null then {written} when {text} rlike concat('^', {space}, '*[{{]') then "
        f"concat('{{', {found}, case when {inner} like '}}%' then '' else ',' end, {inner}) else {text} end"
    )


def members_in_spark(columns: Sequence[Column]) -> str:
    """Return Spark SQL for `members` over the columns of Spark's Kafka connector."""
    if not columns:
        return "''"
    written = _written(columns)
    return f"substring({written}, 2, length({written}) - 2)"


def _written(columns: Sequence[Column]) -> str:
    items = ", ".join(f"{string(column.name, 'spark')}, {_spark_value(column.comes_from)}" for column in columns)
    return f"to_json(named_struct({items}), map('ignoreNullFields', 'false'))"


def _spark_value(source: str) -> str:
    match source:
        case "key" | "value":
            return f"make_valid_utf8(cast({source} as string))"
        case "topic" | "partition" | "offset":
            return identifier(source, "spark")
        case "timestamp":
            return "date_format(timestamp, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"
        case "tombstone":
            return "value is null"
        case "headers":
            each = "named_struct('key', h.key, 'value', make_valid_utf8(cast(h.value as string)))"
            return f"coalesce(transform(headers, h -> {each}), array())"
        case _:
            name = string(source.removeprefix(HEADER), "spark")
            last = f"element_at(filter(headers, h -> h.key = {name}), -1).value"
            return f"make_valid_utf8(cast({last} as string))"
