"""A small project that lands files: one source, its staging model, a count by shop. Shell: files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.engine_api import Engine
from sqlrun.events import TickResult
from sqlrun.incremental.landing.query import HIDDEN
from sqlrun.publish.reader import relation
from sqlrun.system_tables import intake
from tests.support import kafka_site
from tests.support.projects import Site, rows_of

START = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
FIVE = timedelta(minutes=5)
COUNTS = ("read", "landed", "quarantined", "dropped", "unexplained")


@dataclass
class Folder:
    """A project's folder of files, and the project."""

    site: Site
    ticks: int = 0

    @property
    def data(self) -> Path:
        """Return the source's folder."""
        return self.site.root / "data" / "in"

    def put(self, name: str, content: bytes | str, *, age: float = 60) -> Path:
        """Write a file that was last changed `age` seconds ago."""
        file = self.data / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        self.age(name, age)
        return file

    def age(self, name: str, seconds: float) -> None:
        """Set when a file was changed."""
        at = datetime.now(timezone.utc).timestamp() - seconds
        os.utime(self.data / name, (at, at))

    def tick(self) -> TickResult:
        """Build the whole project five minutes later."""
        self.ticks += 1
        return self.site.tick(START + FIVE * self.ticks)

    def lands(self) -> str:
        """Build, and return the notes of the landing."""
        result = self.tick()
        assert result.published, [node.message for node in result.nodes]
        return next(stage.note for node in result.nodes for stage in node.stages if stage.table == "stg")

    def rows(self) -> list[dict[str, Any]]:
        """Return the published rows of the staging model by id, quarantined ones excepted."""
        found = [row for row in self._stored() if row["_reason"] is None]
        hidden = [column.name for column in HIDDEN]
        shown = [{name: value for name, value in row.items() if name not in hidden} for row in found]
        return sorted(shown, key=lambda row: str(row["id"]))

    def landed(self) -> list[str]:
        """Return the ids of the published rows."""
        return [row["id"] for row in self.rows()]

    def held(self) -> list[tuple[str, str]]:
        """Return reason and text of each quarantined record, in order."""
        return sorted((row["_reason"], row["_raw"]) for row in self._stored() if row["_reason"] is not None)

    def origins(self) -> set[str]:
        """Return the files of all stored rows."""
        return {row["_file"] for row in self._stored()}

    def _stored(self) -> list[dict[str, Any]]:
        published = self.site.ledger.read().published
        assert published is not None
        stored = relation(self.site.warehouse, "stg", published.tables["stg"])
        return rows_of(replace(stored, columns=(*(c for c in stored.columns if c not in HIDDEN), *HIDDEN), where=""))

    def problem(self) -> str:
        """Return the message of a tick whose landing fails."""
        result = self.tick()
        assert not result.published
        return next(node.message for node in result.nodes if node.name == "stg")

    def counts(self) -> dict[str, int]:
        """Return the sums of the accounting of all batches."""
        rows = intake.read(self.site.warehouse, "")
        return {name: sum(row[name] or 0 for row in rows) for name in COUNTS}

    def command(self, *words: str) -> Result:
        """Run a command of sqlrun on the project."""
        return CliRunner().invoke(main, ["--project-dir", str(self.site.root), *words])


def made(folder: Path, engine: Engine, declared: str, *, columns: str = "", select: str = "") -> Folder:
    """Write a project; `declared` are the keys of its source but for the path, `columns` more columns of it."""
    kafka_site.project(folder, "path: data/in\n        " + declared, columns, select, "")
    sources = folder / "models" / "_sources.yml"
    sources.write_text(sources.read_text().replace("format: kafka\n        ", ""))
    (folder / "profiles" / "duckdb.yml").write_text("engine: duckdb\nwarehouse: warehouse\n")
    (folder / "data" / "in").mkdir(parents=True)
    return Folder(Site(folder, engine))
