"""Example rows made from contracts: a value by a column's type, name and checks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from sqlrun.incremental import types
from sqlrun.load.seeds import typed_rows
from sqlrun.project import Column, Model, Project, Row, Seed, Source

NOON = datetime(2026, 1, 1, 12)  # the time of the tick in examples
EARLIER = NOON - timedelta(minutes=10)
IN_SET = "expect_column_values_to_be_in_set"


def row_of(project: Project, noun: Model | Seed | Source) -> Row:
    """Return one row with all columns of a contract: a seed's first row, or example values for a model or a source."""
    if isinstance(noun, Seed) and noun.rows:
        return dict(zip((c.name for c in noun.columns), typed_rows(noun)[0], strict=True))
    known = accepted(project, noun)
    like = likes(c for n in (*project.models, *project.seeds, *project.sources, noun) for c in n.columns)
    made = ((c, _made(c.name, types.parse(c.type), like)) for c in noun.columns)
    return {c.name: known.get(c.name, value) for c, value in made}


def accepted(project: Project, noun: Model | Seed | Source) -> Mapping[str, object]:
    """Return the first accepted value of each column with such a check, here or under the same name elsewhere."""
    found: dict[str, object] = {}
    checks = [(e, c.name) for c in noun.columns for e in c.promises]
    suites = sorted(project.suites, key=lambda suite: suite.model != noun.name)
    checks += [(e, str(e.kwargs.get("column", ""))) for suite in suites for e in suite.expectations]
    for check, column in checks:
        values = check.kwargs.get("value_set")
        if check.type == IN_SET and isinstance(values, list | tuple) and values:
            found.setdefault(column, values[0])
    return found


def likes(columns: Iterable[Column]) -> Mapping[str, str]:
    """Return the example value of each column whose description names one.

    >>> from sqlrun.errors import Place
    >>> likes([Column("item_id", "string", "The item, like d001.", Place("x"))])
    {'item_id': 'd001'}
    """
    found = ((c.name, re.search(r"\blike ([A-Za-z]*[\d-]*\d)\b", c.description)) for c in columns)
    return {name: like[1] for name, like in found if like}


def _made(name: str, kind: exp.DataType | None, like: Mapping[str, str]) -> object:
    if kind is None:
        return None
    text = types.text(kind)
    match re.split(r"[(<]", text)[0]:
        case "string" if name in like:
            return like[name]
        case "string":
            # Ids look as if written by hand: order_id is o1.
            return f"{name[0].lower()}1" if name.lower().endswith("id") else name.replace("_", " ")
        case "boolean":
            return False
        case "tinyint" | "smallint" | "int" | "bigint":
            return 1
        case "decimal":
            digits = re.findall(r"\d+", text)
            whole, scale = int(digits[0]) - int(digits[1]), int(digits[1])
            return Decimal("9.5" if whole and scale else "1" if whole else "0.1").quantize(Decimal(1).scaleb(-scale))
        case "float" | "double":
            return 1.5
        case "date":
            return date(NOON.year, NOON.month, NOON.day)
        case "timestamp" | "timestamp_ntz":
            return EARLIER.replace(minute=0) if name.lower().endswith("hour") else EARLIER
        case "binary":
            return b"\x01"
        case "array":
            return [_made(name, kind.expressions[0], like)]
        case "struct":
            return {field.name: _made(field.name, field.args["kind"], like) for field in kind.expressions}
        case _:
            return None
