"""The checks and unit tests that a command works on, by their ids in the manifest. Shell: the folder of `--state`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sqlrun.artifacts import check_nodes, declared_checks, unique_ids
from sqlrun.commands.selection import compared
from sqlrun.expectations.catalogue import QUERY
from sqlrun.expectations.values import columns_of
from sqlrun.graph.selectable_tests import Kind, SelectableTest
from sqlrun.graph.selectors import names_tests, select_all, select_tests
from sqlrun.incremental.compile import Compiled
from sqlrun.pipeline import Prepared
from sqlrun.project import Expectation
from sqlrun.unit_tests.choosing import key_of


def checks(prepared: Prepared) -> dict[str, SelectableTest]:
    """Return the checks that the project's files declare."""
    return dict(_checks(prepared))


def _checks(prepared: Prepared) -> Iterator[tuple[str, SelectableTest]]:
    for model in prepared.workspace.models:
        contract = model.query.rendered.model
        for one, columns in declared_checks.of(prepared.workspace, model):
            names = (unique_ids.TESTS.get(one.type, one.result_type), one.result_type)
            kind: Kind = "singular" if one.type == QUERY else "generic"
            yield (
                check_nodes.id_of(prepared.project.name, contract, one, columns),
                SelectableTest(contract.name, kind, tuple(dict.fromkeys(names)), one.place.file),
            )


def unit_tests(prepared: Prepared) -> dict[str, SelectableTest]:
    """Return the unit tests of models."""
    return {
        unique_ids.unit_test(prepared.project.name, one): SelectableTest(
            one.model, "unit", (one.name,), one.place.file, key_of(one), one.tags
        )
        for one in prepared.project.unit_tests
        if not one.macro
    }


def chosen_checks(
    prepared: Prepared, select: tuple[str, ...], exclude: tuple[str, ...], state: Path | None
) -> frozenset[str]:
    """Return the ids of the selected checks. A selected model selects its checks, `test_name:x` checks alone.

    Raises: UsageError for a selector that matches nothing, and for artifacts that can't be read.
    """
    graph = compared(prepared, select, exclude, state)
    return select_tests(replace(graph, tests=checks(prepared)), select, exclude)


def of_model(
    prepared: Prepared, model: Compiled, expectations: tuple[Expectation, ...], ids: frozenset[str]
) -> tuple[Expectation, ...]:
    """Return those expectations of a model whose ids are selected."""
    contract, project = model.query.rendered.model, prepared.project.name
    return tuple(one for one in expectations if check_nodes.id_of(project, contract, one, columns_of(one)) in ids)


def chosen_to_list(
    prepared: Prepared, select: tuple[str, ...], exclude: tuple[str, ...], state: Path | None
) -> tuple[tuple[str, ...], dict[str, SelectableTest]]:
    """Return the names of the selected models, seeds and sources, and the tests by id if a selector names tests.

    Raises: UsageError for a selector that matches nothing, and for artifacts that can't be read.
    """
    graph = compared(prepared, select, exclude, state)
    if not names_tests(graph, (*select, *exclude)):
        return select_all(graph, select, exclude), {}
    tests = checks(prepared) | unit_tests(prepared)
    graph = replace(graph, tests=tests)
    ids = select_tests(graph, select, exclude)
    return select_all(graph, select, exclude), {name: tests[name] for name in sorted(ids)}


def rows(tests: Mapping[str, SelectableTest]) -> list[dict[str, str]]:
    """Return tests as rows of a list of nodes: name, kind, strategy, inputs, file."""
    return [
        {"name": one.key or name.split(".")[2], "kind": one.kind, "strategy": "", "reads": one.model, "file": one.file}
        for name, one in tests.items()
    ]
