"""What sqlrun would do with a model, as text: strategy, reason, tables, change query. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlglot

from sqlrun import landing
from sqlrun.engines.protocol import Append, Dialect, Merge, Replace, Statement
from sqlrun.graph import Graph
from sqlrun.incremental.compile import Compiled, whole_query
from sqlrun.incremental.script import Moment
from sqlrun.incremental.sql import identifier
from sqlrun.incremental.stages import Stage
from sqlrun.incremental.statements import Tick, prepare
from sqlrun.model import Profile
from sqlrun.plan import PUBLIC_ROWS, Workspace

METHODS = {
    "land": "rows of new files are added",
    "append": "new rows are added",
    "additive": "the change of each group is added to its stored sums and counts",
    "newest": "the newest version of each key replaces an older one",
    "rows": "changed rows are replaced, found by their key",
    "keys": "touched keys are computed again from their inputs",
    "full": "the whole query is run again",
}


def explained(space: Workspace, model: Compiled, dialect: Dialect, now: datetime) -> list[str]:
    """Explain a model: how it is kept and why, its tables, and the statement of a tick in which all inputs changed."""
    contract = model.query.rendered.model
    lines = [f"{model.name}  ({contract.file})", f"  {contract.description}", ""]
    if model.is_view:
        return [*lines, "A view: its query is written into the models that read it; nothing is stored."]
    own = model.own
    lines.append(f"strategy   {own.strategy}: {METHODS[own.method]}")
    lines.append(f"reason     {own.reason.code} {own.reason.why}")
    if own.reason.instead:
        lines.append(f"instead    {own.reason.instead}")
    lines.append(f"at worst   {model.query.rendered.config.at_worst}")
    lines.append(f"meaning    {space.prints[model.name]}")
    for stage in model.stages:
        lines += ["", *_stage(stage)]
        lines += ["", *_indented(statement_text(space, model, stage, dialect, now))]
    return lines


def _stage(stage: Stage) -> list[str]:
    hidden = " (hidden: an inner result)" if stage.is_hidden else ""
    lines = [f"table      {stage.name}{hidden}: {stage.strategy}, {METHODS[stage.method]}"]
    lines.append(f"reads      {', '.join(stage.inputs)}")
    if stage.key:
        lines.append(f"key        {', '.join(stage.key)}")
    if stage.partition_by:
        lines.append(f"partition  {', '.join(stage.partition_by)}")
    state = [c.name for c in stage.columns if c not in stage.public]
    if state:
        lines.append(f"state      {', '.join(state)}")
    return lines


def statement_text(space: Workspace, model: Compiled, stage: Stage, dialect: Dialect, now: datetime) -> str:
    """Write the statement of a tick five minutes after the last one, in which every input changed."""
    if stage.method == "land":
        assert model.source is not None
        return landing.query(stage, model.source, space.rules.get(model.name, ()), dialect, now)
    moment = Moment(now, now - timedelta(minutes=5))
    queries = {m.name: m.query for m in space.models}
    full = whole_query(queries, model.name, space.views, moment, dialect) if stage.method == "full" else ""
    prepared = prepare(stage, Tick(moment, frozenset(stage.inputs), fresh=False), dialect, full)
    assert prepared is not None
    return _statement(prepared.statement, stage.name, dialect)


def _statement(statement: Statement, table: str, dialect: Dialect) -> str:
    target = identifier(table, dialect)
    match statement:
        case Append(sql=sql):
            return f"insert into {target}\n{sql}"
        case Replace(sql=sql):
            return f"insert overwrite {target}\n{sql}"
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
    return [f"    {line}" for line in text.splitlines()]


def compiled(space: Workspace, model: Compiled, target: Profile, dialect: Dialect, now: datetime) -> str:
    """Write a model's whole query so that it runs by paste: refs are the tables where they lie."""
    queries = {m.name: m.query for m in space.models}
    text = whole_query(queries, model.name, space.views, Moment(now, None), dialect, relation="{name}")
    pretty = sqlglot.parse_one(text, read=dialect).sql(dialect, pretty=True)
    reads = dict.fromkeys(s for stage in model.stages for s in stage.inputs if not s.startswith(f"{model.name}__"))
    names = [n for n in (*reads, *model.query.rendered.refs) if n not in space.views]
    header = f"-- {model.query.rendered.model.file}, compiled for {target.engine} at as_of {now:%Y-%m-%d %H:%M} UTC"
    sources = [_relation(space, name, target, dialect) for name in dict.fromkeys(names) if _is_table(space, name)]
    if not sources:
        return f"{header}\n{pretty}"
    return f"{header}\nwith\n" + ",\n".join(sources) + f"\nselect * from (\n{pretty}\n) as query"


def _is_table(space: Workspace, name: str) -> bool:
    return space.seed(name) is not None or space.stage(name) is not None


def _relation(space: Workspace, name: str, target: Profile, dialect: Dialect) -> str:
    stage, seed = space.stage(name), space.seed(name)
    columns = [c.name for c in stage.public] if stage else [c.name for c in seed.columns]  # type: ignore[union-attr]
    path = f"{target.warehouse}/{name}/{space.prints[name]}"
    where = f" where {PUBLIC_ROWS}" if stage is not None and stage.method == "land" else ""
    listed = ", ".join(identifier(c, dialect) for c in columns)
    source = f"delta.`{path}`" if dialect == "spark" else f"delta_scan('{path}')"
    return f"{identifier(name, dialect)} as (select {listed} from {source}{where})"


def listed(space: Workspace, graph: Graph, names: tuple[str, ...]) -> list[dict[str, str]]:
    """List nodes in graph order: name, kind, strategy, what they read, file."""
    rows = []
    models = {m.name: m for m in space.models}
    for name in names:
        model = models.get(name)
        kind = "seed" if model is None else "view" if model.is_view else "landing" if model.source else "table"
        strategy = "" if model is None or model.is_view else model.own.strategy
        reads = ", ".join(p.removeprefix("source:") for p in graph.parents[name])
        rows.append({"name": name, "kind": kind, "strategy": strategy, "reads": reads, "file": graph.files[name]})
    return rows
