"""dbt's data tests as SQL checks, or as tables of wrong rows where a test reads more than one table. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.runtime.text_lines import text_lines
from sqlrun.scaffold import dbt_jinja

# Settings of a use of a test, beside its arguments or below `config:`.
SETTINGS = (
    "name", "description", "severity", "where", "limit", "warn_if", "error_if", "fail_calc", "store_failures",
    "store_failures_as", "enabled", "tags", "meta", "group", "database", "schema", "alias",
)  # fmt: skip
# Settings that change no result.
QUIET = ("store_failures", "store_failures_as", "tags", "meta", "group", "database", "schema", "alias", "limit")
NATIVE = ("not_null", "unique", "accepted_values", "relationships")
LIMIT = re.compile(r"\s*(>=|<=|!=|<>|>|<|=)\s*([0-9]+)\s*")
ANY = "!=0"
WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a test on a table, or on one of its columns. `where` is the place in dbt's files, for the report."""

    where: str
    table: str
    column: str
    word: str
    arguments: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def is_plain(self) -> bool:
        """Return whether a contract can express the settings."""
        return not {"where", "warn_if", "error_if", "fail_calc"} & {k for k, v in self.settings.items() if v}


@dataclass(frozen=True, slots=True)
class Query:
    """A query of wrong rows: of a use of a generic test, or of a singular test. `reads` are its tables."""

    name: str
    text: str
    reads: frozenset[str]
    settings: Mapping[str, Any]
    description: str
    where: str


@dataclass
class Library:
    """The generic tests that can be called: the project's by name, and, by package, the tests that come with sqlrun."""

    own: dict[str, str] = field(default_factory=dict)
    along: dict[str, dict[str, str]] = field(default_factory=dict)

    def call(self, word: str) -> tuple[str, tuple[str, ...]] | None:
        """Return what a test is called as, and its parameters; None for an unknown one."""
        package, _, name = word.rpartition(".")
        if name in self.own and package not in self.along:
            return f"test_{name}", dbt_jinja.parameters(self.own[name])
        found = self.along.get(package or "dbt", {}).get(f"test_{name}")
        return None if found is None else (f"{package or 'dbt'}.test_{name}", dbt_jinja.parameters(found))


def use_of(where: str, table: str, column: str, test: Any) -> Use:
    """Return a use of a test, from the word alone, `{word: {...}}` or `{test_name: word, ...}`."""
    if not isinstance(test, Mapping):
        return Use(where, table, column, str(test), {}, {})
    if "test_name" in test:
        word, inner = str(test["test_name"]), {key: value for key, value in test.items() if key != "test_name"}
    else:
        word, inner = str(next(iter(test), "")), test.get(next(iter(test), ""), {})
    inner = inner if isinstance(inner, Mapping) else {}
    config = inner.get("config") if isinstance(inner.get("config"), Mapping) else {}
    listed = inner.get("arguments") if isinstance(inner.get("arguments"), Mapping) else {}
    known = (*SETTINGS, "config", "arguments")
    arguments = {**{key: value for key, value in inner.items() if key not in known}, **(listed or {})}
    settings = {**{key: inner[key] for key in SETTINGS if key in inner}, **(config or {})}
    return Use(where, table, column, word, arguments, settings)


