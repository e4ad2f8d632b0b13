"""The description of an error code, from the copy of docs/errors.md in the package. Shell: that page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlrun.errors import UsageError

PAGE = Path(__file__).parent.parent / "errors.md"


def page(code: str) -> list[str]:
    """Return the section of docs/errors.md on a code, as lines of text.

    Raises: UsageError for an unknown code.
    """
    wanted = code.upper()
    known = []
    for section, (name, happened, why, fix) in _rows():
        if name == wanted:
            return [
                f"{wanted}  {section}",
                "",
                f"  what happened  {happened}",
                f"  why            {why}",
                f"  how to fix     {fix}",
            ]
        known.append(name)
    near = similar(wanted, known)
    meant = f" Did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else ""
    raise UsageError(f"there is no code `{code}`.{meant} `sqlrun error` without a code lists all codes.")


def listed() -> list[str]:
    """Return a line for each code: what happened."""
    lines: list[str] = []
    before = ""
    for section, (name, happened, *_) in _rows():
        if section != before:
            lines += [*([""] if before else []), section]
            before = section
        lines.append(f"  {name}  {happened}")
    return lines


def similar(code: str, known: Iterable[str]) -> list[str]:
    """Return the known codes that a slip of the keyboard makes this one.

    A code of the same length with one other digit is none: most numbers are a digit away from some code.

    >>> similar("RS304", ["SR304"]), similar("304", ["SR304"]), similar("SR302", ["SR304"])
    (['SR304'], ['SR304'], [])
    """
    swapped = {code[:at] + code[at + 1] + code[at] + code[at + 2 :] for at in range(len(code) - 1)}
    shorter = {code[:at] + code[at + 1 :] for at in range(len(code))}
    meant = {f"SR{code.lstrip('SR-_ ')}", code.replace("O", "0"), *swapped, *shorter}
    return [name for name in known if name in meant]


def _rows() -> Iterator[tuple[str, tuple[str, str, str, str]]]:
    """Yield the code, what happened, why, and how to fix it, each with the name of its section."""
    section = ""
    for line in PAGE.read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            section = line.removeprefix("## ").partition(": ")[2]
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and (found := re.match(r"\[(SR\d{3})\]", cells[0])):
            yield section, (found[1], cells[1], cells[2], cells[3])
