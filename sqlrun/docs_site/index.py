"""What the page of a site needs at its start: the nodes, the edges between them, their places in the graph. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlrun.docs_site.levels import places
from sqlrun.docs_site.nodes import EXPOSURE, MACRO, worst
from sqlrun.docs_site.subject import Subject
from sqlrun.version import __version__

Values = dict[str, Any]
# Length of the part of a description that lists show.
SUMMARY = 160


def index(
    subject: Subject, pages: Mapping[str, Values], scripts: Mapping[str, str], columns: str, env: str, at: datetime
) -> Values:
    """Return the index; `scripts` has the file of each node, `columns` that of the names of columns, `at` is now."""
    prepared = subject.prepared
    order = [name for name in pages if not name.startswith(MACRO)]
    parents = {
        **{name: list(prepared.graph.parents[name]) for name in prepared.graph.order},
        **{EXPOSURE + one.name: [*one.depends_on] for one in prepared.project.exposures},
    }
    drawn = places(order, parents)
    numbers = {name: number for number, name in enumerate(pages)}
    published = subject.past.published
    return {
        "project": prepared.project.name,
        "environment": env,
        "version": __version__,
        "generated_at": f"{at:%Y-%m-%d %H:%M} UTC",
        "published": None
        if published is None
        else {"tick": published.tick, "as_of": f"{published.as_of:%Y-%m-%d %H:%M} UTC"},
        "statements_at": f"{subject.at:%Y-%m-%d %H:%M} UTC",
        "columns": columns,
        "nodes": [_node(name, page, scripts[name], drawn.get(name)) for name, page in pages.items()],
        "edges": [[numbers[parent], numbers[name]] for name in order for parent in parents[name]],
    }


def _node(name: str, page: Values, script: str, place: tuple[int, int] | None) -> Values:
    checks = page.get("checks", [])
    plan = page.get("plan", {})
    return {
        "id": name,
        "kind": page["kind"],
        "name": page["name"],
        "file": page["file"],
        "summary": summary(page.get("description", "")),
        "materialized": page.get("materialized", ""),
        "strategy": plan.get("strategy", ""),
        "tags": page.get("tags", []),
        "checks": len(checks),
        "worst": worst(checks),
        "examples": len(page.get("examples", [])),
        "rows": page.get("rows"),
        "script": script,
        "place": place,
    }


def summary(description: str) -> str:
    """Return the first paragraph of a description on one line, cut if it is long.

    >>> summary("The orders.\\nOne row each.\\n\\nMore."), len(summary("x" * 500))
    ('The orders. One row each.', 160)
    """
    text = " ".join(description.strip().split("\n\n")[0].split())
    return text if len(text) <= SUMMARY else f"{text[: SUMMARY - 1]}…"
