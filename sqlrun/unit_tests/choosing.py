"""Selection of unit tests: by model, by the test's own name or tag, or by an earlier failure. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlrun.graph.graph import Graph
from sqlrun.graph.selectable_tests import BETWEEN, SelectableTest
from sqlrun.graph.selectors import select_tests
from sqlrun.project import Macro, Project, UnitTest

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
    """Return the tests that selectors match: models, `MODEL::test`, `test_name:x`, `test_type:unit` or a test's tag.

    `*` stands for any letters. A comma intersects; spaces and several selectors unite. Without selectors, all match.

    Raises: UsageError for a selector that matches neither a test nor a node, with the nearest names.
    """
    selectable = {
        str(place): SelectableTest(
            "" if test.macro else test.model, "unit", (test.name,), test.place.file, key_of(test), test.tags
        )
        for place, test in enumerate(tests)
    }
    wanted = select_tests(replace(graph, tests=selectable), include, exclude)
    return tuple(test for place, test in enumerate(tests) if str(place) in wanted)


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
