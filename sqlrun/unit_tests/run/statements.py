"""A chain's statements and whole queries as texts, each compiled once for all ticks of its kind. Pure.

Texts have parameters for the times of a tick, filled in on demand. They are therefore the same in every run and can be
cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlrun.engine_api import Dialect
from sqlrun.engines.duckdb.memory_texts import Written, written
from sqlrun.incremental.compile import Compiled, query_of_any_tick
from sqlrun.incremental.landing import query as landing
from sqlrun.incremental.landing.query import Rule
from sqlrun.incremental.script import Clock, Moment
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Tick, prepare
from sqlrun.parse.parse import Query
from sqlrun.transpile import parameters
from sqlrun.transpile.writer import cast, identifier
from sqlrun.unit_tests.run.chain import Chain

# Returns the cached value for a key, or computes and caches it.
Kept = Callable[[str, object, Any, Callable[[], Any]], Any]


class Statements:
    """The texts of one chain in one dialect; `source` is the cache key of its queries, and `kept` the cache."""

    def __init__(
        self, chain: Chain, queries: Mapping[str, Query], dialect: Dialect, source: object, kept: Kept
    ) -> None:
        self._chain, self._queries, self._dialect = chain, queries, dialect
        self._source, self._kept = source, kept
        self._written: dict[tuple[str, frozenset[str], bool, Clock], Written | None] = {}
        self._whole: dict[str, str] = {}

    def on(self, dialect: Dialect) -> Statements:
        """Return the texts of the same chain in another dialect."""
        return Statements(self._chain, self._queries, dialect, self._source, self._kept)

    def of_stage(self, stage: Stage, changed: frozenset[str], moment: Moment, *, fresh: bool) -> Written | None:
        """Return the statement that updates a stage in a tick; None if nothing can have changed."""
        tick = Tick(Moment(moment.as_of, None) if fresh else moment, changed & set(stage.inputs), fresh)
        key = (stage.name, tick.changed, fresh, tick.moment.clock)
        if key not in self._written:
            source = [self._source, self._dialect, stage.name, sorted(tick.changed), fresh, tick.moment.clock.before]
            # An unchanged stage has no text.
            texts = self._kept("statement", source, tuple[Written, ...], lambda: self._texts(stage, tick))
            self._written[key] = texts[0] if texts else None
        found = self._written[key]
        if found is None:
            return None
        return Written(tuple(self._filled(text, tick.moment) for text in found.texts), found.reads)

    def whole(self, model: Compiled, moment: Moment) -> str:
        """Return a model's whole query, in the types of its contract."""
        return self._filled(self._whole_of(model), moment)

    def landing(self, model: Compiled, rules: Sequence[Rule], moment: Moment) -> str:
        """Return the query that lands a source's lines in DuckDB."""
        assert model.source is not None
        return landing.query(model.own, model.source, rules, "duckdb", moment.as_of)

    def asks_the_time(self) -> bool:
        """Return whether any query of the chain uses the tick's time."""
        return any(parameters.named(self._whole_of(model), self._dialect) for model in self._chain.models)

    def _whole_of(self, model: Compiled) -> str:
        if model.name not in self._whole:
            source = [self._source, self._dialect, model.name]
            self._whole[model.name] = self._kept("whole query", source, str, lambda: self._typed(model))
        return self._whole[model.name]

    def _filled(self, text: str, moment: Moment) -> str:
        return parameters.filled(text, moment.parameters, self._dialect)

    def _texts(self, stage: Stage, tick: Tick) -> tuple[Written, ...]:
        full = self._query(stage.model) if stage.node is None else ""
        prepared = prepare(stage, tick, self._dialect, full)
        return () if prepared is None else (written(stage, prepared, self._dialect),)

    def _typed(self, model: Compiled) -> str:
        named = [(identifier(c.name, self._dialect), c.type) for c in model.query.rendered.model.columns]
        items = ", ".join(f"{cast(name, kind, self._dialect)} as {name}" for name, kind in named)
        return f"select {items} from ({self._query(model.name)})"

    def _query(self, name: str) -> str:
        return query_of_any_tick(self._queries, name, self._chain.views, self._dialect)
