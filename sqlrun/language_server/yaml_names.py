"""The columns that YAML files name: in contracts, unit tests, suites and exposures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.errors import Place
from sqlrun.expectations.catalogue import CATALOGUE
from sqlrun.incremental.landing.query import REASON
from sqlrun.load.constraints import REF
from sqlrun.load.yaml_reader import Reader

SQL, CONDITION, CSV, FIXTURE, REASONED = "sql", "condition", "csv", "fixture", "reason"


@dataclass(frozen=True, slots=True)
class Mention:
    """A name of a column of some tables, models or seeds, and its place. A CTE's table is `model.cte`."""

    tables: tuple[str, ...]
    column: str
    place: Place


@dataclass(frozen=True, slots=True)
class Words:
    """A text that may name columns of a table, and its place. A fixture's is its name."""

    table: str
    kind: str
    text: str
    place: Place


@dataclass(slots=True)
class Mentions:
    """The names and texts of one file. Its reader has no problems: the project was read before."""

    reader: Reader
    names: list[Mention] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)

    def contracts(self) -> None:
        """Read a file with contracts of models or seeds, and unit tests."""
        for node in _items(self.reader.root, "models") + _items(self.reader.root, "seeds"):
            self._contract(node, self._text(node, "name"))
        for test in _items(self.reader.root, "unit_tests"):
            self._test(test)

    def suite(self, model: str) -> None:
        """Read a suite of expectations."""
        for node in _items(self.reader.root, "expectations"):
            kwargs = node.get("kwargs")
            kind = CATALOGUE.get(self._text(node, "type"))
            if not isinstance(kwargs, Mapping):
                continue
            for key in kind.columns if kind is not None else ():
                self._listed(kwargs, key, model)
            for key, form in (("unexpected_rows_query", SQL), ("row_condition", CONDITION)):
                self._passage(kwargs, key, model, form)

    def exposures(self) -> None:
        """Read what exposures serve, and their dashboards."""
        for node in _items(self.reader.root, "exposures"):
            tables = tuple(match[2] for text in self.reader.texts(node, "depends_on") for match in REF.finditer(text))
            config = _mapping(node.get("config"))
            serve, dashboard = _mapping(config.get("serve")), _mapping(config.get("dashboard"))
            for key in ("owned_by", "keys"):
                self._listed(serve, key, *tables)
            if dashboard:
                self._dashboard(dashboard)

    # ── contracts ────────────────────────────────────────────────────────────────────────────────────────────────

    def _contract(self, node: Any, model: str) -> None:
        config = _mapping(node.get("config"))
        for key in ("grain", "event_time"):
            self._listed(node, key, model)
        for key in ("partition_by", "updated_at", "check_cols"):
            self._listed(config, key, model)
        for column in _items(node, "columns"):
            self._listed(column, "name", model)
            for key in ("constraints", "data_tests", "tests"):
                for entry in _items(column, key):
                    self._promise(entry)

    def _promise(self, entry: Any) -> None:
        """Read the column of another table that a relationship names."""
        for node in (entry, *entry.values()):
            for inner in (node, _mapping(node).get("arguments")):
                target = REF.fullmatch(self._text(inner, "to"))
                for key in ("field", "to_columns") if target else ():
                    self._listed(inner, key, target[2] if target else "")

    # ── unit tests ───────────────────────────────────────────────────────────────────────────────────────────────

    def _test(self, test: Any) -> None:
        model, cte = self._text(test, "model"), self._text(test, "cte")
        table = f"{model}.{cte}" if cte else model
        for given in _items(test, "given"):
            self._content(given, "rows", self._input(given))
        self._expected(test, table, model)
        for step in _items(test, "then"):
            for change in _items(step, "changes"):
                for key in ("came", "left", "updated"):
                    self._content(change, key, self._input(change))
            self._expected(step, table, model)

    def _expected(self, node: Any, table: str, model: str) -> None:
        expect = _mapping(node.get("expect"))
        self._content(expect, "rows", table)
        for name in _mapping(expect.get("columns")):
            self.names.append(Mention((table,), name, self.reader.place(expect["columns"], name)))
        self._content(expect, "quarantined", model)
        for row in _items(expect, "quarantined"):  # a reason begins with the column of the violated expectation
            self._passage(row, REASON, model, REASONED)
        for key in ("came", "left"):
            self._content(_mapping(expect.get("changes")), key, table)

    def _input(self, node: Any) -> str:
        found = REF.fullmatch(self._text(node, "input").strip())
        return found[2] if found else ""

    def _content(self, node: Any, key: str, table: str) -> None:
        """Read rows in one of their forms."""
        if not table:
            return
        if isinstance(node.get("fixture"), str) and key == "rows":
            self.words.append(Words(table, FIXTURE, node["fixture"], self.reader.value_place(node, "fixture")))
        value = node.get(key)
        if isinstance(value, str):
            self._passage(node, key, table, self._text(node, "format"))
        for row in value if isinstance(value, list) else ():
            for name in row if isinstance(row, Mapping) else ():
                self.names.append(Mention((table,), name, self.reader.place(row, name)))

    # ── dashboards ───────────────────────────────────────────────────────────────────────────────────────────────

    def _dashboard(self, node: Any) -> None:
        windows, trend = _mapping(node.get("windows")), _mapping(node.get("trend"))
        home, entity = self._table(windows), _mapping(node.get("entity"))
        for key in ("hours", "label"):
            self._listed(windows, key, home)
        for key in ("key", "label", "place", "currency", "time_zone"):
            self._listed(entity, key, self._table(entity) or home)
        measures = node.get("measures")
        for index, item in enumerate(measures if isinstance(measures, list) else ()):
            if isinstance(item, str):
                self.names.append(Mention((home,), item, self.reader.place(measures, index)))
        owners = {self._text(one, "column"): self._table(one) or home for one in _items(node, "measures")}
        for measure in _items(node, "measures"):
            self._listed(measure, "column", self._table(measure) or home)
            for ratio in _items(measure, "ratios"):
                for key in ("value", "per"):  # names of measures: those of their columns, unless they have their own
                    self._listed(ratio, key, owners.get(self._text(ratio, key), home))
        for ranked in _items(node, "lists"):
            self._listed(ranked, "column", home)
            every = _mapping(ranked.get("all"))
            for key in ("item", "label", "value", "money") if self._table(ranked) else ():
                self._listed(ranked, key, self._table(ranked))
            for key in ("at", "money"):
                self._listed(every, key, self._table(every))
        for timed in map(_mapping, trend.values()):
            self._listed(timed, "at", self._table(timed))

    def _table(self, node: Any) -> str:
        text = self._text(node, "table").strip()
        found = REF.fullmatch(text)
        return found[2] if found else text

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _text(self, node: Any, key: str) -> str:
        value = node.get(key) if isinstance(node, Mapping) else None
        return value if isinstance(value, str) else ""

    def _listed(self, node: Any, key: str, *tables: str) -> None:
        """Read a name, or a list of names."""
        value = node.get(key) if isinstance(node, Mapping) else None
        if isinstance(value, str):
            self.names.append(Mention(tables, value, self.reader.value_place(node, key)))
        for index, name in enumerate(value if isinstance(value, list) else ()):
            if isinstance(name, str):
                self.names.append(Mention(tables, name, self.reader.place(value, index)))

    def _passage(self, node: Any, key: str, table: str, kind: str) -> None:
        if isinstance(node.get(key), str):
            self.words.append(Words(table, kind, node[key], self.reader.value_place(node, key)))


def _items(node: Any, key: str) -> list[Any]:
    """Return the mappings of a list."""
    value = node.get(key) if isinstance(node, Mapping) else None
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _mapping(node: Any) -> Any:
    return node if isinstance(node, Mapping) else {}
