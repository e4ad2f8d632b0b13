"""What becomes of a dbt project while it is converted: files, queries, contracts, tests, and what is said. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlrun.scaffold.dbt_contracts import Converted
from sqlrun.scaffold.dbt_tests import Library, Query, Use

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Import:
    """What is written, by path, and what is said."""

    name: str
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # Texts of the queries by their paths below models/.
    queries: dict[str, str] = field(default_factory=dict)
    converted: dict[str, Converted] = field(default_factory=dict)
    # Columns of the seeds by name.
    seeds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Uses of generic tests on seeds, and singular tests.
    uses: list[Use] = field(default_factory=list)
    singular: list[Query] = field(default_factory=list)
    library: Library = field(default_factory=Library)
    # Local packages: name, folder, settings.
    local: list[tuple[str, Path, Mapping[str, Any]]] = field(default_factory=list)
    # Types that columns have in dbt's files, where no contract is enforced, by model and column.
    types: dict[tuple[str, str], str] = field(default_factory=dict)
    # Models whose contracts are enforced.
    enforced: set[str] = field(default_factory=set)
    # Models that aren't enabled.
    disabled: set[str] = field(default_factory=set)
    # Names of the project and of its local packages.
    packages: list[str] = field(default_factory=list)
    # Texts of macros by name.
    macros: dict[str, str] = field(default_factory=dict)

    @property
    def entries(self) -> dict[str, dict[str, Any]]:
        """Return the entries of models by name."""
        return {node["name"]: node for found in self.converted.values() for node in found.models}

    @property
    def models(self) -> dict[str, str]:
        """Return the paths of the models by name."""
        return {path.rpartition("/")[2].removesuffix(".sql"): path for path in self.queries}

    @property
    def sources(self) -> Mapping[tuple[str, str], str]:
        """Return the seed or the identifier that each declared source is read from."""
        return {
            (str(group.get("name")), str(table.get("name"))): str(table.get("identifier") or table.get("name"))
            for group, table in self.source_tables
        }

    @property
    def source_tables(self) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Return the entries of sources, each with its group's."""
        return [
            (group, table)
            for found in self.converted.values()
            for group in found.sources
            for table in group.get("tables") or ()
        ]

    def source(self, group: str, table: str) -> str | None:
        """Return the seed that a source is; None if it is none."""
        name = self.sources.get((group, table), table)
        return name if name in self.seeds else None

    def entry(self, name: str) -> dict[str, Any]:
        """Return the entry of a model, which is added if the model has none."""
        known = self.entries
        if name not in known:
            path = self.models[name].removesuffix(".sql") + ".yml"
            if path in self.converted:
                path = f"{path.removesuffix('.yml')}__contract.yml"
            self.converted.setdefault(path, Converted()).models.append({"name": name})
        return self.entries[name]
