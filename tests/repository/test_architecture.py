"""The shape of sqlrun, held by its own docstrings: each module's first line ends in "Pure." or says "Shell: ..."."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "sqlrun"
MODULES = sorted(PACKAGE.rglob("*.py"))
# Each outside library has its homes; everywhere else its import is an error.
HOMES = {
    "jinja2": {"report.html_report", "render.render", "render.sandbox"},
    "ruamel": {"load.yaml_reader", "runtime.yaml_nodes", "scaffold.dbt_files"},
    "yaml": {"load.yaml_fast"},
    "sqlglot": {
        "check.sql_evaluator", "engines.delta.table", "expectations.catalogue", "expectations.failing_rows",
        "expectations.sql", "expectations.sql_checks", "explain.explain", "graph.column_lineage",
        "graph.column_names", "graph.failing_expressions", "graph.lineage", "graph.nameless", "graph.sql_words",
        "incremental", "maintain.row_hash", "parse", "publish.query_text", "test_definitions.queries",
        "test_definitions.sql_rows", "test_definitions.values", "transpile", "unit_tests.author.examples",
        "unit_tests.output.branches", "unit_tests.run.answers", "unit_tests.run.steps",
    },
    "duckdb": {"engines.duckdb.engine", "engines.duckdb.memory", "check.sql_evaluator"},
    "deltalake": {"engines.delta.answers", "engines.delta.table", "engines.duckdb.engine", "engines.duckdb.write",
                  "publish.ledger", "system_tables.receipts"},
    "pyspark": {"engines.spark.engine", "engines.spark.session", "engines.spark.landing", "engines.spark.planned",
                "engines.spark.borrowed", "engines.spark.line_counts", "engines.spark.write", "engines.spark.metrics",
                "engines.spark.views", "engines.spark.outside_files", "engines.spark.remote", "engines.spark.reach",
                "engines.spark.probe"},
    "delta": {"engines.spark.engine"},
    "great_expectations": {"check.great_expectations"},
    "pandas": {"check.great_expectations"},
    "click": {"cli", "runtime.alternative_option", "simulate.command"},
    "rich": {"report.console"},
    "pytest": {"unit_tests.plugin"},
    "numpy": {"simulate.orders", "simulate.broken_lines"},
    "pygls": {"language_server.server"},
    "lsprotocol": {"language_server.server"},
    "sqlfmt": {"commands.formatting"},
    "starlette": {"serve.app"},
    "anyio": {"serve.reading"},
    "uvicorn": {"serve.command", "serve.connections"},
    "jwt": {"serve.access", "serve.keys"},
    "prometheus_client": {"serve.metrics"},
    "brotli": {"serve.answers"},
    "confluent_kafka": {"sources.kafka_client"},
    "obstore": {"storage.object_store"},
    "fsspec": {"storage.remote_files"},
    "fastavro": {"decoding.avro"},
    "google": {"decoding.proto_text", "decoding.protobuf"},
}  # fmt: skip
# What only a shell may reach for.
IMPURE = {
    "os", "io", "pathlib", "time", "random", "socket", "subprocess", "tempfile", "logging", "threading", "signal",
    "ctypes", "multiprocessing", "concurrent", "mmap", "fcntl", "resource",
}  # fmt: skip
# From the top: what a line holds may import what is below it, and nothing of its own line but itself.
LAYERS = (
    "__main__", "daemon", "cli", "simulate", "commands language_server scaffold serve", "packages", "run", "unit_tests",
    "operations", "report", "docs_site", "artifacts", "explain", "__init__", "pipeline", "pipeline_cache",
    "project_files", "test_definitions", "check", "land", "maintain", "system_tables", "plan", "publish", "engines",
    "expectations", "incremental", "graph", "parse", "render", "load", "sources", "decoding", "transpile", "events",
    "outcome", "project", "dashboards", "engine_api", "source_api", "storage", "runtime", "errors version",
)  # fmt: skip
# The commands that start and stop the daemon, whose forks run the command line.
UPWARDS = {("cli.servers", "daemon.control")}
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
    "sqlfmt",
)


def name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports(path: Path, *, typing: bool = False) -> frozenset[str]:
    """Modules that a module imports; those for types alone count where `typing` says so."""
    return frozenset(imported(tree(path), typing=typing))


def imported(module: ast.Module, *, typing: bool = False) -> set[str]:
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if (
            not typing
            and isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
        # An import is a statement: what is inside of expressions needn't be looked at.
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            for child in getattr(node, block, ()):
                visit(child)

    visit(module)
    return found


def inner(path: Path) -> set[str]:
    return {i.removeprefix("sqlrun.") for i in imports(path) if i.startswith("sqlrun.")}


def summary(path: Path) -> str:
    return (ast.get_docstring(tree(path)) or "").partition("\n")[0]


@functools.cache
def names() -> set[str]:
    return {name(p) for p in MODULES}


@functools.cache
def pure() -> set[str]:
    return {name(p) for p in MODULES if summary(p).endswith(" Pure.") or is_package(p)}


def is_package(path: Path) -> bool:
    """Return whether a module is the `__init__` of a package below sqlrun, which holds no code."""
    return path.name == "__init__.py" and path.parent != PACKAGE


# Each test looks at all modules and lists what it found: one test a module takes longer to report than to run.


def test_there_are_modules() -> None:
    """An empty list would prove nothing."""
    assert len(MODULES) > 200
    assert 100 < len(pure()) < len(MODULES)


def test_says_what_it_is() -> None:
    """The first docstring line tells whether a module is pure."""
    assert [
        name(p) for p in MODULES if not (is_package(p) or summary(p).endswith(" Pure.") or " Shell: " in summary(p))
    ] == []


def reached(path: Path) -> set[str]:
    """Return what a module imports of the world outside; a lock around a cache is nothing of it."""
    found = imports(path)
    locks = {"threading", "threading.Lock"}
    return {i.partition(".")[0] for i in (found - locks if found >= locks else found)} & IMPURE


def test_pure_reaches_for_nothing_outside() -> None:
    """A pure module imports neither clock, disk nor environment, nor a module that does."""
    wrong = {
        name(p): found for p in MODULES if name(p) in pure() and (found := reached(p) | (inner(p) & names()) - pure())
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


def cycle(known: Mapping[str, set[str]]) -> list[str]:
    """Return modules that import each other in a circle, the first one again at the end; [] where none do."""
    try:
        graphlib.TopologicalSorter(known).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_import_goes_round_in_any_way() -> None:
    """Neither at the top, nor in functions, nor for types, so that a module can be read with what is below it."""
    known = {name(p): imports(p, typing=True) for p in MODULES}

    assert cycle({one: {i.removeprefix("sqlrun.") for i in found} & known.keys() for one, found in known.items()}) == []


def test_a_planted_circle_is_found() -> None:
    known = {"plan.plan": {"plan.values"}, "plan.values": {"project"}, "project": set[str]()}

    assert cycle(known) == []
    assert sorted(cycle({**known, "project": {"plan.plan"}})[1:]) == ["plan.plan", "plan.values", "project"]


def upwards(module: str, found: Collection[str]) -> list[str]:
    """List the imports of a module that lead to its own floor's neighbour or to a floor above."""
    floors = {package: floor for floor, line in enumerate(LAYERS) for package in line.split()}
    here = module.partition(".")[0] or "__init__"
    wrong = []
    for one in sorted(found):
        inside = one.removeprefix("sqlrun").removeprefix(".")
        of_a_part = any(other.startswith(f"{one}.") and other.removeprefix("sqlrun.") in names() for other in found)
        if not one.startswith("sqlrun") or inside not in names() or of_a_part or (module, inside) in UPWARDS:
            continue
        there = inside.partition(".")[0] or "__init__"
        if here != there and floors[there] <= floors[here]:
            wrong.append(f"{module or 'sqlrun'} imports {one}")
    return wrong


