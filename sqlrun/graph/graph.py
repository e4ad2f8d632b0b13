"""The graph of models: order and cycles. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.graph.selectable_tests import Tests
from sqlrun.project import Config, Project, Rendered, Selector


@dataclass(frozen=True, slots=True)
class Graph:
    """Models, seeds and sources (as `source:group.name`) as nodes.

    `order` is topological, and by name among nodes of one depth; `files` and `kinds` are of models and seeds, `tags` of
    models. A kind is `seed`, or a model's `materialized`. `exposures` are the models and seeds that each one reads.
    `marks` are the nodes of selectors such as `state:modified`, if a command has compared the project with artifacts.
    `tests` are checks and unit tests by id, if a command selects them: each selected model selects its own.
    """

    order: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]
    children: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]
    tags: Mapping[str, tuple[str, ...]]
    sources: frozenset[str]
    project: str
    kinds: Mapping[str, str]
    exposures: Mapping[str, tuple[str, ...]]
    configs: Mapping[str, Config]
    named: Mapping[str, Selector]
    marks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tests: Tests | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return models and seeds in order, without sources."""
        return tuple(name for name in self.order if name not in self.sources)


def build(project: Project, rendered: Iterable[Rendered]) -> Graph:
    """Return the graph of a project.

    Raises: ProjectError (SR401) with each cycle edge by edge.
    """
    items = {item.model.name: item for item in rendered}
    sources = {source.table: source.node for source in project.sources}
    parents: dict[str, tuple[str, ...]] = dict.fromkeys((*(seed.name for seed in project.seeds), *sources.values()), ())
    known = {*parents, *items}
    for name, item in items.items():
        reads = {*item.refs, *(sources[table] for table in item.sources if table in sources)}
        parents[name] = tuple(sorted(reads & known))
    _refuse_circles(parents, items)
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name in sorted(parents):
        for parent in parents[name]:
            children[parent].append(name)
    files = {seed.name: seed.file for seed in project.seeds} | {name: item.model.file for name, item in items.items()}
    return Graph(
        _order(parents),
        parents,
        {name: tuple(below) for name, below in children.items()},
        files,
        {name: item.config.tags for name, item in items.items()},
        frozenset(sources.values()),
        project.name,
        {seed.name: "seed" for seed in project.seeds} | {n: item.config.materialized for n, item in items.items()},
        {exposure.name: exposure.depends_on for exposure in project.exposures},
        {name: item.config for name, item in items.items()},
        {selector.name: selector for selector in project.selectors},
    )


def _order(parents: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    sorter = TopologicalSorter(parents)
    sorter.prepare()
    done: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        done.extend(ready)
        sorter.done(*ready)
    return tuple(done)


def _refuse_circles(parents: Mapping[str, tuple[str, ...]], items: Mapping[str, Rendered]) -> None:
    left = {name: parents[name] for name in sorted(parents)}
    problems: list[Problem] = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # graphlib lists a cycle from input to reader; here a reader comes before its input.
            circle = list(reversed(error.args[1]))[:-1]
            first = circle.index(min(circle))
            problems.append(_circle([*circle[first:], *circle[:first]], items))
            cut = circle[0]
            following = circle[1 % len(circle)]
            left[cut] = tuple(name for name in left[cut] if name != following)
            continue
        break
    if problems:
        raise ProjectError(problems)


def _circle(circle: list[str], items: Mapping[str, Rendered]) -> Problem:
    edges = list(zip(circle, [*circle[1:], circle[0]], strict=True))
    place, excerpt = _ref_place(items[circle[0]], edges[0][1])
    if len(circle) == 1:
        hint = "Query the inputs alone. sqlrun retains the earlier rows, so the model doesn't need to read itself."
        return Problem("SR401", place, f"the model `{circle[0]}` reads itself", hint, excerpt)
    steps = ", ".join(f"{_ref_place(items[a], b)[0]} reads {b}" for a, b in edges)
    message = f"these models depend on each other in a cycle: {' -> '.join([*circle, circle[0]])}"
    return Problem("SR401", place, message, f"Remove one of these references: {steps}.", excerpt)


def _ref_place(item: Rendered, wanted: str) -> tuple[Place, str]:
    """Return the place of a ref in a model; for a ref in a macro, the line of the macro's call."""
    source = item.model.sql.split("\n")
    for text, number in zip(item.sql.split("\n"), item.lines, strict=True):
        if f"`ref`.`{wanted}`" in text:
            line = source[number - 1]
            pattern = rf"\bref\(\s*['\"]{re.escape(wanted)}['\"]|\bthis\b|\S"
            found = min(re.finditer(pattern, line), key=lambda f: len(f[0]) == 1, default=None)
            return Place(item.model.file, number, found.start() + 1 if found else 1), line
    return Place(item.model.file), ""


def reach(edges: Mapping[str, tuple[str, ...]], start: set[str], depth: int | None = None) -> set[str]:
    """Return the nodes at most `depth` steps from `start` (None: any number), `start` included."""
    reached, frontier, steps = set(start), set(start), 0
    while frontier and (depth is None or steps < depth):
        frontier = {n for name in frontier for n in edges[name]} - reached
        reached |= frontier
        steps += 1
    return reached
