"""One page for each code, such as docs/errors/SR504.md: its row of docs/errors.md, and a tested example.

The example is a project of cases/errors with sqlrun's output; for a reason code, the queries of docs/reference/sql.md
that have it. SQLRUN_WRITE=1 pytest tests/commands/test_error_pages.py writes the pages.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "errors.md"
FOLDER = ROOT / "docs" / "errors"
CASES = ROOT / "tests" / "cases" / "errors"
QUERIES = ROOT / "docs" / "reference" / "sql.md"
LANGUAGES = {".sql": "sql", ".yml": "yaml", ".toml": "toml", ".csv": "csv", ".py": "python"}
# Maximum length of an example's file: a longer one hides the one mistake in it.
LONGEST = 1500


def rows(path: Path) -> list[list[str]]:
    """Return the cells of a page's tables."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("| ")]


def code_of(cell: str) -> str:
    """Return the code in a cell of the index, linked or not; "" if there is none."""
    found = re.match(r"\[?(SR\d{3})", cell)
    return found[1] if found else ""


def pages() -> dict[str, str]:
    """Return every page, by code."""
    title, written = "", {}
    for line in INDEX.read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            title = line.partition(": ")[2]
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and code_of(cells[0]):
            code = code_of(cells[0])
            written[code] = _page(code, title, cells[1:])
    return written


def _page(code: str, title: str, cells: list[str]) -> str:
    parts = [f"# {code}: {title}"]
    for heading, text in zip(("What happened", "Why", "How to fix"), cells, strict=True):
        parts += [f"## {heading}", _unlinked(text)]
    parts += _project(code) or _queries(code)
    parts.append("All codes: [errors](../errors.md).")
    return "\n\n".join(parts) + "\n"


def _unlinked(text: str) -> str:
    """Return a link of the index as seen from the folder below it."""
    return re.sub(r"\]\((?!http|#)", "](../", text.replace("\\|", "|"))


def _project(code: str) -> list[str]:
    """Return the shortest case of a code: the wrong file, and sqlrun's output."""
    found = []
    for folder in sorted(CASES.glob(f"{code}_*")):
        said = (folder / "expected.txt").read_text(encoding="utf-8")
        place = re.match(r"SR\d{3} (\S+?):\d+", said)
        file = folder / place[1] if place else folder
        # Binary files, and files whose length is the mistake, can't be shown.
        text = file.read_bytes().decode("utf-8", errors="replace") if file.is_file() else ""
        if len(text) <= LONGEST and "\ufffd" not in text and "\0" not in text:
            found.append((len(said) + len(text), said, place[1] if place else "", text))
    if not found:
        return []
    _, said, name, text = min(found)
    language = f"{LANGUAGES.get(Path(name).suffix, 'text')} file={name}"
    shown = [f"`{name}`:", _block(text, language)] if text.strip() else []
    return ["## Example", *shown, "sqlrun prints:", _block(said, "text")]


def _block(text: str, language: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _queries(code: str) -> list[str]:
    """Return the queries of the SQL reference that have a code as their reason."""
    found = [cells[0] for cells in rows(QUERIES) if len(cells) == 3 and cells[2] == code and cells[0].startswith("`")]
    if not found:
        return []
    listed = "\n".join(f"- {query.replace(chr(92) + '|', '|')}" for query in found[:5])
    tables = "`t` has the key `k`, `log` is append-only ([the SQL reference](../reference/sql.md)):"
    return ["## Example", tables, listed]
