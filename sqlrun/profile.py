"""A profile: which engine, which warehouse, which settings. Shell: profile files and the environment."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.model import Profile
from sqlrun.yaml_values import Reader

KEYS = ("engine", "warehouse", "threads", "settings")
ENGINES = ("spark", "duckdb")


def load(root: Path, name: str) -> Profile:
    """Read `profiles/<name>.yml`; `${NAME}` in a value is taken from the environment.

    Raises: ProjectError (SR13x) for a missing file, an unknown key or engine, a variable that is not set.
    """
    file = root / "profiles" / f"{name}.yml"
    where = Place(f"profiles/{name}.yml")
    if not re.fullmatch(r"[\w.-]+", name) or not file.is_file():
        there = sorted(f.stem for f in (root / "profiles").glob("*.yml"))
        hint = f"There are: {', '.join(there)}." if there else "Write one: engine, warehouse, threads, settings."
        near = difflib.get_close_matches(name, there, 1)
        hint += f" Did you mean `{near[0]}`?" if near else ""
        raise ProjectError([Problem("SR130", where, f"there is no profile `{name}`", hint)])
    problems: list[Problem] = []
    reader = Reader(str(where.file), file.read_text(encoding="utf-8"), problems)
    top = reader.mapping(reader.root, where, "a profile", KEYS, ("engine", "warehouse")) if not problems else {}
    engine = reader.text(top, "engine")
    if engine not in ENGINES and not problems:
        message = f"unknown engine `{engine}`"
        reader.problem("SR131", reader.place(top, "engine"), message, f"Engines: {', '.join(ENGINES)}.")
    settings = {}
    raw = top.get("settings") or {}
    if not hasattr(raw, "items"):
        reader.problem("SR103", reader.place(top, "settings"), "`settings` must be a mapping")
        raw = {}
    for key in raw:
        settings[str(key)] = _expanded(reader, raw, str(key), reader.text(raw, key))
    warehouse = _expanded(reader, top, "warehouse", reader.text(top, "warehouse"))
    threads = reader.text(top, "threads", "2")
    if not threads.isdigit() or not 1 <= int(threads) <= 256:
        reader.problem("SR131", reader.place(top, "threads"), f"threads must be 1 or more, not `{threads}`")
        threads = "1"
    if problems:
        raise ProjectError(problems)
    folder = str((root / warehouse).resolve())
    return Profile(name, engine, folder, int(threads), settings)


def _expanded(reader: Reader, node: object, key: str, text: str) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name not in os.environ:
            message = f"the environment variable {name} is not set"
            reader.problem("SR132", reader.place(node, key), message, f"export {name}=...")
            return ""
        return os.environ[name]

    return re.sub(r"\$\{(\w+)\}", value, text)
