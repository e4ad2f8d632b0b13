"""Random expressions whose answer is one: no clocks but the tick's, no ties, no sums over doubles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.schemas import Draw

# Types by their family: what may be compared and computed together.
FAMILY = {
    "int": "int",
    "bigint": "int",
    "decimal(10,2)": "decimal",
    "string": "string",
    "timestamp": "timestamp",
    "date": "date",
    "boolean": "boolean",
    "array<int>": "ints",
    "array<struct<x:int,y:string>>": "structs",
    "struct<x:int,y:string>": "struct",
}
LITERALS = {
    "int": ("1", "2", "0", "3"),
    "decimal": ("1.00", "2.50", "0.00"),
    "string": ("'a'", "'b'", "'z'"),
    "timestamp": ("timestamp '2026-01-01 12:00:00'", "timestamp '2026-01-01 10:00:00'"),
    "date": ("date '2026-01-01'", "date '2026-01-02'"),
    "boolean": ("true", "false"),
}
PLAIN = tuple(LITERALS)
COMPARED = ("int", "decimal", "string", "timestamp", "date")


@dataclass(frozen=True)
class Col:
    """A column that an expression may read: its text, its output name, the family of its type."""

    text: str
    name: str
    family: str
    required: bool = False


class Expressions:
    """Draws expressions over columns in scope."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def pick(self, options: Sequence[Any]) -> Any:
        return options[0] if len(options) == 1 else self.draw(st.sampled_from(options))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1

    def families(self, columns: Sequence[Col], among: Sequence[str] = PLAIN) -> list[str]:
        found = list(dict.fromkeys(c.family for c in columns if c.family in among))
        return found or ["int"]

    def column(self, columns: Sequence[Col], family: str) -> str:
        """Draw a column of a family; a literal where there is none."""
        found = [c.text for c in columns if c.family == family]
        return self.pick(found) if found else self.pick(LITERALS[family])

    def value(self, columns: Sequence[Col], family: str, depth: int = 1) -> str:
        """Draw an expression of a family."""
        if depth == 0 or self.chance(2):
            return self.column(columns, family)
        c = self.column(columns, family)
        other = self.value(columns, family, depth - 1)
        shared = (
            f"coalesce({c}, {other})",
            f"case when {self.test(columns, depth - 1)} then {c} else {other} end",
            f"case when {self.test(columns, depth - 1)} then {other} end",
            f"nullif({c}, {other})",
        )
        return self.pick((*self._own(columns, family, c, other), *shared))

    def _own(self, columns: Sequence[Col], family: str, c: str, other: str) -> tuple[str, ...]:
        have = {col.family for col in columns}
        match family:
            case "int":
                more = (f"length({self.column(columns, 'string')})",) if "string" in have else ()
                more += (f"size({self.column(columns, 'ints')})",) if "ints" in have else ()
                more += (f"aggregate({self.column(columns, 'ints')}, 0, (s, x) -> s + x)",) if "ints" in have else ()
                more += (f"{self.column(columns, 'struct')}.x",) if "struct" in have else ()
                more += (f"hour({self.column(columns, 'timestamp')})",) if "timestamp" in have else ()
                return (f"{c} + {other}", f"{c} - 1", f"{c} * 2", f"abs({c})", f"greatest({c}, {other})", *more)
            case "decimal":
                return (f"{c} + {other}", f"{c} - 1.50", f"-{c}", f"abs({c})", f"least({c}, {other})")
            case "string":
                more = (f"{self.column(columns, 'struct')}.y",) if "struct" in have else ()
                more += (f"cast({self.column(columns, 'int')} as string)",) if "int" in have else ()
                return (f"upper({c})", f"concat({c}, '-', {other})", f"substring({c}, 1, 1)", *more)
            case "timestamp":
                return (f"{c} + interval 1 hour", f"date_trunc('hour', {c})", f"{c} - interval 90 minutes")
            case "date":
                more = (f"cast({self.column(columns, 'timestamp')} as date)",) if "timestamp" in have else ()
                return (f"date_add({c}, 1)", *more)
            case "boolean":
                return (f"not {c}",)
        return ()

    def nested(self, columns: Sequence[Col], family: str) -> str:
        """Draw an expression of a nested type that a column has."""
        c = self.column(columns, family)
        match family:
            case "ints":
                return self.pick((c, f"transform({c}, x -> x + 1)", f"filter({c}, x -> x > 1)", f"array_sort({c})"))
            case "structs":
                return self.pick((c, f"filter({c}, z -> z.y = 'a')"))
        return str(c)

    def test(self, columns: Sequence[Col], depth: int = 1) -> str:
        """Draw a condition."""
        if depth and self.chance(4):
            left, right = self.test(columns, depth - 1), self.test(columns, depth - 1)
            return self.pick((f"({left} and {right})", f"({left} or {right})", f"not ({left})"))
        family = self.pick(self.families(columns))
        a = self.column(columns, family)
        if family == "boolean":
            return self.pick((a, f"{a} is null", f"not {a}", f"{a} is true"))
        b = self.value(columns, family, max(depth - 1, 0)) if self.chance(2) else self.pick(LITERALS[family])
        sign = self.pick(("=", "<", ">", "<=", ">=", "<>", "<=>"))
        options = [f"{a} {sign} {b}", f"{a} is null", f"{a} is not null"]
        listed = ", ".join(LITERALS[family][:2])
        options += [f"{a} in ({listed})", f"{a} not in ({listed})"]
        options += [f"{a} between {LITERALS[family][0]} and {b}"]
        if family == "string":
            options += [f"{a} like 'a%'", f"{a} not like '_'"]
        arrays = [c.text for c in columns if c.family == "ints"]
        if arrays:
            options.append(f"exists({arrays[0]}, x -> x > 1)")
        return self.pick(options)

    def window_of_time(self, column: str) -> str:
        """Draw a condition that moves with as_of."""
        now, width = "current_timestamp()", f"interval {self.pick(('1 hour', '2 hours', '30 minutes', '1 day'))}"
        far = "interval 3 days"
        return self.pick(
            (
                f"{column} > {now} - {width} and {column} <= {now}",
                f"{column} > {now} - {width}",
                f"{column} <= {now}",
                f"{column} < {now} - {width}",
                f"{column} between {now} - {far} and {now} - {width}",
                f"{column} >= {now} - {width} and {column} < {now} + {width}",
                f"{column} + {width} > {now}",
            )
        )

    def clocked(self, columns: Sequence[Col]) -> str:
        """Draw a number that is computed from as_of."""
        times = [c.text for c in columns if c.family == "timestamp"]
        if not times:
            return "hour(current_timestamp())"
        at = self.pick(times)
        return self.pick(
            (
                f"case when {at} > current_timestamp() - interval 1 hour then 1 else 0 end",
                f"datediff(current_date(), cast({at} as date))",
                f"case when {at} <= current_timestamp() then 'past' end",
            )
        )

    def aggregate(self, columns: Sequence[Col]) -> tuple[str, str]:
        """Draw an aggregate; its family is '' where nothing should be computed from it (doubles, lists)."""
        numbers = self.families(columns, ("int", "decimal"))
        number = self.pick(numbers)
        n = self.value(columns, number, 1)
        any_family = self.pick(self.families(columns, COMPARED))
        v = self.column(columns, any_family)
        test = self.test(columns, 0)
        call, family = self.pick(
            (
                (f"sum({n})", number),
                ("count(*)", "int"),
                (f"count({v})", "int"),
                (f"min({v})", any_family),
                (f"max({v})", any_family),
                (f"avg({n})", ""),
                (f"count(distinct {v})", "int"),
                (f"count_if({test})", "int"),
                (f"sum(distinct {n})", number),
                (f"bool_or({test})", "boolean"),
                (f"bool_and({test})", "boolean"),
                (f"var_pop({n})", ""),
                (f"stddev({n})", ""),
                (f"array_sort(collect_list({v}))", ""),
                (f"array_sort(collect_set({v}))", ""),
            )
        )
        if self.chance(6):
            inner = call.removeprefix("array_sort(").removesuffix(")") if call.startswith("array_sort") else call
            filtered = f"{inner} filter (where {test})"
            call = f"array_sort({filtered})" if inner != call else filtered
        return call, family
