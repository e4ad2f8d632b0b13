"""Describe what sqlrun would do with a model, as text: strategy, reason, tables, change query. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlglot

from sqlrun.engine_api import Append, Dialect, Merge, Overwrite, Replace, Statement
from sqlrun.explain import explain_checks
from sqlrun.graph.graph import Graph
from sqlrun.incremental import pruning
from sqlrun.incremental.compile import Compiled, whole_query
from sqlrun.incremental.file_ranges import Range
from sqlrun.incremental.landing import query as landing_query
from sqlrun.incremental.script import Moment
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Tick, prepare
from sqlrun.parse.located_problems import as_written
from sqlrun.parse.source_map import source_place
from sqlrun.plan import strategy_cost
from sqlrun.plan.values import PUBLIC_ROWS, Workspace
from sqlrun.project import Config, Profile
from sqlrun.runtime.text_lines import text_lines
from sqlrun.runtime.text_table import counted
from sqlrun.transpile import parameters
from sqlrun.transpile.refusals import Reason
from sqlrun.transpile.writer import identifier

METHODS = {
    "land": "new lines of the source are added as rows",
    "append": "new rows are added",
    "additive": "the change of each group is added to its stored sums and counts",
    "newest": "the newest version of each key replaces an older one",
    "rows": "changed rows are replaced, found by their key",
    "keys": "affected keys are computed again from their inputs",
    "partitions": "affected partitions are computed again and replaced",
    "history": "versions of changed rows end, and new ones begin",
    "full": "the whole query is run again",
}

# Of a table with the strategy `full` that another method maintains.
READS_ALL = "a tick reads its inputs completely, and writes the rows that changed"


def what(stage: Stage) -> str:
    """Return what a tick does with a table."""
    return READS_ALL if stage.strategy == "full" != stage.method else METHODS[stage.method]


@dataclass(frozen=True, slots=True)
class Known:
    """Facts from a warehouse; empty before the first build.

    `rows` are the sizes of tables, `rates` the rows read for each changed row, by table. `engines` are texts about each
    table's engine, if there is a choice.
    """

    rows: Mapping[str, int]
    rates: Mapping[str, float]
    engines: Mapping[str, str] = field(default_factory=dict)


# Number of changed rows for which costs are predicted.
EXAMPLE = 1_000


def described(workspace: Workspace, model: Compiled, dialect: Dialect, now: datetime, known: Known) -> dict[str, Any]:
    """Return a model's description as plain values: strategy and reason, alternatives, tables and statements."""
    contract = model.query.rendered.model
    about: dict[str, Any] = {
        "model": model.name,
        "file": contract.file,
        "description": contract.description,
        "is_view": model.is_view,
        **_words(model.query.rendered.config),
    }
    if model.is_view:
        return about
    config = model.query.rendered.config
    return about | {
        "strategy": model.own.strategy,
        "method": model.own.method,
        "what": what(model.own),
        "reason": _reason(model, model.own.reason),
        "at_worst": config.at_worst,
        "max_read_amplification": config.max_read_amplification,
        "meaning": workspace.prints[model.name],
        "tables": [_table(workspace, model, stage, dialect, now, known) for stage in model.stages],
        "drops": _drops(model),
        "order": _order(model),
        "checks": explain_checks.listed(workspace, model, known.rows.get(model.name)),
    }


def _words(config: Config) -> dict[str, Any]:
    """Return what the project says of a model for people and tools."""
    found = {key: getattr(config, key) for key in ("group", "access", "alias") if getattr(config, key)}
    return {**found, **{key: json.loads(text) for key in ("meta", "docs") if (text := getattr(config, key))}}


def _drops(model: Compiled) -> list[dict[str, str]]:
    """Return what leaves out lines of a landing model's source: the source's drop rules in their order."""
    rules = model.source.drop_where if model.source is not None else ()
    return [{"where": rule.where, "reason": rule.reason, "place": str(rule.place)} for rule in rules]


