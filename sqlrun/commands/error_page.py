"""The description of an error code, from the copy of docs/errors.md in the package. Shell: that page."""

from __future__ import annotations

import re
from pathlib import Path

from sqlrun.errors import UsageError
from sqlrun.load.yaml_reader import did_you_mean

PAGE = Path(__file__).parent.parent / "errors.md"


def page(code: str) -> list[str]:
    """Return the section of docs/errors.md on a code, as lines of text.

    Raises: UsageError for an unknown code.
    """
    text, wanted = PAGE.read_text(encoding="utf-8"), code.upper()
    section = ""
    for line in text.split("\n"):
        if line.startswith("## "):
            section = line.removeprefix("## ")
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[0].startswith(f"[{wanted}]"):
            return [
                f"{wanted}  {section.partition(': ')[2]}",
                "",
                f"  what happened  {cells[1]}",
                f"  why            {cells[2]}",
                f"  how to fix     {cells[3]}",
            ]
    known = re.findall(r"^\| \[(SR\d{3})\]", text, re.MULTILINE)
    raise UsageError(f"unknown code `{code}`. docs/errors.md lists all codes.{did_you_mean(wanted, known)}")
