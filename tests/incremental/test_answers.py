"""The answers of each operator, compared with its rows in DuckDB over small tables, before and after a tick."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.incremental import functional_dependencies, properties
from sqlrun.incremental.algebra import Node, Type
from sqlrun.incremental.expressions import column
from sqlrun.incremental.file_ranges import Range, Read
from sqlrun.incremental.operators.affected import Affected, restrict
from sqlrun.incremental.operators.aggregate import Aggregate
from sqlrun.incremental.operators.explode import Explode
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.join import Join
from sqlrun.incremental.operators.latest import Latest, OrderKey
from sqlrun.incremental.operators.moving import Moving
from sqlrun.incremental.operators.project import Project
from sqlrun.incremental.operators.registry import OPERATORS
from sqlrun.incremental.operators.scan import Scan
from sqlrun.incremental.operators.single import Single
from sqlrun.incremental.operators.temporal import Bound, Temporal
from sqlrun.incremental.operators.union_all import UnionAll
from sqlrun.incremental.operators.window import Window
from sqlrun.incremental.script import WEIGHT, Moment, Script
from sqlrun.transpile import parameters
from tests.support.memory import Bag, bag, connect

PREVIOUS = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
MOMENT = Moment(PREVIOUS + timedelta(hours=2), PREVIOUS)
DIALECTS: tuple[Dialect, ...] = ("duckdb", "spark")


def parsed(text: str) -> exp.Expr:
    """Return an expression over columns without a table, their names quoted as translate leaves them."""
    return sqlglot.parse_one(text, read="databricks").transform(
        lambda one: column(one.name) if isinstance(one, exp.Column) else one
    )


def window(text: str) -> exp.Window:
    made = parsed(text)
    assert isinstance(made, exp.Window)
    return made


def scan(name: str, columns: dict[str, Type], *, only_grows: bool = False) -> Scan:
    return Scan(name, tuple(columns), tuple(columns.values()), (next(iter(columns)),), only_grows=only_grows)


NUMBER, TIME = Type("int", True), Type("timestamp", True)
COLUMNS = {"k": Type("int", False), "g": NUMBER, "n": NUMBER, "seen": TIME, "xs": Type("array<int>", True)}
T = scan("t", COLUMNS)
GROWING = scan("grown", COLUMNS, only_grows=True)
U = scan("u", {"uk": Type("int", False), "ug": NUMBER, "un": NUMBER})
MORE = scan("more", dict(zip(U.columns, U.kinds, strict=True)), only_grows=True)
ON_GROUP = ((column("g"), column("ug")),)
ON_KEY = ((column("g"), column("uk")),)
CLOCKED = (("k", column("k")), ("late", parsed("seen < current_timestamp()")))
HOUR = parsed("interval '1' hour")
EXAMPLES: dict[str, Node] = {
    "scan": T,
    "scan: growing": GROWING,
    "single": Single(),
    "filter": Filter(T, parsed("n > 2")),
    "filter: growing": Filter(GROWING, parsed("n > 2")),
    "filter: equality": Filter(T, parsed("n = g")),
    "project": Project(T, (("key", column("k")), ("twice", parsed("n + n")), ("one", parsed("1")))),
    "project: without the key": Project(GROWING, (("g", column("g")),)),
    "project: clock": Project(T, CLOCKED),
    "project: clock, growing": Project(GROWING, CLOCKED),
    "explode": Explode(T, column("xs"), "x", "place"),
    "explode: outer, growing": Explode(GROWING, column("xs"), "x", "place", outer=True),
    "explode: no position": Explode(T, column("xs"), "x"),
    "union_all": UnionAll((T, GROWING)),
    "union_all: constants": UnionAll(
        tuple(Project(one, (("side", parsed(str(n))), ("k", column("k")))) for n, one in enumerate((T, GROWING)))
    ),
    "join": Join(T, U, "inner", ON_GROUP),
    "join: one partner": Join(T, U, "inner", ON_KEY, parsed("n <> un")),
    "join: left": Join(T, U, "left", ON_GROUP),
    "join: left, one partner": Join(T, U, "left", ON_KEY),
    "join: semi": Join(T, U, "semi", ON_GROUP),
    "join: anti": Join(T, U, "anti", ON_GROUP),
    "join: left, growing": Join(GROWING, MORE, "left", ON_GROUP),
    "join: anti, growing": Join(GROWING, MORE, "anti", ON_GROUP),
    "aggregate": Aggregate(T, (("g", column("g")),), (("total", parsed("sum(n)")), ("many", parsed("count(*)")))),
    "aggregate: computed key": Aggregate(T, (("odd", parsed("n % 2")),), (("best", parsed("max(n)")),)),
    "aggregate: whole table": Aggregate(T, (), (("best", parsed("max(n)")),)),
    "aggregate: growing": Aggregate(GROWING, (("g", column("g")),), (("best", parsed("max(n)")),)),
    "window": Window(T, ("g",), (("rank", window("row_number() over (partition by g order by k)")),)),
    "window: growing": Window(GROWING, ("g",), (("total", window("sum(n) over (partition by g)")),)),
    "temporal": Temporal(T, column("seen"), Bound(">", HOUR), Bound("<=")),
    "temporal: growing": Temporal(GROWING, column("seen"), None, Bound("<=")),
    "temporal: leaving alone": Temporal(GROWING, column("seen"), Bound(">", HOUR), None),
    "moving": Moving(T, parsed("seen < current_timestamp() or n = 1")),
    "moving: growing": Moving(GROWING, parsed("seen > current_timestamp()")),
    "latest": Latest(T, ("g",), (OrderKey("n", True, False), OrderKey("k", True, False))),
    "latest: growing": Latest(GROWING, ("g",), (OrderKey("k", True, False),)),
    "affected": Affected(T, "relation", (("g", "k1"),)),
}
# (k, g, n, hours after the first tick, xs) of the tables before and after: unchanged, inserted, deleted and corrected
# rows.
STAYING = [(1, 1, 3, -2, [1, 2]), (2, 1, 4, -1, []), (3, 2, None, 0, None), (4, None, 5, 1, [5, 5]), (9, 9, 1, 3, [9])]
OLD = [*STAYING, (5, 2, 2, -1, [1]), (6, 3, 6, 1, [2]), (7, 3, 3, None, [7])]
NEW = [*STAYING, (5, 1, 2, 1, [1, 3]), (6, 3, 1, 1, [2]), (8, 4, 9, 2, [None, 4]), (10, None, 1, -3, [1])]
OTHER_OLD = [(1, 1, 3), (2, 3, 6), (3, 2, 1), (4, None, 4), (5, 3, 6)]
OTHER_NEW = [(1, 1, 3), (2, 3, 5), (3, 4, 1), (4, None, 4), (9, 1, None)]


def loaded(connection: duckdb.DuckDBPyConnection, name: str, types: str, old: list[str], new: list[str]) -> None:
    came, left = Counter(new) - Counter(old), Counter(old) - Counter(new)
    weighted = [f"{row}, {weight}" for rows, weight in ((came, 1), (left, -1)) for row in rows.elements()]
    for row_set, rows, columns in (
        ("old", old, types), ("new", new, types), ("changes", weighted, f"{types}, {WEIGHT} int")
    ):  # fmt: skip
        connection.execute(f"create table {name}__{row_set} ({columns})")
        connection.execute(f"insert into {name}__{row_set} values {', '.join(f'({row})' for row in rows)}")


def written(rows: list[tuple[int, int | None, int | None, int | None, list[int | None] | None]]) -> list[str]:
    texts = []
    for k, g, n, hours, xs in rows:
        at = "null" if hours is None else f"timestamptz '{PREVIOUS + timedelta(hours=hours)}'"
        texts.append(f"{k}, {g}, {n}, {at}, {xs}".replace("None", "null"))
    return texts


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = connect()
    types = "k int, g int, n int, seen timestamptz, xs int[]"
    loaded(connection, "t", types, written(OLD), written(NEW))
    grown = [*OLD, *(row for row in NEW if row[0] in (8, 10))]
    loaded(connection, "grown", types, written(OLD), written(grown))
    others = [[f"{k}, {g}, {n}".replace("None", "null") for k, g, n in rows] for rows in (OTHER_OLD, OTHER_NEW)]
    loaded(connection, "u", "uk int, ug int, un int", *others)
    loaded(connection, "more", "uk int, ug int, un int", others[0], [*others[0], "9, 1, null", "10, 4, 7"])
    connection.execute("create table relation (k1 int, k2 int)")
    connection.execute("insert into relation values (1, 1), (null, 4), (3, 6)")
    yield connection
    connection.close()


def script(dialect: Dialect = "duckdb") -> Script:
    return Script(dialect, MOMENT.clock, frozenset({"t", "grown", "u", "more"}))


def at_its_time(text: str) -> str:
    return parameters.filled(text, MOMENT.parameters, "duckdb")


def rows(node: Node, row_set: str, connection: duckdb.DuckDBPyConnection, columns: str = "*") -> Bag:
    statement = script()
    source = statement.rows(node, row_set)
    return bag(connection, at_its_time(statement.text(f"select {columns} from {source}")))


def change(
    node: Node, connection: duckdb.DuckDBPyConnection, instead: Mapping[str, str] | None = None
) -> Counter[tuple[object, ...]]:
    """Return the weights of a node's change, added up, with some relations replaced by others."""
    statement = script()
    source = statement.changes(node)
    if source is None:
        return Counter()
    names = statement.names(node.columns)
    added: Counter[tuple[object, ...]] = Counter()
    text = at_its_time(statement.text(f"select {names}, {WEIGHT} from {source}"))
    for relation, other in (instead or {}).items():
        text = text.replace(relation, other)
    for row, times in bag(connection, text).items():
        added[row[:-1]] += row[-1] * times
    return Counter({row: weight for row, weight in added.items() if weight})


