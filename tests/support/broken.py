"""Small projects on disk, for tests of the stages that read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SETTINGS = '[tool.sqlrun]\nname = "small"\n'


def contract(name: str, *columns: str, extra: str = "") -> str:
    """Return a model's YAML; columns are int unless given as `name type`."""
    lines = ["models:", f"  - name: {name}", "    description: A row.", *extra.splitlines(), "    columns:"]
    for column in columns or ("id",):
        words = column.split()
        lines.append(f"      - {{name: {words[0]}, data_type: '{(words[1:] or ['int'])[0]}', description: It.}}")
    return "\n".join(lines) + "\n"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files; pyproject.toml has only a name unless it is among them."""
    for name, text in {"pyproject.toml": SETTINGS, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def models(queries: Mapping[str, str], macros: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return files of models by path (`marts/sums`) and macros by name."""
    files = {f"macros/{name}.sql": text for name, text in (macros or {}).items()}
    for path, sql in queries.items():
        files[f"models/{path}.sql"] = sql
        files[f"models/{path}.yml"] = contract(path.rpartition("/")[2])
    return files
