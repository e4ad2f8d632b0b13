"""A history: a table with a row for each version of each row of a query, as the ticks saw them. Pure.

All other tables are functions of their inputs. A history is one of its inputs and of its own rows: a version that ended
is nowhere else. So no tick recomputes it, and a new table of it begins with the rows of the table before it.

A tick compares the query's rows of affected keys with the versions that are current. A row without a current version
begins one. A row that differs from its current version ends it, and begins another at the same time. A current version
without a row ends. As a MERGE by key and `valid_from` these are updates and inserts. Only a version that would end
where it began is deleted: its row came and went within one tick time, or its `updated_at` is later than its end
(docs/decisions/0053-versions-last.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from sqlrun.engine_api import Merge, StoredColumn
from sqlrun.incremental import properties
from sqlrun.incremental.algebra import Node
from sqlrun.incremental.operators.affected import restrict
from sqlrun.incremental.operators.affected_keys import numbers
from sqlrun.incremental.script import Script
from sqlrun.incremental.stages import Earlier, History, Stage, Target
from sqlrun.project import IS_CURRENT, IS_DELETED, NEW_RECORD, VALID_FROM, VALID_TO, Config
from sqlrun.transpile import parameters
from sqlrun.transpile import writer as sql
from sqlrun.transpile.refusals import Reason

NOTHING: Mapping[str, str] = MappingProxyType({})
REASON = Reason("SR527", "sqlrun ends the versions of changed rows, and begins new ones")


def stage(name: str, node: Node, target: Target, config: Config) -> Stage:
    """Return the stage of a history of a node's rows."""
    everything = properties.reads_everything(node)
    return Stage(
        name=name,
        model=name,
        strategy="full" if everything else "merge",
        method="history",
        reason=everything or REASON,
        columns=target.columns,
        node=node,
        inputs=properties.tables(node),
        key=target.grain,
        null_safe=tuple(c.name for c in target.columns if c.name in target.grain and c.nullable),
        partition_by=target.partition_by,
        moves=properties.moves(node),
        history=_history(target.columns, target.grain, config),
    )


def of_whole(whole: Stage, config: Config) -> Stage:
    """Return the stage of a history of a query that no rule maintains, from the stage that computes its rows."""
    return replace(whole, method="history", history=_history(whole.columns, whole.key, config))


def _history(columns: tuple[StoredColumn, ...], grain: tuple[str, ...], config: Config) -> History:
    own = {*grain, *config.version_columns}
    tracked = config.check_cols or tuple(c.name for c in columns if c.name not in own)
    return History(tracked, config.updated_at, config.hard_deletes != "ignore", config.hard_deletes == NEW_RECORD)


def statement(stage: Stage, script: Script, full_query: str, earlier: Earlier | None, *, is_new: bool) -> Merge | None:
    """Return the MERGE of a tick; None if nothing can have changed.

    `is_new`: the table is new. `earlier` is the table before it, if there was one.
    """
    keys = [name for name in stage.key if name != VALID_FROM]
    affected = None
    if stage.node is None:
        source = script.part(full_query, "query")
        for table in stage.inputs:
            script.table(table, "new")
    elif is_new:
        source = script.rows(stage.node, "new")
    else:
        pieces = stage.node.support(tuple(keys), script)
        if not pieces:
            return None
        affected = script.distinct(pieces, "touched")
        source = script.rows(restrict(stage.node, affected, numbers(keys)), "new")
    fresh = script.part(f"select {_fresh(stage, script)} from {source}", "fresh")
    names = script.names(c.name for c in stage.columns)
    if is_new and earlier is None:
        return _writing(stage, script, f"select {names} from {fresh}")
    held = _held(stage, script, earlier)
    if affected is not None:
        joined = script.semi_join(held, affected, numbers(keys).items(), stage.null_safe)
        listed = script.names((c.name for c in stage.columns), "l")
        held = script.part(f"select {listed} from {joined}", "held")
    versions = _Versions(stage, script, fresh, held, keys)
    pieces = [*versions.begun(), *versions.ended()]
    if is_new:
        pieces += versions.kept()
    body = script.union(pieces, "versions")
    return _writing(stage, script, f"select {names} from {body}")


