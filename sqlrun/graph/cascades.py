"""Errors that only follow from other errors: found, so that a reader sees the causes first. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlrun.errors import Problem
from sqlrun.project import Rendered

# Errors that make the columns of a table uncertain: its contract is wrong or missing, or differs from its query.
CAUSES = frozenset(
    {"SR101", "SR102", "SR103", "SR104", "SR105", "SR106", "SR107", "SR109", "SR113", "SR306", "SR307", "SR308"}
)
# Errors about columns that a model reads from other tables.
EFFECTS = frozenset({"SR304", "SR306", "SR307", "SR308", "SR311", "SR705"})
# Errors that leave open what a model is stored as.
KINDS = frozenset({"SR102", "SR103", "SR110", "SR205"})
_KEY = re.compile(r"Did you mean `([^`]+)`")


def causes(problems: Iterable[Problem], rendered: Iterable[Rendered]) -> tuple[Problem, ...]:
    """Return the problems that don't follow from others, in their order. At least one is left.

    An error about columns follows from an error in the contract of a table that the model reads, and from a cycle. An
    unknown model follows from an error in its own files, and a missing key from the same key misspelled. Columns that
    only a history has follow from a wrong `materialized`.
    """
    found = tuple(dict.fromkeys(problems))
    files: dict[str, list[Rendered]] = {}
    for item in rendered:
        for file in {item.model.file, item.model.contract_file}:
            files.setdefault(file, []).append(item)
    wrong = {name for problem in found if problem.code in CAUSES for name in _names(problem.place.file, files)}
    circular = {name for problem in found if problem.code == "SR401" for name in _cycle(problem.message)}
    known = {item.model.name for items in files.values() for item in items}
    left = [
        problem
        for problem in found
        if not (
            _follows(problem, files, wrong, circular)
            or _is_hidden(problem, wrong - known)
            or _is_misspelled(problem, found)
            or _is_of_another_kind(problem, found, files)
        )
    ]
    return tuple(left) or found


Files = Mapping[str, Sequence[Rendered]]


def _names(file: str, files: Files) -> set[str]:
    """Return the models that a file is about; by the file's name if it is of none that could be rendered."""
    return {item.model.name for item in files.get(file, ())} or {_stem(file)}


def _follows(problem: Problem, files: Files, wrong: Collection[str], circular: Collection[str]) -> bool:
    if problem.code not in EFFECTS:
        return False
    for item in files.get(problem.place.file, ()):
        if item.model.name in circular or (item.sources and "_sources" in wrong):
            return True
        if {*item.refs} & {*wrong, *circular} - {item.model.name}:
            return True
    return False


def _stem(file: str) -> str:
    return file.rpartition("/")[2].rpartition(".")[0]


def _cycle(message: str) -> list[str]:
    """Return the models that the message of a cycle names.

    >>> _cycle("these models depend on each other in a cycle: a -> b -> a")
    ['a', 'b', 'a']
    """
    return message.rpartition(": ")[2].split(" -> ")


def _is_hidden(problem: Problem, hidden: Iterable[str]) -> bool:
    """Return whether a model is unknown because its own files could not be read."""
    name = re.fullmatch(r"unknown model `(\w+)`", problem.message) if problem.code == "SR202" else None
    return name is not None and name[1] in hidden


def _is_of_another_kind(problem: Problem, found: Iterable[Problem], files: Files) -> bool:
    """Return whether a column of the contract is missing in a query whose `materialized` is wrong or misspelled."""
    if problem.code != "SR307":
        return False
    own = {file for item in files.get(problem.place.file, ()) for file in (item.model.file, item.model.contract_file)}
    return any(
        other.place.file in own
        and other.code in KINDS
        and ("`materialized`" in other.message or "Did you mean `materialized`" in other.hint)
        for other in found
    )


def _is_misspelled(problem: Problem, found: Iterable[Problem]) -> bool:
    """Return whether a missing key is there, but misspelled, in the same item of the same file."""
    key = re.search(r" lacks `(\w+)`$", problem.message) if problem.code == "SR104" else None
    return key is not None and any(
        other.code == "SR102"
        and other.place.file == problem.place.file
        and problem.place.line <= other.place.line <= problem.place.line + 20
        and (meant := _KEY.search(other.hint)) is not None
        and meant[1] == key[1]
        for other in found
    )
