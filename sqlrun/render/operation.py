"""Names of a macro that runs outside of models: `execute` is true, and queries read published tables. Pure.

The macro runs in the sandbox of the models. It can read, and print; what it returns becomes no table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from sqlrun.errors import ProjectError
from sqlrun.project import Project
from sqlrun.render import render
from sqlrun.render.dbt_names import ASKING, Adapter, Exceptions, Package, Refused
from sqlrun.render.mistakes import Chain, Mistake, chain_of
from sqlrun.render.results import Table, TypedColumn

# Maximum number of queries of a macro.
MOST_QUERIES = 1_000
_COMMENTS = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_MODEL = "Write the SELECT as a model, models/NAME.sql, and run `sqlrun build`."
_ROWS = "Change the model's query, its seed or the lines of its source. `sqlrun build` then updates each table."
_SHAPE = "Change the model's query or its contract, and run `sqlrun build`."
_GONE = "Remove the files of the model: the next tick is published without it. `sqlrun vacuum` deletes its rows later."
_RIGHTS = "Grant access to the warehouse's folder. `sqlrun serve` has tokens for rows of one owner."
_TICK = "A build publishes all tables at once, or none."
_LOOK = "Run `sqlrun ls` for the models, `sqlrun show MODEL --types` for columns, `sqlrun explain MODEL` for its plan."
_ONE = "Write one SELECT over ref()."
_FILES = "`sqlrun vacuum` compacts tables, and deletes files that no tick needs."
# What to do instead of a statement, by its first word.
INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("create", "replace", "cache", "clone"), _MODEL),
    **dict.fromkeys(("insert", "update", "delete", "merge", "copy", "load", "truncate"), _ROWS),
    **dict.fromkeys(("alter", "rename"), _SHAPE),
    **dict.fromkeys(("drop", "undrop"), _GONE),
    **dict.fromkeys(("grant", "revoke", "deny"), _RIGHTS),
    **dict.fromkeys(("begin", "start", "commit", "rollback", "lock"), _TICK),
    **dict.fromkeys(("show", "describe", "desc", "explain", "list"), _LOOK),
    **dict.fromkeys(("vacuum", "optimize", "analyze", "refresh", "msck"), _FILES),
    **dict.fromkeys(("attach", "detach", "install", "call", "execute", "declare", "import", "export"), _ONE),
    **dict.fromkeys(("set", "use", "reset", "pragma"), "Write the setting into a profile, profiles/NAME.yml."),
}
_MEANT = "Query a table by run_query(), and read its columns and rows."
_NO_CHANGE = "tables change by models only"


@dataclass(frozen=True, slots=True)
class Outside:
    """What a macro reaches.

    `query` returns a query's column names and columns, `columns` those of a table with their types, `say` prints text.
    """

    query: Callable[[str], tuple[tuple[str, ...], list[list[Any]]]]
    columns: Callable[[str], Iterable[tuple[str, str]]]
    say: Callable[[str], None]


def run(project: Project, name: str, arguments: Mapping[str, Any], outside: Outside) -> object:
    """Return what a macro returns: its text, or the value of return().

    Raises: ProjectError with its mistakes, and those of its queries.
    """
    return render.operation(project, name, arguments, _Names(outside).of)


class _Names:
    """The names that mean something else than in a model."""

    def __init__(self, outside: Outside) -> None:
        self._outside, self._n_queries = outside, 0
        self._kept: dict[str, dict[str, Any]] = {}

    def of(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """Return the names, given those of a model."""
        self._ref = names["ref"]
        warning = _Warning()
        warning.warn = self._warn
        return {
            "execute": True,
            "run_query": self.run_query,
            "statement": self.statement,
            "load_result": self.load_result,
            "ref": self.ref,
            "source": self._source,
            "this": Refused("this", "an operation has no model", "Write ref() with the model's name."),
            "log": self.log,
            "print": self.print,
            "exceptions": warning,
            "adapter": _Asked(names["adapter"], self._outside.columns),
            **{name: _Library(value) for name, value in names.items() if isinstance(value, Package)},
        }

    def ref(self, *names: object, **more: object) -> str:
        """Return a table's name for a query."""
        found = str(self._ref(*names, **more))
        return f"`{found.rpartition('.')[2].strip('`')}`"

    def _source(self, *names: object, **_: object) -> NoReturn:
        hint = "Read the model that lands it: {{ ref('model') }}. Its quarantined lines are MODEL__quarantine."
        raise Mistake("SR203", "an operation reads no source, only published tables", hint, "source")

    def log(self, message: object = "", info: object = False, **_: object) -> str:
        """Print a message if it is one for people."""
        return self.print(message) if info else ""

    def print(self, message: object = "", *_: object) -> str:
        """Print a message."""
        self._outside.say(str(message))
        return ""

    def _warn(self, message: object = "", **_: object) -> str:
        return self.print(f"Warning: {message}")

    def run_query(self, sql: object = "", **_: object) -> Table:
        """Return the rows of a query over published tables."""
        self._n_queries += 1
        if self._n_queries > MOST_QUERIES:
            message = f"the macro runs more than {MOST_QUERIES:,} queries"
            raise Mistake("SR208", message, "Query all rows at once, and group them in SQL.", "run_query")
        text = str(sql)
        if wrong := refused(text):
            raise Mistake("SR209", *wrong, "run_query")
        names, columns = _asked(self._outside.query, text, chain_of_macros())
        return Table(names, columns, self._outside.say)

    def statement(
        self, name: object = None, fetch_result: object = False, *_: object, caller: Any = None, **__: object
    ) -> str:
        """Run the query of a block; `load_result` returns its rows."""
        table = self.run_query(caller() if caller is not None else "")
        kept = table if fetch_result else Table((), (), self._outside.say)
        data = [list(row.values()) for row in kept]
        self._kept[str(name)] = {"response": "OK", "data": data, "table": kept}
        return ""

    def load_result(self, name: object = None) -> Any:
        """Return the result of a statement with this name, None if there is none."""
        return self._kept.get(str(name))