def _order(model: Compiled) -> str:
    """Return what a tick keeps of a database's order in the changes of a landing model; "" for other models."""
    if model.source is None or model.source.changes is None:
        return ""
    if model.source.transactions is None:
        return "ordered per key only: a tick may have a part of a transaction"
    return f"whole transactions, by the marks of the topic {model.source.transactions[1]}"


def _reason(model: Compiled, reason: Reason) -> dict[str, Any]:
    why, instead = (as_written(text, model.query.rendered) for text in (reason.why, reason.instead))
    found: dict[str, Any] = {"code": reason.code, "why": why, "instead": instead, "place": None}
    if reason.line:
        place, excerpt = source_place(model.query.rendered, reason.line, reason.column)
        found |= {"place": str(place), "excerpt": excerpt}
    return found


def _table(
    workspace: Workspace, model: Compiled, stage: Stage, dialect: Dialect, now: datetime, known: Known
) -> dict[str, Any]:
    moment = Moment(now, now - timedelta(minutes=5))
    return {
        "table": stage.name,
        "hidden": stage.is_hidden,
        "strategy": stage.strategy,
        "method": stage.method,
        "what": what(stage),
        "reason": _reason(model, stage.reason),
        "reads": [as_written(name, model.query.rendered) for name in stage.inputs],
        "key": list(stage.key),
        "partition_by": list(stage.partition_by),
        "state": [c.name for c in stage.columns if c not in stage.public],
        "ways": _ways(stage, known),
        "engine": known.engines.get(stage.name),
        "opens": _opens(pruning.needed(stage, moment, fresh=False)),
        "statement": statement_text(workspace, model, stage, dialect, now),
    }


def _ways(stage: Stage, known: Known) -> list[dict[str, Any]]:
    """Return the possible strategies of a table, the chosen one first, with the rows that each would read."""
    inputs = [known.rows.get(name) for name in (*stage.inputs, stage.name)]
    whole = None if None in inputs else sum(rows or 0 for rows in inputs)
    if not strategy_cost.has_choice(stage):
        rows = whole if stage.method == "full" else EXAMPLE
        return [{"strategy": stage.strategy, "rows": rows}]
    rate = known.rates.get(stage.name, strategy_cost.USUAL[stage.method])
    change = whole if stage.strategy == "full" else round(EXAMPLE * max(rate, 1.0))
    ways: list[dict[str, Any]] = [{"strategy": stage.strategy, "rows": change}]
    return ways if stage.strategy == "full" else [*ways, {"strategy": "full", "rows": whole}]


def _opens(needed: Mapping[tuple[str, str], tuple[Range, ...]]) -> list[str]:
    opened = (
        f"{table} ({row_set}): {one.column} from {one.low:%Y-%m-%d %H:%M} to {one.high:%Y-%m-%d %H:%M}"
        for (table, row_set), found in sorted(needed.items())
        for one in found
    )
    return list(dict.fromkeys(opened))


def explained(about: Mapping[str, Any], *, statements: bool = False) -> list[str]:
    """Return a description as lines of text; `statements` adds the statement of each table."""
    lines = [f"{about['model']}  ({about['file']})", f"  {about['description']}", ""]
    for key in ("group", "access", "alias"):
        lines += [f"{key:<10} {about[key]}"] if key in about else []
    lines += [f"meta       {json.dumps(about['meta'])}"] if "meta" in about else []
    if about["is_view"]:
        return [*lines, "A view: its query is written into the models that read it; nothing is stored."]
    lines.append(f"strategy   {about['strategy']}: {about['what']}")
    lines += _reason_lines(about["reason"])
    limit = about["max_read_amplification"]
    lines.append(f"at worst   {about['at_worst']}" + (f", {limit:g} rows read for each changed row" if limit else ""))
    lines.append(f"meaning    {about['meaning']}")
    for rule in about["drops"]:
        where = " ".join(rule["where"].split())
        lines.append(f"drops      lines where {where}: {rule['reason']} ({rule['place']})")
    if about["order"]:
        lines.append(f"order      {about['order']}")
    for table in about["tables"]:
        lines += ["", *_table_lines(table, about)]
        if statements:
            lines += ["", *_indented(table["statement"])]
    lines += ["", *explain_checks.written(about["checks"])]
    return lines if statements else [*lines, "", "`--sql` prints the statement of each table."]