def difference(node: Node, connection: duckdb.DuckDBPyConnection) -> Counter[tuple[object, ...]]:
    new, old = rows(node, "new", connection), rows(node, "old", connection)
    return Counter({row: new[row] - old[row] for row in new | old if new[row] != old[row]})


each = pytest.mark.parametrize("node", EXAMPLES.values(), ids=EXAMPLES.keys())


def test_every_operator_has_an_example() -> None:
    assert {type(node) for node in EXAMPLES.values()} == set(OPERATORS)


@each
def test_every_operator_answers_every_question(node: Node) -> None:
    """The answers have the right form, in the dialects of both engines."""
    inputs, unique, key = node.children(), node.grain(), node.columns[:1]

    assert type(node.with_children(inputs)) is type(node)
    assert node.with_children(inputs).columns == node.columns
    assert tuple(node.types()) == node.columns
    assert unique is None or set(unique) <= set(node.columns)
    assert {type(said) for said in (node.has_copies(), node.needs_state(), node.keeps_rows(), node.reads_clock())} == {
        bool
    }
    assert all(isinstance(needed, frozenset) for needed, _ in node.dependencies())
    assert bool(node.tables()) == isinstance(node, Scan)
    assert node.reads_everything() is None or node.reads_everything().code.startswith("SR5")  # type: ignore[union-attr]
    assert all(isinstance(read, Read) for read in node.reads_beside_changes(MOMENT))
    assert node.restricted("relation", {node.columns[0]: "k1"})[0].columns == node.columns
    for dialect in DIALECTS:
        statement = script(dialect)
        texts = [node.rows(statement, "new"), *node.changes(statement), *node.support(key, statement)]
        for text in texts:
            sqlglot.parse_one(text, read=dialect)


