"""YAML text as plain values with places: ruamel.yaml's only user. Pure.

`yaml_fast` reads plain text. ruamel.yaml reads all other text and reports what is wrong with it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlrun.errors import Place, Problem
from sqlrun.load import yaml_words
from sqlrun.load.dbt_keys import instead
from sqlrun.load.yaml_fast import Listed, Mapped, Unusual, number, read
from sqlrun.runtime.text_lines import text_lines

TAG = "tag:yaml.org,2002:"
MOST_NAMES = 30
# Maximum number of values in a file, with repetitions by aliases: a few nested aliases are billions of values.
MOST_VALUES = 200_000
# The mark of a text whose lines follow below, unchanged.
BLOCK = re.compile(r"(?:&\S+ +)?\|[-+0-9]*(?:\s+#.*)?\s*")
# Maximum number of digits of an integer: parsing takes quadratic time.
MOST_DIGITS = 100


class Reader:
    """One YAML file: its values with places, and its problems.

    `broken`: the file is not YAML; that problem is recorded, and there can be no others.
    """

    def __init__(self, file: str, text: str, problems: list[Problem]) -> None:
        self.file, self.problems = file, problems
        self.broken = False
        self._values = 0
        self.lines = text_lines(text)
        self.root: Any = self._parse(text)

    def _parse(self, text: str) -> Any:
        try:
            return read(self.file, text)
        except Unusual:
            return self._composed(text)

    def _composed(self, text: str) -> Any:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        # Nodes instead of values: a loader loses places, digits of decimals, and all but one of repeated keys.
        yaml = YAML(typ="safe", pure=True)
        try:
            node = yaml.compose(text)
            return None if node is None else self._value(node, ())
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = self._at(mark) if mark else Place(self.file)
            what = (error.problem or error.context or "can't be read").split("\n")[0].removeprefix("but ")
            words, hint = yaml_words.plain(what)
            self.problem("SR101", place, f"invalid YAML: {words}", hint)
        except YAMLError as error:
            # Not just the first line: it may contain the character that can't be shown.
            what = getattr(error, "reason", "") or "can't be read"
            line = text.count("\n", 0, getattr(error, "position", 0)) + 1
            self.problem("SR101", Place(self.file, line), f"invalid YAML: {what}", "Fix the YAML in this line.")
        except RecursionError:
            self.problem("SR101", Place(self.file), "invalid YAML: nested too deeply", "Reduce the nesting.")
        except _TooMany as error:
            message = f"the file has more than {MOST_VALUES:,} values, counting each alias as a copy"
            self.problem("SR101", error.place, message, "Use fewer aliases, or move the data into a seed.")
        except ValueError:
            self.problem("SR101", Place(self.file), "invalid YAML: a value can't be read", "Quote the value.")
        self.broken = True
        return None

    def _at(self, mark: Any) -> Place:
        return Place(self.file, mark.line + 1, mark.column + 1)

    def _value(self, node: Any, above: tuple[int, ...]) -> Any:
        place = self._at(node.start_mark)
        if id(node) in above:
            self.problem("SR101", place, "invalid YAML: this value contains itself", "Replace the alias by the value.")
            return None
        self._values += 1
        if self._values > MOST_VALUES:
            raise _TooMany(place)
        above = (*above, id(node))
        match node.id:
            case "mapping":
                return self._mapped(node, above)
            case "sequence":
                listed = Listed(place)
                for item in node.value:
                    listed.append(self._value(item, above))
                    listed.items_at.append(self._at(item.start_mark))
                return listed
            case _:
                return self._scalar(str(node.ctag), node.value, place)

    def _mapped(self, node: Any, above: tuple[int, ...]) -> Mapped:
        mapped = Mapped(self._at(node.start_mark))
        merged: list[Mapped] = []
        for key, item in node.value:
            at = self._at(key.start_mark)
            if key.id != "scalar":
                self.problem("SR101", at, "invalid YAML: a key must be a string", "Write `key: value`.")
                continue
            value = self._value(item, above)
            if str(key.ctag) == f"{TAG}merge":
                merged += [p for p in (value if isinstance(value, Listed) else [value]) if isinstance(p, Mapped)]
            elif key.value in mapped:
                first = mapped.keys_at[key.value].line
                self.problem(
                    "SR101", at, f"duplicate key `{key.value}`", f"Remove one of them. The first is in line {first}."
                )
            else:
                mapped[key.value] = value
                mapped.keys_at[key.value], mapped.values_at[key.value] = at, self._at(item.start_mark)
        for part in merged:
            for name in [name for name in part if name not in mapped]:
                mapped[name] = part[name]
                mapped.keys_at[name], mapped.values_at[name] = part.keys_at[name], part.values_at[name]
        return mapped

    def _scalar(self, tag: str, text: str, place: Place) -> Any:
        match tag.removeprefix(TAG):
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                digits = text.replace("_", "")
                if len(digits) > MOST_DIGITS:
                    message = f"the number has {len(digits):,} digits"
                    self.problem("SR101", place, message, "Quote it to write a string.")
                    return 0
                base = 0 if digits.lstrip("+-")[:2] in ("0x", "0o", "0b") else 10
                return int(digits, base) if re.fullmatch(r"[+-]?(0[xob])?[0-9a-fA-F]+", digits) else text
            case "float":
                return number(text)
            case "str" | "value" | "timestamp":  # a time stays as it is written: the contract has its type
                return str(text)
            case other:
                self.problem("SR101", place, f"unsupported YAML tag `{other}`", "Remove the tag.")
                return str(text)

    def problem(self, code: str, place: Place, message: str, hint: str = "") -> None:
        """Record a problem with its line of text."""
        excerpt = self.lines[place.line - 1] if 0 < place.line <= len(self.lines) else ""
        self.problems.append(Problem(code, place, message, hint, excerpt))

    def place(self, node: Any, key: Any = None) -> Place:
        """Return the place of a value, of one of its keys or of one of its items."""
        match node:
            case Mapped():
                return node.keys_at.get(key, node.place)
            case Listed():
                return node.items_at[key] if key is not None else node.place
            case _:
                return Place(self.file)

    def value_place(self, node: Any, key: str) -> Place:
        """Return the place of a key's value."""
        return node.values_at.get(key, node.place) if isinstance(node, Mapped) else Place(self.file)

    def text_place(self, place: Place, text: str) -> Place:
        """Return the place of a text's first letter: of a block (`|`) below its mark, of another text at its quote."""
        line = self.lines[place.line - 1] if place.line <= len(self.lines) else ""
        if not BLOCK.fullmatch(line[place.column - 1 :]):
            return place
        written = text.split("\n")
        first = next((number for number, one in enumerate(written) if one.strip()), 0)
        found = self.lines[place.line + first] if place.line + first < len(self.lines) else ""
        return Place(self.file, place.line + 1, len(found) - len(written[first].rstrip("\n")) + 1)

    def mapping(self, node: Any, where: Place, what: str, known: Iterable[str], required: Iterable[str] = ()) -> Any:
        """Return a mapping after a check of its keys; {} if the value isn't a mapping."""
        known = tuple(known)
        if not isinstance(node, Mapping):
            self.problem("SR103", where, f"{what} must be a mapping", f"Known keys: {', '.join(known)}.")
            return {}
        for key in node:
            if key not in known:
                hint = f"Known keys: {', '.join(known)}.{instead(key) or did_you_mean(key, known)}"
                self.problem("SR102", self.place(node, key), f"unknown key `{key}` of {what}", hint)
        for key in required:
            if node.get(key) is None:
                at = self.place(node, key) if key in node else where
                self.problem("SR104", at, f"{what} lacks `{key}`", f"Add `{key}:`.")
        return node

    def items(self, node: Any, key: str, what: str) -> list[tuple[Any, Place]]:
        """Return the items of the list under a key, each with its place; a single item without a list is a problem."""
        value = node.get(key) if isinstance(node, Mapping) else None
        if value is None:
            return []
        if not isinstance(value, list):
            message = f"`{key}` of {what} must be a list"
            self.problem("SR103", self.value_place(node, key), message, "Begin each item of the list with `- `.")
            return []
        return [(item, self.place(value, index)) for index, item in enumerate(value)]

    def text(self, node: Any, key: str, default: str = "") -> str:
        """Return a text; another scalar as it is written, a list or a mapping is a problem."""
        value = node.get(key) if isinstance(node, Mapping) else None
        if isinstance(value, Mapping | list):
            self.problem("SR103", self.value_place(node, key), f"`{key}` must be a string")
            return default
        if isinstance(value, bool):
            return str(value).lower()
        return default if value is None else str(value).strip()

    def words(self, node: Any, key: str = "description") -> str:
        """Return a text for people; dbt's `{{ doc('x') }}` is a problem, since it would be shown as it is."""
        text = self.text(node, key)
        if "{{" in text:
            message = f"`{key}` contains `{{{{`, but YAML files are not templates"
            self.problem("SR110", self.value_place(node, key), message, "Write the text itself, without `{{ }}`.")
        return text

    def choice(self, node: Any, key: str, choices: tuple[str, ...], default: str) -> str:
        """Return one of several words; the default for any other, which is a problem."""
        value = self.text(node, key, default)
        if value in choices:
            return value
        if not isinstance(node[key], Mapping | list):
            hint = f"Choose one of: {', '.join(choices)}.{did_you_mean(value, choices)}"
            self.problem("SR110", self.value_place(node, key), f"invalid `{key}`: `{value}`", hint)
        return default

    def flag(self, node: Any, key: str, default: bool) -> bool:
        """Return true or false; the default for anything else, which is a problem."""
        value = node.get(key, default) if isinstance(node, Mapping) else default
        if not isinstance(value, bool):
            self.problem("SR103", self.value_place(node, key), f"`{key}` must be true or false, not `{value}`")
            return default
        return value

    def texts(self, node: Any, key: str) -> tuple[str, ...]:
        """Return a list of texts; one text is a list of one."""
        value = node.get(key) if isinstance(node, Mapping) else None
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or any(isinstance(v, Mapping | list) or v is None for v in value):
            self.problem("SR103", self.value_place(node, key), f"`{key}` must be a list of strings", f"{key}: [a, b]")
            return ()
        return tuple(str(v) for v in value)


class _TooMany(Exception):
    """A file's aliases make more values than allowed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        super().__init__()


def plain(value: Any) -> Any:
    """Return a value as plain dicts, lists and scalars."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def listed(names: Iterable[str]) -> str:
    """Return names in a row; only the first of very many.

    >>> listed(["b", "a"]), listed([])
    ('b, a', 'none')
    """
    found = list(names)
    more = f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
    return (", ".join(found[:MOST_NAMES]) or "none") + more


def spelled(name: str, known: Iterable[str]) -> str:
    """Return the known spelling of a column's name; the name itself if there is none. Spark ignores case in names.

    >>> spelled("orderid", ["id", "OrderId"]), spelled("Amount", ["id"])
    ('OrderId', 'Amount')
    """
    listed_names = list(known)
    if name in listed_names:
        return name
    return next((one for one in listed_names if one.lower() == name.lower()), name)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the most similar known name, to append to a hint; "" if none is similar.

    >>> did_you_mean("amout", ["amount", "id"])
    ' Did you mean `amount`?'
    """
    near = difflib.get_close_matches(str(name), list(known), 1)
    return f" Did you mean `{near[0]}`?" if near else ""