def _fresh(stage: Stage, script: Script) -> str:
    """Return the columns of the query's rows as versions that begin now, or when the row was updated."""
    assert stage.history is not None
    values = {VALID_FROM: _now(script), VALID_TO: "null", IS_CURRENT: "true", **_deleted(stage, "false")}
    if stage.history.updated_at:
        values[VALID_FROM] = script.name(stage.history.updated_at)
    return ", ".join(script.stored(values.get(c.name, script.name(c.name)), c) for c in stage.columns)


def _deleted(stage: Stage, value: str) -> dict[str, str]:
    """Return the value of the column that says whether a row was gone; {} for a history without it."""
    return {IS_DELETED: value} if stage.history is not None and stage.history.marks_deleted else {}


def _now(script: Script) -> str:
    return parameters.timestamp("as_of", script.dialect)


def _held(stage: Stage, script: Script, earlier: Earlier | None) -> str:
    """Return the stored versions: of this table, or of the one before it with this one's columns.

    A mark of a deletion is no version of a row: a table that no longer marks them doesn't take it over.
    """
    if earlier is None:
        return script.table(stage.name, "old")
    assert stage.history is not None
    values, marks, where = {c.name: script.name(c.name) for c in earlier.columns}, script.name(IS_DELETED), ""
    if stage.history.marks_deleted != earlier.marks_deleted:
        # Any other column of this name isn't a mark.
        values[IS_DELETED] = "false" if stage.history.marks_deleted else "null"
        where = f" where not {marks}" if earlier.marks_deleted else ""
    items = ", ".join(script.stored(values.get(c.name, "null"), c) for c in stage.columns)
    return script.part(f"select {items} from {script.table(stage.name, 'earlier')}{where}", "earlier")


def _writing(stage: Stage, script: Script, final: str) -> Merge:
    every = tuple((c.name, f"s.{script.name(c.name)}") for c in stage.columns)
    # NULL for a version without an end or a beginning: that one is kept.
    lasts_no_time = f"s.{script.name(VALID_TO)} <= s.{script.name(VALID_FROM)}"
    return Merge(
        script.text(final),
        stage.key,
        stage.null_safe,
        update=every,
        insert=every,
        delete_when=lasts_no_time,
        insert_when=f"not coalesce({lasts_no_time}, false)",
    )


