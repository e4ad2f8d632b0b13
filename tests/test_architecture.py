"""The shape of sqlrun, held by its own docstrings: each module's first line ends in "Pure." or says "Shell: ..."."""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "sqlrun"
MODULES = sorted(PACKAGE.rglob("*.py"))
# Each outside library has its homes; everywhere else its import is an error.
HOMES = {
    "jinja2": {"page", "render", "sandbox"},
    "ruamel": {"yaml_values", "source_yaml"},
    "yaml": {"yaml_plain"},
    "sqlglot": {
        "commas", "group_by", "set_operations", "using",
        "bad_rows", "parse", "constructs", "functions", "where", "landing", "sql_checks", "explain", "incremental",
        "unit.answers", "unit.branches", "unit.examples", "unit.queries", "unit.sql_rows", "unit.steps", "unit.values",
        "engines.delta_files", "expectation_sql", "expectation_catalogue", "check_queries", "spark_sql", "spark_alone",
        "column_types", "row_text", "lineage", "lineage_walk", "rescue", "scopes", "spark_types", "typed_functions",
        "usual_lines", "landing_fields", "line_types", "exact", "special_times", "not_taken", "placed",
        "select_list", "mixed", "operands", "precedence", "window_forms", "declared_types",
        "syntax",
    },
    "duckdb": {"engines.duckdb", "unit.memory", "check_queries"},
    "deltalake": {"engines.delta_files", "engines.duckdb", "engines.duckdb_merge", "ledger", "receipts"},
    "pyspark": {"engines.spark", "engines.spark_session", "engines.spark_landing", "engines.spark_lent",
                "engines.spark_merge", "engines.spark_receipts", "engines.spark_views"},
    "delta": {"engines.spark"},
    "great_expectations": {"gx_run"},
    "pandas": {"gx_run"},
    "click": {"cli", "cli_check", "cli_doctor", "cli_drift", "cli_environments", "cli_new", "cli_options",
              "cli_quarantine", "cli_serve", "cli_server", "cli_simulate", "cli_test", "cli_ticks"},
    "rich": {"console"},
    "pytest": {"unit.plugin"},
    "numpy": {"simulate_orders", "simulate_broken"},
    "starlette": {"serve.app"},
    "anyio": {"serve.routes"},
    "uvicorn": {"serve.command", "serve.connections"},
    "jwt": {"serve.access", "serve.keys"},
    "prometheus_client": {"serve.metrics"},
    "brotli": {"serve.answers"},
}  # fmt: skip
# What only a shell may reach for.
IMPURE = {"os", "io", "pathlib", "time", "random", "socket", "subprocess", "tempfile", "logging"}
HEAVY = (
    "pyspark",
    "duckdb",
    "great_expectations",
    "pandas",
    "sqlglot",
    "jinja2",
    "deltalake",
    "rich",
    "numpy",
    "starlette",
    "uvicorn",
    "anyio",
    "jwt",
    "cryptography",
    "prometheus_client",
)


def name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports(path: Path, *, everywhere: bool = True) -> frozenset[str]:
    """Modules that a module imports; TYPE_CHECKING blocks don't count."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if not everywhere and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
        # An import is a statement: what is inside of expressions needn't be looked at.
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            for child in getattr(node, block, ()):
                visit(child)

    visit(tree(path))
    return frozenset(found)


def inner(path: Path, *, everywhere: bool = True) -> set[str]:
    return {i.removeprefix("sqlrun.") for i in imports(path, everywhere=everywhere) if i.startswith("sqlrun.")}


def summary(path: Path) -> str:
    return (ast.get_docstring(tree(path)) or "").partition("\n")[0]


@functools.cache
def names() -> set[str]:
    return {name(p) for p in MODULES}


@functools.cache
def pure() -> set[str]:
    return {name(p) for p in MODULES if summary(p).endswith(" Pure.")}


# Each test looks at all modules and lists what it found: one test a module takes longer to report than to run.


def test_there_are_modules() -> None:
    """An empty list would prove nothing."""
    assert len(MODULES) > 200
    assert 100 < len(pure()) < len(MODULES)


def test_says_what_it_is() -> None:
    """The first docstring line tells whether a module is pure."""
    assert [name(p) for p in MODULES if not (summary(p).endswith(" Pure.") or " Shell: " in summary(p))] == []


def test_pure_reaches_for_nothing_outside() -> None:
    """A pure module imports neither clock, disk nor environment, nor a module that does."""
    wrong = {
        name(p): found
        for p in MODULES
        if name(p) in pure()
        and (found := {i.partition(".")[0] for i in imports(p)} & IMPURE | (inner(p) & names()) - pure())
    }

    assert wrong == {}


def test_each_library_has_its_home() -> None:
    """A heavy library is imported in its own modules alone."""
    strangers = [
        f"{name(path)} imports {library}"
        for path in MODULES
        for library in {i.partition(".")[0] for i in imports(path)} & HOMES.keys()
        if not any(name(path) == home or name(path).startswith(f"{home}.") for home in HOMES[library])
    ]

    assert strangers == []


def test_no_import_goes_round() -> None:
    """Module-level imports have an order."""
    graphlib.TopologicalSorter({name(p): inner(p, everywhere=False) & names() for p in MODULES}).prepare()


def test_modules_stay_readable() -> None:
    """A module has at most 400 lines, a function at most 60; no drawer is called utils."""
    wrong = []
    for path in MODULES:
        lines = sum(1 for line in path.read_text().splitlines() if line.strip())
        wrong += [f"{name(path)} has {lines} lines"] * (lines > 400)
        wrong += [
            f"{name(path)}.{n.name} has {(n.end_lineno or 0) - n.lineno} lines"
            for n in ast.walk(tree(path))
            if isinstance(n, ast.FunctionDef) and (n.end_lineno or 0) - n.lineno > 60
        ]
        drawers = {"utils", "helpers", "common", "base", "core"} & set(name(path).split("."))
        wrong += [f"{name(path)} is a drawer"] * bool(drawers)

    assert wrong == []


def test_importing_sqlrun_loads_nothing_heavy() -> None:
    """`import sqlrun` and the command line's own module stay light."""
    code = f"import sys, sqlrun, sqlrun.cli.main; print([m for m in {HEAVY!r} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"


def test_text_is_split_at_line_feeds_alone() -> None:
    """`str.splitlines` splits a log at U+2028 and others that stand inside of its texts; `text_lines` doesn't."""
    found = [
        f"{name(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr == "splitlines"
    ]

    assert found == []


# Where `to_pylist` and `as_py` never meet a value of an analyst's column that may be a time.
WITHOUT_TIMES = {
    "arrow_rows", "arrow_counts", "auto", "changed_rows", "check_columns", "check_regexes", "checksums", "debug",
    "deletion_vectors", "delta_entries", "delta_state", "drift_rows", "duckdb_rewrite", "gx_run", "history_rows",
    "large_checks", "lost_files", "measures", "measuring", "operator", "past", "quarantine_limit", "quarantine_queue",
    "related", "relanded", "replays", "routes", "rules_edited", "snapshot", "spark_rewrite", "answers",
}  # fmt: skip


def test_values_of_tables_become_pythons_in_one_place() -> None:
    """PyArrow fails at a time beyond year 9999; `arrow_rows` gives it another form."""
    found = {
        f"{name(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ("to_pylist", "as_py")
        if path.stem not in WITHOUT_TIMES
    }

    assert found == set()
