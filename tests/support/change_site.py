"""Projects over the change events of a database: the changes of each table, and what macros make of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqlrun.engine_api import Engine
from sqlrun.project import Connection
from tests.support import broken
from tests.support.projects import Site
from tests.support.servers.kafka import Broker

# Types by column.
Types = Mapping[str, str]
SPANS = {"valid_from": "timestamp", "valid_to": "timestamp", "is_current": "boolean"}


def source(name: str, kind: str, cdc: str, types: Types, more: Mapping[str, str]) -> str:
    """Return the declaration of a source; `more` has what is added to the declarations of columns."""
    lines = [f"      - name: {name}", f"        {kind}", f"        cdc: {{{cdc}}}", "        columns:"]
    for column, of_type in types.items():
        lines.append(f"          - {{name: {column}, data_type: '{of_type}', description: It.{more.get(column, '')}}}")
    return "\n".join(lines) + "\n"


def written(folder: Path, engine: Engine, sources: str, models: Mapping[str, tuple[str, str, Types]]) -> Site:
    """Write a project; each model is its query, its grain and its columns. The models of changes may repeat."""
    files = {
        "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nprofile = "duckdb"\n',
        "profiles/duckdb.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "models/_sources.yml": f"sources:\n  - name: shop\n    tables:\n{sources}",
    }
    for name, (query, grain, types) in models.items():
        said = f"    grain: [{grain}]" + "\n    repeats: true" * name.endswith("changes")
        columns = (f"{column} {of_type}" for column, of_type in types.items())
        files |= {f"models/{name}.sql": query + "\n", f"models/{name}.yml": broken.contract(name, *columns, extra=said)}
    broken.write(folder, files)
    (folder / "data/orders").mkdir(parents=True)
    return Site(folder, engine)


def connected(site: Site, broker: Broker) -> Site:
    """Let a project's sources read from a broker."""
    site.connections = {"kafka": Connection(broker.address)}
    with (site.root / "profiles/duckdb.yml").open("a") as profile:
        profile.write(f"connections:\n  kafka:\n    bootstrap: {broker.address}\n")
    return site
