"""`sqlrun history`: write past ticks as one page that opens from disk. Shell: the project, Delta files, files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sqlrun import pipeline
from sqlrun.commands.selection import chosen
from sqlrun.errors import SqlrunError, UsageError
from sqlrun.pipeline import Prepared, ledger_of, profile_of
from sqlrun.publish.reader import nothing_published
from sqlrun.publish.table_state import all_complete_to
from sqlrun.report.console import Console
from sqlrun.report.evidence import declared
from sqlrun.report.history_data import Books
from sqlrun.report.history_page import Parts, Subject, html
from sqlrun.runtime import atomic_files
from sqlrun.runtime.disk_cache import Cache

PAGES = Path(__file__).parent.parent / "report" / "pages"
NAME = "history.html"


def parts() -> Parts:
    """Read the template, scripts and styles of the page."""
    files = ("history.html.j2", "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css", "history.js")
    return Parts(*((PAGES / name).read_text(encoding="utf-8").strip() for name in files))


def _described(prepared: Prepared) -> dict[str, str]:
    """Return the current description of each check in contracts and suites, by check id."""
    return {key: each.description for key, (_, each) in declared(prepared).items()}


def history_command(
    root: Path,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    state: Path | None,
    name: str | None,
    env: str | None,
    out: Path | None,
    clock: Callable[[], datetime],
) -> int:
    """Run `sqlrun history`: write the page and print its path.

    Raises: UsageError if no tick has ever started.
    """
    prepared = pipeline.prepare(root, Cache.of(root))
    ledger = ledger_of(root, prepared, name, env)
    if not ledger.entries():
        raise nothing_published(ledger)
    names = chosen(prepared, select, exclude, state) if select or exclude else ()
    if (select or exclude) and not names:
        raise UsageError("no model is selected, so there is nothing to draw")
    with Books(ledger, names) as books:
        past = books.read()
    profile = profile_of(root, prepared, name).name
    current = ledger.read().published
    complete = tuple(map(str, all_complete_to(current.tables))) if current is not None else ()
    about = Subject(prepared.project.name, profile, ledger.env, clock(), names, _described(prepared), complete)
    text = html(parts(), past.grid, past.checks, past.checks_left, past.lines, past.costs, past.quarantined, about)
    file = out or root / "target" / NAME
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.put(file, text)
    except OSError as error:
        raise SqlrunError(f"can't write {file}: {error.strerror or error}") from error
    Console().print(f"History: {file.relative_to(root) if file.is_relative_to(root) else file}", "plain")
    return 0
