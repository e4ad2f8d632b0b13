"""Queries as text for people, and how two of them differ. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from sqlrun.incremental.compile import Compiled
from sqlrun.plan.values import TickPlan, Workspace
from sqlrun.publish.environment_paths import fingerprint_of
from sqlrun.runtime.text_lines import text_lines

_RELATION = re.compile(r"`(?:ref|source)`\.`(\w+)`")


def of_model(workspace: Workspace, model: Compiled) -> str:
    """Return a model's query after Jinja, and below it those of the views that it reads, directly or by views.

    >>> _RELATION.sub(r"\\1", "select n from `ref`.`orders`")
    'select n from orders'
    """
    parts, left, seen = [], [model], set[str]()
    while left:
        one = left.pop(0)
        heading = "" if one is model else f"-- the view {one.name}\n"
        parts.append(heading + _RELATION.sub(r"\1", one.query.rendered.sql).strip())
        for name in sorted({*one.query.rendered.refs} & {*workspace.views} - seen):
            seen.add(name)
            left.append(workspace.model(name))
    return "\n\n".join(parts) + "\n"


def built(workspace: Workspace, plan: TickPlan) -> dict[str, str]:
    """Return the queries of the tables that a tick builds from scratch, by fingerprint."""
    models = (model for model in plan.models if plan.tables[model.name].state is None)
    return {workspace.prints[model.name]: of_model(workspace, model) for model in models}


def fingerprint_before(plan: TickPlan, name: str) -> str:
    """Return the fingerprint of a published table; "" if nothing is published, or it has none."""
    state = plan.published.tables.get(name) if plan.published else None
    return fingerprint_of(state.path) if state is not None else ""


def difference(name: str, before: str, after: str) -> list[str]:
    """Return a unified diff of two texts; empty if they are the same.

    >>> difference("n", "select 1\\n", "select 2\\n")
    ['--- n, published', '+++ n, edited', '@@ -1 +1 @@', '-select 1', '+select 2']
    """
    old, new = text_lines(before), text_lines(after)
    return list(difflib.unified_diff(old, new, f"{name}, published", f"{name}, edited", lineterm=""))


def lines(name: str, before: str | None, after: str) -> Iterator[str]:
    """Yield what changed in a query's text; `before` is None if it isn't recorded."""
    if before is None:
        yield f"{name}: the published query isn't recorded; the next build records it"
        return
    found: Iterable[str] = difference(name, before, after)
    yield from found or (f"{name}: the query's text is the same",)
