"""Results of a tick in the format of dbt's run_results.json, version 6. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta

from sqlrun.artifacts import unique_ids
from sqlrun.artifacts.unique_ids import moment
from sqlrun.engine_api import Receipt
from sqlrun.events import CheckResult, NodeResult, StageReceipt
from sqlrun.source_api import NO_SUMS, LineSums

SCHEMA = "https://schemas.getdbt.com/dbt/run-results/v6.json"

# Fields of a table's run stats that are in its step's result.
COUNTED = ("counts", "lines", "complete")


@dataclass(frozen=True, slots=True)
class Invocation:
    """The build that the results belong to; `args` are its options."""

    id: str
    project: str
    started_at: datetime
    args: Mapping[str, object]


def run_results(run: Invocation, results: Sequence[object], elapsed: float, at: datetime) -> dict[str, object]:
    """Return the document; `at` is the time of writing. It has only dbt's keys, as dbt's readers reject others."""
    return {
        "metadata": unique_ids.head(SCHEMA, at, run.id, run.started_at),
        "results": list(results),
        "elapsed_time": round(elapsed, 6),
        "args": dict(run.args),
    }


def document(run: Invocation, results: Sequence[str], elapsed: float, at: datetime) -> str:
    """Return the file's text; each result is JSON text by `json_of`."""
    parts = {key: json_of(value) for key, value in run_results(run, (), elapsed, at).items()}
    parts["results"] = "[\n" + ",\n".join(results) + "\n]"
    return "{\n" + ",\n".join(f'"{key}": {text}' for key, text in parts.items()) + "\n}\n"


def json_of(value: object) -> str:
    """Return a value as JSON; types that JSON lacks become text."""
    return json.dumps(value, default=str)


def node_result(project: str, node: NodeResult, at: datetime, what: str = "") -> dict[str, object]:
    """Return the result of a step that ended `at`; `what` names its kind if the result doesn't."""
    kind = node.kind or what.partition(" ")[0]
    own = node.stages[-1] if node.stages else None  # hidden tables come before the model's own
    response: dict[str, object] = {
        "_message": node.status,
        "rows_affected": node.rows,
        "rows_quarantined": node.quarantined,
        "quarantine_reasons": dict(node.reasons),
        "rows_dropped": sum(count for _, count in node.dropped),
        "drop_reasons": dict(node.dropped),
        "drop_samples": [asdict(sample) for stage in node.stages for sample in stage.counts.samples],
        "lines": None if node.lines == NO_SUMS else _lines(node.lines),
        "complete_to": None if own is None or own.complete is None else asdict(own.complete),
        "version": own.version if own else None,
        "strategy": own.strategy if own else kind,
        "reason": own.reason if own else "",
        "tables": [_table(stage) for stage in node.stages],
    }
    name = unique_ids.table(project, node.name, is_seed=kind == "seed")
    return _result(name, node.status, node.seconds, at, response, node.message or None, None, node.name)


def _table(stage: StageReceipt) -> dict[str, object]:
    """Return the run stats of a table as values; a landing's counts of lines are in its step's result."""
    return {field.name: _plain(getattr(stage, field.name)) for field in fields(stage) if field.name not in COUNTED}


def _lines(sums: LineSums) -> dict[str, object]:
    """Return what became of the lines of a source as values, with each accepted loss."""
    return {**sums.numbers, "losses": [asdict(one) for one in sums.losses]}


def _plain(value: object) -> object:
    return asdict(value) if isinstance(value, Receipt) else value


def check_result(project: str, check: CheckResult, at: datetime) -> dict[str, object]:
    """Return the result of a check that ended `at`, with its id in the manifest."""
    response: dict[str, object] = {
        "_message": check.status.stored,
        "columns": list(check.columns),
        "severity": check.severity,
        "rows_evaluated": check.evaluated,
        "evaluator": check.evaluator or None,
        "samples": list(check.samples),
        "description": check.description,
        "place": str(check.place),
    }
    name = unique_ids.test(project, check.model, check.type, check.columns, check.check_id)
    failed = check.unexpected if check.status.evaluated else None
    return _result(name, check.status.dbt, check.seconds, at, response, check.message or None, failed, None)


def _result(
    name: str,
    status: str,
    seconds: float,
    at: datetime,
    response: Mapping[str, object],
    message: str | None,
    failed: int | None,
    relation: str | None,
) -> dict[str, object]:
    timing = {"name": "execute", "started_at": moment(at - timedelta(seconds=seconds)), "completed_at": moment(at)}
    return {
        "unique_id": name,
        "status": status,
        "timing": [] if status == "skipped" else [timing],
        "thread_id": "main",
        "execution_time": round(seconds, 6),
        "adapter_response": response,
        "message": message,
        "failures": failed,
        "compiled": None,
        "compiled_code": None,
        "relation_name": relation,
        "batch_results": None,
    }
