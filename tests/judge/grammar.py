"""Random Spark SQL written as text, by a grammar of its own: no parser of sqlrun's has seen how it is written.

A query is a tree of pieces, so that a failing one can be made smaller: a piece may give way to a piece of its kind
inside it, or to the shortest text of its kind.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.support.memory import Table

# What stands where a table of the project is read, and where the tick's time is asked for.
READS, NOW = "<{}>", "<now>"
SHORTEST = {
    "int": "1", "bigint": "2L", "dec": "1.50", "double": "1e0", "string": "'a'", "boolean": "true",
    "date": "date '2026-01-01'", "timestamp": "timestamp '2026-01-01 12:00:00'", "?": "",
}  # fmt: skip
COLUMNS = {"k": "int", "i": "int", "b": "bigint", "m": "dec", "n": "dec", "s": "string", "u": "string",
           "t": "timestamp", "d": "date", "o": "boolean"}  # fmt: skip
# What a query's columns are where Spark doesn't say: it refuses the query.
SPARK_TYPES = {"dec": "decimal(38,6)", **{name: name for name in SHORTEST}}
FAMILIES = ("int", "bigint", "dec", "dec", "string", "boolean", "date", "timestamp")


@dataclass
class Piece:
    """A part of a query. `kind` names what could stand in its place; `?` may be left out, "" nothing else."""

    kind: str
    parts: list[Piece | str]

    def text(self) -> str:
        """Write the query."""
        return "".join(part if isinstance(part, str) else part.text() for part in self.parts)

    def pieces(self) -> Iterator[Piece]:
        """List this piece and all in it."""
        yield self
        for part in self.parts:
            if isinstance(part, Piece):
                yield from part.pieces()


def smaller(root: Piece) -> Iterator[None]:
    """Make a query smaller in place, one way at a time, and undo it; who wants to keep it stops there."""
    for piece in list(root.pieces()):
        if not piece.kind:
            continue
        before = piece.parts
        options: list[list[Piece | str]] = [[SHORTEST[piece.kind]]] if piece.kind in SHORTEST else []
        options += [list(one.parts) for one in piece.pieces() if one is not piece and one.kind == piece.kind]
        for option in options:
            if "".join(p if isinstance(p, str) else p.text() for p in option) != piece.text():
                piece.parts = option
                yield
                piece.parts = before


@dataclass(frozen=True)
class Col:
    """A column in scope."""

    text: str
    family: str


@dataclass
class Source:
    """What FROM reads: its text, its columns, and a column that is unique in it ("": there is none)."""

    piece: Piece
    columns: list[Col]
    key: str = ""


def tables() -> list[Table]:
    """Make the tables that queries read; the second lacks some columns."""
    kinds = {"k": "int", "i": "int", "b": "bigint", "m": "decimal(10,2)", "n": "decimal(18,4)", "s": "string",
             "u": "string", "t": "timestamp", "d": "date", "o": "boolean"}  # fmt: skip
    one = Table("t0", tuple(kinds.items()), ("k",), required=("k",))
    other = Table("t1", tuple((n, kinds[n]) for n in ("k", "i", "m", "s", "t")), ("k",), required=("k", "i"))
    return [one, other]


@dataclass
class Grammar:
    """Writes random queries."""

    rng: random.Random
    aliases: int = 0
    names: int = 0
    ctes: list[tuple[str, Source]] = field(default_factory=list)
    given: list[tuple[str, str]] = field(default_factory=list)

    def one(self, options: Sequence[str]) -> str:
        return self.rng.choice(options)

    def chance(self, one_in: int) -> bool:
        return self.rng.randrange(one_in) == 0

    def word(self, text: str) -> str:
        """Write keywords in any case."""
        return self.one((text, text, text.upper(), text.capitalize()))

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def made(self, kind: str, template: str, *inner: Piece) -> Piece:
        """Make a piece of a template, in which `{}` stands for each inner one."""
        parts: list[Piece | str] = []
        for text, piece in zip(template.split("{}"), (*inner, None), strict=True):
            parts.append(text)
            if piece is not None:
                parts.append(piece)
        return Piece(kind, parts)

    # Values

    def value(self, columns: Sequence[Col], family: str, depth: int) -> Piece:
        """Write an expression of a family."""
        own = [c.text for c in columns if c.family == family]
        if depth <= 0 or (own and self.chance(3)):
            return Piece(family, [self.one(own) if own and not self.chance(6) else self.literal(family)])
        template, *families = self.form(family)
        made = self.made(family, template, *(self.value(columns, f, depth - 1) for f in families))
        # Spark's grammar takes no predicate of a predicate without brackets.
        return self.made(family, "({})", made) if family == "boolean" else made

    def literal(self, family: str) -> str:
        match family:
            case "int":
                return self.one(("0", "1", "2", "-3", "7", "(4)", "cast(null as int)"))
            case "bigint":
                return self.one(("5L", "-1L", "3000000000", "0L", "cast(2 as bigint)"))
            case "dec":
                return self.one(("1.50", "0.01", "-2.5", ".5", "100.0", "3.333", "1.5BD", "cast(7 as decimal(5,1))"))
            case "double":
                return self.one(("1e0", "2.5D", "1.5e1", "cast(0.5 as double)"))
            case "string":
                return self.one(("'a'", "'B'", '"b"', "''", "'a b'", "'it''s'", "'%'", "cast(null as string)"))
            case "boolean":
                return self.one(("true", "false", "cast(null as boolean)"))
            case "date":
                return self.one(("date '2026-01-01'", "DATE'2025-12-31'", "to_date('2026-01-02')"))
            case _:
                return self.one(
                    (
                        "timestamp '2026-01-01 12:00:00'",
                        "TIMESTAMP'2026-01-01 10:30:00'",
                        "to_timestamp('2026-01-02')",
                        NOW,
                    )
                )

    def form(self, family: str) -> tuple[str, ...]:
        """Draw a template and the families of what stands in it."""
        f = family
        shared = [
            ("coalesce({}, {})", f, f), ("case when {} then {} else {} end", "boolean", f, f), ("nvl({}, {})", f, f),
            ("CASE WHEN {} THEN {} END", "boolean", f), ("if({}, {}, {})", "boolean", f, f), ("nullif({}, {})", f, f),
            ("({})", f), ("case {} when {} then {} else {} end", "int", "int", f, f), ("greatest({}, {})", f, f),
            ("least({}, {})", f, f), ("nvl2({}, {}, {})", "string", f, f), ("ifnull({}, {})", f, f),
        ]  # fmt: skip
        own = FORMS[family]
        if family == "boolean":
            g = self.one(FAMILIES)
            own = [*own, *((form, *([g] * form.count("{}"))) for form in COMPARED)]
        return self.rng.choice([*own, *own, *shared])

    # Queries

    def item(self, piece: Piece, family: str) -> tuple[Piece, Col]:
        self.names += 1
        name = f"c{self.names}"
        as_ = self.one((" as ", " AS ", " "))
        return Piece("", [piece, f"{as_}{name}"]), Col(name, family)

    def relation(self, depth: int) -> Source:
        """Write what FROM reads, under an alias."""
        alias, kind = self.alias(), self.rng.randrange(8) if depth > 0 else 0
        as_ = self.one((" as ", " ", " AS "))
        if kind >= 6 and self.ctes:
            name, made = self.rng.choice(self.ctes)
            return Source(
                Piece("", [f"{name}{as_}{alias}"]), [Col(f"{alias}.{c.text}", c.family) for c in made.columns]
            )
        if kind in (4, 5):
            made = self.select(depth - 1)
            columns = [Col(f"{alias}.{c.text}", c.family) for c in made.columns]
            return Source(Piece("", ["(", made.piece, f"){as_}{alias}"]), columns)
        table = self.rng.choice(tables())
        columns = [Col(f"{alias}.{name}", COLUMNS[name]) for name, _ in table.columns]
        return Source(Piece("", [READS.format(table.name), as_, alias]), columns, f"{alias}.k")

    def source(self, depth: int) -> Source:
        made = self.relation(depth)
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            made = self.join(made, self.relation(depth - 1))
        return made

    def join(self, left: Source, right: Source) -> Source:
        kind = self.one(("join", "inner join", "left join", "LEFT OUTER JOIN", "right join", "full outer join",
                         "left semi join", "left anti join", "cross join"))  # fmt: skip
        if kind == "cross join":
            return Source(Piece("", [left.piece, " cross join ", right.piece]), left.columns + right.columns)
        family = self.one(("int", "int", "string"))
        on = self.made("", "{} {}", self.equality(left, right, family), self.more(left, right))
        piece = Piece("", [left.piece, f" {kind} ", right.piece, " on ", on])
        narrow = "semi" in kind or "anti" in kind
        return Source(piece, left.columns if narrow else left.columns + right.columns)

    def equality(self, left: Source, right: Source, family: str) -> Piece:
        sides = [
            [c.text for c in side.columns if c.family == family] or [self.literal(family)] for side in (left, right)
        ]
        return Piece("", [f"{self.one(sides[0])} {self.one(('=', '=', '=', '<=>', '=='))} {self.one(sides[1])}"])

    def more(self, left: Source, right: Source) -> Piece:
        if not self.chance(4):
            return Piece("", [""])
        return Piece("?", [" and ", self.value(left.columns + right.columns, "boolean", 1)])

    def where(self, source: Source) -> Piece:
        if not self.chance(2):
            return Piece("", [""])
        return Piece("?", [f" {self.word('where')} ", self.condition(source)])

    def condition(self, source: Source) -> Piece:
        if self.chance(6):
            inner = self.relation(0)
            mine, theirs = (
                self.one([c.text for c in side.columns if c.family == "int"] or ["1"]) for side in (source, inner)
            )
            form = self.one((
                "exists (select 1 from {} where %s = %s)", "not exists (select * from {} where %s = %s)",
                "%s in (select %s from {})", "%s >= (select min(%s) from {})", "%s > (select count(%s) from {})",
            ))  # fmt: skip
            return self.made("boolean", form % (mine, theirs), inner.piece)
        return self.value(source.columns, "boolean", 2)

    def select(self, depth: int) -> Source:
        """Write a SELECT, or several put together."""
        kind = self.one(("plain", "plain", "group", "group", "group", "window", "distinct", "set", "sets", "limit"))
        if kind == "set" and depth > 0:
            return self.set_operation(depth)
        source = self.source(depth)
        where = self.where(source)
        match kind:
            case "group":
                return self.group(source, where)
            case "sets":
                return self.group(source, where, sets=True)
            case "window":
                return self.window(source, where)
            case "limit" if source.key:
                return self.limited(source, where)
            case _:
                items = [self.drawn(source) for _ in range(self.rng.randint(1, 3))]
                head = "select distinct " if kind == "distinct" else f"{self.word('select')} "
                return self.put(head, items, source, where)

    def drawn(self, source: Source) -> tuple[Piece, Col]:
        family = self.one((*FAMILIES, "double"))
        return self.item(self.value(source.columns, family, 2), family)

    def put(self, head: str, items: list[tuple[Piece, Col]], source: Source, *tail: Piece) -> Source:
        parts: list[Piece | str] = [head]
        for number, (piece, _) in enumerate(items):
            parts += [", " if number else "", piece]
        parts += [self.one((" from ", "\nFROM ", " /* a, b */ from ")), source.piece, *tail]
        return Source(Piece("", parts), [column for _, column in items])

    def group(self, source: Source, where: Piece, *, sets: bool = False) -> Source:
        columns = [c for c in source.columns if c.family in ("int", "string", "boolean", "date", "dec")]
        keys = self.rng.sample(columns, min(len(columns), self.rng.choice((0, 1, 1, 2)) if not sets else 2))
        items = [self.item(Piece("", [key.text]), key.family) for key in keys]
        items += [self.aggregated(source) for _ in range(self.rng.randint(1, 3))]
        listed = ", ".join(key.text for key in keys)
        by = ""
        if keys:
            by = (
                f" group by {listed}"
                if not self.chance(5)
                else f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}"
            )
        if sets and len(keys) == 2:
            a, b = (key.text for key in keys)
            by = self.one((f" group by rollup({listed})", f" group by cube({listed})", f" group by {listed} with rollup",  # noqa: E501
                           f" group by grouping sets (({a}, {b}), ({a}), ())", f" group by grouping sets ({a}, {b})"))  # fmt: skip  # noqa: E501
        having = (
            Piece("?", [" having ", self.aggregate(source, "boolean")]) if keys and self.chance(4) else Piece("", [""])
        )
        return self.put("select ", items, source, where, Piece("", [by]), having)

    def aggregated(self, source: Source) -> tuple[Piece, Col]:
        family = self.one(("int", "bigint", "dec", "dec", "dec", "double", "string", "timestamp", "boolean"))
        return self.item(self.aggregate(source, family), family)

    def aggregate(self, source: Source, family: str) -> Piece:
        template, *families = self.rng.choice(AGGREGATES[family])
        made = self.made(family, template, *(self.value(source.columns, f, 1) for f in families))
        if family in ("dec", "bigint") and self.chance(3):
            outer = self.one(
                ("coalesce({}, 0)", "{} + 1", "- {}", "{} * 2", "round({}, 1)" if family == "dec" else "({})")
            )
            return self.made(family, outer, made)
        return made

    def window(self, source: Source, where: Piece) -> Source:
        items = [self.drawn(source)]
        part = self.one([c.text for c in source.columns if c.family in ("int", "string", "boolean")] or ["1"])
        order = ", ".join(f"{c.text}{self.one(('', ' desc', ' desc nulls last', ' nulls last', ' asc'))}"
                          for c in self.rng.sample(source.columns, 1))  # fmt: skip
        for _ in range(self.rng.randint(1, 2)):
            x = self.value(source.columns, "dec", 1)
            n = self.value(source.columns, "int", 1)
            forms: list[tuple[str, str, tuple[Piece, ...]]] = [
                (f"sum({{}}) over (partition by {part})", "dec", (x,)), (f"avg({{}}) over (partition by {part})", "dec", (x,)),  # noqa: E501
                (f"sum({{}}) over (partition by {part} order by {order})", "dec", (x,)), ("max({}) over ()", "int", (n,)),  # noqa: E501
                (f"rank() over (partition by {part} order by {order})", "int", ()),
                (f"dense_rank() over (order by {order})", "int", ()), (f"count({{}}) over (partition by {part})", "bigint", (n,)),  # noqa: E501
            ]  # fmt: skip
            if source.key:
                total = f"{order}, {source.key}"
                forms += [
                    (f"row_number() over (partition by {part} order by {total})", "int", ()),
                    (f"lag({{}}) over (order by {total})", "dec", (x,)),
                    (f"lead({{}}, 1, 0.0) over (partition by {part} order by {total})", "dec", (x,)),
                    (f"avg({{}}) over (order by {total} rows between 1 preceding and 1 following)", "dec", (x,)),
                    (f"first_value({{}}) over (partition by {part} order by {total})", "int", (n,)),
                ]
            template, family, inner = self.rng.choice(forms)
            items.append(self.item(self.made(family, template, *inner), family))
        return self.put("select ", items, source, where)

    def limited(self, source: Source, where: Piece) -> Source:
        items = [self.item(Piece("", [source.key]), "int"), self.drawn(source)]
        order = self.rng.choice(source.columns).text
        tail = f" order by {order}{self.one(('', ' desc', ' nulls last'))}, {source.key} limit {self.rng.randint(1, 3)}"
        return self.put("select ", items, source, where, Piece("", [tail]))

    def set_operation(self, depth: int) -> Source:
        families = [self.one(FAMILIES) for _ in range(self.rng.randint(1, 2))]
        sides = []
        for _ in range(2):
            source = self.source(depth - 1)
            items = [self.item(self.value(source.columns, family, 1), family) for family in families]
            sides.append((self.put("select ", items, source, self.where(source)), items))
        word = self.one(
            ("union all", "UNION", "union distinct", "except", "intersect", "except all", "intersect all", "minus")
        )
        left, right = (side.piece for side, _ in sides)
        piece = self.made("", self.one((f"{{}} {word} {{}}", f"({{}}) {word} ({{}})")), left, right)
        return Source(piece, [column for _, column in sides[0][1]])

    def query(self) -> Piece:
        """Write a whole query."""
        parts: list[Piece | str] = []
        for number in range(self.rng.choice((0, 0, 0, 1, 2))):
            made = self.select(1)
            parts += ["with " if not number else ", ", f"w{number + 1} as (", made.piece, ")"]
            self.ctes.append((f"w{number + 1}", made))
        if parts:
            parts.append(" ")
        made = self.select(2)
        self.given = [(column.text, SPARK_TYPES[column.family]) for column in made.columns]
        return Piece("", [*parts, made.piece])


COMPARED = (
    "{} = {}", "{} <> {}", "{} < {}", "{} >= {}", "{} <=> {}", "{} != {}", "{} is null", "{} is not null",
    "{} between {} and {}", "{} in ({}, {})", "{} not in ({}, {})", "{} is distinct from {}", "not {} > {}",
)  # fmt: skip
FORMS: dict[str, list[tuple[str, ...]]] = {
    "int": [
        ("{} + {}", "int", "int"), ("{} - {}", "int", "int"), ("{} % 5", "int"), ("abs({})", "int"),
        ("length({})", "string"), ("pmod({}, 3)", "int"), ("- {}", "int"), ("{} * 2", "int"), ("datediff({}, {})", "date", "date"),  # noqa: E501
        ("year({})", "date"), ("extract(hour from {})", "timestamp"), ("month({})", "timestamp"), ("sign({})::int", "dec"),  # noqa: E501
        ("cast({} as int)", "dec"), ("int({})", "boolean"), ("instr({}, 'a')", "string"), ("dayofweek({})", "date"),
        ("size(array({}, {}))", "int", "int"), ("mod({}, 4)", "int"), ("ascii({})", "string"), ("cast({} as int)", "double"),  # noqa: E501
        ("char_length({})", "string"), ("position('a' in {})", "string"), ("array({}, 5)[0]", "int"), ("day({})", "date"),  # noqa: E501
        ("aggregate(array({}, 2), 0, (p, x) -> p + x)", "int"), ("element_at(array(1, {}), -1)", "int"),
    ],
    "bigint": [
        ("{} + {}", "bigint", "int"), ("{} div 3", "int"), ("{} div nullif({}, 0)", "dec", "dec"), ("cast({} as bigint)", "int"),  # noqa: E501
        ("unix_timestamp({})", "timestamp"), ("floor({})", "double"), ("{} - 1", "bigint"), ("abs({})", "bigint"),
        ("ceil({} / 2)", "int"), ("bigint({})", "dec"), ("{} % 7", "bigint"), ("unix_seconds({})", "timestamp"),
    ],
    "dec": [
        ("{} + {}", "dec", "dec"), ("{} - {}", "dec", "int"), ("{} * {}", "dec", "dec"), ("{} / nullif({}, 0)", "dec", "dec"),  # noqa: E501
        ("{} / 3", "dec"), ("{} / nullif({}, 0)", "dec", "int"), ("{} % 0.7", "dec"), ("round({}, 1)", "dec"), ("abs({})", "dec"),  # noqa: E501
        ("ceil({}, 1)", "dec"), ("floor({}, 1)", "dec"), ("round({})", "dec"), ("cast({} as decimal(12,3))", "double"),
        ("cast({} as decimal(20,6))", "dec"), ("{} * 1.1", "dec"), ("pmod({}, 2.5)", "dec"), ("try_divide({}, {})", "dec", "dec"),  # noqa: E501
        ("- {}", "dec"), ("cast({} as decimal(10,2))", "int"), ("round({}, -1)", "dec"), ("{} / 0.7", "int"),
        ("{} * {}", "dec", "bigint"), ("round({}, 2)", "dec"), ("cast(cast({} as string) as decimal(18,4))", "dec"),
        ("floor({})", "dec"), ("ceiling({})", "dec"), ("mod({}, 1.25)", "dec"), ("try_divide({}, 3)", "dec"),
        ("transform(array({}), x -> x / 7)[0]", "dec"), ("element_at(array({}, 1.25), 1)", "dec"),
    ],
    "double": [
        ("{} / 3", "int"), ("{} / 2.5D", "int"), ("sqrt(abs({}))", "dec"), ("cast({} as double)", "dec"),
        ("{} * {}", "double", "dec"), ("round({}, 2)", "double"), ("power({}, 2)", "int"), ("{} + 1", "double"),
        ("try_divide({}, 0)", "int"), ("abs({})", "double"), ("{} / 2L", "bigint"), ("double({})", "int"),
    ],
    "string": [
        ("upper({})", "string"), ("concat({}, '-', {})", "string", "string"), ("{} || {}", "string", "string"),
        ("substring({}, 1, 2)", "string"), ("cast({} as string)", "int"), ("cast({} as string)", "dec"), ("trim({})", "string"),  # noqa: E501
        ("lower({})", "string"), ("substr({}, -1)", "string"), ("replace({}, 'a', 'x')", "string"), ("reverse({})", "string"),  # noqa: E501
        ("cast({} as string)", "date"), ("date_format({}, 'yyyy-MM')", "timestamp"), ("lpad({}, 3, '*')", "string"),
        ("substring({} from 1 for 1)", "string"), ("left({}, 1)", "string"), ("concat_ws(',', {}, {})", "string", "string"),  # noqa: E501
        ("trim(both ' ' from {})", "string"), ("repeat({}, 2)", "string"), ("cast({} as string)", "boolean"),
        ("regexp_replace({}, '[ab]', '_')", "string"), ("initcap({})", "string"), ("split({}, ' ')[0]", "string"),
        ("cast({} as string)", "timestamp"), ("translate({}, 'ab', 'xy')", "string"), ("cast({} as string)", "double"),
    ],
    "boolean": [
        ("{} and {}", "boolean", "boolean"), ("({} or {})", "boolean", "boolean"), ("not ({})", "boolean"),
        ("{} like 'a%'", "string"), ("{} rlike '^[ab]'", "string"), ("{} is true", "boolean"), ("{} not like '_'", "string"),  # noqa: E501
        ("{} is not false", "boolean"), ("contains({}, 'a')", "string"), ("{} > {}", "dec", "int"), ("startswith({}, 'a')", "string"),  # noqa: E501
        ("{} > {}", "dec", "double"), ("{} = {}", "int", "bigint"), ("exists(array({}, 1), x -> x > 1)", "int"),
        ("{} <= {}", "date", "timestamp"), ("{} ilike 'A%'", "string"), ("array_contains(array({}, 2), 2)", "int"),
    ],
    "date": [
        ("date_add({}, 1)", "date"), ("{} + interval 1 day", "date"), ("cast({} as date)", "timestamp"), ("last_day({})", "date"),  # noqa: E501
        ("date_sub({}, {})", "date", "int"), ("trunc({}, 'MM')", "date"), ("{} - interval '1' month", "date"), ("date({})", "timestamp"),  # noqa: E501
        ("add_months({}, 1)", "date"), ("to_date(cast({} as string))", "date"), ("next_day({}, 'mon')", "date"),
    ],
    "timestamp": [
        ("{} + interval 1 hour", "timestamp"), ("date_trunc('hour', {})", "timestamp"), ("cast({} as timestamp)", "date"),  # noqa: E501
        ("{} - interval '90' minute", "timestamp"), ("date_trunc('DAY', {})", "timestamp"), ("timestamp({})", "date"),
        ("{} + interval 2 days", "timestamp"),
        ("timestampadd(minute, 5, {})", "timestamp"), ("to_timestamp(cast({} as string))", "timestamp"),
    ],
}  # fmt: skip
AGGREGATES: dict[str, list[tuple[str, ...]]] = {
    "int": [("max({})", "int"), ("min({})", "int"), ("cast(count(*) as int)",), ("max({}) filter (where {})", "int", "boolean")],  # noqa: E501
    "bigint": [("count(*)",), ("sum({})", "int"), ("count({})", "string"), ("count(distinct {})", "string"), ("sum({})", "bigint"),  # noqa: E501
               ("count_if({})", "boolean"), ("sum({}) filter (where {})", "int", "boolean"), ("COUNT(1)",),
               ("count(distinct {}, {})", "int", "string"), ("sum(distinct {})", "int")],
    "dec": [("sum({})", "dec"), ("avg({})", "dec"), ("max({})", "dec"), ("sum({}) / count(*)", "dec"), ("avg({}) / 3", "dec"),  # noqa: E501
            ("sum({}) / nullif(sum({}), 0)", "dec", "dec"), ("mean({})", "dec"), ("avg({}) filter (where {})", "dec", "boolean"),  # noqa: E501
            ("sum({}) * 1.5", "dec"), ("avg(distinct {})", "dec"), ("round(avg({}), 2)", "dec"), ("sum({} * {})", "dec", "dec"),  # noqa: E501
            ("sum({}) - min({})", "dec", "dec"), ("sum(case when {} then {} else 0 end)", "boolean", "dec"), ("avg({} / 3)", "dec")],  # noqa: E501
    "double": [("avg({})", "int"), ("sum({}) / count(*)", "int"), ("stddev({})", "int"), ("var_pop({})", "dec"), ("corr({}, {})", "int", "dec"),  # noqa: E501
               ("median({})", "int"), ("percentile({}, 0.5)", "dec"), ("regr_slope({}, {})", "int", "int"), ("avg({})", "bigint"),  # noqa: E501
               ("covar_samp({}, {})", "int", "dec"), ("regr_r2({}, {})", "dec", "int"), ("stddev_pop({})", "dec"),
               ("percentile_cont(0.25) within group (order by {})", "dec"), ("kurtosis({})", "int"), ("regr_intercept({}, {})", "int", "int")],  # noqa: E501
    "string": [("max({})", "string"), ("min({})", "string")],
    "timestamp": [("max({})", "timestamp"), ("min({})", "timestamp")],
    "boolean": [("count(*) > 1",), ("bool_or({})", "boolean"), ("every({})", "boolean"), ("max({}) > 1", "int"), ("sum({}) > 2", "dec"),  # noqa: E501
                ("avg({}) >= 1", "dec"), ("some({})", "boolean"), ("min({}) is null", "string")],
}  # fmt: skip
