"""The graph of models: order, cycles, selection. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter

from sqlrun.errors import Place, Problem, ProjectError, UsageError
from sqlrun.project import Project, Rendered

METHODS = ("tag", "path", "source")
SELECTOR = re.compile(r"(?P<at>@)?((?P<up>\d*)(?P<above>\+))?(?P<body>[^+@]+)((?P<below>\+)(?P<down>\d*))?")


@dataclass(frozen=True, slots=True)
class Graph:
    """Models, seeds and sources (as `source:group.name`) as nodes.

    `order` is topological, and by name among nodes of one depth; `files` and `tags` are of models and seeds.
    """

    order: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]
    children: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]
    tags: Mapping[str, tuple[str, ...]]
    sources: frozenset[str]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return models and seeds in order, without sources."""
        return tuple(name for name in self.order if name not in self.sources)


def build(project: Project, rendered: Iterable[Rendered]) -> Graph:
    """Return the graph of a project.

    Raises: ProjectError (SR401) with each cycle edge by edge.
    """
    items = {item.model.name: item for item in rendered}
    sources = {source.table: f"source:{source.group}.{source.name}" for source in project.sources}
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


def select(graph: Graph, include: Iterable[str], exclude: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the models and seeds of dbt's selectors: a name, `stg_*`, a folder, `tag:x`, `path:x`, `source:x`.

    `+x`, `2+x+1` and `@x` add neighbors. A comma intersects; spaces and several selectors unite. Without any, all are
    selected.

    Raises: UsageError for a selector that matches nothing, with similar names.
    """
    include = tuple(include)
    chosen = _union(graph, include) if include else set(graph.order)
    chosen -= _union(graph, exclude)
    return tuple(name for name in graph.nodes if name in chosen)


def _union(graph: Graph, texts: Iterable[str]) -> set[str]:
    chosen: set[str] = set()
    for text in texts:
        # An empty selector is an unset variable in a script, not a selection of everything.
        for part in text.split() or [""]:
            chosen |= set.intersection(*(_matched(graph, one) for one in part.split(",")))
    return chosen


def _matched(graph: Graph, text: str) -> set[str]:
    found = SELECTOR.fullmatch(text)
    if not found or (found["at"] and (found["above"] or found["below"])):
        message = f"`{text}` is not a selector. Use a name, +name, name+, 2+name+1, @name, stg_*, a folder"
        raise UsageError(f"{message}, tag:x, path:folder or source:x.")
    base = _base(graph, found["body"])
    if found["at"]:
        below = reach(graph.children, base, None)
        return below | reach(graph.parents, below, None)
    chosen = set(base)
    if found["above"]:
        chosen |= reach(graph.parents, base, int(found["up"]) if found["up"] else None)
    if found["below"]:
        chosen |= reach(graph.children, base, int(found["down"]) if found["down"] else None)
    return chosen


def _base(graph: Graph, text: str) -> set[str]:
    method, colon, value = text.partition(":")
    match method if colon else "":
        case "tag":
            known = sorted({tag for tags in graph.tags.values() for tag in tags})
            chosen = {name for name, tags in graph.tags.items() if any(fnmatchcase(tag, value) for tag in tags)}
        case "path":
            known = _folders(graph)
            chosen = {name for name, file in graph.files.items() if _under(file, value)}
        case "source":
            tables = {name: name.removeprefix("source:") for name in graph.sources}
            known = sorted({*tables.values(), *(table.partition(".")[0] for table in tables.values())})
            groups = {name: table.partition(".")[0] for name, table in tables.items()}
            chosen = {n for n, t in tables.items() if fnmatchcase(t, value) or fnmatchcase(groups[n], value)}
        case "":
            known = [*graph.nodes, *_folders(graph), *(f.removeprefix("models/") for f in _folders(graph))]
            chosen = {name for name in graph.nodes if fnmatchcase(name, text)}
            # A folder is relative to the project or to models/; as in dbt, a name may mean a model and a folder.
            chosen |= {
                name for name, file in graph.files.items() if _under(file, text) or _under(file, f"models/{text}")
            }
        case _:
            advice = _near(method, METHODS)
            raise UsageError(f"unknown selector method `{method}:`. Known methods: tag:, path:, source:.{advice}")
    if not chosen:
        raise UsageError(f"the selector `{text}` matches nothing.{_near(value if colon else text, known)}")
    return chosen


def _near(name: str, known: Iterable[str]) -> str:
    near = list(dict.fromkeys(difflib.get_close_matches(name, list(known), 3)))
    if near:
        return f" Did you mean {' or '.join(f'`{one}`' for one in near)}?"
    return " `sqlrun ls` lists what there is."


def _folders(graph: Graph) -> list[str]:
    found: set[str] = set()
    for file in graph.files.values():
        parts = file.split("/")[:-1]
        found |= {"/".join(parts[: depth + 1]) for depth in range(len(parts))}
    return sorted(found)


def _under(file: str, folder: str) -> bool:
    folder = folder.removeprefix("./").rstrip("/")
    return file == folder or file.startswith(folder + "/") or fnmatchcase(file, folder)


def reach(edges: Mapping[str, tuple[str, ...]], start: set[str], depth: int | None = None) -> set[str]:
    """Return the nodes at most `depth` steps from `start` (None: any number), `start` included."""
    reached, frontier, steps = set(start), set(start), 0
    while frontier and (depth is None or steps < depth):
        frontier = {n for name in frontier for n in edges[name]} - reached
        reached |= frontier
        steps += 1
    return reached
