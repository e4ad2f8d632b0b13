"""A single query over tables of every type, as a project's model: rejected with a code and a place, or maintained."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import duckdb

from sqlrun.engines.duckdb import binding
from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.parse.parse import Query, _admitted, _qualify, schema_of
from sqlrun.project import Column, Model, Rendered
from sqlrun.transpile.templates import UnlikeSparkError
from tests.support.memory import START, Bag, Memory, Table, View, _contract

T = Table(
    "t",
    (
        ("id", "int"), ("k", "int"), ("b", "bigint"), ("x", "decimal(10,2)"), ("f", "double"), ("s", "string"),
        ("d", "date"), ("at", "timestamp"), ("o", "boolean"), ("ai", "array<int>"), ("ar", "array<string>"),
        ("m", "map<string,int>"), ("st", "struct<p:int,q:string>"), ("y", "binary"),
    ),
    ("id",),
    required=("id",),
)  # fmt: skip
U = Table("u", (("uid", "int"), ("k", "int"), ("s", "string"), ("x", "decimal(10,2)"), ("d", "date")), ("uid",),
          required=("uid",))  # fmt: skip
W = Table("w", (("k", "int"), ("s", "string"), ("at", "timestamp")), grows=True)
# Texts that DuckDB parses as values.
T_ROWS: list[tuple[str | None, ...]] = [
    ("1", "1", "10", "1.25", "0.5", "a", "2026-01-31", "2026-01-31 10:20:30", "true", "[1, 2, 2]", "[a, b]",
     "{a=1, b=2}", "{p: 1, q: x}", "abc"),
    ("2", "1", "20", "2.50", "1.5", "12", "2026-02-28", "2026-02-28 23:59:59", "false", "[]", "[]", "{}",
     "{p: 2, q: NULL}", ""),
    ("3", "2", *[None] * 12),
    ("4", None, "-7", "-3.75", "-2.5", "", "2024-02-29", "2024-02-29 00:00:00", "true", "[NULL, 5]", "[NULL, z]",
     "{z=NULL}", "{p: NULL, q: y}", "a"),
]  # fmt: skip
U_ROWS: list[tuple[str | None, ...]] = [
    ("1", "1", "a", "1.25", "2026-01-31"), ("2", "3", "b", "9.00", None), ("3", None, None, None, None),
]  # fmt: skip
W_ROWS: list[tuple[str | None, ...]] = [("1", "a", "2026-01-01 00:00:00"), (None, None, None)]
Changes = dict[str, list[tuple[int, tuple[str | None, ...]]]]
STEPS: tuple[Changes, ...] = (
    {"t": [(1, row) for row in T_ROWS[:2]], "u": [(1, row) for row in U_ROWS[:2]]},
    {"t": [(1, row) for row in T_ROWS[2:]], "w": [(1, row) for row in W_ROWS]},
    {"t": [(-1, T_ROWS[0])], "u": [(-1, U_ROWS[1]), (1, U_ROWS[2])]},
    {"t": [(1, T_ROWS[0])], "u": [(-1, U_ROWS[0])]},
    {},
)


@dataclass(frozen=True)
class Verdict:
    """Outcome of a query: rejected with problems, maintained by a method with these final rows, or wrong."""

    problems: tuple[Problem, ...] = ()
    method: str = ""
    rows: Bag | None = None
    wrong: str = ""

    @property
    def refused(self) -> bool:
        return bool(self.problems)

    def __str__(self) -> str:
        if self.wrong:
            return f"WRONG {self.wrong}"
        if self.problems:
            return " / ".join(f"{p.code} {p.place.line}:{p.place.column} {p.message} {p.hint}" for p in self.problems)
        return f"kept by {self.method}"


class Probed(Memory):
    """A `Memory` whose queries name tables as `ref.t`, like rendered ones, so that places stay."""

    def _with_refs(self, sql: str, names: list[str]) -> str:
        return sql

    def _describe(
        self, model: Model, names: list[str], models: list[Model], queries: dict[str, Query]
    ) -> tuple[Column, ...]:
        lines = tuple(range(1, model.sql.count("\n") + 2))
        rendered = Rendered(model, model.sql, tuple(names), (), lines, model.config)
        schema = schema_of(self._project(models))
        tree = _qualify(_admitted(rendered, schema, ()), rendered, schema).tree
        try:
            return super()._describe(model, names, models, queries)
        except (duckdb.Error, UnlikeSparkError):  # it is rejected, or should be
            return tuple(Column(name, "string", "", Place(name)) for name in dict.fromkeys(tree.named_selects))

    def fit(self) -> binding.Fit:
        """Return DuckDB's binding of the models."""
        inputs = [self._model(t.name, "", _contract(t), t.grain, "table") for t in self.tables]
        return binding.Fit(self._project([*inputs, *(c.query.rendered.model for c in self.compiled)]), self.compiled)


def verdict(sql: str, grain: tuple[str, ...] = ()) -> Verdict:
    """Compile a query and play it over five ticks; each must return the result of the whole query."""
    try:
        memory = Probed([T, U, W], [View("v", sql, grain)])
    except ProjectError as error:
        return Verdict(error.problems)
    problems = memory.fit().problems("v")
    if problems:
        return Verdict(problems)
    (model,) = memory.compiled
    now, rows = START, None
    for number, changes in enumerate(STEPS):
        for table, changed in changes.items():
            memory.change(table, changed)
        try:
            memory.step(now)
            rows, whole = memory.kept("v"), memory.oracle("v", now)
        except duckdb.Error as error:
            return Verdict(method=model.own.method, wrong=f"tick {number}: {str(error).splitlines()[0]}")
        if rows != whole:
            return Verdict(method=model.own.method, wrong=f"tick {number}: {rows - whole} against {whole - rows}")
        now += timedelta(minutes=5)
    return Verdict(method=model.own.method, rows=rows)