def test_each_package_has_its_floor() -> None:
    """A new package needs a line in the order."""
    there = {name(p).partition(".")[0] or "__init__" for p in MODULES}

    assert there == {package for line in LAYERS for package in line.split()}


def test_no_import_leads_upwards() -> None:
    """Packages have one order, over imports at the top, in functions and for types."""
    assert [one for p in MODULES for one in upwards(name(p), imports(p, typing=True))] == []


@pytest.mark.parametrize(
    "text",
    [
        "from sqlrun.report import console",
        "def later():\n    from sqlrun.report.console import Console",
        "if TYPE_CHECKING:\n    from sqlrun.report.console import Console",
        "import sqlrun.report.console",
        "class Inner:\n    async def later(self):\n        import sqlrun.report.console as console",
        "try:\n    from sqlrun.report import console\nexcept ImportError:\n    pass",
    ],
)
def test_a_planted_import_upwards_is_found(text: str) -> None:
    assert upwards("parse.planted", imported(ast.parse(text), typing=True)) != []


def test_packages_say_what_they_are() -> None:
    """A package's `__init__` holds its purpose and its entry point, and no code; a room has more than two modules."""
    packages = [p for p in MODULES if p.name == "__init__.py" and p.parent != PACKAGE]
    wordless = [name(p) for p in packages if "\n\n" not in (ast.get_docstring(tree(p)) or "")]
    coded = [name(p) for p in packages if len(tree(p).body) > 1]
    sizes = {name(p): len(list(p.parent.glob("*.py"))) - 1 for p in packages}

    assert (wordless, coded) == ([], [])
    assert {package: size for package, size in sizes.items() if not 3 <= size <= 25} == {}
    assert len(list(PACKAGE.glob("*.py"))) <= 12