@each
def test_the_change_is_the_difference(node: Node, tables: duckdb.DuckDBPyConnection) -> None:
    assert change(node, tables) == difference(node, tables)


@each
def test_append_only_operators_never_delete_rows(node: Node, tables: duckdb.DuckDBPyConnection) -> None:
    """Over append-only inputs; the clock alone changes nothing where it isn't read."""
    if properties.only_grows(node):
        assert min(difference(node, tables).values(), default=1) > 0
    if not node.reads_clock():
        later = Script("duckdb", MOMENT.clock, frozenset())
        assert later.changes(node) is None


@each
def test_grains_and_dependencies_hold(node: Node, tables: duckdb.DuckDBPyConnection) -> None:
    for row_set in ("old", "new"):
        found = [dict(zip(node.columns, row, strict=True)) for row in rows(node, row_set, tables).elements()]
        unique = node.grain()
        if unique is not None:
            assert len({tuple(row[c] for c in unique) for row in found}) == len(found)
        for given in node.columns:
            fixed = functional_dependencies.by(node, [given])
            pairs = {(row[given], tuple(row[c] for c in sorted(fixed))) for row in found}
            assert len(pairs) == len({one for one, _ in pairs}), (given, fixed)
        for name, kind in node.types().items():
            assert kind.nullable or all(row[name] is not None for row in found), name


