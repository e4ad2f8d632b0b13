"""Random queries over random tables: each has one answer, whatever engine or order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.expressions import COMPARED, FAMILY, PLAIN, Col, Expressions
from tests.fuzz.schemas import Draw
from tests.support.memory import Table, View


@dataclass(frozen=True)
class Rel:
    """Something to read from: what stands in FROM, its columns, and those that are unique together, if any are."""

    text: str
    columns: tuple[Col, ...]
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Out:
    """A query's text and what it gives; a family of '' may be shown, but nothing is computed from it."""

    text: str
    columns: tuple[Col, ...]
    key: tuple[str, ...] = ()


def of_table(table: Table) -> Rel:
    columns = tuple(Col(n, n, FAMILY[kind], n in table.required) for n, kind in table.columns)
    return Rel(table.name, columns, table.grain)


class Queries:
    """Draws one query: CTEs are collected on the way."""

    def __init__(self, draw: Draw, relations: Sequence[Rel], first_name: int = 1) -> None:
        self.expressions = Expressions(draw)
        self.draw, self.pick, self.chance = draw, self.expressions.pick, self.expressions.chance
        self.relations = list(relations)
        self.ctes: list[tuple[str, Out]] = []
        self.aliases, self.next_name = 0, first_name

    def query(self) -> Out:
        """Draw a whole query."""
        body = self.body(2, top=True)
        if self.ctes:
            listed = ", ".join(f"{name} as ({out.text})" for name, out in self.ctes)
            body = Out(f"with {listed} {body.text}", body.columns, body.key)
        return body

    def body(self, depth: int, *, top: bool = False) -> Out:
        kinds = ["select"] * 3 + ["group"] * 3 + ["window", "set", "sets", "distinct", "limit", "latest"]
        kind = self.pick(kinds)
        if kind == "set":
            return self.set_operation(depth)
        source, where = self.source(depth), ""
        conditions = self.conditions(source)
        if conditions:
            where = f" where {' and '.join(conditions)}"
        tail = f" from {source.text}{where}"
        match kind:
            case "group":
                return self.group(source, tail)
            case "sets":
                return self.grouping_sets(source, tail)
            case "window":
                return self.window(source, tail)
            case "distinct":
                out = self.project(source, tail, nested=False)
                return Out(
                    out.text.replace("select", "select distinct", 1), out.columns, tuple(c.name for c in out.columns)
                )
            case "limit" if source.key:
                return self.limited(source, tail)
            case "latest" if source.key:
                return self.latest(source, tail)
        return self.project(source, tail)

    # FROM

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def relation(self, depth: int) -> Rel:
        """Draw something to read: a table, a CTE (perhaps for the second time), a subquery; under an alias."""
        alias = self.alias()
        kind = self.pick(("table", "table", "cte", "again", "subquery") if depth else ("table",))
        if kind == "cte" or (kind == "again" and not self.ctes):
            out = self.body(depth - 1)
            name = f"w{len(self.ctes) + 1}"
            self.ctes.append((name, out))
            made = Rel(name, out.columns, out.key)
        elif kind == "again":
            name, out = self.pick(self.ctes)
            made = Rel(name, out.columns, out.key)
        elif kind == "subquery":
            out = self.body(depth - 1)
            made = Rel(f"({out.text})", out.columns, out.key)
        else:
            made = self.pick(self.relations)
        columns = tuple(Col(f"{alias}.{c.name}", c.name, c.family, c.required) for c in made.columns)
        return Rel(f"{made.text} as {alias}", columns, tuple(f"{alias}.{k}" for k in made.key))

    def source(self, depth: int) -> Rel:
        made = self.relation(depth)
        for _ in range(self.pick((0, 0, 1, 1, 2)) if depth else self.pick((0, 0, 1))):
            made = self.join(made, self.relation(max(depth - 1, 0)))
        arrays = [c for c in made.columns if c.family in ("ints", "structs")]
        if arrays and self.chance(2):
            made = self.explode(made, self.pick(arrays))
        return made

    def join(self, left: Rel, right: Rel) -> Rel:
        kind = self.pick(
            ("join", "left join", "join", "right join", "full join", "left semi join", "left anti join", "cross join")
        )
        if kind == "cross join":
            left = _without(left, {c.name for c in right.columns})
            both = left.columns + right.columns
            return Rel(
                f"{left.text} cross join {right.text}", both, left.key + right.key if left.key and right.key else ()
            )
        by_name = self.same_names(left, right) if self.chance(3) else []
        if by_name:
            text, left = self.join_using(left, kind, right, self.pick(by_name))
        else:
            left = _without(left, {c.name for c in right.columns})
            text = f"{left.text} {kind} {right.text} on {self.join_condition(left, right)}"
        if "semi" in kind or "anti" in kind:
            return Rel(text, left.columns, left.key)
        sides = [left, right]
        if kind in ("left join", "full join"):
            sides[1] = _optional(right)
        if kind in ("right join", "full join"):
            sides[0] = _optional(left)
        columns = sides[0].columns + sides[1].columns
        known = {c.text for c in left.columns + right.columns if c.required}
        keyed = left.key and right.key and (kind == "join" or set(left.key + right.key) <= known)
        return Rel(text, columns, left.key + right.key if keyed else ())

    def same_names(self, left: Rel, right: Rel) -> list[Col]:
        """List the columns that a join may be told by name: one on each side, of one family."""
        theirs = {c.name: c for c in right.columns}
        bare = {c.name for c in left.columns if "." not in c.text}
        own = [c for c in left.columns if "." not in c.text or c.name not in bare]
        names = [c.name for c in own]
        return [
            c for c in own
            if names.count(c.name) == 1 and c.name in theirs and theirs[c.name].family == c.family in COMPARED
        ]  # fmt: skip

    def join_using(self, left: Rel, kind: str, right: Rel, shared: Col) -> tuple[str, Rel]:
        """Join by a column's name; what it gives under that name alone is a column too."""
        text = f"{left.text} {kind} {right.text} using ({shared.name})"
        rest = _without(left, {c.name for c in right.columns})
        return text, Rel(rest.text, (*rest.columns, Col(shared.name, shared.name, shared.family)), rest.key)

    def join_condition(self, left: Rel, right: Rel) -> str:
        shared = [
            f
            for f in COMPARED
            if any(c.family == f for c in left.columns) and any(c.family == f for c in right.columns)
        ]
        if not shared:
            return "true"
        conditions = []
        for _ in range(self.pick((1, 1, 2))):
            family = self.pick(shared)
            a, b = (self.pick([c.text for c in side.columns if c.family == family]) for side in (left, right))
            sign = self.pick(("=", "=", "=", "<", ">=", "<=>", "<>"))
            conditions.append(f"{a} {sign} {b}")
        if self.chance(5):
            conditions.append(self.expressions.test(left.columns + right.columns, 0))
        return " and ".join(conditions)

    def explode(self, made: Rel, array: Col) -> Rel:
        alias, outer = self.alias(), self.pick(("", "outer "))
        text = f"{made.text} lateral view {outer}posexplode({array.text}) {alias} as p, e"
        if array.family == "ints":
            element: tuple[Col, ...] = (Col(f"{alias}.e", "e", "int"),)
        else:
            element = (Col(f"{alias}.e.x", "ex", "int"), Col(f"{alias}.e.y", "ey", "string"))
        place = Col(f"{alias}.p", "p", "int")
        return Rel(text, (*made.columns, place, *element), (*made.key, place.text) if made.key else ())

    # WHERE

    def conditions(self, source: Rel) -> list[str]:
        made = []
        if self.chance(2):
            made.append(self.expressions.test(source.columns))
        times = [c.text for c in source.columns if c.family == "timestamp"]
        if times and self.chance(2):
            made.append(self.expressions.window_of_time(self.pick(times)))
        if self.chance(5):
            made.append(self.subquery_test(source))
        return made

    def subquery_test(self, source: Rel) -> str:
        """Draw a condition with a subquery, perhaps correlated."""
        inner = self.relation(0)
        outer = [c for c in source.columns if c.family in ("int", "string") and "." in c.text]
        own = [c for c in inner.columns if c.family in ("int", "string")]
        if not own:
            return f"exists (select 1 from {inner.text})"
        mine = self.pick(own)
        fitting = [c for c in outer if c.family == mine.family]
        more = f" and {self.expressions.test(inner.columns, 0)}" if self.chance(2) else ""
        if not fitting:
            return f"exists (select 1 from {inner.text} where {mine.text} is not null{more})"
        theirs = self.pick(fitting).text
        word = self.pick(("", "not "))
        where = f" where true{more}" if more else ""
        tied = f"from {inner.text} where {mine.text} = {theirs}{more}"
        return self.pick(
            (
                f"{word}exists (select max({mine.text}), count(*) {tied})",
                f"({word}exists (select max({mine.text}) {tied}) or {theirs} is null)",
                f"{word}exists (select 1 {tied} having count(*) {self.pick(('> 1', '= 0', '< 2'))})",
                f"{word}exists (select {mine.text} {tied} limit {self.pick((0, 1))})",
                f"{word}exists (select {mine.text}, count(*) {tied} group by {mine.text})",
                f"{theirs} {word}in (select max({mine.text}) {tied})",
                f"{word}exists (select 1 from {inner.text} where {mine.text} = {theirs}{more})",
                f"{theirs} {word}in (select {mine.text} from {inner.text}{where})",
                f"(select count(*) from {inner.text} where {mine.text} = {theirs}{more}) > 0",
                f"{theirs} = (select max({mine.text}) from {inner.text}{where})",
            )
        )

    # SELECT

    def items(self, values: Sequence[tuple[str, str, bool]]) -> tuple[str, tuple[Col, ...]]:
        """Name values (text, family, required) `c1`, `c2`, ...: engines resolve a name used twice each its own way."""
        names = [f"c{self.next_name + n}" for n in range(len(values))]
        self.next_name += len(values)
        text = ", ".join(f"{value} as {name}" for name, (value, _, _) in zip(names, values, strict=True))
        return text, tuple(Col(n, n, f, r) for n, (_, f, r) in zip(names, values, strict=True))

    def project(self, source: Rel, tail: str, *, nested: bool = True) -> Out:
        keyed = bool(source.key) and not self.chance(4)
        by_text = {c.text: c for c in source.columns}
        values = [(k, by_text[k].family, by_text[k].required) for k in source.key] if keyed else []
        families = self.expressions.families(source.columns)
        for _ in range(self.draw(st.integers(0 if keyed else 1, 3))):
            family = self.pick(families)
            values.append((self.expressions.value(source.columns, family, 2), family, False))
        kept = [c for c in source.columns if c.family in ("ints", "structs", "struct")]
        if kept and nested and self.chance(2):
            one = self.pick(kept)
            values.append((self.expressions.nested(source.columns, one.family), one.family, False))
        if self.chance(10):
            values.append((self.expressions.clocked(source.columns), "", False))
        if self.chance(10):
            values.append((self.scalar(source), "int", False))
        text, columns = self.items(values)
        return Out(f"select {text}{tail}", columns, tuple(c.name for c in columns[: len(source.key)]) if keyed else ())

    def scalar(self, source: Rel) -> str:
        """Draw a scalar subquery, perhaps correlated."""
        inner = self.relation(0)
        number = self.pick([c.text for c in inner.columns if c.family == "int"] or ["1"])
        call = self.pick((f"max({number})", "count(*)", f"sum({number})"))
        outer = [c.text for c in source.columns if c.family == "int" and "." in c.text]
        where = f" where {number} = {self.pick(outer)}" if outer and self.chance(2) else ""
        return f"(select {call} from {inner.text}{where})"

    def group(self, source: Rel, tail: str) -> Out:
        families = self.expressions.families(source.columns)
        keys = []
        for _ in range(self.pick((1, 1, 2, 0))):
            family = self.pick(families)
            keys.append((self.expressions.value(source.columns, family, self.pick((0, 0, 1))), family, False))
        keys = list({k[0]: k for k in keys if k[0] in {c.text for c in source.columns} or "." in k[0]}.values())
        calls = [(*self.expressions.aggregate(source.columns), False) for _ in range(self.draw(st.integers(1, 3)))]
        text, columns = self.items([*keys, *calls])
        by = f" group by {', '.join(k[0] for k in keys)}" if keys else ""
        having = (
            f" having {self.pick(('count(*) > 1', 'count(*) < 3', 'min(1) = 1'))}" if keys and self.chance(5) else ""
        )
        return Out(f"select {text}{tail}{by}{having}", columns, tuple(c.name for c in columns[: len(keys)]))

    def grouping_sets(self, source: Rel, tail: str) -> Out:
        families = self.expressions.families(source.columns)
        drawn = [self.expressions.column(source.columns, self.pick(families)) for _ in range(2)]
        chosen = [c for c in dict.fromkeys(drawn) if c in {column.text for column in source.columns}]
        if not chosen:
            return self.group(source, tail)
        listed = ", ".join(chosen)
        places = ", ".join(str(n + 1) for n in range(len(chosen)))
        forms = [f"rollup({listed})", f"cube({listed})", f"grouping sets (({chosen[-1]}), ())"]
        forms += [f"{listed} with rollup", f"{listed} with cube", f"rollup({places})", f"{places} with cube"]
        if len(chosen) > 1:  # else the set would be there twice, and its key no key
            forms.append(f"grouping sets (({listed}), ({chosen[0]}))")
            forms.append(f"{listed} grouping sets (({chosen[1]}), ({chosen[0]}))")
            forms.append(f"{listed} grouping sets (({places}), (2))")
            forms += [f"{chosen[0]}, rollup({chosen[1]})", f"rollup({chosen[0]}), cube({chosen[1]})", "1, cube(2)"]
        by = self.pick(forms)
        used = chosen if not by.startswith("grouping sets ((" + chosen[-1] + "), ()") else chosen[-1:]
        by_text = {c.text: c for c in source.columns}
        keys = [(c, by_text[c].family, False) for c in used]
        calls = [(*self.expressions.aggregate(source.columns), False) for _ in range(self.draw(st.integers(1, 2)))]
        text, columns = self.items([*keys, ("grouping_id()", "int", True), *calls])
        return Out(f"select {text}{tail} group by {by}", columns, tuple(c.name for c in columns[: len(keys) + 1]))

    def window(self, source: Rel, tail: str) -> Out:
        families = self.expressions.families(source.columns)
        partition = self.expressions.column(source.columns, self.pick(families))
        parts = f"partition by {partition}" if not self.chance(8) else ""
        order = self.expressions.column(source.columns, self.pick(families))
        down = self.pick(("", " desc")) + self.nulls()
        total = ", ".join((f"{order}{down}", *source.key))
        number = self.expressions.column(
            source.columns, self.pick(self.expressions.families(source.columns, ("int", "decimal")))
        )
        family = self._family(number, source)
        calls: list[tuple[str, str]] = [
            (f"rank() over ({parts} order by {order}{down})", "int"),
            (f"dense_rank() over ({parts} order by {order}{down})", "int"),
            (f"count(*) over ({parts})", "int"),
            (f"sum({number}) over ({parts} order by {order}{down})", family),
            (f"max({number}) over ({parts})", family),
            (f"cume_dist() over ({parts} order by {order})", ""),
        ]
        if source.key:
            calls += [
                (f"row_number() over ({parts} order by {total})", "int"),
                (f"row_number() over ({parts} order by {total})", "int"),
                (f"lag({number}) over ({parts} order by {total})", family),
                (f"lead({number}, 1, 0) over ({parts} order by {total})", family),
                (f"sum({number}) over ({parts} order by {total} rows between 1 preceding and current row)", family),
                (f"first_value({number}) over ({parts} order by {total})", family),
                (f"ntile(2) over ({parts} order by {total})", "int"),
            ]
        families_of = {c.text: c.family for c in source.columns}
        values = [(k, families_of[k], False) for k in source.key] or [
            (partition, self._family(partition, source), False)
        ]
        for _ in range(self.pick((1, 1, 2))):
            values.append((*self.pick(calls), False))
        text, columns = self.items(values)
        qualify = ""
        ranks = [c.name for c, v in zip(columns, values, strict=True) if "row_number" in v[0] or "rank()" in v[0]]
        if ranks and self.chance(2):
            qualify = f" qualify {ranks[0]} <= {self.pick((1, 2))}"
        return Out(f"select {text}{tail}{qualify}", columns, tuple(c.name for c in columns[: len(source.key)]))

    def _family(self, text: str, source: Rel) -> str:
        found = next((c.family for c in source.columns if c.text == text), None)
        if found:
            return found
        return "decimal" if "." in text and text[0].isdigit() else ("string" if text.startswith("'") else "int")

    def latest(self, source: Rel, tail: str) -> Out:
        by_text = {c.text: c for c in source.columns}
        partition = source.key[0] if self.chance(2) else self.expressions.column(source.columns, self.pick(COMPARED))
        order = self.expressions.column(source.columns, self.pick(self.expressions.families(source.columns)))
        total = ", ".join(
            (f"{order}{self.pick((' desc', ''))}{self.nulls()}", *(f"{k} desc{self.nulls()}" for k in source.key))
        )
        shown = [c for c in source.columns if c.text in source.key or self.chance(2)]
        text, columns = self.items([(c.text, c.family, c.required) for c in shown])
        names = {c.text: out.name for c, out in zip(shown, columns, strict=True)}
        key = tuple(names[k] for k in source.key)
        assert set(source.key) <= set(by_text)
        over = f"row_number() over (partition by {partition} order by {total})"
        return Out(f"select {text}{tail} qualify {over} = 1", columns, key)

    def nulls(self) -> str:
        """Draw where NULLs stand in an order; mostly where Spark puts them."""
        return self.pick(("", "", " nulls first", " nulls last"))

    def limited(self, source: Rel, tail: str) -> Out:
        out = self.project(Rel(source.text, source.columns, source.key), tail)
        order = self.expressions.column(source.columns, self.pick(self.expressions.families(source.columns)))
        total = ", ".join((f"{order}{self.pick(('', ' desc'))}{self.nulls()}", *source.key))
        return Out(f"{out.text} order by {total} limit {self.pick((2, 1, 3))}", out.columns, out.key)

    def other_names(self, values: list[str], first: list[str]) -> str:
        """Name the columns of a later branch: not at all, all alike, or after each other; '' for names of their own."""
        word = self.pick(("", "bare", "alike", "swapped"))
        names = {"bare": [""] * len(values), "alike": ["z"] * len(values), "swapped": _swapped(first)}.get(word, [])
        return ", ".join(f"{v} as {n}" if n else v for v, n in zip(values, names, strict=False))

    def set_operation(self, depth: int) -> Out:
        families = [self.pick(PLAIN) for _ in range(self.pick((1, 2)))]
        sides, names = [], ()
        for _ in range(2):
            source = self.source(max(depth - 1, 0))
            conditions = self.conditions(source)
            where = f" where {' and '.join(conditions)}" if conditions else ""
            values = [(self.expressions.value(source.columns, f, self.pick((0, 1))), f, False) for f in families]
            text, columns = self.items(values)
            if names:  # a set operation goes by its first side's names
                text = self.other_names([value for value, _, _ in values], [c.name for c in names]) or text
            names = names or columns
            sides.append(f"select {text} from {source.text}{where}")
        word = self.pick(("union all", "union", "union all", "except", "intersect", "except all", "intersect all"))
        key = () if "all" in word else tuple(c.name for c in names)
        return Out(f"{sides[0]} {word} {sides[1]}", names, key)


