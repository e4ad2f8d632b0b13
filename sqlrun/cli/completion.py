"""Shell completion: names of models, seeds, profiles and selectors. Shell: the project's folders.

Names are those of files, so that pressing Tab reads no file of a model and imports nothing heavy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")
# The variable by which the shell's script asks for completions, as click names it.
VARIABLE = "_SQLRUN_COMPLETE"
# What stands before a name in a selector: neighbors, and the other operands of an intersection.
BEFORE = re.compile(r"(.*,)?(@|\d*\+)?")
NAME = re.compile(r"\bname:\s*([\w.-]+)")


def script(shell: str, command: click.Command) -> str:
    """Return the script that a shell runs at its start."""
    found = get_completion_class(shell)
    assert found is not None, shell
    return found(command, {}, "sqlrun", VARIABLE).source()


def models(context: click.Context, _: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """Return the models that begin with a text."""
    return _matching(_stems(root_of(context) / "models", ".sql"), incomplete)


def macros(context: click.Context, _: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """Return the project's macros that begin with a text."""
    return _matching(_stems(root_of(context) / "macros", ".sql"), incomplete)


def selectors(context: click.Context, _: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """Return selectors of models and seeds that begin with a text, such as `+ord`."""
    root = root_of(context)
    found = BEFORE.match(incomplete)
    before = found[0] if found else ""
    names = [*_stems(root / "models", ".sql"), *_stems(root / "seeds", ".csv")]
    return _matching((before + name for name in names), incomplete)


def named_selectors(context: click.Context, _: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """Return the names in selectors.yml that begin with a text."""
    try:
        text = (root_of(context) / "selectors.yml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return _matching(NAME.findall(text), incomplete)


def profiles(context: click.Context, _: click.Parameter | None, incomplete: str) -> list[CompletionItem]:
    """Return the profiles that begin with a text."""
    return _matching(_stems(root_of(context) / "profiles", ".yml"), incomplete)


def project_above(folder: Path) -> Path:
    """Return the folder itself or the nearest one above it that has a project; the folder if there is none."""
    here = folder.resolve()
    for above in (here, *here.parents):
        try:
            if b"[tool.sqlrun" in (above / "pyproject.toml").read_bytes():
                return folder if above == here else above
        except OSError:
            continue
    return folder


def root_of(context: click.Context) -> Path:
    """Return the project's folder: that of `--project-dir`, else the folder that sqlrun runs in or one above it."""
    outer = context.find_root()
    folder = Path(outer.params.get("project_dir") or ".")
    is_named = outer.get_parameter_source("project_dir") not in (ParameterSource.DEFAULT, None)
    return folder if is_named else project_above(folder)


def _stems(folder: Path, suffix: str) -> Iterator[str]:
    for _, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (name.removesuffix(suffix) for name in files if name.endswith(suffix) and not name.startswith("."))


def _matching(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(incomplete)]
