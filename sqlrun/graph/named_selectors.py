"""selectors.yml: named selectors in dbt's form. Shell: the analyst's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlrun.errors import Place
from sqlrun.graph.selectors import METHODS, named_in, texts_of
from sqlrun.load.folder import Folder
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed
from sqlrun.project import Choice, Project, Selector

FILE = "selectors.yml"
KEYS = ("name", "description", "definition", "default")
# What adds neighbors to a selector, as words of YAML, and what changes nothing here: checks belong to their tables.
NEIGHBORS = ("parents", "children", "childrens_parents", "parents_depth", "children_depth")
METHOD_KEYS = ("method", "value", *NEIGHBORS, "indirect_selection", "exclude")
SETS = ("union", "intersection")


def attach(folder: Folder, project: Project, _: Mapping[str, str]) -> Project:
    """Return the project with its named selectors."""
    file = folder.root / FILE
    if not file.is_file() or (file.is_symlink() and folder.leads_out(file)):
        return project
    text = folder.text(file)
    reader = folder.yaml(file, text) if text is not None else None
    return project if reader is None else replace(project, selectors=tuple(read(reader)))


def read(reader: Reader) -> Iterator[Selector]:
    """Yield the selectors of a file. Names are unique, one is the default, and none refers to itself."""
    root = reader.mapping(reader.root, Place(reader.file), "a selectors file", ("version", "selectors"), ("selectors",))
    found: dict[str, Selector] = {}
    for node, place in reader.items(root, "selectors", "the file"):
        node = reader.mapping(node, place, "a selector", KEYS, ("name", "definition"))
        name = reader.text(node, "name")
        is_default = reader.flag(node, "default", False)
        choice = _choice(reader, node.get("definition"), reader.value_place(node, "definition"))
        if name in found:
            reader.problem("SR111", place, f"duplicate selector `{name}`", f"The first is in {found[name].place}.")
        elif is_default and any(one.is_default for one in found.values()):
            reader.problem("SR111", place, "there are two default selectors", "Remove `default` of one.")
        elif name:
            found[name] = Selector(name, choice, place, reader.text(node, "description"), is_default)
    yield from _resolved(reader, found)


def _resolved(reader: Reader, found: Mapping[str, Selector]) -> Iterator[Selector]:
    """Yield the selectors that refer to known selectors only, and not to themselves."""
    reads = {name: named_in(texts_of(selector.choice)) for name, selector in found.items()}
    for name, selector in found.items():
        unknown = [other for other in reads[name] if other not in found]
        for other in unknown:
            hint = f"Selectors: {listed(found)}.{did_you_mean(other, found)}"
            reader.problem("SR110", selector.place, f"unknown selector `{other}` in `{name}`", hint)
        reached, left = set(), list(reads[name])
        while left:
            if (other := left.pop()) not in reached:
                reached.add(other)
                left += reads.get(other, ())
        if name in reached:
            reader.problem("SR110", selector.place, f"the selector `{name}` refers to itself", "Remove the reference.")
        elif not unknown:
            yield selector


def _choice(reader: Reader, node: Any, place: Place) -> Choice:
    """Return what a definition means: a text, a method with its value, or a union or an intersection."""
    match node:
        case str():
            if not node.strip():
                reader.problem("SR110", place, "a selector is empty", "Write a name, a folder, or a method: tag:x")
            return Choice(node)
        case Mapping() if any(key in SETS for key in node):
            node = reader.mapping(node, place, "a selector", SETS)
            if len(node) > 1:
                reader.problem(
                    "SR110", place, "`union` and `intersection` exclude each other", "Nest one in the other."
                )
            key = next(iter(node))
            return _several(reader, node, key) if key in SETS else Choice()
        case Mapping() if "method" in node or len(node) != 1:
            return _by_method(reader, node, place)
        case Mapping():
            key = next(iter(node))
            return Choice(f"{_method(reader, key, reader.place(node, key))}:{reader.text(node, key)}")
        case _:
            hint = "Write a text, such as tag:x, or `method` and `value`, `union` or `intersection`."
            reader.problem("SR103", place, "a selector must be a text or a mapping", hint)
            return Choice()


def _several(reader: Reader, node: Any, key: str) -> Choice:
    parts: list[Choice] = []
    without: list[Choice] = []
    for item, place in reader.items(node, key, "the selector"):
        if isinstance(item, Mapping) and tuple(item) == ("exclude",):
            without += _excluded(reader, item)
        else:
            parts.append(_choice(reader, item, place))
    if not parts:
        reader.problem("SR110", reader.value_place(node, key), f"`{key}` has no selector", "Write at least one.")
    return Choice("", tuple(parts), key == "union", tuple(without))


def _excluded(reader: Reader, node: Any) -> Iterable[Choice]:
    return [_choice(reader, item, place) for item, place in reader.items(node, "exclude", "the selector")]


def _by_method(reader: Reader, node: Any, place: Place) -> Choice:
    node = reader.mapping(node, place, "a selector", METHOD_KEYS, ("method", "value"))
    method = _method(reader, reader.text(node, "method"), reader.value_place(node, "method"))
    text = f"{method}:{reader.text(node, 'value')}"
    if reader.flag(node, "childrens_parents", False):
        text = f"@{text}"
    else:
        if reader.flag(node, "parents", False):
            text = f"{_depth(reader, node, 'parents_depth')}+{text}"
        if reader.flag(node, "children", False):
            text = f"{text}+{_depth(reader, node, 'children_depth')}"
    return Choice(text, without=tuple(_excluded(reader, node)) if node.get("exclude") is not None else ())


def _method(reader: Reader, name: str, place: Place) -> str:
    known = name in METHODS or name.startswith("config.")
    if name and (not known or name == "config.KEY"):
        hint = f"Methods: {listed(METHODS)}.{did_you_mean(name, METHODS)}"
        reader.problem("SR110", place, f"unknown selector method `{name}`", hint)
    return name


def _depth(reader: Reader, node: Any, key: str) -> str:
    value = node.get(key)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        reader.problem("SR103", reader.value_place(node, key), f"`{key}` must be a number of levels", f"{key}: 1")
        return ""
    return str(value)
