"""Which unit tests belong to the models that are selected. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from sqlrun.model import Macro, Project, UnitTest


def of_models(nouns: Project, order: Iterable[str], names: Collection[str]) -> tuple[UnitTest, ...]:
    """List the tests of the models named, in the graph's order, behind those of the macros that they call.

    Where all models are named, the tests of macros that nobody calls are among them.
    """
    models = {model.name: model for model in nouns.models}
    chosen = [models[name] for name in order if name in models and name in names]
    macros = nouns.macros if len(chosen) == len(models) else _called(nouns.macros, [model.sql for model in chosen])
    of_macros = (test for macro in macros for test in macro.unit_tests)
    return (*of_macros, *(test for model in chosen for test in model.unit_tests))


def every(nouns: Project) -> tuple[UnitTest, ...]:
    """List all tests of a project."""
    names = [model.name for model in nouns.models]
    return of_models(nouns, names, names)


def _called(macros: tuple[Macro, ...], texts: list[str]) -> tuple[Macro, ...]:
    """Find the macros that texts name, and those that these name."""
    found: dict[str, Macro] = {}
    left = list(texts)
    while left:
        words = set(re.findall(r"\w+", left.pop()))
        for macro in macros:
            if macro.name in words and macro.name not in found:
                found[macro.name] = macro
                left.append(macro.text)
    return tuple(macro for macro in macros if macro.name in found)
