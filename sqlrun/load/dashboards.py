"""YAML values to the dashboard that an exposure declares: each table and column is checked where it is named. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlrun.dashboards.names import entity_name, titled
from sqlrun.dashboards.nouns import (
    COMPARISONS,
    COUNT,
    DEFAULT_WIDTHS,
    FORMATS,
    NUMBER,
    PERCENT,
    Dashboard,
    Entity,
    Everything,
    Measure,
    Ranked,
    Ratio,
    Timed,
)
from sqlrun.dashboards.shown_types import KEYS_OF, NUMBERS, TEXTS, TIMES, WHOLES, fields_of, fits, kind_of
from sqlrun.errors import Place
from sqlrun.load.dashboard_parts import Named, Tables
from sqlrun.load.yaml_fast import Mapped
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed, spelled

KEYS = ("api", "title", "entity", "windows", "measures", "lists", "trend", "compare")
ENTITY_KEYS = ("key", "table", "label", "place", "currency", "time_zone", "name", "plural", "noun")
WINDOWS_KEYS = ("table", "hours", "of", "label")
MEASURE_KEYS = ("column", "label", "format", "unit", "table", "name", "trend", "ratios")
RATIO_KEYS = ("value", "per", "label")
LIST_KEYS = ("column", "table", "item", "label", "value", "money", "title", "empty", "name", "all")
ALL_KEYS = ("table", "at", "money", "names")
TREND_KEYS = ("hours", "slots")
TIMED_KEYS = ("table", "at")
NAME = re.compile("[a-z][a-z0-9_]*")
API = re.compile("[a-z][a-z0-9_-]*")
# Addresses, claims, options and keys of answers that are the server's own.
OWN_ADDRESSES = frozenset(
    ("dashboards", "freshness", "health", "ingest", "marts", "metrics", "operator", "static", "ticks")
)
OWN_CLAIMS = frozenset(("aud", "exp", "iat", "iss", "jti", "nbf", "scope", "sub"))
OWN_OPTIONS = frozenset(("help", "hours", "ingest", "keys", "operator"))
OWN_KEYS = frozenset(
    ("as_of", "before", "complete", "from", "hour_at", "hours", "id", "last_week", "next", "tick", "to")
)
MOST_HOURS = 8784


def dashboard(reader: Reader, config: Any, exposure: str, label: str, tables: Tables) -> Dashboard | None:
    """Read `config: {dashboard: ...}`; None where it lacks what no page can do without, which is noted."""
    required = ("entity", "windows", "measures")
    node = reader.mapping(
        config["dashboard"], reader.value_place(config, "dashboard"), "`dashboard`", KEYS, required
    )  # fmt: skip
    found = _Declaration(reader, tables)
    api = found.name(node, "api", exposure.lower(), API, OWN_ADDRESSES)
    if any(node.get(key) is None for key in required):
        return None
    windows = reader.mapping(
        node["windows"], reader.value_place(node, "windows"), "`windows`", WINDOWS_KEYS, ("table", "hours")
    )
    table = found.table(windows, "table")
    entity = found.entity(node, table)
    hours = found.column(windows, "hours", table, WHOLES)
    by_hour, by_slot = found.trend(node, entity.key)
    measures = found.measures(node, table, hours, entity.key, tuple(t for t in (by_hour, by_slot) if t is not None))
    if not measures:
        return None
    names = [measure.name for measure in measures]
    found.distinct(node, "measures", (name for name in names if name == entity.name), (entity.name,))
    return Dashboard(
        api=api,
        title=found.words(node, "title", label or exposure),
        entity=entity,
        windows=table,
        hours=hours,
        widths=found.widths(windows, hours),
        measures=measures,
        windows_label=found.column(windows, "label", table, TEXTS),
        lists=found.lists(node, table, hours, entity.key, [entity.name, *names]),
        by_hour=by_hour,
        by_slot=by_slot,
        compare=found.compare(node, by_slot),
    )


class _Declaration(Named):
    """The parts of one dashboard."""

    def entity(self, dashboard: Any, windows: str) -> Entity:
        """Read whose numbers are shown."""
        where = self.reader.value_place(dashboard, "entity")
        node = self.reader.mapping(dashboard["entity"], where, "`entity`", ENTITY_KEYS, ("key",))
        table = self.table(node, "table")
        home = table if node.get("table") is not None else windows
        key = self.column(node, "key", home, KEYS_OF)
        if table and windows and key and key not in self.tables.columns[windows]:
            self.column(node, "key", windows, KEYS_OF)
        name = self.name(node, "name", entity_name(key), NAME, OWN_OPTIONS)
        plural = self.name(node, "plural", f"{name}s", NAME, OWN_CLAIMS)
        known = {k: self.column(node, k, home, TEXTS) for k in ("label", "place", "currency", "time_zone")}
        return Entity(name, plural, key, table, noun=self.words(node, "noun", name.replace("_", " ")), **known)

    def widths(self, windows: Any, hours: str) -> tuple[int, ...]:
        """Read the windows, in hours: from `of`, else from the var that is called as the window column."""
        given = windows.get("of") if isinstance(windows, Mapping) else None
        wide = self.tables.variables.get(hours) if given is None else given
        sound = isinstance(wide, list | tuple) and bool(wide) and len(set(map(str, wide))) == len(wide)
        if sound and all(type(one) is int and 0 < one <= MOST_HOURS for one in wide):  # type: ignore[union-attr]
            return tuple(wide)  # type: ignore[arg-type]
        if given is not None:
            place, message = self.reader.value_place(windows, "of"), "`of` is no list of windows"
            self.reader.problem("SR110", place, message, f"Write hours from 1 to {MOST_HOURS}: of: [1, 24, 168]")
        return DEFAULT_WIDTHS

    def measures(
        self, dashboard: Any, windows: str, hours: str, key: str, trend: tuple[Timed, ...]
    ) -> tuple[Measure, ...]:
        """Read the numbers that are shown of a window; at least one is needed."""
        found: list[Measure] = []
        ratios: list[tuple[Any, Place]] = []
        for node, place in self.reader.items(dashboard, "measures", "`dashboard`"):
            if isinstance(node, str):
                node = _of_one_word(node, place)
            node = self.reader.mapping(node, place, "a measure", MEASURE_KEYS, ("column",))
            found.append(self.measure(node, windows, hours, key, trend))
            ratios += self.reader.items(node, "ratios", "a measure")
        self.distinct(dashboard, "measures", [measure.name for measure in found])
        self.ratios(ratios, [measure.name for measure in found])
        own = [measure for measure in found if not measure.table]
        place = self.reader.value_place(dashboard, "measures")
        if not own:
            self.reader.problem("SR104", place, "`measures` has none of the windows' table", "measures: [n_orders]")
            return ()
        if trend and not any(measure.in_trend for measure in own):
            place = self.reader.value_place(dashboard, "trend")
            hint = f"Select one of {listed(measure.column for measure in own)} there, or leave `trend` out."
            self.reader.problem("SR108", place, f"no measure is a column of {trend[0].table}", hint)
        return tuple(found)

    def measure(self, node: Any, windows: str, hours: str, key: str, trend: tuple[Timed, ...]) -> Measure:
        """Read one measure."""
        table = self.table(node, "table")
        # A table that isn't there is one mistake: what it would hold isn't looked for elsewhere.
        home = table if node.get("table") is not None else windows
        column = self.column(node, "column", home, NUMBERS)
        self.joined(node, table, key, hours)
        kind = self.tables.columns.get(home, {}).get(column, "")
        usual = COUNT if kind_of(kind) == WHOLES else NUMBER
        shape = self.reader.choice(node, "format", FORMATS, usual) if node.get("format") is not None else usual
        one, many = self.unit(node)
        there = all(fits(self.tables.columns.get(each.table, {}).get(column, ""), NUMBERS) for each in trend)
        name = self.name(node, "name", column, re.compile(r"\w+"), OWN_KEYS) if column else ""
        return Measure(
            name=name,
            column=column,
            label=self.words(node, "label", titled(column)),
            format=shape,
            one=one,
            many=many,
            table=table,
            whole=kind_of(kind) == WHOLES,
            in_trend=bool(trend) and there and not table and shape != PERCENT and self.reader.flag(node, "trend", True),
            ratios=tuple(
                Ratio(self.reader.text(one, "value"), self.reader.text(one, "per"), self.words(one, "label"))
                for one, _ in self.reader.items(node, "ratios", "a measure")
                if isinstance(one, Mapping)
            ),
        )

    def ratios(self, found: list[tuple[Any, Place]], names: list[str]) -> None:
        """Note ratios of what is no measure."""
        for node, place in found:
            node = self.reader.mapping(node, place, "a ratio", RATIO_KEYS, RATIO_KEYS)
            for key in ("value", "per"):
                name = self.reader.text(node, key)
                if name and name not in names:
                    hint = f"Measures: {listed(names)}.{did_you_mean(name, names)}"
                    place = self.reader.value_place(node, key)
                    self.reader.problem("SR110", place, f"`{key}` can't be `{name}`: there is no such measure", hint)

    def lists(self, dashboard: Any, windows: str, hours: str, key: str, taken: list[str]) -> tuple[Ranked, ...]:
        """Read the ranked lists."""
        found = []
        for node, place in self.reader.items(dashboard, "lists", "`dashboard`"):
            node = self.reader.mapping(node, place, "a list", LIST_KEYS, ("item", "value"))
            found.append(self.ranked(node, place, windows, hours, key))
        self.distinct(dashboard, "lists", [ranked.name for ranked in found], taken)
        return tuple(found)

    def ranked(self, node: Any, place: Place, windows: str, hours: str, key: str) -> Ranked:
        """Read one ranked list."""
        reader, table, column = self.reader, self.table(node, "table"), self.reader.text(node, "column")
        if bool(node.get("table")) == bool(column):
            hint = "column: an array of structs in the windows' table; table: rows for each item and window"
            reader.problem("SR104", place, "a list needs either `column` or `table`", hint)
        self.joined(node, table, key, hours)
        where = f"{windows}.{column}" if column else table
        fields: Mapping[str, str] | None = self.tables.columns.get(table)
        column = spelled(column, self.tables.columns[windows]) if windows else column
        if column and windows and (kind := self.tables.columns[windows].get(column)) is not None:
            fields = fields_of(kind)
            if fields is None:
                message = f"`{column}` in `column` is of type {kind}, which can't be shown there"
                hint = "Name an array of structs, such as array<struct<item:string,n:bigint>>."
                reader.problem("SR122", reader.value_place(node, "column"), message, hint)
        elif column:
            self.column(node, "column", windows, "")
        wanted = {"item": KEYS_OF, "label": TEXTS, "value": NUMBERS, "money": NUMBERS}
        of = {name: spelled(reader.text(node, name), fields or ()) for name in wanted}
        for name, kind in wanted.items():
            if of[name] and fields is not None:
                self.known(reader.value_place(node, name), name, of[name], fields, where, kind)
        name = self.name(node, "name", column or of["item"] or table, re.compile(r"\w+"), OWN_KEYS | {"windows"})
        return Ranked(
            name=name,
            title=self.words(node, "title", titled(name)),
            column=column,
            table=table,
            empty=self.words(node, "empty"),
            everything=self.everything(node, key, of),
            **of,
        )

    def everything(self, ranked: Any, key: str, of: Mapping[str, str]) -> Everything | None:
        """Read `all`: where the items that the list leaves out are added up."""
        if ranked.get("all") is None:
            return None
        where = self.reader.value_place(ranked, "all")
        node = self.reader.mapping(ranked["all"], where, "`all`", ALL_KEYS, ("table", "at"))
        slots = Timed(self.table(node, "table"), self.column(node, "at", self.table_of(node, "table"), TIMES))
        names = self.table(node, "names")
        self.joined(node, slots.table, key)
        for name, table, kind in (
            (of["item"], slots.table, KEYS_OF), (of["value"], slots.table, NUMBERS),
            (of["item"], names, KEYS_OF), (of["label"], names, TEXTS),
        ):  # fmt: skip
            if name and table:
                self.known(where, "all", name, self.tables.columns[table], table, kind)
        return Everything(slots, self.column(node, "money", slots.table, NUMBERS), names)

    def trend(self, dashboard: Any, key: str) -> tuple[Timed | None, Timed | None]:
        """Read the tables of hours and of slots."""
        if dashboard.get("trend") is None:
            return None, None
        where = self.reader.value_place(dashboard, "trend")
        node = self.reader.mapping(dashboard["trend"], where, "`trend`", TREND_KEYS)
        if not node:
            self.reader.problem("SR104", where, "`trend` lacks `hours` and `slots`", "slots: {table: t, at: slot_at}")
        found: list[Timed | None] = []
        for name in TREND_KEYS:
            if node.get(name) is None:
                found.append(None)
                continue
            timed = self.reader.mapping(
                node[name], self.reader.value_place(node, name), f"`{name}`", TIMED_KEYS, TIMED_KEYS
            )
            table = self.table(timed, "table")
            self.joined(timed, table, key)
            at = self.column(timed, "at", table, TIMES)
            found.append(Timed(table, at) if table and at else None)
        return found[0], found[1]

    def compare(self, dashboard: Any, by_slot: Timed | None) -> tuple[str, ...]:
        """Read what a window is compared with: both, where there are slots, unless the YAML chooses."""
        if dashboard.get("compare") is None:
            return COMPARISONS if by_slot else ()
        found = self.reader.texts(dashboard, "compare")
        place = self.reader.value_place(dashboard, "compare")
        for name in found:
            if name not in COMPARISONS:
                hint = f"Choose of {', '.join(COMPARISONS)}.{did_you_mean(name, COMPARISONS)}"
                self.reader.problem("SR110", place, f"`compare` can't be `{name}`", hint)
        if found and by_slot is None:
            hint = "Add `slots` to `trend`: {table: t, at: slot_at}."
            self.reader.problem("SR104", place, "`compare` needs `slots`, whose sums a window is compared with", hint)
        return tuple(name for name in COMPARISONS if name in found)


def one_of_each(reader: Reader, found: Dashboard, place: Place, before: Iterable[Dashboard]) -> None:
    """Note a dashboard that has another one's address, or calls the keys of one entity otherwise."""
    for other in before:
        if other.api == found.api:
            reader.problem("SR111", place, f"two dashboards are called `{found.api}`", "Give one another `api:`.")
        if other.entity.name == found.entity.name and other.entity.plural != found.entity.plural:
            message = f"the entity `{found.entity.name}` has two plurals, `{other.entity.plural}` and "
            hint = "Write the same `plural:` in both, or give one entity another `name:`."
            reader.problem("SR111", place, f"{message}`{found.entity.plural}`", hint)


def _of_one_word(name: str, place: Place) -> Any:
    made = Mapped(place)
    made["column"], made.keys_at["column"], made.values_at["column"] = name, place, place
    return made
