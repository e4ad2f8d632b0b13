"""What a project's exposures let `sqlrun serve` give: to whom, and by which columns it may be asked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlrun.errors import UsageError
from sqlrun.project import Project
from sqlrun.serve import dashboard

DEFAULT_WIDTHS = (1, 24, 168)


@dataclass(frozen=True, slots=True)
class Mart:
    """A table that callers may ask for: whose its rows are (`owned_by`, "": operators' alone), and by which columns."""

    name: str
    owned_by: str
    keys: tuple[str, ...]
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """What a project's exposures let `sqlrun serve` give: its marts by name, and the dashboard if it has what it needs.

    `missing` names the tables that the dashboard lacks; `widths` are its windows, in hours.
    """

    marts: Mapping[str, Mart]
    missing: tuple[str, ...]
    widths: tuple[int, ...]


def offer(project: Project) -> Offer:
    """Put together what exposures declare; a table that two of them serve may be asked by the keys of both.

    Raises: UsageError if no exposure is served, or two give one table to different owners.
    """
    columns = {m.name: [c.name for c in m.columns] for m in project.models}
    columns |= {s.name: [c.name for c in s.columns] for s in project.seeds}
    grains = {m.name: m.grain for m in project.models} | {s.name: s.grain for s in project.seeds}
    marts: dict[str, Mart] = {}
    for exposure in project.exposures:
        for name in exposure.depends_on if exposure.serve else ():
            assert exposure.serve is not None
            owned_by = exposure.serve.owned_by if exposure.serve.owned_by in columns[name] else ""
            known = marts.get(name)
            if known and known.owned_by != owned_by:
                raise UsageError(f"two exposures serve {name}, one by `{known.owned_by}`, one by `{owned_by}`")
            keys = [key for key in exposure.serve.keys if key in columns[name]]
            keys = list(dict.fromkeys([*(known.keys if known else ()), *keys]))
            marts[name] = Mart(name, owned_by, tuple(keys), grains[name] or tuple(columns[name]))
    if not marts:
        raise UsageError(
            "no exposure says what may be served. Declare one in models/marts/_exposures.yml: "
            "docs/howto/serve-the-dashboard.md shows it"
        )
    missing = tuple(name for name in dashboard.NEEDS if name not in marts)
    return Offer(marts, missing, _widths(project.vars.get("window_hours")))


def _widths(wide: object) -> tuple[int, ...]:
    """Take the windows that the project's models have, where its vars say it."""
    if isinstance(wide, list | tuple) and wide and all(type(hours) is int and 0 < hours <= 8784 for hours in wide):
        return tuple(wide)
    return DEFAULT_WIDTHS
