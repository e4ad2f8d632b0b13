"""What docs/errors.md says of a code, read offline from the copy that comes with sqlrun. Shell: that page."""

from __future__ import annotations

import re
from pathlib import Path

from sqlrun.errors import UsageError
from sqlrun.load.yaml_reader import did_you_mean

PAGE = Path(__file__).parent.parent / "errors.md"


def page(code: str) -> list[str]:
    """Write a code's part of docs/errors.md as lines of text.

    Raises: UsageError for a code that there is not.
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
                f"  it says     {cells[1]}",
                f"  what to do  {cells[2]}",
            ]
    known = re.findall(r"^\| \[(SR\d{3})\]", text, re.MULTILINE)
    raise UsageError(f"unknown code `{code}`. docs/errors.md lists all codes.{did_you_mean(wanted, known)}")
