"""Unit tests checked against the graph: inputs that their model never reads. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sqlrun.errors import Place, Problem
from sqlrun.graph.graph import Graph, reach
from sqlrun.load.yaml_reader import listed
from sqlrun.project import Model, Project, UnitTest


def problems(project: Project, graph: Graph) -> tuple[Problem, ...]:
    """Return inputs that aren't upstream of the tested model (SR112), and quarantines without landing (SR121)."""
    labels = {source.table: f"source('{source.group}', '{source.name}')" for source in project.sources}
    nodes = {s.node: labels[s.table] for s in project.sources}
    landing = {s.node for s in project.sources if s.lands}
    found: list[Problem] = []
    for model in project.models:
        if model.unit_tests and model.name in graph.parents:
            above = {nodes.get(name, f"ref('{name}')") for name in graph.parents[model.name]}
            lands = any(name in landing for name in graph.parents[model.name])
            for test in model.unit_tests:
                if {name for name, _ in _inputs(test)} - above:
                    further = reach(graph.parents, set(graph.parents[model.name]))
                    above |= {nodes.get(name, f"ref('{name}')") for name in further}
                found.extend(_unread(model, test, above))
                found.extend([] if lands else _not_landing(model, test))
    return tuple(found)


def _inputs(test: UnitTest) -> Iterator[tuple[str, Place]]:
    for given in test.given:
        yield given.input, given.place
    for step in test.steps:
        for change in step.changes:
            yield change.input, change.place


def _unread(model: Model, test: UnitTest, above: set[str]) -> Iterator[Problem]:
    for name, place in _inputs(test):
        if name not in above:
            message = f"{model.name} doesn't read {name}, neither directly nor through other models"
            yield Problem("SR112", place, message, f"Possible inputs: {listed(sorted(above))}.")


def _not_landing(model: Model, test: UnitTest) -> Iterator[Problem]:
    for expect, place in [(test.expect, test.place), *((step.expect, step.place) for step in test.steps)]:
        if expect.quarantined is not None:
            hint = "Test the model that reads the source."
            yield Problem("SR121", place, f"{model.name} doesn't land a source, so it quarantines no lines", hint)
