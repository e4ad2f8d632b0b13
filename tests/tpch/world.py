"""TPC-H at a small scale: the generator's tables, its refresh streams as ticks, the 22 queries as models.

The generator makes no refresh streams, so they are cut from its own rows: RF1 inserts orders with their lines that were
held back at the start, RF2 deletes others. A third stream, not TPC-H's, corrects rows of every table, as pipelines do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import duckdb

from sqlrun.engines.duckdb import memory as unit_memory
from sqlrun.engines.duckdb.memory import Computer, OnDuckDB
from sqlrun.incremental.stages import Stage
from tests.support.memory import START, Memory, Table, View

FOLDER = Path(__file__).parent
SCALE = "0.01"
GRAINS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
# What the contracts of the models would say; a table of one row has none.
MODEL_GRAINS = {
    "q01": ("l_returnflag", "l_linestatus"),
    "q02": ("s_name", "p_partkey"),
    "q03": ("l_orderkey",),
    "q04": ("o_orderpriority",),
    "q05": ("n_name",),
    "q06": (),
    "q07": ("supp_nation", "cust_nation", "l_year"),
    "q08": ("o_year",),
    "q09": ("nation", "o_year"),
    "q10": ("c_custkey",),
    "q11": ("ps_partkey",),
    "q12": ("l_shipmode",),
    "q13": ("c_count",),
    "q14": (),
    "q15": ("s_suppkey",),
    "q16": ("p_brand", "p_type", "p_size"),
    "q17": (),
    "q18": ("o_orderkey",),
    "q19": (),
    "q20": ("s_name",),
    "q21": ("s_name",),
    "q22": ("cntrycode",),
}
TYPES = {"VARCHAR": "string", "INTEGER": "int"}


def generate(folder: Path) -> None:
    """Write the eight tables as Parquet files."""
    beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    assert program, "tpchgen-cli is missing: pip install -e '.[dev]'"
    subprocess.run([program, "parquet", "-s", SCALE, "-o", str(folder), "-q", "--no-progress"], check=True)


def model(name: str) -> str:
    """Read a model's SQL with its refs as plain table names."""
    return re.sub(r"\{\{ ref\('(\w+)'\) \}\}", r"\1", (FOLDER / f"{name}.sql").read_text())


def tables(folder: Path) -> list[Table]:
    """Describe the generated files."""
    found = []
    for name, grain in GRAINS.items():
        rows = duckdb.sql(f"describe from '{folder}/{name}.parquet'").fetchall()
        columns = tuple((column, TYPES.get(kind, kind.lower())) for column, kind, *_ in rows)
        found.append(Table(name, columns, grain))
    return found


class Timed(OnDuckDB):
    """Adds up what the statements take."""

    def __init__(self, world: World) -> None:
        self.world = world

    def carry_out(self, memory: unit_memory.Memory, stage: Stage, texts: Sequence[str]) -> None:
        start = time.perf_counter()
        super().carry_out(memory, stage, texts)
        self.world.seconds += time.perf_counter() - start


@dataclass
class World(Memory):
    """Models over the eight tables; changes come and are applied many rows at a time.

    `seconds` adds up what the models' own statements take.
    """

    folder: Path = field(default_factory=Path)
    seconds: float = 0.0

    def add(self, table: str, rows: str) -> None:
        """Let the rows of a query come in the next step."""
        self.connection.execute(f'insert into "{table}__changes" select *, 1 from ({rows})')

    def remove(self, table: str, condition: str) -> None:
        """Let the rows that meet a condition leave in the next step."""
        self.connection.execute(f'insert into "{table}__changes" select *, -1 from "{table}__new" where {condition}')

    def correct(self, table: str, condition: str, **columns: str) -> None:
        """Give columns of the rows that meet a condition another value."""
        self.remove(table, condition)
        swaps = ", ".join(f"{value} as {column}" for column, value in columns.items())
        self.add(table, f'select * replace ({swaps}) from "{table}__new" where {condition}')

    def generated(self, table: str) -> str:
        return f"'{self.folder}/{table}.parquet'"

    def computer(self) -> Computer:
        return Timed(self)

    def _apply(self, table: Table) -> bool:
        new, changes = f'"{table.name}__new"', f'"{table.name}__changes"'
        if not super()._apply(table):
            return False
        weights = f"(select sum(_weight) from {changes})"
        key = ", ".join(table.grain)
        sound = (
            f'select (select count(*) from {new}) = (select count(*) from "{table.name}__old") + {weights} '
            f"and (select count(*) from {new}) = (select count(*) from (select distinct {key} from {new}))"
        )
        assert self.connection.execute(sound).fetchone() == (True,), f"the stream breaks {table.name}"
        return True


