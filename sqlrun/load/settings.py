"""The text of pyproject.toml as the project's settings, each with its place. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.load.contract import CHOICES, CONFIG_KEYS, FLAGS, NUMBERS, enforced, is_number
from sqlrun.load.yaml_reader import did_you_mean, listed
from sqlrun.runtime.text_lines import text_lines
from sqlrun.transpile.function_catalogue import CLOCKS, FORBIDDEN, VOLATILE

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same parser, from PyPI
    import tomli as tomllib

FILE = "pyproject.toml"
ENFORCED = "contract = { enforced = true }"
KINDS: Mapping[str, type] = {"name": str, "profile": str, "vars": dict, "models": dict, "functions": list}
KEYS = tuple(KINDS)


@dataclass(frozen=True, slots=True)
class Settings:
    """What [tool.sqlrun] says. `folders` maps a folder of models/ (`""` is models/ itself) to its settings."""

    name: str
    profile: str
    vars: Mapping[str, Any]
    folders: Mapping[str, Mapping[str, object]]
    text: str
    functions: tuple[str, ...] = ()

    def layers(self, file: str) -> tuple[Mapping[str, object], ...]:
        """List the settings that a model's file falls under, the outermost folder first."""
        parts = file.split("/")[1:-1]
        names = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
        return tuple(self.folders[name] for name in names if name in self.folders)

    def problem_at(self, file: str, key: str, message: str, hint: str) -> Problem:
        """Blame the innermost folder's setting that a model's file falls under."""
        parts = file.split("/")[1:-1]
        found = [parts[:d] for d in range(len(parts) + 1) if key in self.folders.get("/".join(parts[:d]), {})]
        return _problem(self.text, "SR108", ["models", *(found[-1] if found else []), key], message, hint)


def read(text: str, default_name: str, folders: Iterable[str], problems: list[Problem]) -> Settings:
    """Read the settings and note what is wrong in them; `folders` are those that models/ has.

    Raises: ProjectError where there are no settings at all (SR100).
    """
    tool = _tool(text)
    for key in tool:
        if key not in KEYS:
            hint = f"Known keys: {', '.join(KEYS)}.{did_you_mean(key, KEYS)}"
            problems.append(_problem(text, "SR102", [key], f"unknown key `{key}` in [tool.sqlrun]", hint))
    for key, kind in KINDS.items():
        if not isinstance(tool.get(key, kind()), kind):
            what = {"str": "a string", "dict": "a table", "list": "a list of names"}[kind.__name__]
            problems.append(_problem(text, "SR103", [key], f"`{key}` in [tool.sqlrun] must be {what}", ""))
            del tool[key]
    layers: dict[str, Mapping[str, object]] = {}
    _walk(text, (), tool.get("models", {}), tuple(folders), layers, problems)
    functions = _functions(text, tool.get("functions", []), problems)
    name, chosen = tool.get("name", default_name), tool.get("profile", "local")
    return Settings(name, chosen, tool.get("vars", {}), layers, text, functions)


def _functions(text: str, names: list[object], problems: list[Problem]) -> tuple[str, ...]:
    """Read the functions that the project adds to the list; what a model may never call is no setting."""
    taken = []
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
            problems.append(_problem(text, "SR103", ["functions"], "`functions` must be a list of names", ""))
        elif name.lower() in VOLATILE | CLOCKS | FORBIDDEN:
            message, hint = f"`functions` can't allow `{name}`", "Remove it from the list: it isn't deterministic, "
            hint += "or it reads data outside of the project."
            problems.append(_problem(text, "SR110", ["functions"], message, hint))
        else:
            taken.append(name.lower())
    return tuple(taken)


