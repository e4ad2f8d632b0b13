"""Differing rows as a small table with the differing cells marked. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlrun.report.log_lines import Line, Span, Style
from sqlrun.runtime.text_table import counted, escaped, width
from sqlrun.unit_tests.output.pairing import Cells, Paired

Cuts = tuple[int, int]
MOST_ROWS = 20
# A line of 100 columns, minus the console's time and the table's margin.
WIDEST = 100 - 10 - 2
# Maximum lengths of values: first differing ones, then equal ones, which are cut first.
CUTS: tuple[Cuts, ...] = ((40, 40), (40, 24), (40, 14), (28, 14), (20, 14), (14, 14))
ARROW = " -> "
# Number of equal letters shown before the first difference.
BEFORE = 8
EXPECTED: Style = "good"
CAME: Style = "error"


@dataclass(frozen=True, slots=True)
class _Cell:
    """A text and its coloured parts."""

    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the table: `mark` is ~ for a pair that differs, - for a missing row, + for an unexpected one."""

    mark: str
    expected: Cells
    came: Cells

    def differs(self, place: int) -> bool:
        return self.mark == "~" and self.expected[place] != self.came[place]


def table(columns: Sequence[str], rows: Paired, keys: Collection[str] = ()) -> list[Line]:
    """Return pairs, missing rows and unexpected rows as a table: at most 20 of them, in 100 columns if possible.

    A wider table first loses the ends of its values, then its last columns that neither differ nor are a key.
    """
    listed = [
        *(_Row("~", a, b) for a, b in rows.pairs),
        *(_Row("-", row, row) for row in rows.missing),
        *(_Row("+", row, row) for row in rows.unexpected),
    ]
    shown = listed[:MOST_ROWS]
    places = list(range(len(columns)))
    for cuts in CUTS:
        drawn = _Drawn(columns, shown, places, cuts)
        if drawn.size <= WIDEST:
            break
    else:
        places = _that_fit(columns, shown, keys)
        drawn = _Drawn(columns, shown, places, CUTS[-1])
    lines = [Line(f"  {headline(rows)}:", style="detail"), *drawn.lines()]
    if len(listed) > len(shown):
        lines.append(Line(f"  ... and {counted(len(listed) - len(shown), 'row')} more", style="detail"))
    hidden = [escaped(name) for place, name in enumerate(columns) if place not in places]
    if hidden:
        lines.append(Line(f"  not shown: {cut(', '.join(hidden), WIDEST - 12)}", style="detail"))
    return lines


def headline(rows: Paired) -> str:
    """Return the numbers of differing rows, with the marks of these rows."""
    parts = []
    for number, one, many in (
        (len(rows.pairs), "~ {} row differs (expected -> actual)", "~ {} rows differ (expected -> actual)"),
        (len(rows.missing), "- {} row is missing", "- {} rows are missing"),
        (len(rows.unexpected), "+ {} row is not expected", "+ {} rows are not expected"),
    ):
        if number:
            parts.append((one if number == 1 else many).format(f"{number:,}"))
    return ", ".join(parts)


class _Drawn:
    """A table of some of the columns, with values cut to a length."""

    def __init__(
        self, columns: Sequence[str], rows: Sequence[_Row], places: Sequence[int], cuts: tuple[int, int]
    ) -> None:
        self._header = [cut(escaped(columns[place]), max(cuts[1], 24)) for place in places]
        self._cells = [[_cell(row, place, *cuts) for place in places] for row in rows]
        self._rows = rows
        self._widths = [
            max(width(text) for text in (name, *(row[at].text for row in self._cells)))
            for at, name in enumerate(self._header)
        ]
        self.size = sum(self._widths) + 2 * len(places) + 1

    def lines(self) -> list[Line]:
        """Return the table's lines with their coloured parts."""
        rule = ["-" * size for size in self._widths]
        lines = [self._line(" ", [_Cell(text) for text in texts]) for texts in (self._header, rule)]
        return lines + [self._line(row.mark, cells) for row, cells in zip(self._rows, self._cells, strict=True)]

    def _line(self, mark: str, cells: Iterable[_Cell]) -> Line:
        whole: Style | None = {"-": EXPECTED, "+": CAME}.get(mark)
        text, spans = f"  {mark}", []
        for cell, size in zip(cells, self._widths, strict=True):
            text += "  "
            spans += [(start + len(text), end + len(text), style) for start, end, style in cell.spans]
            text += cell.text + " " * (size - width(cell.text))
        text = text.rstrip()
        return Line(text, style="detail", spans=((2, len(text), whole),) if whole else tuple(spans))


def _that_fit(columns: Sequence[str], rows: Sequence[_Row], keys: Collection[str]) -> list[int]:
    """Return the columns that fit: keys first, then differing ones, then the others from the left."""

    def rank(place: int) -> tuple[bool, bool, int]:
        return columns[place] not in keys, not any(row.differs(place) for row in rows), place

    chosen: list[int] = []
    for place in sorted(range(len(columns)), key=rank):
        if not chosen or _Drawn(columns, rows, [*chosen, place], CUTS[-1]).size <= WIDEST:
            chosen.append(place)
    return sorted(chosen)


def _cell(row: _Row, place: int, most: int, most_equal: int) -> _Cell:
    if not row.differs(place):
        return _Cell(cut(visible(row.expected[place]), most_equal))
    expected, came = _both_cut(visible(row.expected[place]), visible(row.came[place]), most)
    end = len(expected) + len(ARROW)
    spans: tuple[Span, ...] = ((0, len(expected), EXPECTED), (end, end + len(came), CAME))
    return _Cell(f"{expected}{ARROW}{came}", spans)


def visible(text: str) -> str:
    r"""Return a value with blanks at its ends and control characters made visible.

    >>> visible("a "), visible(""), visible("a\nb")
    ("'a '", "''", 'a\\nb')
    """
    return escaped(text) if text and text == text.strip() else f"'{escaped(text)}'"


def cut(text: str, most: int) -> str:
    """Return a text cut to a length, with dots at its end if it is longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _both_cut(expected: str, came: str, most: int) -> tuple[str, str]:
    """Return two values cut so that their first difference is visible.

    >>> _both_cut("a long text that ends in 1 or so", "a long text that ends in 2", 18)
    ('...ends in 1 or so', '...ends in 2')
    """
    if len(expected) <= most and len(came) <= most:
        return expected, came
    pairs = zip(expected, came, strict=False)
    same = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(expected), len(came)))
    start = max(0, same - BEFORE) if same + 4 > most else 0
    dots = "..." if start else ""
    return dots + cut(expected[start:], most - len(dots)), dots + cut(came[start:], most - len(dots))
