"""The names of a file's columns, matched with the declared ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sqlrun.decoding.undecodable import Undecodable
from sqlrun.project import Column

OTHER = "Move it away, or declare its columns"


def matched(names: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """Return a file's names, each replaced by the declared name that differs from it at most in case.

    SQL's names have no case. If a file also has the declared name itself, the other one is left as it is.

    >>> from sqlrun.errors import Place
    >>> declared = [Column(name, "int", "", Place("")) for name in ("id", "at")]
    >>> matched(["ID", "at", "AT", "more"], declared)
    ['id', 'at', 'AT', 'more']
    """
    declared = {column.name.lower(): column.name for column in columns if column.name not in names}
    return [declared.get(name.lower(), name) for name in names]


def require_any(found: Sequence[str], columns: Sequence[Column], what: str, advice: str) -> None:
    """Check that a file has at least one of the declared columns; without any it is another file.

    Raises: Undecodable.
    """
    if columns and not {*found} & {column.name for column in columns}:
        shown = ", ".join(found)
        raise Undecodable(f"{what} has none of the declared columns: `{shown[:200]}`. {advice}")
