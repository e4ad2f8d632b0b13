"""dbt's selectors: which models and seeds a command works on. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase
from typing import Any

from sqlrun.errors import UsageError
from sqlrun.graph import selectable_tests
from sqlrun.graph.graph import Graph, reach
from sqlrun.project import Choice, Config

METHODS = (
    "tag",
    "path",
    "file",
    "fqn",
    "source",
    "exposure",
    "package",
    "resource_type",
    "group",
    "access",
    "config.KEY",
    "selector",
    *selectable_tests.METHODS,
    "state",
    "result",
    "source_status",
)
# Methods that compare the project with earlier artifacts, with their values.
STATES = (
    "new", "old", "modified", "unmodified", "modified.body", "modified.configs", "modified.contract",
    "modified.macros", "modified.relation",
)  # fmt: skip
RESULTS = ("success", "error", "fail", "warn", "skipped", "pass", "no-op")
SOURCE_STATUSES = ("fresher", "pass", "warn", "error", "runtime error")
COMPARED: Mapping[str, tuple[str, ...]] = {"state": STATES, "result": RESULTS, "source_status": SOURCE_STATUSES}
RESOURCE_TYPES = ("model", "seed", "source")
SELECTOR = re.compile(r"(?P<at>@)?((?P<up>\d*)(?P<above>\+))?(?P<body>[^+@]+)((?P<below>\+)(?P<down>\d*))?")


def select(graph: Graph, include: Iterable[str], exclude: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the models and seeds of dbt's selectors: a name, `stg_*`, a folder, or a method such as `tag:x`.

    `+x`, `2+x+1` and `@x` add neighbors. A comma intersects; spaces and several selectors unite. Without any, the
    default selector of selectors.yml decides; without that, all are selected.

    Raises: UsageError for a selector that matches nothing, with similar names.
    """
    chosen = _selected(graph, include, exclude)
    return tuple(name for name in graph.nodes if name in chosen)


