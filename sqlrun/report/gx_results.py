"""Outcomes of a tick's checks in the format of Great Expectations' validation results. Pure.

`ExpectationSuiteValidationResult` reads each document. Columns tagged pii show `***`, as in every report.
Where Great Expectations returned details, the result's `meta` has them, with the values of such columns hidden. It saw
columns as checks compare them: decimals as whole numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlrun.events import CheckResult, TickResult
from sqlrun.outcome import Outcome
from sqlrun.project import Value
from sqlrun.report.findings import by_model

OBSERVED = "observed "


def documents(result: TickResult, rules: Mapping[str, Mapping[str, Value]]) -> dict[str, str]:
    """Return a JSON document for each model with checks; `rules` holds the arguments of checks by id."""
    meta = {"tick": result.tick, "as_of": result.as_of.isoformat(), "published": result.published}
    return {
        model: json.dumps(_suite(model, checks, rules, meta), default=str) + "\n"
        for model, checks in by_model([c for c in result.checks if c.status.has_past]).items()
    }


def _suite(
    model: str, checks: Sequence[CheckResult], rules: Mapping[str, Mapping[str, Value]], meta: Mapping[str, object]
) -> dict[str, Any]:
    passed = sum(1 for check in checks if check.status is Outcome.PASS)
    return {
        "success": passed == len(checks),
        "suite_name": model,
        "suite_parameters": {},
        "statistics": {
            "evaluated_expectations": len(checks),
            "successful_expectations": passed,
            "unsuccessful_expectations": len(checks) - passed,
            "success_percent": 100 * passed / len(checks),
        },
        "meta": {"sqlrun": dict(meta)},
        "results": [_result(check, rules.get(check.check_id, {})) for check in checks],
    }


def _result(check: CheckResult, kwargs: Mapping[str, Value]) -> dict[str, Any]:
    raised = check.status is Outcome.ERROR
    about: dict[str, Any] = {
        "check_id": check.check_id,
        "status": check.status.stored,
        "place": str(check.place),
        "seconds": check.seconds,
        "evaluator": check.evaluator or None,
    }
    if check.raw is not None:
        about["great_expectations"] = dict(check.raw)
    return {
        "success": check.status is Outcome.PASS,
        "expectation_config": {
            "type": check.type,
            "kwargs": dict(kwargs),
            "severity": check.severity,
            "description": check.description or None,
            "meta": {"sqlrun": about},
        },
        "result": {} if raised else _details(check),
        "meta": {},
        "exception_info": {
            "raised_exception": raised,
            "exception_message": check.message if raised else None,
            "exception_traceback": None,
        },
    }


def _details(check: CheckResult) -> dict[str, Any]:
    share = 100 * check.unexpected / check.evaluated if check.evaluated else 0.0
    found: dict[str, Any] = {
        "element_count": check.evaluated,
        "unexpected_count": check.unexpected,
        "unexpected_percent": share,
        "partial_unexpected_list": list(check.samples),
    }
    if check.message.startswith(OBSERVED):
        found["observed_value"] = check.message.removeprefix(OBSERVED)
    return found
