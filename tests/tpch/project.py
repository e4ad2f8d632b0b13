"""The models as a project on disk: the tables are its seeds, written anew before each tick; a fifth of the orders."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlrun.engine_api import Engine
from tests.support.projects import Site
from tests.support.whole import differences
from tests.tpch.world import FOLDER, MODEL_GRAINS, NUMBER, STREAM, TIMES, World, generate, world


def play(root: Path, engine: Engine, names: list[str], ticks: Iterable[int]) -> dict[str, str]:
    """Build after each of these ticks' changes; tell what was not as it should be, by model. Empty: all is right."""
    data = root / "generated"
    data.mkdir()
    generate(data)
    made = world(data, names)
    read = {name for model in made.compiled for name in model.query.rendered.refs}
    _write(root, made, read)
    for number in ticks:
        STREAM[number](made)
        for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            few = f"{NUMBER.format(key=key)} % 10 not in (3, 7)"  # the refresh streams take theirs from these
            made.connection.execute(f'delete from "{table}__changes" where {few}')
        made.step(TIMES[number])
        for name in read:
            made.connection.execute(f"copy \"{name}__new\" to '{root}/seeds/{name}.csv' (header)")
        site = Site(root, engine)
        result = site.tick(TIMES[number])
        if not result.published:
            return {node.name: node.message for node in result.nodes if node.message}
        wrong = {k: pair for k, pair in differences(site, TIMES[number]).items() if not _close(*pair)}
        if wrong:
            return {name: f"tick {number}: kept {pair[0]}, whole {pair[1]}" for name, pair in wrong.items()}
    return {}


def _write(root: Path, made: World, read: set[str]) -> None:
    for folder in ("models", "seeds", "warehouse"):
        (root / folder).mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "tpch"\nversion = "0"\n\n[tool.sqlrun]\nname = "tpch"\n')
    for table in (table for table in made.tables if table.name in read):
        (root / "seeds" / f"{table.name}.yml").write_text(_contract("seeds", table.name, table.columns, table.grain))
    for model in made.compiled:
        name = model.name
        columns = [(c.name, c.type) for c in model.own.public]
        (root / "models" / f"{name}.sql").write_text((FOLDER / f"{name}.sql").read_text())
        (root / "models" / f"{name}.yml").write_text(_contract("models", name, columns, MODEL_GRAINS[name]))


def _contract(kind: str, name: str, columns: Iterable[tuple[str, str]], grain: tuple[str, ...]) -> str:
    listed = [{"name": column, "data_type": kind, "description": "It."} for column, kind in columns]
    made: dict[str, Any] = {"name": name, "description": "Of TPC-H.", "columns": listed}
    return json.dumps({kind: [made | ({"grain": list(grain)} if grain else {})]})


def _close(kept: Counter[Any], whole: Counter[Any]) -> bool:
    """Compare what differs by doubles alone with a relative tolerance of 1e-9: they are rounded sums, divided."""

    def exact(row: Any) -> str:
        return repr([None if isinstance(value, float) else value for value in row])

    pairs = list(zip(sorted(kept.elements(), key=exact), sorted(whole.elements(), key=exact), strict=False))
    return kept.total() == whole.total() == len({exact(a) for a, _ in pairs}) and all(
        exact(a) == exact(b)
        and all(math.isclose(x, y, rel_tol=1e-9) for x, y in zip(a, b, strict=True) if isinstance(x, float))
        for a, b in pairs
    )
