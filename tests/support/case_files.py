"""Parser of `.case` files: tables, a view, and steps of changes with the view's expected change.

Keywords in the first column: case, table, view, kept, as_of, change, expect, refuse. Indented lines belong to the
keyword before. `table orders(a int not null, b string) grain(a) grows repeats`; `view v grain(a) partition(b) as` and
the query below; `kept additive` names the method; `change orders` is followed by `+ 1 | x` or `- 1 | x` (a count may
follow the sign); `expect` ends a step; `refuse SR502` means that the query can't be maintained. A query may call the
macros that come with sqlrun.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import jinja2

from sqlrun.load import built_in_macros
from tests.support.memory import START, Table, View

Row = tuple[int, tuple[str | None, ...]]


@dataclass
class Step:
    line: int
    as_of: datetime
    changes: list[tuple[str, list[Row]]] = field(default_factory=list)
    expected: list[Row] = field(default_factory=list)


@dataclass
class Case:
    name: str
    place: str
    tables: list[Table] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    kept: str = ""
    refuse: str = ""
    steps: list[Step] = field(default_factory=list)


def row(text: str, place: str) -> Row:
    found = re.fullmatch(r"([+-])(\d*)\s*(.*)", text)
    if not found:
        raise ValueError(f"{place}: a row begins with + or -: {text!r}")
    sign, count, rest = found.groups()
    values = tuple(None if v.strip() == "NULL" else v.strip() for v in rest.split("|"))
    return (1 if sign == "+" else -1) * int(count or 1), values


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text + ","):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return tuple((p.split(None, 1)[0], p.split(None, 1)[1]) for p in parts)


def _table(text: str) -> Table:
    name, rest = text.split("(", 1)
    depth, end = 1, -1
    while depth:
        end += 1
        depth += (rest[end] == "(") - (rest[end] == ")")
    after = rest[end + 1 :]
    grain = re.search(r"grain\(([^)]*)\)", after)
    keys = tuple(k.strip() for k in grain[1].split(",")) if grain else ()
    columns = _columns(rest[:end])
    required = tuple(n for n, kind in columns if kind.endswith(" not null"))
    kinds = tuple((n, kind.removesuffix(" not null")) for n, kind in columns)
    return Table(name.strip(), kinds, keys, "grows" in after, "repeats" in after, required)


def _view(text: str) -> View:
    found = re.fullmatch(r"(\w+)(?:\s+grain\(([^)]*)\))?(?:\s+partition\(([^)]*)\))?(\s+inline)?\s+as\s*(.*)", text)
    if not found:
        raise ValueError(f"view: {text!r}")
    grain = tuple(k.strip() for k in found[2].split(",")) if found[2] else ()
    parts = tuple(k.strip() for k in found[3].split(",")) if found[3] else ()
    return View(found[1], found[5], grain, "view" if found[4] else "table", parts)


def read(path: Path) -> list[Case]:
    """Return the cases of a file; an unknown keyword is an error with file and line."""
    cases: list[Case] = []
    mode, now = "", START
    step: Step | None = None
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        text = re.sub(r"(^|\s)#.*", "", raw).rstrip()
        place = f"{path.name}:{number}"
        if not text:
            continue
        word, _, rest = text.strip().partition(" ")
        if text[0] == " ":
            if mode == "view":
                cases[-1].views[-1].sql += " " + text.strip()
            elif mode == "change" and step is not None:
                step.changes[-1][1].append(row(text.strip(), place))
            elif mode == "expect":
                cases[-1].steps[-1].expected.append(row(text.strip(), place))
            else:
                raise ValueError(f"{place}: an indented line belongs to no word")
            continue
        mode = word
        if word == "case":
            cases.append(Case(rest, place))
            now, step = START, None
        elif word == "table":
            cases[-1].tables.append(_table(rest))
        elif word == "view":
            cases[-1].views.append(_view(rest))
        elif word == "kept":
            cases[-1].kept = rest
        elif word == "refuse":
            cases[-1].refuse = rest
        elif word == "as_of":
            now = START + timedelta(minutes=int(rest[1:-1])) if rest.startswith("+") else _time(rest)
            step = step or Step(number, now)
            step.as_of = now
        elif word == "change":
            step = step or Step(number, now)
            if rest:
                step.changes.append((rest, []))
        elif word == "expect":
            cases[-1].steps.append(step or Step(number, now))
            step = None
        else:
            raise ValueError(f"{place}: unknown word {word!r}")
    for view in (view for case in cases for view in case.views if "{{" in view.sql):
        view.sql = rendered(view.sql)
    return cases


def rendered(sql: str) -> str:
    macros = "".join(macro.text for macro in built_in_macros.beside(()) if not macro.package)
    return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(macros + sql).render().strip()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
