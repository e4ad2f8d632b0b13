"""Names of tables and columns in a dashboard's YAML, held to what there is and can be shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlrun.dashboards.nouns import Words
from sqlrun.dashboards.shown_types import fits
from sqlrun.errors import Place
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed, spelled
from sqlrun.project import Project

REF = re.compile(r"\s*(?:ref\(\s*(['\"])(\w+)\1\s*\)|(\w+))\s*")
LANGUAGE = re.compile("[a-z]{2}")


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that a dashboard may read: columns with their types by table, and the models that store nothing."""

    columns: Mapping[str, Mapping[str, str]]
    views: frozenset[str]
    variables: Mapping[str, object]

    @staticmethod
    def of(project: Project) -> Tables:
        """List a project's models and seeds."""
        found = {m.name: {c.name: c.type for c in m.columns} for m in project.models}
        found |= {s.name: {c.name: c.type for c in s.columns} for s in project.seeds}
        views = frozenset(m.name for m in project.models if m.config.materialized == "view")
        return Tables(found, views, project.vars)


class Named:
    """What the parts of one dashboard name: tables, columns, and words for people."""

    def __init__(self, reader: Reader, tables: Tables) -> None:
        self.reader, self.tables = reader, tables

    def name(self, node: Any, key: str, default: str, form: re.Pattern[str], own: frozenset[str]) -> str:
        """Read a name that becomes a part of addresses, tokens or answers."""
        found = self.reader.text(node, key, default)
        place = (
            self.reader.value_place(node, key) if isinstance(node, Mapping) and key in node else self.reader.place(node)
        )
        if not form.fullmatch(found):
            hint = "Write small letters, digits and _ only, a letter first."
            self.reader.problem("SR116", place, f"`{found}` can't be the `{key}` of a dashboard", hint)
        elif found in own:
            hint = f"Choose another one than {', '.join(sorted(own))}: `{key}: NAME`."
            self.reader.problem("SR116", place, f"`{key}` can't be `{found}`, which is the server's own", hint)
        return found

    def table(self, node: Any, key: str) -> str:
        """Read the name of a table, `ref('x')` or `x`; "" where there is none, which is noted."""
        text = self.reader.text(node, key)
        if not text:
            return ""
        ref = REF.fullmatch(text)
        name = (ref[2] or ref[3]) if ref else text
        place = self.reader.value_place(node, key)
        if name not in self.tables.columns:
            near = did_you_mean(name, self.tables.columns)
            hint = f"Models and seeds: {listed(self.tables.columns)}.{near}"
            self.reader.problem("SR202", place, f"unknown ref `{name}`", hint)
            return ""
        if name in self.tables.views:
            hint = "Name a model with `materialized: table`, or make it one."
            self.reader.problem("SR122", place, f"`{name}` is a view, which stores no rows that could be shown", hint)
            return ""
        return name

    def column(self, node: Any, key: str, table: str, wanted: str) -> str:
        """Read the name of a column of a table; one that isn't there, or of a type that can't be shown, is noted."""
        name = self.reader.text(node, key)
        if name and table:
            self.known(self.reader.value_place(node, key), key, name, self.tables.columns[table], table, wanted)
            return spelled(name, self.tables.columns[table])
        return name

    def known(self, place: Place, key: str, name: str, columns: Mapping[str, str], table: str, wanted: str) -> None:
        """Note a name that isn't among columns or fields, or whose type isn't wanted."""
        name = spelled(name, columns)
        if name not in columns:
            hint = f"Columns: {listed(columns)}.{did_you_mean(name, columns)}"
            self.reader.problem("SR108", place, f"`{name}` in `{key}` is not a column of {table}", hint)
        elif not fits(columns[name], wanted):
            some = [column for column, kind in columns.items() if fits(kind, wanted)]
            message = f"`{name}` in `{key}` is of type {columns[name]}, which can't be shown there"
            self.reader.problem("SR122", place, message, f"Name {wanted}; {table} has {listed(some)}.")

    def words(self, node: Any, key: str, default: str = "") -> Words:
        """Read a text, or texts by language."""
        value = node.get(key) if isinstance(node, Mapping) else None
        if not isinstance(value, Mapping):
            text = self.reader.words(node, key) or default
            return (("", text),) if text else ()
        return tuple((code, self.reader.words(value, code)) for code in self.languages(value))

    def languages(self, value: Any) -> list[str]:
        """List the languages of a mapping of texts."""
        for code in value:
            if not LANGUAGE.fullmatch(code):
                hint = "Write a language's two letters: {en: Orders, de: Bestellungen}."
                self.reader.problem("SR110", self.reader.place(value, code), f"`{code}` is no language", hint)
        return [code for code in value if LANGUAGE.fullmatch(code)]

    def unit(self, node: Any) -> tuple[Words, Words]:
        """Read `unit`: one text, or two for one and for many; or such by language."""
        value = node.get("unit") if isinstance(node, Mapping) else None
        by_language = value if isinstance(value, Mapping) else {"": value}
        one, many = [], []
        for code in self.languages(value) if isinstance(value, Mapping) else by_language:
            texts = self.reader.texts(by_language if isinstance(value, Mapping) else node, code or "unit")
            if len(texts) > 2:
                place = self.reader.value_place(node, "unit")
                self.reader.problem("SR110", place, "`unit` has more than two forms", "unit: [order, orders]")
            elif texts:
                one.append((code, texts[0]))
                many.append((code, texts[-1]))
        return tuple(one), tuple(many)

    def joined(self, node: Any, table: str, key: str, hours: str = "") -> None:
        """Note a table beside the windows that lacks the entity's key or the window column."""
        for column in (key, hours) if table else ():
            if column and column not in self.tables.columns[table]:
                columns = self.tables.columns[table]
                message = f"{table} has no column `{column}`, by which its rows are found"
                hint = f"Select it in {table}. Columns: {listed(columns)}.{did_you_mean(column, columns)}"
                self.reader.problem("SR108", self.reader.value_place(node, "table"), message, hint)

    def table_of(self, node: Any, key: str) -> str:
        """Return the table that a key names, "" for one that isn't there, without noting it again."""
        ref = REF.fullmatch(self.reader.text(node, key))
        name = (ref[2] or ref[3]) if ref else ""
        return name if name in self.tables.columns and name not in self.tables.views else ""

    def distinct(self, dashboard: Any, key: str, names: Iterable[str], taken: Iterable[str] = ()) -> None:
        """Note parts of one answer with the same name, or with one that is taken."""
        seen = set(taken)
        for name in names:
            if name in seen:
                place = self.reader.value_place(dashboard, key)
                self.reader.problem("SR111", place, f"two parts of one answer are called `{name}`", "name: ANOTHER")
            seen.add(name)