def select_all(graph: Graph, include: Iterable[str], exclude: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the selected models, seeds and sources.

    Raises: UsageError for a selector that matches nothing, with similar names.
    """
    chosen = _selected(graph, include, exclude)
    return tuple(name for name in graph.order if name in chosen)


def select_tests(graph: Graph, include: Iterable[str], exclude: Iterable[str] = ()) -> frozenset[str]:
    """Return the ids of the selected tests of a graph; those of selected models are selected, too.

    Raises: UsageError for a selector that matches nothing, with similar names.
    """
    return frozenset(_selected(graph, include, exclude) & (graph.tests or {}).keys())


def _selected(graph: Graph, include: Iterable[str], exclude: Iterable[str]) -> set[str]:
    include, exclude = tuple(include), tuple(exclude)
    if not include and not exclude:
        include = default(graph)
    chosen = _union(graph, include) if include else {*graph.order, *(graph.tests or ())}
    return chosen - _union(graph, exclude)


def default(graph: Graph) -> tuple[str, ...]:
    """Return the selector of commands without any: the default one of selectors.yml; () if there is none."""
    return tuple(f"selector:{name}" for name, selector in graph.named.items() if selector.is_default)


def compared_methods(graph: Graph, texts: Iterable[str]) -> frozenset[str]:
    """Return the methods of selectors that need earlier artifacts, also in named selectors."""
    return _methods_in(graph, texts, COMPARED)


def names_tests(graph: Graph, texts: Iterable[str]) -> bool:
    """Return whether selectors have a method that selects tests, also in named selectors."""
    texts = tuple(texts)
    is_key = any(selectable_tests.BETWEEN in text for text in texts)
    return is_key or bool(_methods_in(graph, texts, selectable_tests.METHODS))


def _methods_in(graph: Graph, texts: Iterable[str], methods: Iterable[str]) -> frozenset[str]:
    left, seen, found = " ".join(texts) or " ".join(default(graph)), set[str](), set[str]()
    while left:
        found |= set(re.findall(rf"(?<![\w.])({'|'.join(methods)}):", left))
        names = {name for name in named_in([left]) if name in graph.named} - seen
        seen |= names
        left = " ".join(text for name in names for text in texts_of(graph.named[name].choice))
    return frozenset(found)


def named_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the named selectors that selectors refer to.

    >>> named_in(["2+selector:v2+1,tag:hot", "days"])
    ('v2',)
    """
    return tuple(name for text in texts for name in re.findall(r"(?<![\w.])selector:([^\s,+@]+)", text))


def texts_of(choice: Choice) -> tuple[str, ...]:
    """Return all selectors that a choice consists of."""
    inner = (text for part in (*choice.parts, *choice.without) for text in texts_of(part))
    return (*((choice.text,) if choice.text else ()), *inner)


def _chosen(graph: Graph, choice: Choice) -> set[str]:
    """Return the nodes of a choice. Each part must match something; an intersection of parts may be empty."""
    if choice.parts:
        found = [_chosen(graph, part) for part in choice.parts]
        chosen = set.union(*found) if choice.is_union else set.intersection(*found)
    else:
        chosen = _union(graph, (choice.text,))
    return chosen - {name for part in choice.without for name in _chosen(graph, part)}


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
    body = found["body"]
    if body.startswith(tuple(f"{method}:" for method in selectable_tests.METHODS)) or (
        graph.tests is not None and selectable_tests.BETWEEN in body
    ):
        if body != text:
            raise UsageError(f"`{text}`: tests have no neighbors. Write `{body}`.")
        return selectable_tests.matched(graph.tests, body)
    base = _base(graph, body)
    chosen, tests = base - (graph.tests or {}).keys(), base & (graph.tests or {}).keys()
    nodes = set(chosen)
    if found["at"]:
        chosen = reach(graph.children, nodes, None)
        chosen |= reach(graph.parents, chosen, None)
    if found["above"]:
        chosen |= reach(graph.parents, nodes, int(found["up"]) if found["up"] else None)
    if found["below"]:
        chosen |= reach(graph.children, nodes, int(found["down"]) if found["down"] else None)
    # A named selector has decided about the tests of its own nodes.
    whole = chosen - nodes if body.startswith("selector:") else chosen
    return chosen | tests | selectable_tests.of_nodes(graph.tests, whole)


def _base(graph: Graph, text: str) -> set[str]:
    method, colon, value = text.partition(":")
    match method if colon else "":
        case "tag":
            known = sorted({tag for tags in graph.tags.values() for tag in tags})
            chosen = {name for name, tags in graph.tags.items() if any(fnmatchcase(tag, value) for tag in tags)}
            chosen |= selectable_tests.tagged(graph.tests, value)
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
        case _ if method in ("group", "access") or method.startswith("config."):
            known, chosen = _by_setting(graph, _path(text, method), value)
        case "selector":
            known = sorted(graph.named)
            # A named selector of which nothing is left is no error: it may depend on what has changed.
            if value in graph.named:
                return _chosen(graph, graph.named[value].choice)
            chosen = set()
        case "state" | "result" | "source_status":
            return _compared(graph, text, method, value)
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


# Names of settings in selectors, by fields of a model's settings.
SETTINGS: Mapping[str, str] = {
    **{field.name: field.name for field in fields(Config) if field.name != "enforced"}, "contract": "enforced",
}  # fmt: skip


def _path(text: str, method: str) -> tuple[str, ...]:
    """Return the keys of a method such as `config.meta.owner` or `group`.

    Raises: UsageError for an unknown setting.
    """
    path = tuple(method.removeprefix("config.").split("."))
    if path[0] not in SETTINGS:
        message = f"unknown setting `{path[0]}` in the selector `{text}`. Settings: {', '.join(SETTINGS)}."
        raise UsageError(message + _near(path[0], SETTINGS))
    return path


def _by_setting(graph: Graph, path: tuple[str, ...], value: str) -> tuple[list[str], set[str]]:
    """Return the values of a setting, and the models that have a matching one."""
    answers = {name: _setting(config, path) for name, config in graph.configs.items()}
    known = sorted({one for found in answers.values() for one in found})
    return known, {name for name, found in answers.items() if any(fnmatchcase(one, value) for one in found)}


def _setting(config: Config, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a setting as text: of a list each one, of a mapping its keys; () if it isn't set."""
    value: Any = getattr(config, SETTINGS[path[0]])
    if path[0] in ("meta", "docs"):
        value = json.loads(value) if value else {}
    elif path[0] == "access":
        value = value or "protected"
    for key in path[1:]:
        value = value.get(key) if isinstance(value, Mapping) else value if key == "enforced" else None
    match value:
        case None | "":
            return ()
        case bool():
            return (str(value).lower(),)
        case list() | tuple() | dict():
            return tuple(map(str, value))
        case _:
            return (str(value),)


def _compared(graph: Graph, text: str, method: str, value: str) -> set[str]:
    """Return the nodes of a comparison with earlier artifacts; none is no error, because nothing may have changed."""
    if value not in COMPARED[method]:
        near = _near(value, COMPARED[method]) if difflib.get_close_matches(value, COMPARED[method], 1) else ""
        raise UsageError(f"unknown value of `{text}`. Values: {', '.join(COMPARED[method])}.{near}")
    if not any(mark.startswith(f"{method}:") for mark in graph.marks):
        raise UsageError(f"`{text}` compares the project with earlier artifacts: name their folder with --state DIR.")
    return set(graph.marks.get(f"{method}:{value}", ()))


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
