"""The names of a file's columns, matched with the declared ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sqlrun.project import Column


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
