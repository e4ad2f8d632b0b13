"""Files grouped into tables: files of one format that have most fields in common are one table. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from sqlrun.errors import Place, UsageError
from sqlrun.load.forbidden_names import column_fault, is_own
from sqlrun.project import CSV, Column
from sqlrun.scaffold import inferred_types
from sqlrun.transpile.dialect import is_plain
from sqlrun.unit_tests.author.skeletons import TO_WRITE

# Share of fields that two files of one table have in common at least.
LEAST_SHARED = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """A file and its first records.

    `path` is relative to the folder of the data; `is_document` of a JSON file that isn't one object a line. `options`
    are the keys of `csv:` that aren't the default.
    """

    path: str
    format: str
    is_document: bool
    options: Mapping[str, str]
    records: tuple[Mapping[str, Any], ...]

    @property
    def file_name(self) -> str:
        """Return the file's name without its folders."""
        return self.path.rpartition("/")[2]

    @property
    def fields(self) -> frozenset[str]:
        """Return the names of all fields."""
        return frozenset(name for record in self.records for name in record)


@dataclass(frozen=True, slots=True)
class Table:
    """A source to declare. `pattern` selects its files below the folder of the data; "" for all files of the format.

    `left_out`: fields whose names no column can have. Their values stay in the rescued fields of the landed rows.
    """

    name: str
    pattern: str
    samples: tuple[Sample, ...]
    columns: tuple[Column, ...]
    left_out: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns' names in the staging model: in lower case, without signs, each once."""
        found = list[str]()
        for column in self.columns:
            found.append(next(name for name in _numbered(column_name(column.name)) if name not in found))
        return tuple(found)

    @property
    def first(self) -> Sample:
        """Return the sample that stands for the format and the options of all files."""
        return self.samples[0]


def of_samples(samples: Sequence[Sample], name: str, *, alone: bool) -> list[Table]:
    """Return the tables of some files. `name` is the name of a single table, `alone` that it is one file of a folder.

    Raises: UsageError if no pattern separates the files of two tables, or a table has no column that can be declared.
    """
    groups = _groups(samples)
    if len(groups) == 1:
        return [_table(identifier(name), _escaped(samples[0].path) if alone else "", groups[0])]
    found, taken = [], set[str]()
    for group in groups:
        stem, pattern = _together([one.path for one in group])
        others = [one.path for other in groups if other is not group for one in other]
        if any(fnmatchcase(other, pattern) for other in others):
            shown = ", ".join(one.path for one in group[:3])
            raise UsageError(f"files of different columns are mixed ({shown}). Put each kind into its own folder")
        unique = next(each for each in _numbered(identifier(stem or name)) if each not in taken)
        taken.add(unique)
        found.append(_table(unique, pattern, group))
    return found


def _groups(samples: Sequence[Sample]) -> list[list[Sample]]:
    groups: list[list[Sample]] = []
    for sample in samples:
        for group in groups:
            if group[0].format == sample.format and _shared(group[0].fields, sample.fields) >= LEAST_SHARED:
                group.append(sample)
                break
        else:
            groups.append([sample])
    return groups


def _shared(one: Collection[str], two: Collection[str]) -> float:
    lower, other = ({name.lower() for name in names} for names in (one, two))
    return len(lower & other) / len(lower | other)


def _together(paths: Sequence[str]) -> tuple[str, str]:
    """Return what the paths of a group have in common: the beginning of their names, and a pattern for all.

    >>> _together(["raw/orders_2026.csv", "raw/orders_2027.csv"]), _together(["a.csv"])
    (('orders', 'raw/orders_*.csv'), ('a', 'a.csv'))
    """
    if len(paths) == 1:
        return paths[0].rpartition("/")[2].partition(".")[0], _escaped(paths[0])
    start, end = _common(paths).rstrip("0123456789"), _common([path[::-1] for path in paths])[::-1]
    end = end[max(end.find("."), 0) :] if "." in end else ""
    start, end = _escaped(start), _escaped(end)
    pattern = f"{start}*{end}" if "/" not in "".join(path[len(start) :] for path in paths) else f"{start}**/*{end}"
    return re.sub(r"[\W_\d]+$", "", start.rpartition("/")[2]), pattern


def _escaped(path: str) -> str:
    """Return a path as a pattern for itself: a sign that has a meaning in patterns matches as any sign."""
    return re.sub(r"[\[\]*?]", "?", path)


def _common(texts: Sequence[str]) -> str:
    letters = zip(*texts, strict=False)
    count = next((n for n, found in enumerate(letters) if len(set(found)) > 1), min(map(len, texts)))
    return texts[0][:count]


def _table(name: str, pattern: str, samples: Sequence[Sample]) -> Table:
    texts = samples[0].format == CSV
    kinds = inferred_types.columns((record for one in samples for record in one.records), texts=texts)
    taken = Counter(name.lower() for name in kinds)
    good = {n: kind for n, kind in kinds.items() if not column_fault(n) and not is_own(n) and taken[n.lower()] == 1}
    if not good:
        raise UsageError(f"{samples[0].path}: none of its fields has a name that a column can have: {', '.join(kinds)}")
    columns = tuple(Column(n, kind, TO_WRITE, Place("")) for n, kind in good.items())
    return Table(name, pattern, tuple(samples), columns, tuple(n for n in kinds if n not in good))


def identifier(text: str) -> str:
    """Return a name for a table or a project.

    >>> identifier("Raw Orders.2026"), identifier("2026"), identifier("---")
    ('raw_orders_2026', 't_2026', 'data')
    """
    found = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return f"t_{found}" if found[:1].isdigit() else found or "data"


def column_name(text: str) -> str:
    """Return a name for a column that needs no quotes.

    >>> [column_name(name) for name in ("Order Total", "firstName", "HTTPStatus", "größe", "order", "1st")]
    ['order_total', 'first_name', 'http_status', 'grosse', 'order_value', 'c_1st']
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    ascii_only = unicodedata.normalize("NFKD", snake.casefold()).encode("ascii", "ignore").decode()
    found = re.sub(r"\W+", "_", ascii_only).strip("_") or "c"
    if found[0].isdigit():
        return f"c_{found}"
    return found if is_plain(found) else f"{found}_value"


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1
