"""dbt's selectors: which models and seeds a command works on. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from sqlrun.errors import UsageError
from sqlrun.graph.graph import Graph, reach

METHODS = (
    "tag",
    "path",
    "file",
    "fqn",
    "source",
    "exposure",
    "package",
    "resource_type",
    "config.materialized",
    "config.tags",
)
RESOURCE_TYPES = ("model", "seed", "source")
SELECTOR = re.compile(r"(?P<at>@)?((?P<up>\d*)(?P<above>\+))?(?P<body>[^+@]+)((?P<below>\+)(?P<down>\d*))?")


def select(graph: Graph, include: Iterable[str], exclude: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the models and seeds of dbt's selectors: a name, `stg_*`, a folder, or a method such as `tag:x`.

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
        raise UsageError(f"{message}, or {_methods()}.")
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
        case "tag" | "config.tags":
            known = sorted({tag for tags in graph.tags.values() for tag in tags})
            chosen = {name for name, tags in graph.tags.items() if any(fnmatchcase(tag, value) for tag in tags)}
        case "path":
            known = _folders(graph)
            chosen = {name for name, file in graph.files.items() if _under(file, value)}
        case "file":
            files = {name: file.rpartition("/")[2] for name, file in graph.files.items()}
            known = sorted(files.values())
            chosen = {
                n for n, file in files.items() if value in (file, file.rpartition(".")[0]) or fnmatchcase(file, value)
            }
        case "fqn":
            known = sorted({".".join(path[:n]) for path in _paths(graph).values() for n in range(1, len(path) + 1)})
            chosen = _by_path(graph, value)
        case "source":
            tables = {name: name.removeprefix("source:") for name in graph.sources}
            known = sorted({*tables.values(), *(table.partition(".")[0] for table in tables.values())})
            groups = {name: table.partition(".")[0] for name, table in tables.items()}
            chosen = {n for n, t in tables.items() if fnmatchcase(t, value) or fnmatchcase(groups[n], value)}
        case "exposure":
            known = sorted(graph.exposures)
            chosen = {read for name, reads in graph.exposures.items() if fnmatchcase(name, value) for read in reads}
        case "package":
            known = [graph.project]
            chosen = set(graph.order) if value == "this" or fnmatchcase(graph.project, value) else set()
        case "resource_type":
            known = list(RESOURCE_TYPES)
            chosen = _of_type(graph, value)
        case "config.materialized":
            known = sorted(set(graph.kinds.values()))
            chosen = {name for name, kind in graph.kinds.items() if fnmatchcase(kind, value)}
        case "":
            known = [*graph.nodes, *_folders(graph), *(f.removeprefix("models/") for f in _folders(graph))]
            chosen = {name for name in graph.nodes if fnmatchcase(name, text)}
            # A folder is relative to the project or to models/; as in dbt, a name may mean a model and a folder.
            chosen |= {
                name for name, file in graph.files.items() if _under(file, text) or _under(file, f"models/{text}")
            }
            chosen |= _by_path(graph, text) if "." in text else set()
        case _:
            raise UsageError(
                f"unknown selector method `{method}:`. Known methods: {_methods()}.{_near(method, METHODS)}"
            )
    if not chosen:
        raise UsageError(f"the selector `{text}` matches nothing.{_near(value if colon else text, known)}")
    return chosen


def _near(name: str, known: Iterable[str]) -> str:
    near = [one for one in dict.fromkeys(difflib.get_close_matches(name, list(known), 3)) if one != name]
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


def _methods() -> str:
    return ", ".join(f"{method}:" for method in METHODS)


def _paths(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Return the fully qualified name of each node, as in the manifest: project, folders, name."""
    found = {}
    for name, file in graph.files.items():
        found[name] = (graph.project, *file.split("/")[1:-1], name)
    for name in graph.sources:
        found[name] = (graph.project, *name.removeprefix("source:").split("."))
    return found


def _by_path(graph: Graph, text: str) -> set[str]:
    """Return the nodes whose fully qualified name, with or without the project, begins with a pattern's parts."""
    wanted = text.split(".")

    def begins(path: tuple[str, ...]) -> bool:
        return len(wanted) <= len(path) and all(map(fnmatchcase, path, wanted))

    return {n for n, path in _paths(graph).items() if begins(path) or begins(path[1:]) or fnmatchcase(path[-1], text)}


def _of_type(graph: Graph, kind: str) -> set[str]:
    match kind:
        case "model":
            return {name for name, found in graph.kinds.items() if found != "seed"}
        case "seed":
            return {name for name, found in graph.kinds.items() if found == "seed"}
        case "source":
            return set(graph.sources)
        case _:
            return set()
