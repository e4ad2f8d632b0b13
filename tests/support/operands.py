"""cases/operands.txt as values: expressions over columns of every type, and whether Spark accepts each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.support.probes import T

FILE = Path(__file__).parents[1] / "cases" / "operands.txt"
COLUMNS = {name: kind for name, kind in T.columns if name not in ("id", "ar")}


@dataclass(frozen=True)
class Operated:
    """An expression over one or two columns."""

    text: str
    taken: bool

    def sql(self, table: str) -> str:
        if self.text.startswith("where "):
            return f"select 1 as r from {table} {self.text}"
        return f"select {self.text} as r from {table}"


def read() -> list[Operated]:
    found: list[Operated] = []
    form = ""
    for line in FILE.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            form = line
            continue
        a, _, rest = line.strip().partition(":")
        if "{b}" in form:
            found += [Operated(form.format(a=a, b=b), b in rest.split()) for b in COLUMNS]
        else:
            found.append(Operated(form.format(a=a), rest.strip() == "yes"))
    return found


def write(taken: dict[str, bool]) -> None:
    """Rewrite the file by what Spark accepts."""
    lines = []
    for line in FILE.read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            form = line
        elif line.startswith(" "):
            a = line.strip().partition(":")[0]
            if "{b}" in form:
                rest = " ".join(b for b in COLUMNS if taken[form.format(a=a, b=b)])
            else:
                rest = "yes" if taken[form.format(a=a)] else "no"
            line = f"  {a}: {rest}".rstrip()
        lines.append(line)
    FILE.write_text("\n".join(lines) + "\n")
