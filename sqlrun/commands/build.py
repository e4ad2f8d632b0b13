"""The commands build, compile, explain, lineage and ls. Shell: the project, the terminal, the engines."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlrun import pipeline
from sqlrun.artifacts import artifact_files
from sqlrun.commands.selection import chosen
from sqlrun.engines.factory import dialect_of, refused
from sqlrun.errors import SqlrunError, UsageError
from sqlrun.explain import explain
from sqlrun.graph.selectors import select as select_nodes
from sqlrun.load import profile
from sqlrun.pipeline import Prepared, profile_of
from sqlrun.plan import environment_sharing, sampling
from sqlrun.project import Profile
from sqlrun.publish.environment_paths import environment
from sqlrun.report import log_lines
from sqlrun.report.build_display import BuildDisplay, Detail
from sqlrun.report.console import Console
from sqlrun.report.json_console import JsonConsole
from sqlrun.report.json_log import JsonLog
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.stopping import limit_statements
from sqlrun.runtime.text_table import counted

if TYPE_CHECKING:
    from sqlrun.incremental.compile import Compiled

Clock = Callable[[], datetime]
# The selector of all unit tests, which a build can leave out. It evaluates all checks of its tables.
UNIT_TESTS = "test_type:unit"


def build_command(root: Path, options: dict[str, Any], clock: Clock) -> int:
    """Run `sqlrun build`: unit tests first, then one or more ticks; return the exit code."""
    from sqlrun.run.session import Session, times_of

    times = times_of(options)
    environment(options["env"])
    sampling.minutes_of(options.get("sample"), options["env"])
    if options.get("defer"):
        environment_sharing.require_deferral(options["env"])
    if options["quiet"] and options["verbose"]:
        raise UsageError("--quiet and --verbose exclude each other")
    as_json = options["log_format"] == "json"
    cache = Cache.of(root)
    prepared, target = pipeline.prepare_to_build(root, options["profile"], cache)
    wrong = refused(target)
    if wrong:
        raise profile.refusal(root, target.name, wrong)
    limit_statements(target.statement_timeout)
    if options["threads"]:
        target = replace(target, threads=options["threads"])
    exclude, skip_tests = _without_unit_tests(options["exclude"])
    names = chosen(prepared, options["select"], exclude, options["state"])
    artifact_files.write_manifest(root, prepared.workspace, options["env"], clock())
    console = json_console(prepared, names) if as_json else Console(quiet=options["quiet"])
    detail: Detail = (
        "verbose" if options["verbose"] or as_json else "ticks" if times.is_endless or times.replay else "steps"
    )
    display = BuildDisplay(console, detail)
    display.begin_build(log_lines.opening(prepared, target))
    if not (options["skip_tests"] or skip_tests):
        from sqlrun.unit_tests.command import before_build

        ran = before_build(root, prepared, names, console, cache)
        if ran is None:
            console.print("The unit tests failed. Nothing was built.", "error")
            return 1
        display.unit_tests = ran
    session = Session(root, prepared, target, names, display, clock, options["receipts"])
    try:
        return session.run(options, times)
    except SqlrunError as error:
        if as_json:
            console.problem(error)  # the command line prints it on stderr
        raise
    finally:
        console.drop()


def _without_unit_tests(exclude: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Return the selectors of tables to exclude, and whether all unit tests are excluded, as by --skip-tests.

    >>> _without_unit_tests(("test_type:unit days", "tag:slow"))
    (('days', 'tag:slow'), True)
    """
    parts = [part for text in exclude for part in text.split() or [""]]
    left = [part for part in parts if part != UNIT_TESTS]
    return (tuple(left), True) if len(left) < len(parts) else (exclude, False)


def json_console(prepared: Prepared, names: tuple[str, ...]) -> JsonConsole:
    """Return the output of a build with `--log-format json`."""
    nodes = artifact_files.node_ids(prepared.workspace, names)
    return JsonConsole(JsonLog(str(uuid.uuid4()), prepared.project.name, os.getpid(), nodes))


