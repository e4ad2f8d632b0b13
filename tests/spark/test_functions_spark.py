"""The examples of functions on Spark: as they are written, and as sqlrun writes them."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqlrun.engines.spark.engine import SparkEngine
from sqlrun.errors import EngineError
from tests.parse.test_functions import arrow_of
from tests.support.function_cases import FILES, Example, compiled, read, rows, shown, statement, text, write
from tests.support.memory import connect

pytestmark = [pytest.mark.spark, pytest.mark.long]
WRITE = bool(os.environ.get("SQLRUN_WRITE"))


def together(engine: SparkEngine, examples: list[Example], *, as_written: bool) -> dict[str, str]:
    """Run examples in one query; where that fails, in two halves, down to the one that fails."""
    if not examples:
        return {}
    sql = statement(examples) if as_written else text(compiled(examples), "spark")
    try:
        table = engine.query(sql, ())
    except (EngineError, TypeError) as error:
        if len(examples) == 1:
            found = re.search(r"\[([A-Z_]+)[.\]]", str(error))
            return {examples[0].sql: f"error {found[1]}" if found else f"error {error}"[:100]}
        half = len(examples) // 2
        return {
            **together(engine, examples[:half], as_written=as_written),
            **together(engine, examples[half:], as_written=as_written),
        }
    if examples[0].by_itself:
        return {examples[0].sql: rows(table)}
    (row,) = table.to_pylist()
    return {example.sql: shown(value) for example, value in zip(examples, row.values(), strict=True)}


def plain(sql: str) -> str:
    return re.sub(r"\s", "", sql).lower()


def differs(example: Example) -> bool:
    """Tell whether sqlrun writes an example in other words than the analyst."""
    return plain(statement([example])) != plain(text(compiled([example]), "spark"))


def on_spark(engine: SparkEngine, examples: list[Example], *, as_written: bool) -> dict[str, str]:
    asked = [example for example in examples if not (as_written and example.has_clock)]
    done = together(engine, [example for example in asked if not example.by_itself], as_written=as_written)
    with ThreadPoolExecutor(4) as pool:
        alone = [example for example in asked if example.by_itself]
        for one in pool.map(lambda example: together(engine, [example], as_written=as_written), alone):
            done |= one
    return done


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_spark_says_what_is_recorded(engine: SparkEngine, path: Path) -> None:
    """Of the analyst's own text, and of the text that sqlrun makes of it."""
    examples = read(path)
    as_written = on_spark(engine, examples, as_written=True)
    changed = [example for example in examples if differs(example) or not example.by_itself or example.has_clock]
    as_compiled = as_written | on_spark(engine, changed, as_written=False)
    if WRITE:
        connection = connect()
        for example in examples:
            example.value = as_written.get(example.sql, as_compiled[example.sql])
            example.arrow = arrow_of(connection, example)
        write(path, examples)
        connection.close()
    recorded = {example.sql: example.value for example in examples}

    assert as_written == {sql: value for sql, value in recorded.items() if sql in as_written}
    assert as_compiled == recorded