def shortened(about: Mapping[str, Any]) -> list[str]:
    """Return the few lines of a description that an edit changes: strategy, reason, the costs of a change, checks."""
    lines = [f"{about['model']}  ({about['file']})"]
    if about["is_view"]:
        return [*lines, "A view: nothing is stored."]
    lines.append(f"strategy   {about['strategy']}: {about['what']}")
    lines += _reason_lines(about["reason"])
    lines += [_cost_line(table) for table in about["tables"] if not table["hidden"]]
    hidden = sum(table["hidden"] for table in about["tables"])
    if hidden:
        lines.append(f"tables     1 and {counted(hidden, 'hidden table')}")
    lines.append(f"checks     {len(about['checks'])}")
    return lines


def _cost_line(table: Mapping[str, Any]) -> str:
    ways = [f"{way['strategy']} {_rows(way['rows'])}" for way in table["ways"]]
    return f"cost       {EXAMPLE:,} changed rows: {', or '.join(ways)}"


def _reason_lines(reason: Mapping[str, Any]) -> list[str]:
    lines = [f"reason     {reason['code']} {reason['why']}"]
    if reason["place"]:
        lines.append(f"at         {reason['place']}: {reason['excerpt'].strip()}")
    if reason["instead"]:
        lines.append(f"instead    {reason['instead']}")
    return lines


def _table_lines(table: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    hidden = " (hidden: an inner result)" if table["hidden"] else ""
    lines = [f"table      {table['table']}{hidden}: {table['strategy']}, {table['what']}"]
    if table["reason"]["code"] != about["reason"]["code"]:
        lines += _reason_lines(table["reason"])
    lines.append(f"reads      {', '.join(table['reads']) or 'nothing'}")
    for word, values in (("key", table["key"]), ("partition", table["partition_by"]), ("state", table["state"])):
        if values:
            lines.append(f"{word:10} {', '.join(values)}")
    lines.append(_cost_line(table))
    lines += [f"engine     {table['engine']}"] if table["engine"] else []
    lines += [f"opens      {opened}" for opened in table["opens"]]
    return lines


def _rows(rows: int | None) -> str:
    return "reads every row" if rows is None else f"reads about {rows:,} rows"


def statement_text(workspace: Workspace, model: Compiled, stage: Stage, dialect: Dialect, now: datetime) -> str:
    """Return the statement of a tick five minutes after the last one, in which every input changed."""
    if stage.method == "land":
        assert model.source is not None
        return landing_query.query(stage, model.source, workspace.rules.get(model.name, ()), dialect, now)
    moment = Moment(now, now - timedelta(minutes=5))
    queries = {m.name: m.query for m in workspace.models}
    full = whole_query(queries, model.name, workspace.views, moment, dialect) if stage.node is None else ""
    prepared = prepare(stage, Tick(moment, frozenset(stage.inputs), fresh=False), dialect, full)
    assert prepared is not None
    return _statement(parameters.bound(prepared.statement, moment.parameters, dialect), stage.name, dialect)


def _statement(statement: Statement, table: str, dialect: Dialect) -> str:
    target = identifier(table, dialect)
    match statement:
        case Append(sql=sql):
            return f"insert into {target}\n{sql}"
        case Replace(sql=sql):
            return f"insert overwrite {target}\n{sql}"
        case Overwrite(sql=sql, partitions=partitions):
            where = f"<the partitions of this query>\n{partitions}\n"
            return f"insert into {target} replace where {where}{sql}"
        case Merge():
            return _merge(statement, target, dialect)
        case _:
            return ""


def _merge(merge: Merge, target: str, dialect: Dialect) -> str:
    same = "<=>" if dialect == "spark" else "is not distinct from"

    def name(column: str) -> str:
        return identifier(column, dialect)

    on = [f"t.{name(k)} {same if k in merge.null_safe else '='} s.{name(k)}" for k in merge.key]
    on += [f"t.{name(p)} in (<its values in s>)" for p in merge.prune.partitions]
    on += [f"t.{name(k)} between <its ranges in s, one for each {g}>" for k, g in merge.prune.ranges]
    lines = [f"merge into {target} as t using (", *_indented(merge.delta), f") as s on {' and '.join(on)}"]
    if merge.delete_when:
        lines.append(f"when matched and {merge.delete_when} then delete")
    sets = ",\n    ".join(f"{name(c)} = {e}" for c, e in merge.update if c not in merge.key)
    condition = f" and {merge.update_when}" if merge.update_when else ""
    lines.append(f"when matched{condition} then update set\n    {sets}")
    condition = f" and {merge.insert_when}" if merge.insert_when else ""
    columns = ", ".join(name(c) for c, _ in merge.insert)
    values = ", ".join(e for _, e in merge.insert)
    lines.append(f"when not matched{condition} then insert ({columns}) values ({values})")
    return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text_lines(text)]


