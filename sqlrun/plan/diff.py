"""Compare the project with the published tables: what the next build builds, rebuilds, reuses or drops. Pure.

The ledger has all that is needed: a table's path contains the hash of its meaning (`fingerprint.py`), inputs included.
The hash of today's query over the published inputs shows whether the query itself was edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sqlrun.incremental.compile import Compiled
from sqlrun.plan import fingerprint
from sqlrun.plan.values import Promotion, TablePlan, TickPlan, Workspace
from sqlrun.publish.environment_paths import ALONE, OtherEnvironments, fingerprint_of
from sqlrun.publish.table_state import Published, TableState, own_tables

Fate = Literal["new", "rebuilt", "promoted", "new rows", "new rules", "untouched", "shared", "not selected", "gone"]
# The order of reports: the most expensive first.
FATES: tuple[Fate, ...] = (
    "rebuilt",
    "new",
    "promoted",
    "new rows",
    "new rules",
    "gone",
    "not selected",
    "untouched",
    "shared",
)
# Fates that are reported as a number alone.
QUIET = ("untouched", "shared", "not selected")
READS_EDITED = "it reads what was edited"


@dataclass(frozen=True, slots=True)
class Edit:
    """What happens to one model or seed in the next build.

    `columns` is what changes for readers: `+ n int`, `- n` or `~ n int -> bigint`. `reads` names the tables that are
    read whole to build it; empty if nothing is built. `engine` builds it, if there is a choice.
    """

    name: str
    fate: Fate
    why: str
    columns: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    engine: str = ""


def edits(workspace: Workspace, plan: TickPlan) -> tuple[Edit, ...]:
    """Return the edits of a tick over the selected models against what is published, sorted by `FATES`."""
    published = plan.published
    known = own_tables(published.tables) if published else {}
    found = [_seed(workspace, plan, name, known.get(name)) for name in plan.seeds]
    chosen = {model.name for model in plan.models}
    shared = [name for name in own_tables(known) if name in plan.tables and plan.tables[name].shared]
    left = [model for model in workspace.tables if model.name not in chosen and model.name not in shared]
    found += [_model(workspace, plan, model, known) for model in workspace.tables if model.name in chosen]
    found += [_left_out(workspace, model, known) for model in left]
    found += [Edit(name, "shared", "with production") for name in shared]
    gone = "the project no longer has it; earlier ticks still do, as in `show --tick`"
    found += [Edit(name, "gone", gone) for name in removed(workspace, published)]
    return tuple(sorted(found, key=lambda edit: FATES.index(edit.fate)))


def removed(workspace: Workspace, published: Published | None) -> list[str]:
    """Return the published tables that the project no longer has, in order."""
    known = own_tables(published.tables) if published else {}
    names = {model.name for model in workspace.tables} | {seed.name for seed in workspace.project.seeds}
    return sorted(known.keys() - names)


def _seed(workspace: Workspace, plan: TickPlan, name: str, known: TableState | None) -> Edit:
    table, seed = plan.tables[name], workspace.seed(name)
    assert seed is not None
    if name in plan.promoted:
        return Edit(name, "promoted", _from(plan.promoted[name]), _columns(known, table) if known else ())
    if known is None:
        return Edit(name, "new", "never built")
    if table.state is None:
        same = fingerprint_of(known.path) == workspace.prints[name]
        return Edit(name, "rebuilt", f"its {'rows' if same else 'columns'} were edited", _columns(known, table))
    if known.content != fingerprint.of_content(seed):
        return Edit(name, "new rows", "its rows were edited")
    return Edit(name, "untouched", "")


def _model(workspace: Workspace, plan: TickPlan, model: Compiled, known: Mapping[str, TableState]) -> Edit:
    name = model.name
    own = plan.tables[name]
    building = [stage for stage in model.stages if plan.tables[stage.name].state is None]
    before = known.get(name)
    stages = {stage.name for stage in model.stages}
    reads = dict.fromkeys(table for stage in building for table in stage.inputs if table not in stages)
    if model.source is not None:
        reads = dict.fromkeys([f"{model.source.group}.{model.source.name}"])
    if name in plan.promoted:
        return Edit(name, "promoted", _from(plan.promoted[name]), _columns(before, own) if before else ())
    if before is None:
        return Edit(name, "new", plan.notes.get(name, "never built"), (), tuple(reads))
    if not building:
        if model.source is not None and before.content not in ("", workspace.rules_print(model)):
            return Edit(name, "new rules", "they apply to lines that land from now on, and to replayed lines")
        return Edit(name, "untouched", "")
    return Edit(name, "rebuilt", _why(workspace, plan, model, known), _columns(before, own), tuple(reads))


def _left_out(workspace: Workspace, model: Compiled, known: Mapping[str, TableState]) -> Edit:
    before = known.get(model.name)
    same = before is not None and fingerprint_of(before.path) == workspace.prints[model.name]
    why = "as it is"
    if not same:
        own = before is None or is_edited(workspace, model, known)
        why = f"{'edited' if own else READS_EDITED}; readers keep the built table"
    return Edit(model.name, "not selected", why)


def _why(workspace: Workspace, plan: TickPlan, model: Compiled, known: Mapping[str, TableState]) -> str:
    """Return why a model is rebuilt, with the note of its plan."""
    if plan.env and model.name in plan.notes:
        return plan.notes[model.name]
    return "; ".join(filter(None, [_edited(workspace, plan, model, known), plan.notes.get(model.name)]))


def _from(offered: Promotion) -> str:
    return f"built in {offered.env}, tick {offered.tick}; it continues from there"


def _edited(workspace: Workspace, plan: TickPlan, model: Compiled, known: Mapping[str, TableState]) -> str:
    reads = list(model.query.rendered.refs)
    moved = [name for name in reads if name in plan.tables and plan.tables[name].state is None]
    before = fingerprint_of(known[model.name].path)
    if before == workspace.prints[model.name]:
        if (model.source is not None or model.source_tables) and model.name in plan.notes:
            return ""  # the note says it
        if moved:
            return f"it reads {_listed(moved)}"
        if plan.refresh:
            return "--full-refresh"
        rebuilt = rebuilt_inputs(plan, model)
        if rebuilt:
            return f"it reads {', '.join(rebuilt)}, rebuilt since"
        return "production's table reads other tables" if plan.env else "a table of its own is missing"
    if not is_edited(workspace, model, known):
        return f"it reads {_listed(moved)}"
    others = [f"the view {name}" for name in reads if name in workspace.views] + moved
    own = _what_was_edited(workspace, model, known)
    return f"{own}, or what it takes from {' or '.join(others)}" if others else own


def _what_was_edited(workspace: Workspace, model: Compiled, known: Mapping[str, TableState]) -> str:
    """Return which parts of a model were edited; only its hash from before is known."""
    source = model.source
    if source is None:
        return "its query, columns or layout were edited"
    sample = workspace.sampled.get(model.name)
    if known[model.name].sample != sample:
        return f"of its source, it takes {sample or 'all events instead of a sample'}"
    if source.drop_where and not is_edited(workspace, replace(model, source=replace(source, drop_where=())), known):
        return "drop rules of its source were added"
    rules = " or drop rules" if source.drop_where else ""
    return f"its query, columns{' or' if not rules else ','} layout{rules} were edited"


def is_edited(workspace: Workspace, model: Compiled, known: Mapping[str, TableState]) -> bool:
    """Return whether the model itself changed since its table was built, regardless of its inputs."""
    reads = (*model.query.rendered.refs, *model.source_tables)
    then = {n: fingerprint_of(known[n].path) if n in known else workspace.prints[n] for n in reads}
    return fingerprint.of_model(model, then) != fingerprint_of(known[model.name].path)


def rebuilt_inputs(plan: TickPlan, model: Compiled) -> tuple[str, ...]:
    """Return the tables that a model reads and that were rebuilt elsewhere without an edit."""
    tables = plan.published.tables if plan.published else {}
    found: dict[str, None] = {}
    for stage in model.stages:
        read = tables[stage.name].inputs if stage.name in tables else {}
        found |= dict.fromkeys(n for n, (path, _) in read.items() if n in tables and tables[n].path != path)
    return tuple(found)


def _listed(names: Iterable[str]) -> str:
    return f"{', '.join(names)}, which is rebuilt"


def _columns(before: TableState, after: TablePlan) -> tuple[str, ...]:
    old, new = dict(before.columns), {column.name: column.type for column in after.public}
    changes = [f"+ {name} {kind}" for name, kind in new.items() if name not in old]
    changes += [f"- {name}" for name in old if name not in new]
    changes += [f"~ {name} {old[name]} -> {kind}" for name, kind in new.items() if name in old and old[name] != kind]
    return tuple(changes)


def compared(published: Published | None, other_environments: OtherEnvironments) -> str:
    """Return how messages name the ticks that the edits are compared with: the environment's and production's."""
    ticks = [
        (other_environments.env and f"{other_environments.env}'s ", published),
        ("production's ", other_environments.production),
    ]
    named = [f"{whose}{t}" for whose, t in ticks if t]
    return " and ".join(named)


def messages(
    found: Iterable[Edit], published: Published | None, rows: Mapping[str, int], with_what: str = ""
) -> list[str]:
    """Return the edits as lines of text; `rows` are the current sizes of tables, as far as they are known."""
    listed = list(found)
    if published is None:
        lines = ["Nothing is published yet; the next build builds everything."]
    else:
        lines = [f"Compared with {with_what or compared(published, ALONE)}:"]
    shown = [edit for edit in listed if edit.fate not in QUIET or edit.why.startswith(("edited", READS_EDITED))]
    fate, name = (max([len(getattr(e, key)) for e in shown] or [0]) for key in ("fate", "name"))
    lines += [""] if shown else []
    for edit in shown:
        lines += [f"  {edit.fate:{fate}}  {edit.name:{name}}  {edit.why}{_cost(edit, rows)}".rstrip()]
        lines += [f"  {'':{fate}}    {column}" for column in edit.columns]
    shared = sum(edit.fate == "shared" for edit in listed)
    rest = len(listed) - len(shown) - shared
    if shared:
        lines += ["", f"  {shared} {'is' if shared == 1 else 'are'} shared with production."]
    if rest:
        lines += ["", f"  {rest} {'is' if rest == 1 else 'are'} as {'it was' if rest == 1 else 'they were'}."]
    if any(edit.fate in ("rebuilt", "gone", "promoted") for edit in shown):
        lines += ["", "Readers see the old tables until the build publishes all new ones at once."]
    elif not shown:
        lines[1 : 1 if shared else len(lines)] = ["", "Nothing was edited."]
    return lines


def _cost(edit: Edit, rows: Mapping[str, int]) -> str:
    if not edit.reads:
        return ""
    sizes = [rows.get(name) for name in edit.reads]
    total = sum(size for size in sizes if size is not None)
    about = f", about {total:,} rows" if None not in sizes else ""
    by = f"; by {edit.engine}" if edit.engine else ""
    return f"; reads {', '.join(edit.reads)}{about}{by}"


def as_json(
    found: Iterable[Edit],
    published: Published | None,
    rows: Mapping[str, int],
    queries: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the edits as JSON values for other programs; `queries` are lines about changed queries, if wanted."""
    tables = [
        asdict(edit)
        | {"rows_read": None if any(n not in rows for n in edit.reads) else sum(rows[n] for n in edit.reads)}
        | ({} if queries is None else {"query_diff": "\n".join(queries.get(edit.name, ()))})
        for edit in found
    ]
    return {"tick": published.tick if published else None, "tables": tables}