def load(world: World) -> None:
    """All rows but those of one order in twenty."""
    for name in GRAINS:
        key = {"orders": "o_orderkey", "lineitem": "l_orderkey"}.get(name)
        held = f" where not ({_held(key)})" if key else ""
        world.add(name, f"from {world.generated(name)}{held}")


# The generator leaves gaps of 24 in 32 in the keys of orders; this numbers them without.
NUMBER = "(({key} // 32) * 8 + {key} % 32)"


def _held(key: str, part: int | None = None) -> str:
    """One order in twenty, in five parts."""
    number = NUMBER.format(key=key)
    chosen = f"{number} % 20 = 7"
    return chosen if part is None else f"{chosen} and ({number} // 20) % 5 = {part}"


def insert_orders(world: World, part: int) -> None:
    """RF1: new orders with their lines."""
    world.add("orders", f"from {world.generated('orders')} where {_held('o_orderkey', part)}")
    world.add("lineitem", f"from {world.generated('lineitem')} where {_held('l_orderkey', part)}")


def delete_orders(world: World, part: int) -> None:
    """RF2: old orders leave with their lines; one in a hundred."""
    chosen = f"{NUMBER} % 100 = {20 * part + 3}"
    world.remove("orders", chosen.format(key="o_orderkey"))
    world.remove("lineitem", chosen.format(key="l_orderkey"))


def first(world: World) -> None:
    """Both refresh streams, as TPC-H runs them."""
    insert_orders(world, 0)
    delete_orders(world, 0)


def second(world: World) -> None:
    """New orders, and prices, discounts and dates of lines corrected."""
    insert_orders(world, 1)
    line = "l_orderkey % 97 = 5"
    world.correct("lineitem", line, l_extendedprice="l_extendedprice + 1.37", l_discount="0.06", l_quantity="1")
    line = "l_orderkey % 97 = 6"
    world.correct("lineitem", line, l_receiptdate="l_commitdate + 3", l_returnflag="'R'")


def third(world: World) -> None:
    """The tables that are looked up change, orders don't."""
    world.correct("customer", "c_custkey % 50 = 1", c_acctbal="-c_acctbal", c_nationkey="(c_nationkey + 7) % 25")
    world.correct("customer", "c_custkey % 50 = 2", c_mktsegment="'BUILDING'", c_phone="'13' || substr(c_phone, 3)")
    for rest, nation in ((3, 3), (6, 20), (9, 18)):  # to Canada, Saudi Arabia, China
        supplier = f"s_suppkey % 10 = {rest}"
        world.correct("supplier", supplier, s_nationkey=str(nation), s_acctbal="s_acctbal + 100")
    world.correct("supplier", "s_suppkey % 20 = 4", s_comment="'Customer insists: Complaints'")
    world.correct("part", "p_partkey % 40 = 7", p_size="15", p_brand="'Brand#23'", p_container="'MED BOX'")
    world.correct("part", "p_partkey % 40 = 8", p_type="'PROMO BRUSHED BRASS'", p_name="'forest green ' || p_name")
    world.correct("part", "p_partkey % 40 = 9", p_type="'ECONOMY ANODIZED STEEL'")
    world.correct("partsupp", "ps_partkey % 30 = 7", ps_supplycost="ps_supplycost / 2", ps_availqty="ps_availqty + 1")
    world.correct("nation", "n_name = 'CHINA'", n_regionkey="3")


def fourth(world: World) -> None:
    """All at once: new orders, old ones gone, others corrected, suppliers gone and parts moved."""
    insert_orders(world, 2)
    delete_orders(world, 1)
    line = f"l_orderkey % 83 = 7 and {NUMBER.format(key='l_orderkey')} % 100 <> 23"  # those of RF2 leave as they are
    world.correct("lineitem", line, l_quantity="l_quantity + 40", l_suppkey="l_suppkey % 100 + 1")
    world.correct("part", "p_partkey % 60 = 11", p_brand="'Brand#12'", p_size="3", p_container="'SM BOX'")
    world.correct("customer", "c_custkey % 70 = 9", c_name="c_name || ' jr'", c_acctbal="c_acctbal + 1000")
    world.remove("supplier", "s_suppkey % 50 = 13")


def nothing(world: World) -> None:
    """A tick in which no row changed."""


STREAM = (load, first, second, third, nothing, fourth)
TIMES = tuple(START + timedelta(minutes=5 * n) for n in range(len(STREAM)))


def world(folder: Path, names: list[str]) -> World:
    """Make the models, before the first tick."""
    views = [View(name, model(name), MODEL_GRAINS[name]) for name in names]
    return World(tables(folder), views, folder=folder)
