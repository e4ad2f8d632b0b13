"""What of a table `verify` compares with its query: everything, but of a history the part that follows from it. Pure.

The query of a history has its rows as they are. So the versions that ended follow from no query, nor does a current
version of a row that is gone, nor a column whose change begins no version: a version has it as it was when it began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlrun.incremental.compile import Compiled
from sqlrun.project import IS_CURRENT, IS_DELETED
from sqlrun.publish.table_state import TableState
from sqlrun.runtime.text_table import counted

ENDED, GONE = "_ended", "_gone"


@dataclass(frozen=True, slots=True)
class Compared:
    """The compared columns with their types, the key, and the conditions of the compared rows.

    `has_surplus`: rows that the query lacks may stay. `left_out`: columns that aren't compared.
    """

    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    current: tuple[str, ...] = ()
    has_surplus: bool = False
    is_history: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def scope(self) -> str:
        """Return what holds of a history that is right; "" for another table, which equals its query."""
        if not self.is_history:
            return ""
        columns = f" in {', '.join(name for name, _ in self.columns)}" if self.left_out else ""
        if self.has_surplus:
            return f"each row of the query is a current version{columns}"
        return f"the current versions equal the query{columns}"

    def counts(self, condition: str) -> str:
        """Return SELECT items for the numbers of rows that aren't compared, of those with a condition."""
        if not self.is_history:
            return f"0 as {ENDED}, 0 as {GONE}"
        tests = [condition] if condition else []
        ended = " and ".join([f"not {IS_CURRENT}", *tests])
        gone = "select count(*) from (select * from held except all select * from whole)"
        if not self.has_surplus:
            marked = " and ".join([IS_CURRENT, IS_DELETED, *tests])
            gone = f"select count(*) from kept where {marked}" if len(self.current) > 1 else "0"
        return f"(select count(*) from kept where {ended}) as {ENDED}, ({gone}) as {GONE}"

    def uncompared(self, counts: Mapping[str, int]) -> str:
        """Return what of a history was not compared, with numbers; "" if that is nothing.

        >>> Compared((), (), is_history=True, left_out=("price",)).uncompared({ENDED: 2, GONE: 1})
        '2 versions that ended, 1 current version of rows that are gone, the column price'
        """
        found = [counted(counts[ENDED], "version") + " that ended"] if counts[ENDED] else []
        found += [counted(counts[GONE], "current version") + " of rows that are gone"] if counts[GONE] else []
        word = "column" if len(self.left_out) == 1 else "columns"
        found += [f"the {word} {', '.join(self.left_out)}"] if self.left_out else []
        return ", ".join(found)


def of(model: Compiled, state: TableState) -> Compared:
    """Return what of a model's table is compared."""
    history, contract = model.own.history, model.query.rendered.model
    if history is None:
        return Compared(state.columns, contract.grain)
    key = contract.version_key
    known = {*key, *(() if history.updated_at else history.tracked)}
    versions = {*contract.config.version_columns}
    current = (IS_CURRENT, f"not {IS_DELETED}") if history.marks_deleted else (IS_CURRENT,)
    return Compared(
        tuple(column for column in state.columns if column[0] in known),
        key,
        current,
        has_surplus=not history.ends_deleted,
        is_history=True,
        left_out=tuple(name for name, _ in state.columns if name not in known | versions),
    )
