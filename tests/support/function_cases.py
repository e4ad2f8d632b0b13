"""Parser of `cases/functions/*.case`: examples of functions and operators with Spark's results.

`function NAME` or `operator NAME` is in the first column. Below it are indented examples, one on each line: an
expression (or a whole SELECT from `t`), an arrow, and the value. The arrow says what DuckDB does: `=>` returns the
same value, `*>` is rejected before it runs (SR310), `!>` raises an error at runtime, `~>` returns another value, for a
reason in `sqlrun/transpile/function_catalogue.py`. `error` stands for a Spark error, with its class.
SQLRUN_WRITE=1 pytest tests/spark/test_functions_spark.py rewrites arrows and values.
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
# The rows for aggregates and window functions.
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
    """One example; `subject` is its function or operator."""

    place: str
    kind: str
    subject: str
    sql: str
    arrow: str
    value: str

    @property
    def by_itself(self) -> bool:
        """Return whether the example needs its own query: it returns rows or an error, or its plan is expensive."""
        rows_of_its_own = self.sql.startswith("select ") or " over (" in self.sql
        return rows_of_its_own or "(distinct" in self.sql or self.value.startswith("error")

    @property
    def has_clock(self) -> bool:
        """Return whether the example uses the current time, for which Spark itself would return another value."""
        return re.search(r"\b(now|curdate|current_\w+)\b", self.sql) is not None


def read(path: Path) -> list[Example]:
    """Return the examples of a file; an invalid line is an error with its place."""
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
    """Rewrite a file, with its comments."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("#")]
    subject = ""
    for example in examples:
        if example.subject != subject:
            lines += ["", f"{example.kind} {example.subject}"]
            subject = example.subject
        lines.append(f"  {example.sql} {example.arrow} {example.value}")
    path.write_text("\n".join(lines) + "\n")


def statement(examples: list[Example]) -> str:
    """Return one query with the values of all examples, in columns c0, c1, ..."""
    first = examples[0].sql
    if first.startswith("select "):
        return f"{ROWS}\n{first}"
    items = ", ".join(f"{example.sql} as c{number}" for number, example in enumerate(examples))
    return f"{ROWS}\nselect {items} from t" if _looks_at_rows(examples[0]) else f"select {items}"


def _looks_at_rows(example: Example) -> bool:
    return example.place.startswith(("aggregates", "rows"))


def compiled(examples: list[Example]) -> Query:
    """Return examples parsed by sqlrun, as a model's query."""
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
    """Return an example's query in an engine's dialect."""
    return whole_query({query.name: query}, query.name, (), MOMENT, dialect)


def rows(table: Any) -> str:
    """Return a result as text: rows sorted, separated by `|`."""
    return " | ".join(sorted("; ".join(shown(value) for value in row.values()) for row in table.to_pylist()))


def shown(value: Any) -> str:
    """Return a value as text that differs between types: 1 is not 1.0, a date not a time; a UTC time ends in Z."""
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
