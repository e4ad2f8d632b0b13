"""dbt's names in templates: packages of macros, `adapter`, `target`, `return`, and the names that are refused. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from sqlrun.load.yaml_reader import did_you_mean, listed
from sqlrun.render.mistakes import Mistake

Call = Callable[..., object]
_NO_SQL = "compiling a project runs no SQL"
_LIST = "Write the values as a list: {% set values = ['a', 'b'] %}. Or set a var, or read them from a seed."
_CLOCK = "a model's result must depend on its inputs and the tick's time only"
_ONE = "it names one run or one environment, on which a model's result must not depend"
_GRAPH = "a template sees no project"
# Names that always are an error, with the reason and what to write.
REFUSED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("run_query", "statement", "load_result", "execute", "api"), (_NO_SQL, _LIST)),
    "run_started_at": (_CLOCK, "Write current_timestamp(), which is the tick's time."),
    "invocation_id": (_ONE, "Remove it. `sqlrun ticks` lists what each tick wrote."),
    "flags": (_ONE, "Remove it. Use var() for what a project decides."),
    "graph": (_GRAPH, "Remove it. `sqlrun ls --output json` lists the models."),
    "model": (_GRAPH, "Remove it. Write the model's name."),
    "schema": (_ONE, "Remove it: a table is found by ref()."),
    "database": (_ONE, "Remove it: a table is found by ref()."),
}
# Methods of dbt's adapter that look into a database.
_ASKING = ("get_relation", "get_columns_in_relation", "get_missing_columns", "load_relation", "check_schema_exists")
# Macros of packages that ask a database, and what to write instead.
ASKING: Mapping[str, str] = {
    **dict.fromkeys(
        ("get_column_values", "get_query_results_as_dict", "get_single_value", "get_tables_by_pattern_sql"), _LIST
    ),
    **dict.fromkeys(("get_relations_by_prefix", "get_relations_by_pattern"), "Name each model: {{ ref('model') }}."),
    "get_filtered_columns_in_relation": "List the columns, or use {{ dbt_utils.star(ref('model'), except=[...]) }}.",
    "union_relations": "Write SELECTs with the same columns, joined by UNION ALL.",
    "unpivot": "Write a SELECT for each column, joined by UNION ALL.",
}
# Where `adapter.dispatch` looks for a macro, by the project's adapter: its SQL is Spark's with any engine.
PREFIXES: Mapping[str, tuple[str, ...]] = {
    "spark": ("spark", "default"),
    "databricks": ("databricks", "spark", "default"),
}


class Returned(Exception):
    """`return(value)` ends the macro that is running, whose value it is."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__()


def returned(*values: object) -> NoReturn:
    """End the running macro; `None` without a value."""
    raise Returned(values[0] if values else None)


def silent(*values: object, **more: object) -> str:
    """Return no text: what dbt logs while it compiles has no reader here."""
    del values, more
    return ""


class Refused:
    """A name that is an error however it is used, since an attribute or a condition would hide it."""

    def __init__(self, name: str, why: str, hint: str) -> None:
        self._words = (name, why, hint)

    def _refuse(self, *args: object, **more: object) -> NoReturn:
        del args, more
        name, why, hint = self._words
        raise Mistake("SR201", f"`{name}` isn't supported: {why}", hint, name)

    def __getattr__(self, name: str) -> Any:
        self._refuse()

    __call__ = __bool__ = __str__ = __iter__ = __getitem__ = __eq__ = _refuse
    __hash__ = object.__hash__


class Package:
    """The macros of one of dbt's packages, or of dbt itself, by name."""

    def __init__(self, name: str, macros: Mapping[str, Call]) -> None:
        self._name, self._macros = name, macros

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._macros:
            return self._macros[name]
        if name in ASKING:
            message = f"`{self._name}.{name}` isn't supported: {_NO_SQL}"
            raise Mistake("SR201", message, ASKING[name], name)
        shown = sorted(known for known in self._macros if not known.startswith("test_"))
        near = did_you_mean(name, shown)
        hint = f"Write the macro in macros/{name}.sql, and call it as `{name}`. Known macros: {listed(shown)}.{near}"
        raise Mistake("SR201", f"sqlrun has no macro `{self._name}.{name}`", hint, name)


class Adapter:
    """`adapter`: what dbt's has without a database."""

    def __init__(self, kind: str, macros: Mapping[str, Call], packages: Mapping[str, Package]) -> None:
        self._prefixes, self._macros, self._packages = PREFIXES[kind], macros, packages

    def dispatch(self, name: object, macro_namespace: object = None, *more: object) -> Any:
        """Return the project's macro `spark__NAME` or `default__NAME`, else that of the package."""
        del more
        for prefix in self._prefixes:
            if f"{prefix}__{name}" in self._macros:
                return self._macros[f"{prefix}__{name}"]
        if str(macro_namespace) in self._packages:
            return getattr(self._packages[str(macro_namespace)], str(name))
        wanted = " or ".join(f"`{prefix}__{name}`" for prefix in self._prefixes)
        raise Mistake("SR201", f"there is no macro {wanted}", f"Write macros/default__{name}.sql.", str(name))

    def quote(self, name: object) -> str:
        """Return a name in Spark's quotes."""
        return f"`{name}`"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        hint = _LIST if name in _ASKING else "Only adapter.dispatch() and adapter.quote() work in a template."
        raise Mistake("SR201", f"`adapter.{name}` isn't supported: {_NO_SQL}", hint, name)


class Target:
    """`target`: what the project's settings say of it, the same in all environments; its type is the adapter's."""

    def __init__(self, kind: str, values: Mapping[str, object]) -> None:
        self._values = {"type": kind, **values}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._values:
            return self._values[name]
        message = f"`target.{name}` isn't known: a model's result must not depend on the environment"
        hint = f'Remove the condition, or set it for all environments: [tool.sqlrun.target] {name} = "..."'
        raise Mistake("SR201", message, hint, name)

    def get(self, name: str, default: object = None) -> object:
        """Return a value that the settings have, else the default."""
        return self._values.get(name, default)


class Exceptions:
    """`exceptions`: a macro's own error, and warnings, which nothing shows."""

    def raise_compiler_error(self, *words: object, **more: object) -> NoReturn:
        """Report a macro's own error."""
        del more
        text = " ".join(map(str, words)) or "the macro raised an error"
        raise Mistake("SR201", text, "The macro says so. Check its arguments.", "raise_compiler_error")

    warn = staticmethod(silent)


def refused() -> dict[str, Refused]:
    """Return the names that are always an error."""
    return {name: Refused(name, *words) for name, words in REFUSED.items()}


def is_safe(value: object, attribute: str) -> bool:
    """Return whether a template may read an attribute of one of these objects."""
    if attribute.startswith("_"):
        return False
    match value:
        case Adapter():
            return attribute in ("dispatch", "quote", "get_columns_in_relation")
        case Exceptions():
            return attribute in ("raise_compiler_error", "warn")
        case Package() | Target():
            return True
        case _:
            return False