def compiled(workspace: Workspace, model: Compiled, target: Profile, dialect: Dialect, now: datetime) -> str:
    """Return a model's whole query, ready to run when pasted: refs are the tables at their paths."""
    queries = {m.name: m.query for m in workspace.models}
    text = whole_query(queries, model.name, workspace.views, Moment(now, None), dialect, relation="{name}")
    pretty = sqlglot.parse_one(text, read=dialect).sql(dialect, pretty=True)
    reads = dict.fromkeys(s for stage in model.stages for s in stage.inputs if not s.startswith(f"{model.name}__"))
    names = [n for n in (*reads, *model.query.rendered.refs) if n not in workspace.views]
    header = f"-- {model.query.rendered.model.file}, compiled for {dialect} at as_of {now:%Y-%m-%d %H:%M} UTC"
    sources = [
        _relation(workspace, name, target, dialect) for name in dict.fromkeys(names) if _is_table(workspace, name)
    ]
    if not sources:
        return f"{header}\n{pretty}"
    return f"{header}\nwith\n" + ",\n".join(sources) + f"\nselect * from (\n{pretty}\n) as query"


def _is_table(workspace: Workspace, name: str) -> bool:
    return workspace.seed(name) is not None or workspace.stage(name) is not None


def _relation(workspace: Workspace, name: str, target: Profile, dialect: Dialect) -> str:
    stage, seed = workspace.stage(name), workspace.seed(name)
    columns = [c.name for c in stage.public] if stage else [c.name for c in seed.columns]  # type: ignore[union-attr]
    path = f"{target.warehouse}/{name}/{workspace.prints[name]}"
    where = f" where {PUBLIC_ROWS}" if stage is not None and stage.method == "land" else ""
    listed = ", ".join(identifier(c, dialect) for c in columns)
    source = f"delta.`{path}`" if dialect == "spark" else f"delta_scan('{path}')"
    return f"{identifier(name, dialect)} as (select {listed} from {source}{where})"


def listed(workspace: Workspace, graph: Graph, names: tuple[str, ...]) -> list[dict[str, str]]:
    """Return nodes in graph order: name, kind, strategy, inputs, file."""
    rows = []
    models = {m.name: m for m in workspace.models}
    declared = {one.node: one.place.file for one in workspace.project.sources}
    for name in names:
        if name in declared:
            rows.append({"name": name, "kind": "source", "strategy": "", "reads": "", "file": declared[name]})
            continue
        model = models.get(name)
        kind = "seed" if model is None else "view" if model.is_view else "landing" if model.source else "table"
        strategy = "" if model is None or model.is_view else model.own.strategy
        reads = ", ".join(p.removeprefix("source:") for p in graph.parents[name])
        rows.append({"name": name, "kind": kind, "strategy": strategy, "reads": reads, "file": graph.files[name]})
    return rows
