"""The project's settings in pyproject.toml, each with its place. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from sqlrun.errors import Place, Problem, ProjectError, UsageError
from sqlrun.load.contract import CHOICES, CONFIG_KEYS, FLAGS, MAPPINGS, NUMBERS, WORDS, enforced, is_number, json_of
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed, plain
from sqlrun.runtime.text_lines import text_lines
from sqlrun.transpile.function_catalogue import CLOCKS, FORBIDDEN, VOLATILE

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same parser, from PyPI
    import tomli as tomllib

FILE = "pyproject.toml"
ENFORCED = "contract = { enforced = true }"
KINDS: Mapping[str, type] = {
    "name": str, "profile": str, "vars": dict, "models": dict, "functions": list, "require_descriptions": bool,
    "adapter_type": str, "env_vars": list, "target": dict,
}  # fmt: skip
KIND_NAMES: Mapping[type, str] = {str: "a string", dict: "a table", list: "a list of names", bool: "true or false"}
KEYS = tuple(KINDS)
# Vars of the command line (`--vars`), for this run instead of the project's values.
OVERRIDDEN: ContextVar[Mapping[str, Any]] = ContextVar("vars", default=MappingProxyType({}))
# Begins the names of variables that dbt hides, too.
SECRET = "DBT_ENV_SECRET"
OF_ADAPTER = ("type",)
# Adapters of dbt whose SQL is Spark's; the first is the default.
ADAPTERS = ("spark", "databricks")


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of [tool.sqlrun]. `folders` maps a folder of models/ (`""` is models/ itself) to its settings."""

    name: str
    profile: str
    vars: Mapping[str, Any]
    folders: Mapping[str, Mapping[str, object]]
    text: str
    functions: tuple[str, ...] = ()
    require_descriptions: bool = False
    adapter_type: str = ADAPTERS[0]
    env_vars: tuple[str, ...] = ()
    target: Mapping[str, Any] = field(default_factory=dict)

    def layers(self, file: str) -> tuple[Mapping[str, object], ...]:
        """Return the settings that apply to a model's file, the outermost folder's first."""
        parts = file.split("/")[1:-1]
        names = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
        return tuple(self.folders[name] for name in names if name in self.folders)

    def problem_at(self, file: str, key: str, message: str, hint: str) -> Problem:
        """Return a problem at the innermost folder's setting that applies to a model's file."""
        parts = file.split("/")[1:-1]
        found = [parts[:d] for d in range(len(parts) + 1) if key in self.folders.get("/".join(parts[:d]), {})]
        return _problem(self.text, "SR108", ["models", *(found[-1] if found else []), key], message, hint)


def read(text: str, default_name: str, folders: Iterable[str], problems: list[Problem]) -> Settings:
    """Return the settings, and record what is wrong in them; `folders` are those below models/.

    Raises: ProjectError if there are no settings (SR100).
    """
    tool = _tool(text)
    for key in tool:
        if key not in KEYS:
            hint = f"Known keys: {', '.join(KEYS)}.{did_you_mean(key, KEYS)}"
            problems.append(_problem(text, "SR102", [key], f"unknown key `{key}` in [tool.sqlrun]", hint))
    for key, kind in KINDS.items():
        if not isinstance(tool.get(key, kind()), kind):
            what = KIND_NAMES[kind]
            problems.append(_problem(text, "SR103", [key], f"`{key}` in [tool.sqlrun] must be {what}", ""))
            del tool[key]
    layers: dict[str, Mapping[str, object]] = {}
    _walk(text, (), tool.get("models", {}), tuple(folders), layers, problems)
    functions = _functions(text, tool.get("functions", []), problems)
    name, chosen = tool.get("name", default_name), tool.get("profile", "local")
    required = tool.get("require_descriptions", False)
    adapter = tool.get("adapter_type", ADAPTERS[0])
    if adapter not in ADAPTERS:
        hint = f"Write one of {listed(ADAPTERS)}.{did_you_mean(adapter, ADAPTERS)}"
        problems.append(_problem(text, "SR108", ["adapter_type"], f"`adapter_type` can't be `{adapter}`", hint))
    declared = _env_vars(text, tool.get("env_vars", []), problems)
    target = _target(text, tool.get("target", {}), problems)
    values = _overridden(tool.get("vars", {}))
    return Settings(name, chosen, values, layers, text, functions, required, adapter, declared, target)


