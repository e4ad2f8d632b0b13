"""The intake of a project's sources, from the options of `sqlrun serve`. Shell: the sources' folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlrun.errors import EngineError, UsageError
from sqlrun.project import Project, Source
from sqlrun.runtime.rate_limits import Limits
from sqlrun.serve.access import INGEST, SOURCES, Gatekeeper
from sqlrun.serve.ingest.door import Door
from sqlrun.serve.ingest.intake import Intake
from sqlrun.serve.ingest.writer import Full, Unwritable, Writer
from sqlrun.serve.keys import Key
from sqlrun.serve.metrics import Metrics

# Maximum number of folders that are written to at the same time.
THREADS = 4
BURST = 5


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of an intake.

    `rate`: requests a second for each token; 0 is no limit. `most_bytes` is the maximum size of a body. `every`: mean
    seconds between two files of a source; 0 is no limit.
    """

    rate: float
    most_bytes: int
    every: float


def opened(
    root: Path,
    project: Project,
    keys: Mapping[str, Key],
    metrics: Metrics,
    clock: Callable[[], datetime],
    settings: Settings,
) -> Intake:
    """Return the intake of a project's sources, after it has finished what an earlier server left behind.

    Raises: UsageError if the project has no suitable source, LockedError if another server writes to a folder,
        EngineError if a folder that took lines before can't be written.
    """
    threads = ThreadPoolExecutor(THREADS, "sqlrun-ingest")
    by_folder: dict[str, Door] = {}
    doors: dict[str, Door] = {}
    for source in suitable(project):
        if source.path not in by_folder:
            writer = Writer(f"{root}/{source.path}", clock)
            by_folder[source.path] = Door(writer, threads, settings.every, partial(metrics.filed, source.path))
        doors[name_of(source)] = by_folder[source.path]
    if not doors:
        raise UsageError("the project has no source with `format: json`, and --ingest writes to no other")
    for door in by_folder.values():
        try:
            door.writer.recover()
        except Full:
            raise EngineError(f"the disk of {door.writer.folder} is full, so --ingest can't accept lines") from None
        except Unwritable as error:
            raise EngineError(str(error)) from error
    gatekeeper = Gatekeeper(keys, (SOURCES,), INGEST)
    limits = Limits(settings.rate, max(1.0, BURST * settings.rate))
    return Intake(doors, gatekeeper, limits, metrics, settings.most_bytes, threads)


def suitable(project: Project) -> Iterable[Source]:
    """Return the sources that lines can be sent to."""
    return [source for source in project.sources if source.is_plain_folder]


def name_of(source: Source) -> str:
    """Return the name of a source in tokens and options."""
    return f"{source.group}.{source.name}"


def require_sources(project: Project, names: Iterable[str]) -> None:
    """Check the names of sources in a token. Raises: UsageError for one that lines can't be sent to."""
    known = [name_of(source) for source in suitable(project)]
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(f"`{name}` isn't a source with `format: json`. This project's: {listed}")