def test_a_package_s_entry_points_are_there() -> None:
    """What its docstring names as `module.name` is a name of that module."""
    wrong = []
    for path in filter(is_package, MODULES):
        for module, said in re.findall(r"`(?!sqlrun\.)([a-z_]+)\.(\w+)`", ast.get_docstring(tree(path)) or ""):
            near = [folder / f"{module}.py" for folder in (path.parent, path.parent.parent)]
            texts = [file.read_text() for file in near if file.exists()]
            if not any(re.search(rf"^(def |class |)({said})\b", text, re.M) for text in texts):
                wrong.append(f"{name(path)}: {module}.{said}")

    assert wrong == []


# Modules of entities alone, which refer to each other.
NOUNS = {"project"}


def test_modules_stay_readable() -> None:
    """A module has at most 400 lines, nouns that belong together at most 600, a function at most 60; no utils."""
    wrong = []
    for path in MODULES:
        lines = sum(1 for line in path.read_text().splitlines() if line.strip())
        wrong += [f"{name(path)} has {lines} lines"] * (lines > (600 if name(path) in NOUNS else 400))
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


def test_no_module_knows_the_reference_project() -> None:
    """Restaurants and dishes are the reference project's: `simulate` makes up orders of them, `examples` names it."""
    words = re.compile(r"(?i)restaurant|dish")
    texts = [
        path
        for path in PACKAGE.rglob("*")
        if path.suffix in (".py", ".js", ".html", ".css", ".j2", ".svg")
        and "simulate" not in path.parts
        and path != PACKAGE / "scaffold" / "examples.py"
    ]

    assert len(texts) > 300
    assert [str(path.relative_to(PACKAGE)) for path in texts if words.search(path.read_text())] == []


def test_simulate_is_imported_for_its_command_and_the_example_alone() -> None:
    """At import time and later."""
    found = {name(p): {i for i in imports(p, typing=True) if i.startswith("sqlrun.simulate")} for p in MODULES}

    assert {one: seen for one, seen in found.items() if seen and not one.startswith("simulate.")} == {
        "cli.main": {f"sqlrun.simulate.command{one}" for one in ("", ".command", ".write_sample")}
    }


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
    "check.arrow_evaluator", "check.chunked", "check.comparable_columns", "check.great_expectations", "check.measure",
    "check.quarantine_limit", "check.regex_guard", "check.relationships", "commands.debug", "commands.quarantine_queue",
    "decoding.change_events",
    "decoding.csv_file", "decoding.csv_records", "decoding.json_text", "decoding.parquet", "engines.auto",
    "engines.delta.deletion_vectors", "engines.delta.log_entries", "engines.delta.state", "engines.duckdb.merge",
    "engines.spark.executor_reading", "engines.spark.merge", "engines.spark.planned", "land.accounting",
    "land.dead_letters", "land.decoding_again", "land.drift_query", "land.missing_files", "land.relanding",
    "land.replay", "land.rule_changes", "maintain.changed_rows", "maintain.checksums", "publish.duckdb_views",
    "report.history_data",
    "runtime.arrow_rows", "serve.answers", "serve.board_routes", "serve.operator", "serve.routes", "serve.snapshot",
    "sources.blank_lines", "sources.files", "sources.message_values", "system_tables.measure_history",
    "system_tables.measures", "unit_tests.run.answers",
}  # fmt: skip


def test_values_of_tables_become_pythons_in_one_place() -> None:
    """PyArrow fails at a time beyond year 9999; `arrow_rows` gives it another form."""
    found = {
        f"{name(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ("to_pylist", "as_py")
        if name(path) not in WITHOUT_TIMES
    }

    assert found == set()


def test_modules_name_modules_that_exist() -> None:
    """A file in backticks, in a docstring, a comment or in tests/README.md, exists."""
    root = PACKAGE.parent
    folders = [root / name for name in ("sqlrun", "tests", "benchmarks")]
    texts = [*(p for folder in folders for p in folder.rglob("*.py")), root / "tests" / "README.md"]
    known = {f"/{p.relative_to(root)}" for folder in folders for p in folder.rglob("*.py")}
    missing = [
        f"{text.relative_to(root)}: {found}"
        for text in texts
        for found in re.findall(r"`([a-z_0-9/]+\.py)`", text.read_text(encoding="utf-8"))
        if not any(path.endswith(f"/{found}") for path in known)
    ]

    assert missing == []


