"""Selection of unit tests: by model, by the test's own name or tag, or by an earlier failure. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from sqlrun.errors import UsageError
from sqlrun.graph.graph import Graph
from sqlrun.graph.selectors import default, select
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.project import Macro, Project, UnitTest

METHOD = "test_name:"
BETWEEN = "::"
# Results of tests in an earlier run, by key.
Statuses = Mapping[str, str]
WRONG = ("fail", "error")


def key(model: str, name: str) -> str:
    """Return the name of a test as it is printed and selected.

    >>> key("orders", "totals")
    'orders::totals'
    """
    return f"{model}{BETWEEN}{name}"


def key_of(test: UnitTest) -> str:
    """Return the name of a test with its model or macro."""
    return key(test.model or test.macro, test.name)


def chosen(
    graph: Graph, tests: Sequence[UnitTest], include: Iterable[str], exclude: Iterable[str] = ()
) -> tuple[UnitTest, ...]:
    """Return the tests that selectors match: models, `MODEL::test`, `test_name:x` or a test's own tag.

    `*` stands for any letters. A comma intersects; spaces and several selectors unite. Without selectors, all match.

    Raises: UsageError for a selector that matches neither a test nor a node, with the nearest names.
    """
    include, exclude = tuple(include), tuple(exclude)
    if not include and not exclude:
        include = default(graph)
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
            near = did_you_mean(wanted, named) or " `sqlrun test` lists all unit tests."
            raise UsageError(f"unknown unit test `{wanted}`.{near}")
        return found
    # A tag may belong to tests only; the graph of models doesn't know it then.
    tag = text.removeprefix("tag:") if text.startswith("tag:") else None
    found = {place for place, test in enumerate(tests) if tag and any(fnmatchcase(t, tag) for t in test.tags)}
    try:
        models = set(select(graph, (text,)))
    except UsageError:
        if not found:
            raise
        models = set()
    return found | {place for place, test in enumerate(tests) if test.model in models and not test.macro}


def failed(tests: Sequence[UnitTest], before: Statuses) -> tuple[tuple[UnitTest, ...], tuple[str, ...]]:
    """Return the tests that failed or raised an error before, and the names of such tests that no longer exist."""
    wrong = {name for name, status in before.items() if status in WRONG}
    there = {key_of(test) for test in tests}
    return tuple(test for test in tests if key_of(test) in wrong), tuple(sorted(wrong - there))


def of_models(project: Project, order: Iterable[str], names: Collection[str]) -> tuple[UnitTest, ...]:
    """Return the tests of the named models in the graph's order, after those of the macros that they call.

    If all models are named, the tests of uncalled macros are included.
    """
    models = {model.name: model for model in project.models}
    chosen = [models[name] for name in order if name in models and name in names]
    macros = project.macros if len(chosen) == len(models) else _called(project.macros, [model.sql for model in chosen])
    of_macros = (test for macro in macros for test in macro.unit_tests)
    return (*of_macros, *(test for model in chosen for test in model.unit_tests))


def _called(macros: tuple[Macro, ...], texts: list[str]) -> tuple[Macro, ...]:
    """Return the macros that texts name, directly or through other macros."""
    found: dict[str, Macro] = {}
    left = list(texts)
    while left:
        words = set(re.findall(r"\w+", left.pop()))
        for macro in macros:
            if macro.name in words and macro.name not in found:
                found[macro.name] = macro
                left.append(macro.text)
    return tuple(macro for macro in macros if macro.name in found)