def query_of(use: Use, library: Library, notes: list[str]) -> Query | None:
    """Return the query of a use; None if there is none, which is noted."""
    found = library.call(use.word)
    named = f"{use.where}: the test `{use.word}`"
    if found is None:
        notes.append(f"{named} has no equal. Write an expectation or a SQL check")
        return None
    call, known = found
    unknown = [key for key in use.arguments if key not in known]
    if unknown:
        notes.append(f"{named} was left out: it has no argument `{unknown[0]}` here")
        return None
    model = f"ref('{use.table}')"
    if use.settings.get("where"):
        where = dbt_jinja.literal(str(use.settings["where"]))
        model = f'"(select * from " ~ ref(\'{use.table}\') ~ " where " ~ {where} ~ ") as checked"'
    given = {"column_name": use.column} if use.column and "column_name" not in use.arguments else {}
    words = [model, *(f"{key}={dbt_jinja.literal(value)}" for key, value in {**given, **use.arguments}.items())]
    text = f"{{{{ {call}({', '.join(words)}) }}}}"
    reads = frozenset({use.table, *(name for _, name in dbt_jinja.READ.findall(text + library.own.get(use.word, "")))})
    short = use.word.rpartition(".")[2]
    name = str(use.settings.get("name") or "__".join(filter(None, (use.table, use.column, short))))
    about = str(use.settings.get("description") or "") or f"{short} of {use.column or use.table}"
    return Query(identifier(name), text, reads, use.settings, about, use.where)


def identifier(name: str) -> str:
    """Return a text as a name of a file.

    >>> identifier("is it > 0?")
    'is_it_0'
    """
    found = re.sub(r"\W+", "_", name).strip("_")
    return found if found[:1].isalpha() or found[:1] == "_" else f"test_{found}"


def checks(query: Query, notes: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield name, query and severity of the checks that a test is: an error, a warning, or one after the other."""
    settings = query.settings
    if settings.get("enabled") is False:
        notes.append(f"{query.where}: the test `{query.name}` was left out, because it isn't enabled")
        return
    if settings.get("fail_calc") and str(settings["fail_calc"]).replace(" ", "") != "count(*)":
        notes.append(f"{query.where}: `fail_calc` of the test `{query.name}` was left out: a check counts rows")
    error, warn = (str(settings.get(key) or ANY).replace(" ", "") for key in ("error_if", "warn_if"))
    is_warning = str(settings.get("severity") or "error").lower() == "warn"
    wanted = [(query.name, warn, WARNING)] if is_warning else [(query.name, error, "")]
    if not is_warning and error != ANY:
        wanted.append((f"{query.name}__warn", warn, WARNING))
    for name, limit, severity in wanted:
        text = _limited(query.text, limit)
        if text is None:
            notes.append(f"{query.where}: the limit `{limit}` of the test `{query.name}` was left out")
        yield name, text or query.text, severity


def _limited(text: str, limit: str) -> str | None:
    """Return a query without rows unless the number of its rows exceeds a limit; None for another form of limit."""
    found = LIMIT.fullmatch(limit)
    if found is None or (found[1] in ("=", "<", "<=") or (found[1] in ("!=", "<>") and found[2] != "0")):
        return None
    least = int(found[2]) + (found[1] != ">=")
    if least <= 1:
        return text
    return (
        "select * from (\n    select *, count(*) over () as n_failures from (\n"
        f"{text}\n    ) as failures\n) as counted where n_failures >= {least}"
    )


def check_file(text: str, severity: str, description: str) -> str:
    """Return the text of a SQL check."""
    comment, query = _split(text, description)
    config = f"{{{{ config(severity='{severity}') }}}}\n" if severity else ""
    return f"{comment}{config}{query}\n"


def table_file(text: str, description: str) -> str:
    """Return the text of a model whose rows are wrong."""
    comment, query = _split(text, description)
    return f"{comment}{{{{ config(materialized='table') }}}}\n{query}\n"


def _split(text: str, description: str) -> tuple[str, str]:
    """Return the comment of a file, which is the check's description, and its query.

    >>> _split("\\n-- No order\\n--   is free.\\nselect 1", "")
    ('-- No order\\n--   is free.\\n', 'select 1')
    """
    lines = text.strip().split("\n")
    count = next((n for n, line in enumerate(lines) if not line.startswith("--")), len(lines))
    words = lines[:count] if count else [f"-- {line}" for line in text_lines(description) if line.strip()]
    return "".join(f"{line}\n" for line in words), "\n".join(lines[count:])