def _tool(text: str) -> dict[str, Any]:
    try:
        tool = tomllib.loads(text).get("tool", {}).get("sqlrun")
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at line (\d+), column (\d+)\)", str(error))
        place = Place(FILE, int(found[1]), int(found[2])) if found else Place(FILE, text.count("\n") + 1)
        message = "invalid TOML: " + re.sub(r" \(at .*\)$", "", str(error))
        lines = [*text_lines(text), ""]
        excerpt = lines[place.line - 1] if place.line <= len(lines) else ""
        raise ProjectError([Problem("SR101", place, message, "Fix the TOML here.", excerpt)]) from None
    except (RecursionError, ValueError):
        # A number of thousands of digits, or brackets in brackets: the parser tells no place.
        message, hint = (
            "invalid TOML: the file is nested too deeply, or a number is too long",
            "Fix the TOML in this file.",
        )
        raise ProjectError([Problem("SR101", Place(FILE, exact=False), message, hint)]) from None
    if not isinstance(tool, dict):
        hint = 'Add the section [tool.sqlrun] with name = "..."'
        raise ProjectError([Problem("SR100", Place(FILE), "`pyproject.toml` has no section [tool.sqlrun]", hint)])
    return dict(tool)


def _walk(
    text: str,
    path: tuple[str, ...],
    table: Mapping[str, Any],
    folders: tuple[str, ...],
    layers: dict[str, Mapping[str, object]],
    problems: list[Problem],
) -> None:
    """Split a table into its folder's own settings and the tables of the folders below."""
    own: dict[str, object] = {}
    shown = ".".join(("tool.sqlrun.models", *path))
    for key, value in table.items():
        inner = (*path, key)
        if key == "contract" and enforced(value) is not None:
            own["enforced"] = enforced(value)
        elif isinstance(value, dict) and key != "contract":
            if "/".join(inner) not in folders:
                hint = f"Folders: {listed(folders)}.{did_you_mean('/'.join(inner), folders)}"
                message = f"unknown folder `models/{'/'.join(inner)}`"
                problems.append(_problem(text, "SR102", ["models", *inner], message, hint))
            _walk(text, inner, value, folders, layers, problems)
        elif key not in CONFIG_KEYS:
            hint = f"Known keys: {', '.join(CONFIG_KEYS)}.{did_you_mean(key, CONFIG_KEYS)}"
            problems.append(_problem(text, "SR102", ["models", *inner], f"unknown key `{key}` in [{shown}]", hint))
        elif key in CHOICES and value not in CHOICES[key]:
            hint = f"Choose one of: {', '.join(CHOICES[key])}.{did_you_mean(str(value), CHOICES[key])}"
            problems.append(_problem(text, "SR110", ["models", *inner], f"invalid `{key}`: `{value}`", hint))
        elif key in NUMBERS and not is_number(value):
            hint = f"Write a number, 1 or greater: {key} = 20"
            problems.append(_problem(text, "SR110", ["models", *inner], f"invalid `{key}`: `{value}`", hint))
        elif key in FLAGS and not isinstance(value, bool):
            message, hint = f"`{key}` must be true or false, not `{value}`", f"{key} = false"
            problems.append(_problem(text, "SR103", ["models", *inner], message, hint))
        elif key in CHOICES or key in NUMBERS or key in FLAGS:
            own[key] = value
        elif key == "contract":
            problems.append(
                _problem(text, "SR103", ["models", *inner], f"`contract` in [{shown}] must be a table", ENFORCED)
            )
        elif isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value)):
            own[key] = (value,) if isinstance(value, str) else tuple(value)
        else:
            hint = f'{key} = ["a", "b"]'
            problems.append(_problem(text, "SR103", ["models", *inner], f"`{key}` must be a list of strings", hint))
    layers["/".join(path)] = own


def _problem(text: str, code: str, path: list[str], message: str, hint: str) -> Problem:
    """Place a problem at a key of [tool.sqlrun]; TOML's parser keeps no places, so the text is searched."""
    wanted, lines = ["tool", "sqlrun", *path], text_lines(text)
    header: list[str] = []
    best = (0, 0)
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("["):
            header = _parts(line.strip().strip("[]"))
            here = header
        elif "=" in line:
            here = [*header, *_parts(line.partition("=")[0])]
        else:
            continue
        # An inline table hides the last keys: the longest path that leads there wins.
        if here == wanted[: len(here)] and len(here) > best[0]:
            best = (len(here), number)
    number = best[1] or 1
    line = lines[number - 1] if lines else ""
    found = re.search(rf"\b{re.escape(path[-1])}\b", line)
    return Problem(code, Place(FILE, number, found.start() + 1 if found else 1), message, hint, line)


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.partition("#")[0].strip(" ]").split(".")]
