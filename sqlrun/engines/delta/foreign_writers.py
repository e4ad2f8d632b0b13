"""Policy for other writers' commits: reject them where lines or records are at stake, else roll back. Shell: files.

A model's table is computed from others, so it returns to its published state, and so do system tables that no decision
depends on. A landing table contains lines that can't be read again, and its change may be intended: a build rejects it,
and `sqlrun doctor --repair` rolls the change back. The ledger and the quarantine log are treated the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlrun.engines.delta import foreign_commits
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta import undo as delta_undo
from sqlrun.engines.delta.foreign_commits import Foreign, Whose
from sqlrun.engines.delta.table_check import Found, Subject
from sqlrun.errors import EngineError, first_line
from sqlrun.project import model_of

DECIDE = ("ledger", "quarantine")


def refusals(found: Iterable[Found]) -> list[str]:
    """Return messages about the tables that stop a build, each with advice."""
    return [refusal(each.subject, each.foreign) for each in found if each.foreign and is_refused(each.subject)]


def is_refused(subject: Subject) -> bool:
    """Return whether a build rejects other writers' commits to a table, instead of rolling them back."""
    if subject.path.startswith("_sqlrun/"):
        return subject.name in DECIDE
    return subject.stays


def refusal(subject: Subject, found: list[Foreign]) -> str:
    """Return the message about another writer's changes to a table that a build rejects."""
    message = f"SR740 {_changed(subject, found)}"
    if not is_refused(subject):
        return f"SR741 {_changed(subject, found)}. The next build, or `--repair`, rolls the change back"
    way = "Run `sqlrun doctor --repair` to roll the change back"
    if not subject.path.startswith("_sqlrun/"):
        way += (
            ". If you want the change, make it in the source's files, and land them again: "
            f"`sqlrun build --full-refresh --select {subject.name}+`"
        )
    return f"{message}. Nothing was written. {way}"


def _changed(subject: Subject, found: list[Foreign]) -> str:
    return f"{subject.name}: another writer changed {subject.path}: {foreign_commits.summary(found)}"


def take_back(warehouse: str, found: Found) -> str:
    """Roll back another writer's commits; return a message.

    A model's table loses all unpublished commits: the next tick computes them again.
    Raises: EngineError if the rollback fails.
    """
    subject, path = found.subject, f"{warehouse}/{found.subject.path}"
    versions = [one.version for one in found.foreign]
    if not subject.stays:
        versions = list(range(max(subject.seen, 0) + 1, (delta_table.head(path) or 0) + 1))
    try:
        made = delta_undo.carry_out(path, delta_undo.planned(path, versions))
    except EngineError as error:
        way = subject.advice.partition("backup, or ")[2] or "Restore its folder from a backup"
        raise EngineError(
            f"SR742 {_changed(subject, found.foreign)}. It can't be rolled back: {first_line(error)}. {_upper(way)}"
        ) from error
    return f"SR741 {_changed(subject, found.foreign)}. sqlrun rolled the change back, by version {made}"


def adopted(found: Found) -> str:
    """Return a warning if readers see another writer's changes; else ""."""
    seen = [one for one in found.foreign if one.version <= found.subject.shown]
    if not seen:
        return ""
    owner = model_of(found.subject.name)
    return (
        f"SR742 {_changed(found.subject, seen)}. A tick has used the change. Rebuild the table: "
        f"`sqlrun build --full-refresh --select {owner}+`"
    )


def require_none(name: str, path: str, after: int, until: int, project: str) -> None:
    """Check that all commits of a table between two versions, which a tick has made, are sqlrun's.

    Raises: EngineError naming the other commits.
    """
    if found := between(path, after, until, project):
        raise EngineError(
            f"SR740 {name}: another writer changed it during this tick: {foreign_commits.summary(found)}. "
            "Nothing was published. Run `sqlrun doctor`",
            model=name,
        )


def between(path: str, after: int, until: int, project: str) -> list[Foreign]:
    """Return the foreign commits of a table between two versions."""
    commits = {version: delta_table.actions(path, version) for version in range(after + 1, until + 1)}
    return foreign_commits.among(commits, until, after, Whose(project))


def heal(warehouse: str, found: Iterable[Found], warn: Callable[[str], None]) -> None:
    """Roll back the commits that may be rolled back, and report them."""
    for each in found:
        if each.foreign and not is_refused(each.subject):
            warn(f"{take_back(warehouse, each)}.")


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
