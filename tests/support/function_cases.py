"""Reads `cases/functions/*.case`: examples of functions and operators, each with what Spark says of it.

`function NAME` or `operator NAME` in the first column; below, indented, one example a line: an expression (or a
whole SELECT from `t`), an arrow, and the value. The arrow says what DuckDB does: `=>` gives the same value, `*>` is
refused before it runs (SR310), `!>` ends in an error while it runs, `~>` gives another value, for a reason that
`sqlrun/transpile/function_catalogue.py` notes. `error` stands for an error of Spark's, with its class.
SQLRUN_WRITE=1 pytest tests/spark/test_functions_spark.py writes the arrows and values anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from sqlrun.errors import Place
from sqlrun.incremental.compile import whole_query
from sqlrun.incremental.script import Moment
from sqlrun.parse import parse
from sqlrun.parse.parse import Query
from sqlrun.project import Column, Config, Model, Project, Rendered

CASES = Path(__file__).parents[1] / "cases" / "functions"
FILES = sorted(CASES.glob("*.case"))
MOMENT = Moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc), None)
# The rows that aggregates and window functions look at.
ROWS = """with t as (
    select 1 as k, 3 as i, cast(1.50 as decimal(10,2)) as d, cast(0.5 as double) as x, 'b' as s, true as b,
        timestamp '2026-01-02 03:04:05' as at
    union all select 2, cast(null as int), cast(null as decimal(10,2)), cast(null as double), cast(null as string),
        cast(null as boolean), cast(null as timestamp)
    union all select 3, -2, cast(2.25 as decimal(10,2)), cast(1.5 as double), 'a', false,
        timestamp '2026-01-01 00:00:00'
    union all select 4, 3, cast(-0.75 as decimal(10,2)), cast(2.0 as double), '', true,
        timestamp '2026-01-03 00:00:00'
)"""
ARROWS = {"=>": "same", "*>": "refused", "!>": "error", "~>": "other"}


@dataclass
class Example:
    """One example. `subject` is the function or operator that it is one of."""

    place: str
    kind: str
    subject: str
    sql: str
    arrow: str
    value: str

    @property
    def by_itself(self) -> bool:
        """Tell whether the example stands alone in its query: it gives rows or an error, or its plan is a dear one."""
        rows_of_its_own = self.sql.startswith("select ") or " over (" in self.sql
        return rows_of_its_own or "(distinct" in self.sql or self.value.startswith("error")

    @property
    def has_clock(self) -> bool:
        """Tell whether the example asks for the time, which Spark itself would tell as it is now."""
        return re.search(r"\b(now|curdate|current_\w+)\b", self.sql) is not None


def read(path: Path) -> list[Example]:
    """Read a file; a line that is none of the above is an error with its place."""
    found: list[Example] = []
    kind = subject = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path.name}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] != " ":
            kind, _, subject = line.partition(" ")
            if kind not in ("function", "operator") or not subject:
                raise ValueError(f"{place}: a first column holds `function NAME` or `operator NAME`")
            continue
        parts = re.fullmatch(r"  (.*) ([=*!~]>) (.*)", line)
        if parts is None:
            raise ValueError(f"{place}: an example is an expression, an arrow and a value")
        found.append(Example(place, kind, subject, parts[1], parts[2], parts[3]))
    return found


def write(path: Path, examples: list[Example]) -> None:
    """Write a file anew, with its comments."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("#")]
    subject = ""
    for example in examples:
        if example.subject != subject:
            lines += ["", f"{example.kind} {example.subject}"]
            subject = example.subject
        lines.append(f"  {example.sql} {example.arrow} {example.value}")
    path.write_text("\n".join(lines) + "\n")


def statement(examples: list[Example]) -> str:
    """Write one query that gives the values of all examples, in columns c0, c1, ..."""
    first = examples[0].sql
    if first.startswith("select "):
        return f"{ROWS}\n{first}"
    items = ", ".join(f"{example.sql} as c{number}" for number, example in enumerate(examples))
    return f"{ROWS}\nselect {items} from t" if _looks_at_rows(examples[0]) else f"select {items}"


def _looks_at_rows(example: Example) -> bool:
    return example.place.startswith(("aggregates", "rows"))


def compiled(examples: list[Example]) -> Query:
    """Take examples through the gate, as a model's query."""
    sql = statement(examples)
    columns = tuple(Column(f"c{n}", "string", "", Place("x")) for n in range(len(examples)))
    model = Model("example", "example.sql", sql, "example.yml", "", (), False, columns, Config(), ())
    if examples[0].sql.startswith("select "):
        bare = parse._qualify(parse._parse(rendered(model)), rendered(model), {"ref": {}}).tree
        columns = tuple(Column(name, "string", "", Place("x")) for name in bare.named_selects)
        model = Model("example", "example.sql", sql, "example.yml", "", (), False, columns, Config(), ())
    project = Project("", "", "", {}, (model,), (), (), (), ())
    return parse.project([rendered(model)], project)[0]


def rendered(model: Model) -> Rendered:
    return Rendered(model, model.sql, (), (), tuple(range(1, model.sql.count("\n") + 2)), Config())


def text(query: Query, dialect: Any) -> str:
    """Write an example's query for an engine."""
    return whole_query({query.name: query}, query.name, (), MOMENT, dialect)


def rows(table: Any) -> str:
    """Write a result as text: rows sorted, apart by `|`."""
    return " | ".join(sorted("; ".join(shown(value) for value in row.values()) for row in table.to_pylist()))


def shown(value: Any) -> str:
    """Write a value so that other types have other texts: 1 is no 1.0, a date no time, a time in UTC ends in Z."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.encode("unicode_escape").decode().replace("'", "\\'") + "'"
        case float():
            digits = f"{value:.12g}"
            return digits if re.search("[.en]", digits) else f"{digits}.0"
        case bytes():
            return f"x{value.hex()}"
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ") + ("Z" if value.tzinfo else "")
        case date():
            return value.isoformat()
        case list() if value and all(isinstance(item, tuple) for item in value):
            return "{" + ", ".join(f"{shown(key)}: {shown(item)}" for key, item in value) + "}"
        case list():
            return "[" + ", ".join(shown(item) for item in value) + "]"
        case dict():
            return "(" + ", ".join(f"{key}: {shown(item)}" for key, item in value.items()) + ")"
        case _:
            return str(value)
