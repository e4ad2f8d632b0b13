"""CSV text to columns of fields, exactly as they are written. Pure.

Neither of the usual readers is exact: Python's can't distinguish an empty text from no text and loses a record's own
text, and others guess what a quote inside of a field means. Here a quote is one only at the beginning of a field;
elsewhere it is a letter. Text after the closing quote, and a quote that doesn't close, are faults of the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlrun.decoding.formats import Csv
from sqlrun.decoding.records import Fault

PIECE = 1024 * 1024  # number of characters that become records at once
# A field as it is written: comment, quote, text in quotes, text behind them, text without quotes, text from a quote
# that doesn't close, and the delimiter or line break after it. All but a few of them are empty.
Token = tuple[str, str, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some records: the columns of the good ones, and the faulty ones by their position among all of the piece."""

    columns: Sequence[Any]
    count: int
    faults: Mapping[int, Fault]


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A dialect's regular expressions: of a field, and of an escape with the letter that it precedes."""

    field: re.Pattern[str]
    escaped: re.Pattern[str]

    def unescaped(self, text: str, form: Csv) -> str:
        """Return a quoted text without its escapes."""
        if form.escape not in text:
            return text
        if form.escape == form.quote:
            return text.replace(2 * form.quote, form.quote)
        return self.escaped.sub(r"\1", text)


@lru_cache(64)
def _grammar(form: Csv) -> _Grammar:
    """Return a dialect's grammar. No alternative begins like another but the last one, so that few are tried."""
    delimiter, quote, escape = (re.escape(mark) for mark in (form.delimiter, form.quote or "", form.escape))
    if form.quote is None:
        quoted, unclosed = "(?!)()()()", "(?!)()"  # never found; groups have the same numbers in each dialect
    elif form.escape == form.quote:
        inside = rf"[^{quote}]*(?:{quote}{quote}[^{quote}]*)*"
        quoted, unclosed = rf"({quote})({inside}){quote}(?!{quote})([^{delimiter}\r\n]*)", rf"({quote}(?s:.*))"
    else:
        inside = rf"[^{quote}{escape}]*(?:{escape}(?s:.)[^{quote}{escape}]*)*"
        quoted, unclosed = rf"({quote})({inside}){quote}([^{delimiter}\r\n]*)", rf"({quote}(?s:.*))"
    comment = "(?!)()" if form.comment is None else rf"(?<![^\r\n])({re.escape(form.comment)}[^\r\n]*)"
    plain = rf"([^{delimiter}{quote}\r\n][^{delimiter}\r\n]*)"
    alternatives = "|".join((comment, quoted, plain, unclosed))
    field = rf"(?:{alternatives})?({delimiter}|\r\n?|\n|\Z)"
    return _Grammar(re.compile(field), re.compile(f"{escape}([{quote}{escape}])"))


def pieces(text: str, form: Csv, width: int, at: int = 0) -> Iterator[Piece]:
    """Yield the records from a position on; a record without `width` fields is a fault.

    An empty line is a record only where records have one field.
    """
    size = PIECE
    while at < len(text):
        until = text.find("\n", at + size) + 1 or len(text)
        if not form.comment and not (form.quote and form.quote in text[at:until]):
            piece = _plain(text[at:until], form, width)
            if piece is not None:
                yield piece
                at = until
                continue
        tokens = _tokens(text, form, at, until)
        if until < len(text) and tokens[-1][5]:
            # The piece ends inside of a text with line breaks: its last record is read with the next piece.
            end = max((n for n, token in enumerate(tokens, 1) if token[6] not in ("", form.delimiter)), default=0)
            until -= sum(len(_written(token)) for token in tokens[end:])
            tokens = tokens[:end]
            size = size if end else 2 * (size + 1)
        if tokens:
            yield _regular(tokens, form, width) or _irregular(tokens, form, width)
        at = until


def first(text: str, form: Csv) -> tuple[list[str | None] | Fault, int] | None:
    """Return the first record, of any width, and the position behind it; None if there is none."""
    at, record = 0, list[Token]()
    for found in _grammar(form).field.finditer(text):
        token = found.groups("")
        at += len(found[0])
        record.append((token[0], token[1], token[2], token[3], token[4], token[5], token[6]))
        if token[6] == form.delimiter:
            continue
        if not token[0] and (len(record) > 1 or found[0].strip("\r\n")):
            return _fault(record, None) or [_value(one, form) for one in record], at
        record = []
    return None


