"""Who reads whom: order, cycles, selection. Pure."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass

from sqlrun.errors import Place, Problem, ProjectError, UsageError
from sqlrun.model import Project, Rendered


@dataclass(frozen=True, slots=True)
class Graph:
    """Models, seeds and sources as nodes; `order` is topological and stable by name. `tags` and `files` by node."""

    order: tuple[str, ...]
    parents: dict[str, tuple[str, ...]]
    children: dict[str, tuple[str, ...]]
    files: dict[str, str]
    tags: dict[str, tuple[str, ...]]
    sources: frozenset[str]


def build(nouns: Project, rendered: Iterable[Rendered]) -> Graph:
    """Make the graph.

    Raises: ProjectError (SR401) naming a cycle edge by edge.
    """
    items = list(rendered)
    parents: dict[str, tuple[str, ...]] = {seed.name: () for seed in nouns.seeds}
    sources = {s.table: f"source:{s.group}.{s.name}" for s in nouns.sources}
    parents.update(dict.fromkeys(sources.values(), ()))
    known = {*parents, *(item.model.name for item in items)}
    for item in items:
        reads = [*item.refs, *(sources[table] for table in item.sources)]
        parents[item.model.name] = tuple(sorted(name for name in reads if name in known))
    _refuse_cycles(parents, {item.model.name: item for item in items})
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, above in parents.items():
        for parent in above:
            children[parent].append(name)
    files = {item.model.name: item.model.file for item in items} | {s.name: s.file for s in nouns.seeds}
    return Graph(
        _order(parents),
        parents,
        {name: tuple(sorted(below)) for name, below in children.items()},
        files,
        {item.model.name: item.config.tags for item in items},
        frozenset(sources.values()),
    )


def _order(parents: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    done: list[str] = []
    seen: set[str] = set()
    waiting = sorted(parents)
    while waiting:
        ready = [name for name in waiting if all(parent in seen for parent in parents[name])]
        done.extend(ready)
        seen.update(ready)
        waiting = [name for name in waiting if name not in seen]
    return tuple(done)


def _refuse_cycles(parents: dict[str, tuple[str, ...]], items: dict[str, Rendered]) -> None:
    state: dict[str, int] = {}

    def visit(name: str, path: list[str]) -> None:
        state[name] = 1
        for parent in parents.get(name, ()):
            if state.get(parent) == 1:
                raise ProjectError([_cycle([*path, name][[*path, name].index(parent) :], parent, items)])
            if parent not in state:
                visit(parent, [*path, name])
        state[name] = 2

    for name in sorted(parents):
        if name not in state:
            visit(name, [])


def _cycle(path: list[str], start: str, items: dict[str, Rendered]) -> Problem:
    edges = " -> ".join([*path, start])
    first = items[path[0]]
    wanted = path[1] if len(path) > 1 else start
    lines = first.model.sql.splitlines()
    for number, line in enumerate(lines, 1):
        found = re.search(rf"ref\(\s*['\"]{re.escape(wanted)}['\"]", line)
        if found:
            place = Place(first.model.file, number, found.start() + 1)
            break
    else:
        line, place = "", Place(first.model.file)
    hint = "Take one of these refs out; a model can't read its own result, not even by a detour."
    return Problem("SR401", place, f"the models read each other in a circle: {edges}", hint, line)


def select(graph: Graph, include: Iterable[str], exclude: Iterable[str] = ()) -> tuple[str, ...]:
    """Choose nodes by dbt's selectors: a name, `stg_*`, a folder, `tag:x`, `path:x`, `source:x`, with `+`, `2+`, `@`.

    A comma intersects, spaces and several selectors unite. Without any, everything but sources is chosen.
    Raises: UsageError for a selector that matches nothing, naming what is near.
    """
    wanted = [part for text in include for part in text.split()]
    chosen = set().union(*(_intersection(graph, part) for part in wanted)) if wanted else set(graph.order)
    for text in exclude:
        for part in text.split():
            chosen -= _intersection(graph, part)
    return tuple(name for name in graph.order if name in chosen and name not in graph.sources)


def _intersection(graph: Graph, text: str) -> set[str]:
    parts = [_matched(graph, part) for part in text.split(",") if part]
    return set.intersection(*parts) if parts else set()


def _matched(graph: Graph, text: str) -> set[str]:
    found = re.fullmatch(r"(@|(?P<up>\d*)\+)?(?P<body>[^+@]+?)(\+(?P<down>\d*))?", text)
    if not found:
        raise UsageError(f"`{text}` is not a selector. Write a name, +name, name+, tag:x, path:folder or source:x.")
    base = _base(graph, found["body"])
    if text.startswith("@"):
        below = _reach(graph.children, base, None)
        return below | _reach(graph.parents, below, None)
    if found["up"] is not None:
        base = base | _reach(graph.parents, base, int(found["up"]) if found["up"] else None)
    if found["down"] is not None:
        base = base | _reach(graph.children, _base(graph, found["body"]), int(found["down"]) if found["down"] else None)
    return base


def _base(graph: Graph, text: str) -> set[str]:
    method, colon, value = text.partition(":")
    match method if colon else "":
        case "tag":
            chosen = {name for name, tags in graph.tags.items() if value in tags}
        case "path":
            chosen = {name for name, file in graph.files.items() if _under(file, value)}
        case "source":
            chosen = {name for name in graph.sources if fnmatch.fnmatch(name, f"source:{value}*")}
        case "":
            chosen = {name for name in graph.order if fnmatch.fnmatch(name, text)}
            chosen = chosen or {n for n, f in graph.files.items() if _under(f, text) or _under(f, f"models/{text}")}
        case _:
            raise UsageError(f"unknown selector method `{method}:`. There are tag:, path: and source:.")
    if not chosen:
        near = difflib.get_close_matches(text, graph.order, 1)
        advice = f" Did you mean `{near[0]}`?" if near else " `sqlrun ls` lists what there is."
        raise UsageError(f"the selector `{text}` matches nothing.{advice}")
    return chosen


def _under(file: str, folder: str) -> bool:
    folder = folder.rstrip("/")
    return file == folder or file.startswith(folder + "/") or fnmatch.fnmatch(file, folder)


def _reach(edges: dict[str, tuple[str, ...]], start: set[str], depth: int | None) -> set[str]:
    reached, frontier, steps = set(start), set(start), 0
    while frontier and (depth is None or steps < depth):
        frontier = {n for name in frontier for n in edges[name]} - reached
        reached |= frontier
        steps += 1
    return reached
