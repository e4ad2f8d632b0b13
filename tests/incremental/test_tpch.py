"""TPC-H's 22 queries as models: after each tick of its refresh streams the tables equal the whole queries.

In memory all values are compared exactly, averages and quotients too: both sides divide the same exact sums. On Delta
tables those of type DOUBLE may differ by 1e-9 of their value.

`SQLRUN_WRITE=1 python -m pytest tests/incremental/test_tpch.py` rewrites the table of docs/reference/tpch.md; `python
-m tests.incremental.test_tpch` prints the time of a tick of each query beside that of the whole query.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.repository.test_docs import ROOT, held
from tests.support.memory import Bag
from tests.tpch.project import play
from tests.tpch.world import FOLDER, MODEL_GRAINS, STREAM, TIMES, World, generate, world

pytestmark = [pytest.mark.slow, pytest.mark.long]
NAMES = sorted(MODEL_GRAINS)


@dataclass
class Played:
    """All models after all ticks: the bags of each, maintained and recomputed, tick by tick."""

    world: World
    kept: dict[str, list[Bag]]
    whole: dict[str, list[Bag]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("tpch")
    generate(folder)
    made = world(folder, NAMES)
    kept: dict[str, list[Bag]] = {name: [] for name in NAMES}
    whole: dict[str, list[Bag]] = {name: [] for name in NAMES}
    for change, as_of in zip(STREAM, TIMES, strict=True):
        change(made)
        made.step(as_of)
        for name in NAMES:
            kept[name].append(made.kept(name))
            whole[name].append(made.oracle(name, as_of))
    return Played(made, kept, whole)


@pytest.mark.parametrize("name", NAMES)
def test_maintained_equals_recomputed(name: str, played: Played) -> None:
    """After each tick, both ways; and each query had rows to maintain."""
    for change, kept, whole in zip(STREAM, played.kept[name], played.whole[name], strict=True):
        assert kept == whole, f"{name} after {change.__name__}"
    after = played.whole[name]
    assert after[0], f"{name} was empty after the load"
    assert after[-1], f"{name} is empty at the end"
    assert any(a != b for a, b in itertools.pairwise(after)), f"no tick changed {name}"


def test_maintained_on_delta_tables(tmp_path: Path) -> None:
    """All of them as one project on DuckDB and real Delta tables: the load, a tick of lookups, one of everything."""
    assert play(tmp_path, DuckDBEngine(), NAMES, (0, 3, 5)) == {}


def test_all_queries_are_there() -> None:
    """Each file is a model of the test."""
    assert {path.stem for path in FOLDER.glob("q*.sql")} == set(NAMES)


def test_the_table_of_the_docs_is_current(played: Played) -> None:
    """The strategy of each query, and that its result is correct."""
    held(ROOT / "docs" / "reference" / "tpch.md", "tpch", table(played))


def table(played: Played) -> str:
    lines = ["| query | strategy | its tables, by method | reason | equal |", "|---|---|---|---|---|"]
    for model in played.world.compiled:
        title = (FOLDER / f"{model.name}.sql").read_text().partition("\n")[0].removeprefix("-- ")
        methods = [f"({stage.method})" if stage.is_hidden else stage.method for stage in model.stages]
        equal = "yes" if played.kept[model.name] == played.whole[model.name] else "no"
        number = model.name.removeprefix("q").lstrip("0")
        lines.append(
            f"| {number} {title} | `{model.own.strategy}` | {', '.join(methods)} | {model.own.reason.code} | {equal} |"
        )
    return "\n".join(lines)


def measured() -> None:
    """Print the seconds of the last tick's statements for each query, beside those of the whole query."""
    with tempfile.TemporaryDirectory() as name:
        generate(Path(name))
        for query in NAMES:
            made = world(Path(name), [query])
            for change, as_of in zip(STREAM[:-1], TIMES, strict=False):
                change(made)
                made.step(as_of)
            made.seconds = 0.0
            STREAM[-1](made)
            made.step(TIMES[-1])
            start = time.perf_counter()
            made.oracle(query, TIMES[-1])
            whole = time.perf_counter() - start
            ratio = made.seconds / whole
            sys.stdout.write(f"{query}  tick {made.seconds:.3f} s  whole {whole:.3f} s  ratio {ratio:.1f}\n")


if __name__ == "__main__":
    measured()
