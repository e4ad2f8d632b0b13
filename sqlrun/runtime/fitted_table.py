"""A text table that fits a terminal: cut wide values first, then leave out columns at the right. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from sqlrun.runtime.text_table import Align, aligned, escaped, is_numeric, value_text, width

# Minimum width of a cut column. Columns are left out only if the minimum widths don't fit either.
NARROWEST = 12
BETWEEN = 2


@dataclass(frozen=True, slots=True)
class Fitted:
    """The lines of a table, the columns with cut values, and the columns left out."""

    lines: list[str]
    cut: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def notes(self, columns: int, mark: str = "…", whole: str = "--output json") -> list[str]:
        """Return what the table doesn't show, and the option of the command that prints everything."""
        notes = []
        if self.cut:
            notes.append(f"Cut at {mark} to fit {columns} characters: {', '.join(self.cut)}.")
        if self.left_out:
            notes.append(f"Left out to fit {columns} characters: {', '.join(self.left_out)}.")
        return [*notes, f"`{whole}` prints everything."] if notes else []


def fitted(
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    columns: int | None = None,
    mark: str = "…",
    whole: Container[str] = (),
) -> Fitted:
    """Align rows under their columns, with no line wider than `columns` characters; None means no limit.

    Numbers are never cut, because a number without its last digits is a different number. The columns in `whole` aren't
    cut either.
    """
    header = [escaped(name) for name in names]
    cells = [[escaped(value_text(value)) for value in row] for row in rows]
    numeric = [is_numeric(row[place] for row in rows) for place in range(len(names))]
    aligns: list[Align] = [">" if one else "<" for one in numeric]
    natural = [max(width(row[place]) for row in (header, *cells)) for place in range(len(names))]
    if columns is None or _total(natural) <= columns:
        return Fitted(aligned(header, cells, aligns))
    fixed = [one or name in whole for one, name in zip(numeric, names, strict=True)]
    least = [size if one else min(size, NARROWEST) for size, one in zip(natural, fixed, strict=True)]
    shown = max(1, max((n for n in range(1, len(names) + 1) if _total(least[:n]) <= columns), default=1))
    widths = _shrunk(natural[:shown], least[:shown], columns)
    short = [[cut(text, size, mark) for text, size in zip(row, widths, strict=False)] for row in (header, *cells)]
    lost = tuple(header[place] for place in range(shown) if widths[place] < natural[place])
    return Fitted(aligned(short[0], short[1:], aligns[:shown]), lost, tuple(header[shown:]))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + BETWEEN * (len(widths) - 1)


def _shrunk(natural: Sequence[int], least: Sequence[int], columns: int) -> list[int]:
    """Return widths that fit, with the widest columns narrowed; the first column may fall below its minimum."""
    widths = list(natural)
    while (over := _total(widths) - columns) > 0:
        free = [place for place, size in enumerate(widths) if size > least[place]]
        if not free:
            widths[0] = max(1, widths[0] - over)
            break
        widest = max(widths[place] for place in free)
        place = next(p for p in free if widths[p] == widest)
        others = [widths[p] for p in free if widths[p] < widest]
        widths[place] = max(least[place], widest - over, max(others, default=0) - 1)
    return widths


def cut(text: str, columns: int, mark: str = "…") -> str:
    """Return a text cut to a number of terminal cells, with a mark at its end.

    >>> cut("wednesdays", 6), cut("寿司屋", 5), cut("abc", 3)
    ('wedne…', '寿司…', 'abc')
    """
    if width(text) <= columns:
        return text
    kept = ""
    for letter in text:
        if width(kept + letter) > columns - len(mark):
            break
        kept += letter
    return (kept + mark)[: max(columns, 1)] if len(mark) > columns else kept + mark
