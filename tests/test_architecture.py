"""The shape of sqlrun, held by its own docstrings: each module's first line ends in "Pure." or says "Shell: ..."."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "sqlrun"
MODULES = sorted(PACKAGE.rglob("*.py"))
# Each outside library has its homes; everywhere else its import is an error.
HOMES = {
    "jinja2": {"page", "render", "sandbox"},
    "ruamel": {"yaml_values", "source_yaml"},
    "yaml": {"yaml_plain"},
    "sqlglot": {
        "bad_rows", "parse", "constructs", "functions", "where", "landing", "sql_checks", "explain", "incremental",
        "unit.answers", "unit.branches", "unit.examples", "unit.queries", "unit.sql_rows", "unit.steps", "unit.values",
        "engines.delta_files", "expectation_sql", "expectation_catalogue", "check_queries", "spark_sql", "spark_alone",
        "column_types", "row_text", "lineage", "lineage_walk", "rescue", "scopes", "spark_types", "typed_functions",
    },
    "duckdb": {"engines.duckdb", "unit.memory", "check_queries"},
    "deltalake": {"engines.delta_files", "engines.duckdb", "engines.duckdb_merge", "ledger", "receipts"},
    "pyspark": {"engines.spark", "engines.spark_session", "engines.spark_landing", "engines.spark_lent",
                "engines.spark_merge", "engines.spark_receipts", "engines.spark_views"},
    "delta": {"engines.spark"},
    "great_expectations": {"quality"},
    "pandas": {"quality"},
    "click": {"cli", "cli_check", "cli_doctor", "cli_drift", "cli_environments", "cli_new", "cli_options",
              "cli_quarantine", "cli_serve", "cli_server", "cli_simulate", "cli_test", "cli_ticks"},
    "rich": {"console"},
    "pytest": {"unit.plugin"},
    "numpy": {"simulate_orders", "simulate_broken"},
    "starlette": {"serve.app"},
    "anyio": {"serve.routes"},
    "uvicorn": {"serve.command"},
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


def imports(path: Path, *, everywhere: bool = True) -> set[str]:
    """Modules that a module imports; TYPE_CHECKING blocks don't count."""
    tree = ast.parse(path.read_text())
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if not everywhere and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def inner(path: Path, *, everywhere: bool = True) -> set[str]:
    return {i.removeprefix("sqlrun.") for i in imports(path, everywhere=everywhere) if i.startswith("sqlrun.")}


def summary(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


NAMES = {name(p) for p in MODULES}
PURE = {name(p) for p in MODULES if summary(p).endswith(" Pure.")}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_says_what_it_is(path: Path) -> None:
    """The first docstring line tells whether a module is pure."""
    assert summary(path).endswith(" Pure.") or " Shell: " in summary(path)


@pytest.mark.parametrize("path", [p for p in MODULES if name(p) in PURE], ids=name)
def test_pure_reaches_for_nothing_outside(path: Path) -> None:
    """A pure module imports neither clock, disk nor environment, nor a module that does."""
    assert not {i.partition(".")[0] for i in imports(path)} & IMPURE
    assert inner(path) & NAMES <= PURE


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_each_library_has_its_home(path: Path) -> None:
    """A heavy library is imported in its own modules alone."""
    for library in {i.partition(".")[0] for i in imports(path)} & HOMES.keys():
        homes = HOMES[library]
        assert any(name(path) == home or name(path).startswith(f"{home}.") for home in homes), library


def test_no_import_goes_round() -> None:
    """Module-level imports have an order."""
    graphlib.TopologicalSorter({name(p): inner(p, everywhere=False) & NAMES for p in MODULES}).prepare()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_stay_readable(path: Path) -> None:
    """A module has at most 400 lines, a function at most 60; no drawer is called utils."""
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    long = [
        n.name
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.FunctionDef) and (n.end_lineno or 0) - n.lineno > 60
    ]

    assert len(lines) <= 400
    assert not long
    assert not {"utils", "helpers", "common", "base", "core"} & set(name(path).split("."))


def test_importing_sqlrun_loads_nothing_heavy() -> None:
    """`import sqlrun` and the command line's own module stay light."""
    code = f"import sys, sqlrun, sqlrun.cli; print([m for m in {HEAVY!r} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"