def overrides(text: str, option: str = "--vars") -> dict[str, Any]:
    """Return the vars of a text for the command line, in YAML or JSON, or the arguments of another option.

    >>> overrides("{days: 7, shops: [a, b]}")
    {'days': 7, 'shops': ['a', 'b']}

    Raises: UsageError if it isn't a mapping.
    """
    problems: list[Problem] = []
    reader = Reader(option, text, problems)
    if problems:
        raise UsageError(f"{option} isn't YAML: {problems[0].message}. Write {option} '{{name: value}}'.")
    if reader.root is not None and not isinstance(reader.root, Mapping):
        raise UsageError(f"{option} must be a mapping. Write {option} '{{name: value}}'.")
    return {name: _as_toml(value) for name, value in plain(reader.root or {}).items()}


def _as_toml(value: Any) -> Any:
    """Return a value of YAML as one of TOML: a decimal is a float."""
    match value:
        case Mapping():
            return {key: _as_toml(one) for key, one in value.items()}
        case list():
            return [_as_toml(one) for one in value]
        case Decimal():
            return float(value)
        case _:
            return value


def _overridden(declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the project's vars with the values of the command line.

    Raises: UsageError for a name that isn't declared: it would change nothing.
    """
    given = OVERRIDDEN.get()
    for name in given:
        if name not in declared:
            hint = f"[tool.sqlrun.vars] has {listed(sorted(declared))}.{did_you_mean(name, declared)}"
            raise UsageError(f"--vars names the unknown var `{name}`: {hint}")
    return {**declared, **given}


def _env_vars(text: str, names: list[object], problems: list[Problem]) -> tuple[str, ...]:
    """Return the variables of the environment that templates may read."""
    taken = []
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
            problems.append(_problem(text, "SR103", ["env_vars"], "`env_vars` must be a list of names", ""))
        elif name.upper().startswith(SECRET):
            message, hint = f"`env_vars` can't have the secret `{name}`", "Read it in a profile, as ${NAME}: compiled "
            hint += "SQL shows what a model reads."
            problems.append(_problem(text, "SR110", ["env_vars"], message, hint))
        else:
            taken.append(name)
    return tuple(dict.fromkeys(taken))


def _target(text: str, values: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Return what templates see as `target`: texts, numbers and flags."""
    taken = {}
    for key, value in values.items():
        if key in OF_ADAPTER:
            hint = "Remove it: it follows from `adapter_type`."
            problems.append(_problem(text, "SR110", ["target", key], f"`{key}` of `target` can't be set", hint))
        elif isinstance(value, str | int | float):
            taken[key] = value
        else:
            message, hint = f"`{key}` of `target` must be a text or a number", f'{key} = "prod"'
            problems.append(_problem(text, "SR103", ["target", key], message, hint))
    return taken


def _functions(text: str, names: list[object], problems: list[Problem]) -> tuple[str, ...]:
    """Return the functions that the project admits; functions that a model may never call are a problem."""
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
        # A number of thousands of digits, or deeply nested brackets: the parser reports no place.
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
    """Split a table into its folder's own settings and the tables of its subfolders."""
    own: dict[str, object] = {}
    shown = ".".join(("tool.sqlrun.models", *path))
    for key, value in table.items():
        inner = (*path, key)
        if key == "contract" and enforced(value) is not None:
            own["enforced"] = enforced(value)
        elif key in MAPPINGS and isinstance(value, dict) and "/".join(inner) not in folders:
            own[key] = json_of(value)
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
        elif key in WORDS and not isinstance(value, str):
            message, hint = f"`{key}` must be a name, not `{value}`", f'{key} = "a"'
            problems.append(_problem(text, "SR103", ["models", *inner], message, hint))
        elif key in CHOICES or key in NUMBERS or key in FLAGS or key in WORDS:
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
    """Return a problem at a key of [tool.sqlrun]; TOML's parser keeps no places, so it searches the text."""
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
        # An inline table hides the last keys, so the longest path to the key wins.
        if here == wanted[: len(here)] and len(here) > best[0]:
            best = (len(here), number)
    number = best[1] or 1
    line = lines[number - 1] if lines else ""
    found = re.search(rf"\b{re.escape(path[-1])}\b", line)
    return Problem(code, Place(FILE, number, found.start() + 1 if found else 1), message, hint, line)


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.partition("#")[0].strip(" ]").split(".")]
