"""A project with one model for each query of test_random.py, over two landed sources with changes of all kinds.

`events` and `shops` are the latest versions of landed rows, so that rows are added, updated and deleted; `log` is
append-only.
"""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from tests.incremental.test_random import EVENTS, LOG, QUERIES, SHOPS
from tests.support.memory import Memory, View

FIELDS = {
    "events": (("id", "string"), ("version", "int"), ("gone", "boolean"), ("shop", "string"), ("kind", "string"),
               ("amount", "decimal(10,2)"), ("at", "timestamp"), ("n", "int")),
    "shops": (("shop", "string"), ("version", "int"), ("gone", "boolean"), ("name", "string")),
    "log": (("key", "string"), ("version", "int"), ("shop", "string"), ("amount", "decimal(10,2)"),
            ("items", "array<struct<dish:string,quantity:int>>")),
}  # fmt: skip
NEWEST = (
    "select {columns} from (select * from {{{{ ref('landed_{name}') }}}} "
    "qualify row_number() over (partition by {key} order by version desc) = 1) where not gone"
)


def write_project(folder: Path, names: tuple[str, ...] = tuple(QUERIES)) -> Path:
    """Write the project's files and return its folder; `names` selects queries."""
    models = folder / "models"
    models.mkdir(parents=True)
    (folder / "profiles").mkdir()
    (folder / "profiles" / "duckdb.yml").write_text("engine: duckdb\nwarehouse: warehouse\n")
    settings = '[project]\nname = "operators"\nversion = "0"\n\n[tool.sqlrun]\nname = "operators"\nprofile = "duckdb"\n'
    (folder / "pyproject.toml").write_text(settings)
    sources = [_source(name, fields) for name, fields in FIELDS.items()]
    (models / "_sources.yml").write_text(
        json.dumps({"sources": [{"name": "raw", "description": "d", "tables": sources}]})
    )
    for name, fields in FIELDS.items():
        (folder / "data" / name).mkdir(parents=True)
        listed = ", ".join(column for column, _ in fields)
        landed = name if name == "log" else f"landed_{name}"
        grain = [fields[0][0], "version"]
        _model(models, landed, f"select {listed} from {{{{ source('raw', '{name}') }}}}", fields, grain, repeats=True)
    for table in (EVENTS, SHOPS):
        key = table.grain[0]
        sql = NEWEST.format(columns=", ".join(c for c, _ in table.columns), name=table.name, key=key)
        _model(models, table.name, sql, table.columns, list(table.grain))
    for number, name in enumerate(names):
        _query_model(models, f"q{number}", QUERIES[name])
    return folder


def _source(name: str, fields: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return {"name": name, "description": "d", "format": "json", "path": f"data/{name}", "columns": _columns(fields)}


def _columns(fields: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"name": column, "data_type": kind, "description": "d"} for column, kind in fields]


def _model(
    folder: Path, name: str, sql: str, fields: Any, grain: list[str], repeats: bool = False, **config: Any
) -> None:
    (folder / f"{name}.sql").write_text(sql + "\n")
    contract: dict[str, Any] = {"name": name, "description": "d", "columns": _columns(fields)}
    if grain:
        contract["grain"] = grain
    if repeats:
        contract["repeats"] = True
    if config:
        contract["config"] = config
    (folder / f"{name}.yml").write_text(json.dumps({"models": [contract]}))


def _query_model(folder: Path, name: str, view: View) -> None:
    memory = Memory([EVENTS, LOG, SHOPS], [view])
    columns = tuple((c.name, c.type) for c in memory.compiled[-1].query.rendered.model.columns)
    config = {"partition_by": list(view.partition_by)} if view.partition_by else {}
    _model(folder, name, _with_refs(view.sql), columns, list(view.grain), **config)


def _with_refs(sql: str) -> str:
    tree = sqlglot.parse_one(sql, read="databricks")
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if table.name in ("events", "shops", "log") and table.name not in ctes:
            alias = table.alias_or_name
            table.set("this", exp.to_identifier(f"__ref_{table.name}__"))
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    text = tree.sql("databricks")
    for name in ("events", "shops", "log"):
        text = text.replace(f"__ref_{name}__", f"{{{{ ref('{name}') }}}}")
    return text


class Play:
    """Writer of files of lines: rows that are added, corrected, deleted, restored, repeated, or in the future."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.versions: dict[tuple[str, str], int] = {}
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.file = 0

    def write(self, now: datetime, count: int) -> None:
        """Write one file for each source with lines from before a tick."""
        self.file += 1
        found: dict[str, list[dict[str, Any]]] = {"events": [], "shops": [], "log": []}
        for _ in range(count):
            name, line = self._line(now)
            found[name].append(line)
        for name, lines in found.items():
            if lines:
                path = self.folder / "data" / name / f"{self.file:04d}.jsonl"
                path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def _line(self, now: datetime) -> tuple[str, dict[str, Any]]:
        pick = self.random
        if self.lines and pick.random() < 0.1:
            return pick.choice(self.lines)
        name = pick.choices(["events", "shops", "log"], [6, 1, 3])[0]
        made = {"events": self._event, "shops": self._shop, "log": self._log}[name](now)
        self.lines.append((name, made))
        return name, made

    def _version(self, table: str, key: str) -> int:
        self.versions[table, key] = self.versions.get((table, key), 0) + 1
        return self.versions[table, key]

    def _maybe(self, value: Any, share: float = 0.1) -> Any:
        return None if self.random.random() < share else value

    def _event(self, now: datetime) -> dict[str, Any]:
        pick = self.random
        key = f"e{pick.randint(1, 40)}"
        at = now - timedelta(minutes=pick.choice([0, 5, 30, 60, 61, 120, 179, 180, 240, -30, -90]))
        return {
            "id": key,
            "version": self._version("events", key),
            "gone": pick.random() < 0.15,
            "shop": self._maybe(pick.choice("xyz")),
            "kind": self._maybe(pick.choice("abc")),
            "amount": self._maybe(pick.choice(["1.00", "2.50", "7.00", "12.00"])),
            "at": self._maybe(at.strftime("%Y-%m-%dT%H:%M:%SZ"), 0.05),
            "n": self._maybe(pick.randint(0, 3)),
        }

    def _shop(self, now: datetime) -> dict[str, Any]:
        del now
        key = self.random.choice("xyz")
        name = self._maybe(f"shop {key}{self.random.randint(1, 3)}")
        gone = self.random.random() < 0.3
        return {"shop": key, "version": self._version("shops", key), "gone": gone, "name": name}

    def _log(self, now: datetime) -> dict[str, Any]:
        del now
        pick = self.random
        key = f"k{pick.randint(1, 6)}"
        items = [{"dish": pick.choice("pqr"), "quantity": pick.randint(1, 3)} for _ in range(pick.randint(0, 3))]
        return {
            "key": key,
            "version": self._version("log", key),
            "shop": self._maybe(pick.choice("xyz")),
            "amount": self._maybe(f"{pick.randint(1, 9)}.00"),
            "items": self._maybe(items),
        }