def write_compiled(
    root: Path, select: tuple[str, ...], exclude: tuple[str, ...], state: Path | None, name: str | None, now: datetime
) -> int:
    """Run `sqlrun compile`."""
    cache = Cache.of(root)
    prepared = pipeline.prepare(root, cache)
    target = profile_of(root, prepared, name)
    pipeline.require_engine(prepared, target)
    spark_only_models = pipeline.spark_only_models_of(prepared, target, cache)
    names = chosen(prepared, select, exclude, state)
    folder = root / "target" / "compiled" / target.name
    lines = []
    for model in prepared.workspace.models:
        if model.name in names:
            file = folder / model.query.rendered.model.file
            file.parent.mkdir(parents=True, exist_ok=True)
            dialect = dialect_of(target, model.name, spark_only_models)
            file.write_text(explain.compiled(prepared.workspace, model, target, dialect, now) + "\n")
            lines.append(f"{model.query.rendered.model.file} -> {file.relative_to(root)}")
    artifact_files.write_manifest(root, prepared.workspace, None, now)
    Console().lines([*lines, f"Compiled {counted(len(lines), 'model')} for {target.engine}. Nothing was run."])
    return 0


def explain_model(
    root: Path,
    model: str,
    name: str | None,
    as_json: bool,
    now: datetime,
    *,
    statements: bool = False,
    short: bool = False,
) -> int:
    """Run `sqlrun explain`.

    Raises: UsageError for `short` together with statements.
    """
    if short and (statements or as_json):
        raise UsageError("--short leaves out what --sql and --json print. Use one of them")
    from sqlrun.explain import explain_engine

    cache = Cache.of(root)
    prepared = pipeline.prepare(root, cache)
    target = profile_of(root, prepared, name)
    known = {m.name: m for m in prepared.workspace.models}
    if model not in known:
        select_nodes(prepared.graph, (model,))  # its error names similar models
        raise UsageError(f"{model} is not a model. `explain` takes one model")
    pipeline.require_engine(prepared, target)
    spark_only_models = pipeline.spark_only_models_of(prepared, target, cache)
    engines = explain_engine.of_model(known[model], target, spark_only_models)
    sizes = replace(_sizes(prepared, known[model], target), engines=engines)
    about = explain.described(
        prepared.workspace, known[model], dialect_of(target, model, spark_only_models), now, sizes
    )
    if as_json:
        Console().raw(json.dumps(about, indent=2))
    else:
        lines = explain.shortened(about) if short else explain.explained(about, statements=statements)
        Console().lines(lines)
    return 0


def _sizes(prepared: Prepared, model: Compiled, target: Profile) -> explain.Known:
    """Return the sizes of a model's tables and what past ticks read; empty before the first published tick."""
    from sqlrun.engines.delta import table as delta_table
    from sqlrun.plan.strategy_cost import amplification
    from sqlrun.publish.ledger import Ledger
    from sqlrun.system_tables.receipts import read_for_changes

    ledger = Ledger(target.warehouse, prepared.project.name)
    published = ledger.read().published
    if published is None:
        return explain.Known({}, {})
    names = {name for stage in model.stages for name in (stage.name, *stage.inputs)} & published.tables.keys()
    states = {name: published.tables[name] for name in names}
    rows = {n: delta_table.rows_at(f"{target.warehouse}/{state.path}", state.version) for n, state in states.items()}
    rates = {s.name: amplification(read_for_changes(target.warehouse, s.name, s.strategy)) for s in model.stages}
    return explain.Known(rows, {name: rate for name, rate in rates.items() if rate is not None})


def show_lineage(root: Path, text: str, direction: str | None, as_json: bool) -> int:
    """Run `sqlrun lineage`."""
    from sqlrun.graph import lineage_text
    from sqlrun.graph.lineage import Lineage, chosen

    prepared = pipeline.prepare(root, Cache.of(root))
    found = Lineage(prepared.project, prepared.graph, prepared.queries)
    items = chosen(found, text)
    direction = direction or ("up" if found.kind(items[0].node) == "model" else "down")
    if as_json:
        Console().raw(json.dumps(lineage_text.as_json(found, text, items, direction), indent=2, ensure_ascii=False))
    else:
        Console().lines((lineage_text.tree_up if direction == "up" else lineage_text.tree_down)(found, items))
    return 0


def list_nodes(root: Path, select: tuple[str, ...], exclude: tuple[str, ...], state: Path | None, output: str) -> int:
    """Run `sqlrun ls`."""
    from sqlrun.commands import selected_tests  # the manifest's modules

    prepared = pipeline.prepare(root, Cache.of(root))
    names, tests = selected_tests.chosen_to_list(prepared, select, exclude, state)
    rows = [*explain.listed(prepared.workspace, prepared.graph, names), *selected_tests.rows(tests)]
    if output == "json":
        Console().raw(json.dumps(rows, indent=2))
    else:
        Console().lines(
            log_lines.table(("name", "kind", "strategy", "reads", "file"), [tuple(r.values()) for r in rows])
        )
    return 0