class _Warning(Exceptions):
    """`exceptions`, whose warnings are printed."""

    warn: Any


class _Asked(Adapter):
    """`adapter` outside of models: what changes a database is an error that says what changes tables."""

    def __init__(self, inner: Adapter, columns: Callable[[str], Iterable[tuple[str, str]]]) -> None:
        self._inner, self._columns = inner, columns

    def get_columns_in_relation(self, relation: object = "") -> list[TypedColumn]:
        """Return the columns of a table that ref() names."""
        return [TypedColumn(*column) for column in self._columns(str(relation).strip("`"))]

    def dispatch(self, name: object, macro_namespace: object = None, *more: object) -> Any:
        """Return the macro that the adapter of models finds."""
        return self._inner.dispatch(name, macro_namespace, *more)

    def quote(self, name: object) -> str:
        """Return a name in Spark's quotes."""
        return self._inner.quote(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise Mistake("SR201", f"`adapter.{name}` isn't supported: {_NO_CHANGE}", _MEANT, name)


class _Library(Package):
    """A package, whose macros that ask a database have another remedy than in a model."""

    def __init__(self, inner: Package) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name in ASKING:
            raise Mistake("SR201", f"`{name}` comes without a database to ask", _MEANT, name)
        return getattr(self._inner, name)


def refused(text: str) -> tuple[str, str] | None:
    """Return why a text isn't run and what to do instead; None for one that begins as a query.

    >>> refused("-- rights\\nGRANT select ON t TO x")[0]
    'run_query() runs no GRANT: tables change by models only'
    >>> refused("with a as (select 1) select * from a")
    """
    words = re.findall(r"\w+", _COMMENTS.sub(" ", text)[:1000])
    first = words[0].lower() if words else ""
    if first in INSTEAD:
        return f"run_query() runs no {first.upper()}: {_NO_CHANGE}", INSTEAD[first]
    return None if words else ("run_query() has no query", _ONE)


def chain_of_macros() -> Chain:
    """Return the macros that are running, the innermost first."""
    return chain_of(sys._getframe())


def _asked(query: Callable[[str], Any], text: str, chain: Chain) -> Any:
    """Return a query's rows. Its mistakes have places in its text: each also names the call."""
    try:
        return query(text)
    except ProjectError as error:
        if any(problem.code == "SR302" for problem in error.problems):
            what = error.problems[0].message.replace("the file", "this text")
            raise Mistake("SR209", f"run_query() takes one SELECT: {what}", _ONE, "run_query") from None
        called = f"run_query() in {chain[0][0]}:{chain[0][1]}." if chain else ""
        raise ProjectError([replace(p, hint=f"{p.hint} {called}".strip()) for p in error.problems]) from None
