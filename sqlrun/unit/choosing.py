"""Which unit tests a command runs: by model, by the test's own name or tag, or those that failed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from sqlrun.errors import UsageError
from sqlrun.graph import Graph, select
from sqlrun.model import UnitTest
from sqlrun.yaml_values import did_you_mean

METHOD = "test_name:"
BETWEEN = "::"
# What a run before said of tests, by key.
Statuses = Mapping[str, str]
WRONG = ("fail", "error")


def key(model: str, name: str) -> str:
    """Name a test as it is printed and selected.

    >>> key("orders", "totals")
    'orders::totals'
    """
    return f"{model}{BETWEEN}{name}"


def key_of(test: UnitTest) -> str:
    """Name a test by what it tests; of a macro's that is the macro."""
    return key(test.model or test.macro, test.name)


def chosen(
    graph: Graph, tests: Sequence[UnitTest], include: Iterable[str], exclude: Iterable[str] = ()
) -> tuple[UnitTest, ...]:
    """Choose tests by the selectors of models, by `MODEL::test`, `test_name:x` or a tag of their own.

    `*` stands for any letters. A comma intersects, spaces and several selectors unite. Without any, all are chosen.

    Raises: UsageError for a selector that matches neither a test nor a node, naming what is near.
    """
    include = tuple(include)
    wanted = _union(graph, tests, include) if include else set(range(len(tests)))
    wanted -= _union(graph, tests, exclude)
    return tuple(test for place, test in enumerate(tests) if place in wanted)


def _union(graph: Graph, tests: Sequence[UnitTest], texts: Iterable[str]) -> set[int]:
    found: set[int] = set()
    for text in texts:
        for part in text.split() or [""]:
            found |= set.intersection(*(_matched(graph, tests, one) for one in part.split(",")))
    return found


def _matched(graph: Graph, tests: Sequence[UnitTest], text: str) -> set[int]:
    if text.startswith(METHOD) or BETWEEN in text:
        wanted = text.removeprefix(METHOD)
        named = [test.name if BETWEEN not in wanted else key_of(test) for test in tests]
        found = {place for place, name in enumerate(named) if fnmatchcase(name, wanted)}
        if not found:
            near = did_you_mean(wanted, named) or " `sqlrun test` names them all."
            raise UsageError(f"no unit test is called `{wanted}`.{near}")
        return found
    # A tag may be a test's own alone, which the graph of models doesn't know.
    tag = text.removeprefix("tag:") if text.startswith("tag:") else None
    found = {place for place, test in enumerate(tests) if tag and any(fnmatchcase(t, tag) for t in test.tags)}
    try:
        models = set(select(graph, (text,)))
    except UsageError:
        if not found:
            raise
        models = set()
    return found | {place for place, test in enumerate(tests) if test.model in models}


def failed(tests: Sequence[UnitTest], before: Statuses) -> tuple[tuple[UnitTest, ...], tuple[str, ...]]:
    """Keep the tests that failed or were errors before, and name those of them that are no more."""
    wrong = {name for name, status in before.items() if status in WRONG}
    there = {key_of(test) for test in tests}
    return tuple(test for test in tests if key_of(test) in wrong), tuple(sorted(wrong - there))