class _Versions:
    """The pieces of a tick's versions: `fresh` has the query's rows, `held` the stored versions, of affected keys."""

    def __init__(self, stage: Stage, script: Script, fresh: str, held: str, keys: list[str]) -> None:
        assert stage.history is not None
        self._stage, self._script, self._history = stage, script, stage.history
        self._fresh, self._held, self._keys = fresh, held, keys
        names, current = script.names(c.name for c in stage.columns), script.name(IS_CURRENT)
        self._current = script.part(f"select {names} from {held} where {current}", "current")

    def begun(self) -> list[str]:
        """Return the versions that begin: of rows without a current version, and of changed rows."""
        found = f"{self._fresh} as n left join {self._current} as c on {self._same_key('n', 'c')}"
        is_first = f"c.{self._script.name(IS_CURRENT)} is null"
        back = {VALID_FROM: self._begins()} if self._history.marks_deleted and self._history.updated_at else NOTHING
        changed = f"select {self._items('n', back)} from {found} where not ({is_first}) and ({self._differs()})"
        if not self._history.updated_at:
            return [f"select {self._items('n')} from {found} where {is_first}", changed, *self._deletions()]
        # A row that was gone comes back with a time before its end: the versions of a row must not overlap.
        keys, to = self._script.names(self._keys), self._script.name(VALID_TO)
        last = self._script.part(f"select {keys}, max({to}) as _last from {self._held} group by {keys}", "last")
        begins = f"n.{self._script.name(VALID_FROM)}"
        later = f"case when e._last > {begins} then e._last else {begins} end"
        first = f"{found} left join {last} as e on {self._same_key('n', 'e')}"
        begun = f"select {self._items('n', {VALID_FROM: later})} from {first} where {is_first}"
        return [begun, changed, *self._deletions()]

    def _deletions(self) -> list[str]:
        """Return the versions that say that a row was gone."""
        if not self._history.marks_deleted:
            return []
        values = {VALID_FROM: self._gone_at(), VALID_TO: "null", IS_CURRENT: "true", IS_DELETED: "true"}
        return [f"select {self._items('c', values)} from {self._unmatched()} where not {self._is_deleted()}"]

    def _is_deleted(self) -> str:
        return f"c.{self._script.name(IS_DELETED)}"

    def _gone_at(self) -> str:
        """Return the time at which the current version c of a row that is gone ends."""
        begins, now = f"c.{self._script.name(VALID_FROM)}", _now(self._script)
        return f"case when {begins} > {now} then {begins} else {now} end"

    def _begins(self) -> str:
        """Return the time at which a version n after the version c begins: a row comes back after it was gone."""
        old, new = (f"{side}.{self._script.name(VALID_FROM)}" for side in "cn")
        if not (self._history.marks_deleted and self._history.updated_at):
            return new
        return f"case when {self._is_deleted()} and {old} > {new} then {old} else {new} end"

    def ended(self) -> list[str]:
        """Return the current versions that end: of changed rows, and of rows that are gone."""
        begins, ends = f"c.{self._script.name(VALID_FROM)}", self._begins()
        end = {VALID_TO: ends, IS_CURRENT: "false"}
        # A version that began at this very time is replaced by the one that begins now: they have one key.
        is_past = f"({self._differs()}) and {begins} < {ends}"
        pieces = [f"select {self._items('c', end)} from {self._pairs()} where {is_past}"]
        if self._history.ends_deleted:
            gone = {VALID_TO: self._gone_at(), IS_CURRENT: "false"}
            piece = f"select {self._items('c', gone)} from {self._unmatched()}"
            if self._history.marks_deleted:
                # A version that began at this very time is replaced by the one that says that the row was gone.
                piece += f" where not {self._is_deleted()} and {begins} < {self._gone_at()}"
            pieces.append(piece)
        return pieces

    def kept(self) -> list[str]:
        """Return the versions that stay as they are, for a table that is new."""
        current = self._script.name(IS_CURRENT)
        names = self._script.names(c.name for c in self._stage.columns)
        pieces = [
            f"select {names} from {self._held} where not {current}",
            f"select {self._items('c')} from {self._pairs()} where not ({self._differs()})",
        ]
        if not self._history.ends_deleted:
            pieces.append(f"select {self._items('c')} from {self._unmatched()}")
        if self._history.marks_deleted:
            pieces.append(f"select {self._items('c')} from {self._unmatched()} where {self._is_deleted()}")
        return pieces

    def _pairs(self) -> str:
        return f"{self._current} as c join {self._fresh} as n on {self._same_key('c', 'n')}"

    def _unmatched(self) -> str:
        word = sql.anti_join(self._script.dialect)
        return f"{self._current} as c {word} {self._fresh} as n on {self._same_key('c', 'n')}"

    def _same_key(self, left: str, right: str) -> str:
        names = [self._script.name(key) for key in self._keys]
        return " and ".join(self._script.same(f"{left}.{name}", f"{right}.{name}") for name in names)

    def _differs(self) -> str:
        """Return SQL for whether a row n differs from its current version c; a row that was gone does."""
        came_back = [self._is_deleted()] if self._history.marks_deleted else []
        if self._history.updated_at:
            return " or ".join([*came_back, f"n.{self._script.name(VALID_FROM)} > c.{self._script.name(VALID_FROM)}"])
        names = [self._script.name(name) for name in self._history.tracked]
        changed = [f"not ({self._script.same(f'n.{name}', f'c.{name}')})" for name in names]
        return " or ".join([*came_back, *changed]) or "false"

    def _items(self, side: str, values: Mapping[str, str] = NOTHING) -> str:
        columns = self._stage.columns
        return ", ".join(
            self._script.stored(values[c.name], c) if c.name in values else f"{side}.{self._script.name(c.name)}"
            for c in columns
        )