@each
def test_restricted_rows_are_those_of_affected_keys(node: Node, tables: duckdb.DuckDBPyConnection) -> None:
    """By each column alone and by each two consecutive ones."""
    plain = [name for name, kind in node.types().items() if kind.text in ("int", "bigint", "")]
    affected = tables.execute("select * from relation").fetchall()
    for names in [*((name,) for name in plain), *itertools.pairwise(plain)]:
        fewer = rows(restrict(node, "relation", {c: f"k{n + 1}" for n, c in enumerate(names)}), "new", tables)
        places = [node.columns.index(name) for name in names]
        known = {pair[: len(names)] for pair in affected}
        wanted = {row: n for row, n in rows(node, "new", tables).items() if tuple(row[p] for p in places) in known}
        assert fewer == wanted, names


@each
def test_affected_keys_include_every_changed_key(node: Node, tables: duckdb.DuckDBPyConnection) -> None:
    for name in node.columns:
        statement = script()
        pieces = node.support((name,), statement)
        affected = set(bag(tables, at_its_time(statement.text("\nunion all\n".join(pieces))))) if pieces else set()
        place = node.columns.index(name)
        changed = {(row[place],) for row in difference(node, tables)}
        assert changed <= affected, name


@each
def test_reads_in_addition_to_changes_are_declared(node: Node, tables: duckdb.DuckDBPyConnection) -> None:
    """Every read of `changes` from pre-state and post-state is listed, and its ranges have all rows that it needs."""
    statement = script()
    statement.changes(node)
    foreseen: dict[tuple[str, str], list[Range | None]] = {}
    for read in node.reads_beside_changes(MOMENT):
        foreseen.setdefault((read.table, read.row_set), []).append(read.range)

    assert {one for one in statement.used if one[1] != "changes"} <= foreseen.keys()
    narrowed = {}
    for (table, row_set), ranges in foreseen.items():
        inside = [f"{r.column} between timestamptz '{r.low}' and timestamptz '{r.high}'" for r in ranges if r]
        if len(inside) == len(ranges):
            relation = f'"{table}__{row_set}"'
            narrowed[f"from {relation}"] = f"from (select * from {relation} where {' or '.join(inside)})"
    assert change(node, tables, narrowed) == difference(node, tables)


def test_a_window_of_time_reads_two_ranges() -> None:
    assert {(read.row_set, read.range is None) for read in EXAMPLES["temporal"].reads_beside_changes(MOMENT)} == {
        ("new", False),
        ("old", False),
    }