def _tokens(text: str, form: Csv, start: int, end: int) -> list[Token]:
    """Return the fields of a text. The expression also finds one after the last line break, or after the last field."""
    found: list[Token] = _grammar(form).field.findall(text, start, end)
    superfluous = not any(found[-1]) and (len(found) == 1 or found[-2][6] != form.delimiter)
    return found[:-1] if superfluous else found


def _written(token: Token) -> str:
    """Return a field as it is written, with what ends it."""
    comment, quote, inside, behind, plain, unclosed, end = token
    return f"{comment}{quote}{inside}{quote}{behind}{plain}{unclosed}{end}"


def _value(token: Token, form: Csv) -> str | None:
    _, quote, inside, _, plain, _, _ = token
    if quote:
        return _grammar(form).unescaped(inside, form)
    return None if plain == "" or plain == form.null else plain


def _plain(text: str, form: Csv, width: int) -> Piece | None:
    """Return the records of whole lines without quotes; None if their widths differ.

    Most of most files is like that, and Arrow splits it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = pc.split_pattern(pa.array([text.removesuffix("\n")], pa.large_string()), "\n").flatten()
    if width > 1 and "\n\n" in f"\n{text}":
        lines = lines.filter(pc.not_equal(lines, ""))
    if not pc.all(pc.equal(pc.count_substring(lines, form.delimiter), width - 1)).as_py():
        return None
    fields = pc.split_pattern(lines, form.delimiter).flatten()
    columns = []
    for number in range(width):
        column = fields.take(pa.array(range(number, len(fields), width), pa.int64())) if width > 1 else fields
        for null in {"", form.null}:
            column = pc.if_else(pc.equal(column, null), pa.scalar(None, pa.large_string()), column)
        columns.append(column)
    return Piece(columns, len(lines), {})


def _regular(tokens: list[Token], form: Csv, width: int) -> Piece | None:
    """Return the records of tokens, column by column; None if any is faulty or no record."""
    by_column = [tokens[number::width] for number in range(width)]
    ends = [{token[6] for token in column} for column in by_column]
    is_even = len(tokens) % width == 0 and all(found == {form.delimiter} for found in ends[:-1])
    if not is_even or form.delimiter in ends[-1] or any(token[0] or token[3] or token[5] for token in tokens):
        return None
    return Piece([_column(column, form) for column in by_column], len(by_column[0]), {})


def _column(tokens: Sequence[Token], form: Csv) -> Any:
    import pyarrow as pa

    escape, null, unescaped = form.escape, form.null, _grammar(form).unescaped
    return pa.array(
        [
            (unescaped(inside, form) if escape in inside else inside)
            if quote
            else (None if plain == "" or plain == null else plain)
            for _, quote, inside, _, plain, _, _ in tokens
        ],
        pa.large_string(),
    )


def _irregular(tokens: list[Token], form: Csv, width: int) -> Piece:
    """Return the records of tokens one by one, with the fault of each faulty record."""
    import pyarrow as pa

    good: list[list[str | None]] = []
    faults: dict[int, Fault] = {}
    record: list[Token] = []
    for token in tokens:
        record.append(token)
        if token[6] == form.delimiter:
            continue
        is_empty = len(record) == 1 and not any(token[:6])
        if not token[0] and not (is_empty and width > 1):
            fault = _fault(record, width)
            if fault is None:
                good.append([_value(one, form) for one in record])
            else:
                faults[len(good) + len(faults)] = fault
        record = []
    columns = [pa.array([row[number] for row in good], pa.large_string()) for number in range(width)]
    return Piece(columns, len(good), faults)


def _fault(record: Sequence[Token], width: int | None) -> Fault | None:
    """Return the fault of a record; `width`: the number of fields that it has to have."""
    reason = ""
    if record[-1][5]:
        reason = "a quote isn't closed, so the rest of the file is one record"
    elif any(token[3] for token in record):
        number = next(number for number, token in enumerate(record, 1) if token[3])
        reason = f"text after the closing quote of field {number:,}"
    elif width is not None and len(record) != width:
        reason = f"{len(record):,} {'field' if len(record) == 1 else 'fields'} instead of {width:,}"
    if not reason:
        return None
    return Fault("".join(map(_written, record)).rstrip("\r\n"), f"CSV: {reason}")
