"""cases/types.sql as values: an expression, its type in Spark, and whether sqlrun may leave it unknown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

from sqlrun.transpile.dialect import DIALECT

FILE = Path(__file__).parents[1] / "cases" / "types.sql"
COLUMNS = {
    "ti": "tinyint",
    "si": "smallint",
    "i": "int",
    "b": "bigint",
    "f": "float",
    "d": "double",
    "c": "decimal(10,2)",
    "e": "decimal(18,2)",
    "g": "decimal(38,10)",
    "h": "decimal(5,5)",
    "s": "string",
    "bo": "boolean",
    "da": "date",
    "at": "timestamp",
    "ia": "array<int>",
    "arr": "array<struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>>",
    "m": "map<string,int>",
    "st": "struct<x:int,y:struct<z:string>>",
}
TABLES = {"ref": {"t": COLUMNS}}


@dataclass(frozen=True)
class Typed:
    """A line of the file; `sql` is the whole query, of which only one column matters."""

    line: int
    text: str
    spark: str
    unknown: bool

    @property
    def sql(self) -> str:
        if self.text.startswith(("select ", "with ")):
            return self.text
        return f"select {self.text.replace('from t as', 'from ref.t as')} as x from ref.t"

    def tree(self) -> exp.Query:
        """Return the query as the compiler reads it: qualified."""
        parsed = sqlglot.parse_one(self.sql, read=DIALECT)
        done = qualify(
            parsed, schema=TABLES, dialect="databricks", quote_identifiers=False, identify=False,
            validate_qualify_columns=False, allow_partial_qualification=True,
        )  # fmt: skip
        return cast(exp.Query, done)


def read() -> list[Typed]:
    found = []
    for number, line in enumerate(FILE.read_text().splitlines(), 1):
        if line and not line.startswith("--"):
            text, _, kind = line.partition(" -- ")
            found.append(Typed(number, text, kind.removesuffix(" ?"), kind.endswith(" ?")))
    return found
