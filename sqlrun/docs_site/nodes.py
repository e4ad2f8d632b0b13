"""The facts of each node of a project as JSON values: models, seeds, sources, exposures and macros. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlrun.artifacts import declared_checks
from sqlrun.artifacts.nodes import compiled_code
from sqlrun.artifacts.unique_ids import TESTS
from sqlrun.docs_site.columns import Columns
from sqlrun.docs_site.examples import example, shown
from sqlrun.docs_site.subject import Subject, outcome
from sqlrun.expectations.values import identity
from sqlrun.explain import explain
from sqlrun.graph.lineage import Lineage
from sqlrun.incremental.compile import Compiled
from sqlrun.project import Column, Exposure, Freshness, Macro, Seed, Source

Values = dict[str, Any]
EXPOSURE, MACRO = "exposure:", "macro:"
# Rows of a seed that its page shows.
SEED_ROWS = 50
# Parts of a description by `explain` that a page has in another form.
ELSEWHERE = ("model", "file", "description", "checks")


class Pages:
    """The facts of each node, by its name in the graph; an exposure's begins with `exposure:`, a macro's `macro:`."""

    def __init__(self, subject: Subject) -> None:
        prepared = subject.prepared
        self._subject, self._workspace = subject, prepared.workspace
        self.columns = Columns(Lineage(prepared.project, prepared.graph, prepared.queries))
        self._sources = {one.node: one for one in prepared.project.sources}
        self._lands = {one.source.table: one.name for one in prepared.workspace.models if one.source is not None}

    def __iter__(self) -> Iterator[tuple[str, Values]]:
        """Yield the name and the facts of each node: inputs before their readers, then exposures, then macros."""
        project = self._subject.prepared.project
        models = {one.name: one for one in self._workspace.models}
        seeds = {one.name: one for one in project.seeds}
        for name in self._subject.prepared.graph.order:
            if name in models:
                yield name, self._model(models[name])
            elif name in seeds:
                yield name, self._seed(seeds[name])
            else:
                yield name, self._source(name, self._sources[name])
        for exposure in sorted(project.exposures, key=lambda one: one.name):
            yield EXPOSURE + exposure.name, _exposure(exposure)
        for macro in sorted(project.macros, key=lambda one: one.name):
            yield MACRO + macro.name, _macro(macro)

    def _model(self, one: Compiled) -> Values:
        subject, past = self._subject, self._subject.past
        rendered = one.query.rendered
        contract, config = rendered.model, rendered.config
        dialect = subject.dialects[one.name]
        known = explain.Known(past.rows, past.rates)
        about = explain.described(self._workspace, one, dialect, subject.at, known)
        checks = self._checks(one)
        return {
            "kind": "model",
            "name": one.name,
            "description": contract.description,
            "file": contract.file,
            "contract_file": contract.contract_file,
            "materialized": config.materialized,
            "tags": list(config.tags),
            "grain": list(contract.grain),
            "repeats": contract.repeats,
            "event_time": contract.event_time,
            "freshness": _freshness(contract.freshness),
            "rows": past.rows.get(one.name),
            "dialect": dialect,
            "source_sql": contract.sql,
            "compiled_sql": compiled_code(subject.naming, rendered),
            "plan": {key: value for key, value in about.items() if key not in ELSEWHERE},
            "what": "" if one.is_view else explain.what(one.own),
            "example_rows": explain.EXAMPLE,
            "columns": self._columns(one.name, contract.columns, contract.grain, checks),
            "checks": checks,
            "examples": [example(test) for test in contract.unit_tests],
            "stats": [_stats(row) for row in past.stats.get(one.name, ())],
        }

    def _seed(self, one: Seed) -> Values:
        return {
            "kind": "seed",
            "name": one.name,
            "description": one.description,
            "file": one.file,
            "contract_file": one.contract_file,
            "grain": list(one.grain),
            "rows": len(one.rows),
            "first_rows": {
                "columns": [column.name for column in one.columns],
                "rows": [list(row) for row in one.rows[:SEED_ROWS]],
            },
            "columns": self._columns(one.name, one.columns, one.grain, ()),
        }

    def _source(self, name: str, one: Source) -> Values:
        topic = one.topic
        return {
            "kind": "source",
            "name": f"{one.group}.{one.name}",
            "description": one.description,
            "file": one.place.file,
            "format": one.format,
            "location": one.path or (topic.topic or topic.pattern if topic is not None else ""),
            "lands_in": self._lands.get(one.table, ""),
            "on_schema_change": one.on_schema_change,
            "drops": [
                {"where": rule.where, "reason": rule.reason, "place": str(rule.place)} for rule in one.drop_where
            ],
            "columns": self._columns(name, one.columns, (), ()),
        }

    def _columns(
        self, node: str, declared: Sequence[Column], grain: Sequence[str], checks: Sequence[Values]
    ) -> list[Values]:
        mine: dict[str, list[int]] = {}
        for number, check in enumerate(checks):
            for name in check["columns"]:
                mine.setdefault(name, []).append(number)
        about = {
            column.name: {
                "type": column.type,
                "unit": column.unit,
                "description": column.description,
                "nullable": column.nullable,
                "tags": list(column.tags),
                "in_grain": column.name in grain,
                "comes_from": column.comes_from,
                "checks": mine.get(column.name, []),
            }
            for column in declared
        }
        return self.columns.of(node, about)

    def _checks(self, one: Compiled) -> list[Values]:
        """Return the checks of a model with their last results; `last` is None before the first."""
        found = []
        for check, columns in declared_checks.of(self._workspace, one):
            row = self._subject.past.checks.get(identity(one.name, check))
            found.append(
                {
                    "label": label(check.result_type),
                    "columns": list(columns),
                    "arguments": [[name, shown(value)] for name, value in check.kwargs.items()],
                    "severity": check.severity,
                    "on_fail": check.on_fail,
                    "description": check.description,
                    "place": str(check.place),
                    "last": None if row is None else outcome(row),
                }
            )
        return found


def label(type_: str) -> str:
    """Return the name of a kind of check for people: dbt's if it has one.

    >>> label("expect_column_values_to_not_be_null"), label("expect_column_values_to_be_between"), label("no_holes")
    ('not null', 'be between', 'no holes')
    """
    name = TESTS.get(type_) or re.sub(r"^expect_(column_values_to_|column_|table_)?", "", type_)
    return name.replace("_", " ")


def _freshness(one: Freshness | None) -> Values | None:
    return None if one is None else {"warn_after": one.warn_after, "error_after": one.error_after}


def _exposure(one: Exposure) -> Values:
    return {
        "kind": "exposure",
        "name": one.name,
        "label": one.label,
        "description": one.description,
        "file": one.place.file,
        "type": one.type,
        "owner": one.owner,
        "email": one.email,
        "url": one.url,
        "maturity": one.maturity,
        "reads": list(one.depends_on),
    }


def _macro(one: Macro) -> Values:
    return {
        "kind": "macro",
        "name": one.name,
        "file": one.file,
        "source_sql": one.text,
        "examples": [example(test) for test in one.unit_tests],
    }


def _stats(row: Mapping[str, Any]) -> Values:
    return {**row, "as_of": f"{row['as_of']:%Y-%m-%d %H:%M} UTC"}


def worst(checks: Sequence[Values]) -> str:
    """Return the class of the worst last result of some checks; "" if none has a result."""
    found = [check["last"] for check in checks if check["last"] is not None]
    return str(max(found, key=lambda one: one["rank"])["css"]) if found else ""
