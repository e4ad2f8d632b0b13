"""Complete projects that `sqlrun init --example` writes. Shell: the files of the repository, which a wheel has, too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from sqlrun.errors import UsageError
from sqlrun.scaffold import texts

# Each example, with a table to show first. The restaurants are the reference project of sqlrun's repository.
EXAMPLES: Mapping[str, str] = MappingProxyType({"restaurants": "restaurant_windows"})
FOLDERS = ("models", "macros", "seeds", "profiles", "expectations", "tests/fixtures")
ENDINGS = (".sql", ".yml", ".csv")
# Folder of the orders, which the simulator writes after the files.
ORDERS = "data/orders"
# setup.py copies the folders here into a wheel; an editable install finds them beside the package.
INSTALLED = Path(__file__).parent / "examples"
REPOSITORY = Path(__file__).parents[2]


def files(name: str) -> Mapping[str, str]:
    """Return the files of an example, with DuckDB as the default profile.

    Raises: UsageError if there is no such example, or this installation lacks its files.
    """
    if name not in EXAMPLES:
        raise UsageError(f"there is no example `{name}`. Examples: {', '.join(EXAMPLES)}")
    root = next((place for place in (INSTALLED / name, REPOSITORY) if (place / "models").is_dir()), None)
    if root is None:
        raise UsageError("this installation of sqlrun lacks the examples. Install a wheel, or a complete checkout")
    found = {
        file.relative_to(root).as_posix(): file.read_text(encoding="utf-8")
        for folder in FOLDERS
        for file in sorted((root / folder).rglob("*"))
        if file.suffix in ENDINGS
    }
    settings = _settings((root / "pyproject.toml").read_text(encoding="utf-8"))
    return {"pyproject.toml": settings, ".gitignore": f"{texts.IGNORED}/data/\n", **found}


def _settings(text: str) -> str:
    """Return the tables of sqlrun of a pyproject.toml, with another profile.

    >>> _settings('[project]\\n\\n[tool.sqlrun]\\nprofile = "local"\\n\\n[tool.sqlrun.vars]\\n\\n[tool.x]\\n')
    '[tool.sqlrun]\\nprofile = "duckdb"\\n\\n[tool.sqlrun.vars]\\n'
    """
    tables = re.split(r"(?m)^(?=\[)", text)
    own = "".join(table for table in tables if table.startswith(("[tool.sqlrun]", "[tool.sqlrun.")))
    return re.sub(r"(?m)^profile = .*$", 'profile = "duckdb"', own).rstrip() + "\n"