# Packages that read and write a warehouse: its files lie behind `sqlrun.storage`, whose verbs have other names than
# those of pathlib.
AT_WAREHOUSES = {
    "check", "commands", "engines", "land", "maintain", "operations", "plan", "publish", "run", "serve", "sources",
    "system_tables",
}  # fmt: skip
# Files that are no warehouse's.
OTHER_FILES = {
    "commands.build": "the project's target/compiled",
    "commands.drift": "the project's contracts",
    "commands.error_page": "a page of the package",
    "commands.formatting": "the project's SQL files",
    "commands.history": "a page, and where it was asked for",
    "commands.retry": "the results of the last build in target/",
    "engines.spark.class_archive": "the JVM's archive in the user's cache",
    "engines.spark.jars": "jars in the Ivy cache of the user",
    "engines.spark.session": "Java, and the gateway's temporary files",
    "land.dead_letters": "the folder of dead letters, which other programs read",
    "publish.query": "asks where links lead, because DuckDB may open files below one folder alone",
    "publish.tick_views": "asks where links lead, for statements that run elsewhere",
    "serve.ingest.writer": "the source's own files",
    "serve.keys": "the key file",
    "serve.static": "pages of the package",
    "sources.file_tree": "the source's own files",
    "sources.folder": "the source's own files",
}
FILE_MODULES = {"atomic_files", "fcntl", "glob", "io", "shutil", "tempfile"}
OS_CALLS = {
    "access", "chmod", "fsync", "fwalk", "link", "listdir", "lstat", "makedirs", "mkdir", "open", "path", "readlink",
    "remove", "rename", "renames", "replace", "rmdir", "scandir", "stat", "symlink", "truncate", "unlink", "utime",
    "walk",
}  # fmt: skip
PATH_CALLS = {
    "chmod", "exists", "expanduser", "glob", "hardlink_to", "is_dir", "is_file", "is_mount", "is_symlink", "iterdir",
    "lstat", "mkdir", "read_bytes", "read_text", "readlink", "rename", "resolve", "rglob", "rmdir", "samefile", "stat",
    "symlink_to", "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip


def file_calls(module: ast.Module) -> set[str]:
    """Return how a module reaches for files without the storage."""
    found = {part for one in imported(module) for part in one.split(".")} & FILE_MODULES
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name):
                found |= {f"os.{name}"} if name in OS_CALLS else set()
            case ast.Attribute(attr=name) if name in PATH_CALLS:
                found.add(name)
            case ast.Call(func=ast.Name(id="open")):
                found.add("open")
            # Of a text two arguments are replaced, of a record named ones; an opener of other things is given one.
            case ast.Call(func=ast.Attribute(attr="replace"), args=[_], keywords=[]):
                found.add("replace")
            case ast.Call(func=ast.Attribute(attr="open"), args=[] | [ast.Constant()]):
                found.add("open")
    return found


def test_the_files_of_a_warehouse_lie_behind_the_storage() -> None:
    """Those modules that reach for other files are listed, and no other is."""
    near = {name(p): found for p in MODULES if name(p).split(".")[0] in AT_WAREHOUSES if (found := file_calls(tree(p)))}

    assert {module: found for module, found in near.items() if module not in OTHER_FILES} == {}
    assert OTHER_FILES.keys() - near.keys() == set()


def test_the_storage_s_verbs_are_not_those_of_pathlib() -> None:
    """Or the rule could not tell them apart."""
    verbs = {n.name for n in ast.walk(tree(PACKAGE / "storage" / "storage.py")) if isinstance(n, ast.FunctionDef)}

    assert len(verbs) > 10 and verbs & (PATH_CALLS | {"replace", "open"}) == set()


@pytest.mark.parametrize(
    "text",
    [
        "Path(warehouse).exists()",
        "(Path(path) / '_delta_log').iterdir()",
        "file.write_text('1')",
        "files = map(Path.unlink, files)",
        "temporary.replace(file)",
        "with file.open('rb') as data: pass",
        "with file.open() as data: pass",
        "with open(file) as data: pass",
        "for entry in os.scandir(folder): pass",
        "os.path.exists(path)",
        "import shutil",
        "def later():\n    from shutil import rmtree",
        "from sqlrun.runtime import atomic_files",
        "from sqlrun.runtime.atomic_files import write",
        "if here:\n    from tempfile import TemporaryDirectory",
    ],
)
def test_a_planted_call_for_a_file_is_found(text: str) -> None:
    assert file_calls(ast.parse(text)) != set()


@pytest.mark.parametrize(
    "text",
    [
        "text.replace('a', 'b')",
        "moment.replace(tzinfo=None)",
        "PurePosixPath(path).name",
        "os.environ",
        "seen.open(ask)",
    ],
)
def test_what_is_no_call_for_a_file(text: str) -> None:
    assert file_calls(ast.parse(text)) == set()
