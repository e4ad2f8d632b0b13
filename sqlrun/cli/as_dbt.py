"""`sqlrun-dbt`: dbt's command line for programs that run dbt. Shell: the command line, the environment, files.

It translates dbt's commands and options into those of sqlrun. What has no equal is an error before
anything runs. dbt's environment variables DBT_PROJECT_DIR, DBT_LOG_FORMAT, DBT_TARGET_PATH, DBT_STATE and DBT_DEFER
count, too.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlrun.errors import SqlrunError, UsageError
from sqlrun.version import __version__

VERSION = f"Core:\n  - installed: 1.12.0 (the format that sqlrun {__version__} writes)\n"
USAGE = """Usage: sqlrun-dbt COMMAND [OPTIONS]

  Take a command line of dbt, and run sqlrun's command for it. It is for
  programs that run dbt; people have `sqlrun --help`.

Commands: {commands}

docs/reference/dbt.md says what becomes of each command and option.
"""
# dbt's commands, and what they run.
COMMANDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("build",): ("build",),
    ("run",): ("build", "--skip-tests"),
    ("seed",): ("build", "--skip-tests"),
    ("snapshot",): ("build", "--skip-tests"),
    ("test",): ("check",),
    ("compile",): ("compile",),
    ("parse",): ("parse",),
    ("ls",): ("ls",),
    ("list",): ("ls",),
    ("docs", "generate"): ("docs", "generate"),
    ("source", "freshness"): ("source", "freshness"),
    ("debug",): ("debug",),
    ("clean",): ("clean",),
    ("retry",): ("retry",),
    ("deps",): ("deps",),
    ("run-operation",): ("run-operation",),
}
# What narrows each selector of a command.
LIMITS: Mapping[str, str] = {"seed": "resource_type:seed", "snapshot": "config.materialized:history"}
SELECTING = ("build", "check", "test", "compile", "ls")
# What selects unit tests, which are another command.
UNIT = re.compile(r"(?<![\w.])(test_type:unit|unit_test:)")
# Commands that read a profile: the others take no warehouse.
PROFILED = ("build", "check", "compile", "docs", "debug", "clean", "source", "run-operation")
# Commands that render models.
VARIED = ("build", "check", "test", "compile", "ls", "parse", "docs", "run-operation")
# Options with any number of values.
SELECT = ("--select", "-s", "--models", "--model", "-m")
MANY = (*SELECT, "--exclude", "--resource-type", "--resource-types", "--output-keys")
# Options with one value.
ONE = (
    "--project-dir", "--target", "-t", "--threads", "--vars", "--log-format", "--target-path", "--output",
    "--profile", "--profiles-dir", "--log-path", "--log-level", "--log-level-file", "--log-format-file",
    "--printer-width", "--indirect-selection", "--state", "--selector", "--args", "--sample",
)  # fmt: skip
# Options that change nothing: sqlrun has no such thing, or always does it.
NOTHING = (
    "--partial-parse", "--use-colors", "--use-colors-file", "--version-check", "--send-anonymous-usage-stats",
    "--static-parser", "--cache-selected-only", "--populate-cache", "--use-experimental-parser", "--write-json",
    "--debug", "--print", "--introspect",
)  # fmt: skip
FLAGS = ("--full-refresh", "-f", "--quiet", "-q", "-d", "--fail-fast", "-x", "--defer")
LONG: Mapping[str, str] = {
    **dict.fromkeys(SELECT, "--select"), "-t": "--target", "-f": "--full-refresh", "-q": "--quiet", "-x": "--fail-fast",
    "--resource-types": "--resource-type",
}  # fmt: skip
ARTIFACTS = ("manifest.json", "run_results.json", "catalog.json", "sources.json")


@dataclass(frozen=True, slots=True)
class Call:
    """A command of sqlrun with its arguments; `target_path` is where the caller looks for artifacts, "" for target/."""

    arguments: tuple[str, ...]
    root: str
    target_path: str


def rewrite_arguments() -> bool:
    """Replace the process's arguments for dbt by those for sqlrun; return whether there is a command to run.

    Exits with an error for what has no equal.
    """
    words = sys.argv[1:]
    if "--version" in words:
        sys.stdout.write(VERSION)
        return False
    if not words or {"-h", "--help"}.intersection(words):
        sys.stdout.write(USAGE.format(commands=", ".join(" ".join(name) for name in COMMANDS)))
        return False
    try:
        call = translated(words, os.environ)
    except SqlrunError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(error.exit_code)
    sys.argv = ["sqlrun", "--project-dir", call.root, *call.arguments]
    if call.target_path:
        atexit.register(copy_artifacts, Path(call.root), Path(call.target_path), time.time())
    return bool(call.arguments)


def translated(words: Sequence[str], environment: Mapping[str, str]) -> Call:
    """Return the command of sqlrun for a command line of dbt.

    >>> translated(["run", "--select", "orders", "days", "--target", "prod", "--no-use-colors"], {}).arguments
    ('build', '--skip-tests', '--select', 'orders days', '--profile', 'prod', '--wait')

    Raises: UsageError for what has no equal.
    """
    names, given = _parsed(words)
    # dbt's only command with an argument.
    macro = names[1:] if names[:1] == ["run-operation"] else []
    command = tuple(names[: len(names) - len(macro)])
    if command not in COMMANDS:
        known = ", ".join(" ".join(name) for name in COMMANDS)
        raise UsageError(f"sqlrun-dbt has no command `{' '.join(command)}`. Commands: {known}")
    arguments = list(COMMANDS[command])
    if command == ("test",) and UNIT.search(given.get("--select", "")):
        arguments = ["test"]
    head = arguments[0] if arguments else ""
    if head == "run-operation":
        arguments += [*macro, "--args", given.get("--args", "{}")]
    elif "--args" in given:
        raise UsageError("`--args` is an option of run-operation")
    if head in SELECTING:
        arguments += _selection(command[0], given)
        state = given.get("--state", environment.get("DBT_STATE", ""))
        arguments += ["--state", state] if state else []
    if head in VARIED and given.get("--vars", "{}").strip() not in ("", "{}"):
        arguments += ["--vars", given["--vars"]]
    if head in PROFILED and (target := given.get("--target", "")):
        arguments += ["--profile", target]
    if "--sample" in given:
        arguments += ["--sample", _sample(given["--sample"], head)]
    if "--defer" in given and head != "build":
        raise UsageError("--defer is for builds: other commands read an environment's tick. Set SQLRUN_ENV")
    is_default = environment.get("DBT_DEFER", "").lower() in ("1", "true", "t", "yes", "y", "on")
    if head == "build" and ("--defer" in given or (is_default and "--no-defer" not in given)):
        arguments.append("--defer")
    if head == "build":
        # Programs that run dbt start several commands at once.
        arguments.append("--wait")
        arguments += ["--full-refresh"] if "--full-refresh" in given else []
        arguments += ["--fail-fast"] if "--fail-fast" in given else []
        arguments += ["--threads", given["--threads"]] if "--threads" in given else []
        if given.get("--log-format", environment.get("DBT_LOG_FORMAT", "")) == "json":
            arguments += ["--log-format", "json"]
        elif "--quiet" in given:
            arguments.append("--quiet")
    if head == "ls":
        arguments += ["--output", "manifest" if given.get("--output", "") == "json" else "fqn"]
        arguments += ["--keys", given["--output-keys"]] if "--output-keys" in given else []
    root = given.get("--project-dir", environment.get("DBT_PROJECT_DIR", "."))
    target_path = given.get("--target-path", environment.get("DBT_TARGET_PATH", ""))
    if (real := real_root(root)) != root:
        target_path = str(Path(root).absolute() / (target_path or "target"))
    return Call(tuple(arguments), real, target_path)


def _sample(text: str, head: str) -> str:
    """Return a sample of dbt, such as `3 hours`, as `--sample` of sqlrun takes it. Raises: UsageError for others."""
    found = re.fullmatch(r"([1-9]\d*)\s*(minute|hour|day|m|h|d)s?", text.strip().lower())
    if found is None or head != "build":
        raise UsageError(
            f"`--sample {text}` isn't supported. Write a length for a build: --sample '3 hours', or '2 days'"
        )
    return f"{found[1]}{found[2][0]}"


def real_root(root: str) -> str:
    """Return the folder of a project that may be a folder of links to it, as some orchestrators make for each task."""
    file = Path(root) / "pyproject.toml"
    return str(file.resolve().parent) if file.is_symlink() else root


def _selection(command: str, given: Mapping[str, str]) -> list[str]:
    """Return the options that select models. A type of resource narrows each selector."""
    types = [f"resource_type:{kind}" for kind in given.get("--resource-type", "").split() if kind in ("model", "seed")]
    limit = LIMITS.get(command, "")
    parts = given.get("--select", "").split() or ([] if not (types or limit) else ["fqn:*"])
    if name := given.get("--selector", ""):
        if "--select" in given or "--exclude" in given:
            raise UsageError("--selector excludes --select and --exclude: write them into the selector")
        parts = [f"selector:{name}"]
    if types:
        parts = [f"{part},{kind}" for part in parts for kind in types]
    if limit:
        parts = [f"{part},{limit}" for part in parts]
    found = ["--select", " ".join(parts)] if parts else []
    return [*found, *(["--exclude", given["--exclude"]] if "--exclude" in given else [])]


def _parsed(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words of the command, and the options by their long names; several values have blanks between them."""
    names: list[str] = []
    given: dict[str, str] = {}
    left = list(words)
    while left:
        written, equals, value = left.pop(0).partition("=")
        word = LONG.get(written, written)
        if not word.startswith("-"):
            names.append(word)
        elif word in MANY:
            values = [value] if equals else []
            while not equals and left and not left[0].startswith("-"):
                values.append(left.pop(0))
            given[word] = f"{given.get(word, '')} {' '.join(values)}".strip()
        elif word in ONE:
            if not equals and not left:
                raise UsageError(f"`{written}` needs a value")
            given[word] = value if equals else left.pop(0)
        elif word == "--no-defer":
            given.pop("--defer", None)
            given[word] = ""
        elif word in FLAGS:
            given[word] = ""
        elif word.replace("--no-", "--", 1) not in NOTHING:
            raise UsageError(f"sqlrun-dbt has no option `{word}`")
    return names, given


def copy_artifacts(root: Path, target_path: Path, since: float) -> None:
    """Copy the artifacts that a command has written to where its caller looks for them, relative to the project."""
    folder = root / target_path
    folder.mkdir(parents=True, exist_ok=True)
    for name in ARTIFACTS:
        file = root / "target" / name
        # Clocks of file systems may be a little behind.
        is_new = file.is_file() and file.stat().st_mtime >= since - 1
        if is_new and file.resolve() != (folder / name).resolve():
            shutil.copyfile(file, folder / name)
