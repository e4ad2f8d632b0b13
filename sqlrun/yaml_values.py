"""YAML files as plain values that know their place. Shell: the one home of ruamel.yaml."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from sqlrun.errors import Place, Problem


class Reader:
    """One YAML file: its values with places, and the problems found in it."""

    def __init__(self, file: str, text: str, problems: list[Problem]) -> None:
        self.file, self.problems = file, problems
        self._lines = text.splitlines()
        self.root: Any = self._parse(text)

    def _parse(self, text: str) -> Any:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        yaml = YAML(typ="rt")
        try:
            return yaml.load(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            what = (error.problem or error.context or "can't be read").split("\n")[0]
            self.problem("SR101", Place(self.file, line, column), f"YAML: {what}", "Mend the YAML at this place.")
        except YAMLError as error:
            self.problem("SR101", Place(self.file), f"YAML: {error}".splitlines()[0])
        return None

    def problem(self, code: str, place: Place, message: str, hint: str = "") -> None:
        """Note a problem, with its line of text."""
        excerpt = self._lines[place.line - 1] if 0 < place.line <= len(self._lines) else ""
        self.problems.append(Problem(code, place, message, hint, excerpt))

    def place(self, node: Any, key: Any = None) -> Place:
        """Find where a value or one of its keys or items stands."""
        position = getattr(node, "lc", None)
        if position is None:
            return Place(self.file)
        if key is not None:
            try:
                line, column = position.key(key) if isinstance(node, Mapping) else position.item(key)
            except (KeyError, IndexError, TypeError):
                return Place(self.file, (position.line or 0) + 1, (position.col or 0) + 1)
            return Place(self.file, line + 1, column + 1)
        return Place(self.file, (position.line or 0) + 1, (position.col or 0) + 1)

    def mapping(self, node: Any, where: Place, what: str, known: Iterable[str], required: Iterable[str] = ()) -> Any:
        """Check that a value is a mapping with known keys; an empty one where it isn't."""
        if not isinstance(node, Mapping):
            self.problem("SR103", where, f"{what} must be a mapping", f"Known keys: {', '.join(known)}.")
            return {}
        known = tuple(known)
        for key in node:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, 1)
                advice = f"Did you mean `{near[0]}`? " if near else ""
                hint = f"{advice}Known keys: {', '.join(known)}."
                self.problem("SR102", self.place(node, key), f"unknown key `{key}` of {what}", hint)
        for key in required:
            if key not in node:
                self.problem("SR104", where, f"{what} lacks `{key}`", f"Add `{key}:`.")
        return node

    def items(self, node: Any, key: str, what: str) -> list[tuple[Any, Place]]:
        """List the items of a sequence under a key, each with its place; a single item that is no list is a problem."""
        value = node.get(key) if isinstance(node, Mapping) else None
        if value is None:
            return []
        if not isinstance(value, list):
            self.problem("SR103", self.place(node, key), f"`{key}` of {what} must be a list", "Begin each item with `- `.")
            return []
        return [(item, self.place(value, index)) for index, item in enumerate(value)]

    def text(self, node: Any, key: str, default: str = "") -> str:
        """Read a text; another kind of scalar is taken by its letters, a list or mapping is a problem."""
        value = node.get(key, default) if isinstance(node, Mapping) else default
        if isinstance(value, Mapping | list):
            self.problem("SR103", self.place(node, key), f"`{key}` must be a text")
            return default
        return default if value is None else str(value).strip()

    def flag(self, node: Any, key: str, default: bool) -> bool:
        """Read true or false."""
        value = node.get(key, default) if isinstance(node, Mapping) else default
        if not isinstance(value, bool):
            self.problem("SR103", self.place(node, key), f"`{key}` must be true or false, not `{value}`")
            return default
        return value

    def texts(self, node: Any, key: str) -> tuple[str, ...]:
        """Read a list of texts; one text alone is a list of one."""
        value = node.get(key) if isinstance(node, Mapping) else None
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or any(isinstance(v, Mapping | list) for v in value):
            self.problem("SR103", self.place(node, key), f"`{key}` must be a list of texts")
            return ()
        return tuple(str(v) for v in value)


def plain(value: Any) -> Any:
    """Turn a value into plain dicts, lists and scalars."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        # ruamel keeps how a number was written: 10.00 must not become 10.0 on its way to a decimal.
        return written(value)
    return value if not isinstance(value, str) else str(value)


def written(value: float) -> object:
    """Give a number as an exact decimal, as it was written."""
    from decimal import Decimal

    places = getattr(value, "_prec", -1)
    width = getattr(value, "_width", 0)
    if getattr(value, "_exp", None) is None and places > 0 and width > places:
        return Decimal(f"{value:.{width - places - 1}f}")
    return Decimal(repr(float(value)))