def _swapped(names: list[str]) -> list[str]:
    return [*names[1:], names[0]]


def _without(side: Rel, names: set[str]) -> Rel:
    """Leave out the columns that are named without a table and would have two meanings."""
    return Rel(side.text, tuple(c for c in side.columns if "." in c.text or c.name not in names), side.key)


def _optional(side: Rel) -> Rel:
    return Rel(side.text, tuple(Col(c.text, c.name, c.family) for c in side.columns), side.key)


@st.composite
def views(draw: Any, made: list[Table]) -> list[View]:
    """One model, or two of which the second reads the first (a table, or a view written into it)."""
    relations = [of_table(table) for table in made]
    found: list[View] = []
    for number in range(draw(st.sampled_from((1, 1, 1, 2)))):
        queries = Queries(draw, relations, 100 * number + 1)
        out = queries.query()
        name = f"v{number + 1}"
        grain = out.key if out.key and draw(st.integers(0, 2)) < 2 else ()
        kind = "table" if number or draw(st.integers(0, 2)) else "view"
        plain = [c.name for c in out.columns if c.family in ("int", "string", "date")]
        parts = tuple(plain[:1]) if kind == "table" and draw(st.integers(0, 3)) == 3 else ()
        found.append(View(name, out.text, grain, kind, parts))
        # A model is read where the next one may compute with it.
        columns = tuple(c for c in out.columns)
        relations = [Rel(name, columns, grain), Rel(name, columns, grain), *(of_table(table) for table in made)]
    if found[-1].materialized == "view":
        found[-1] = replace(found[-1], materialized="table")
    return found
