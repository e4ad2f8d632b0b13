"""The marts and dashboards that a project's exposures serve, with their owners and key columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlrun.dashboards.names import entity_name
from sqlrun.dashboards.nouns import Dashboard
from sqlrun.errors import UsageError
from sqlrun.project import Project


@dataclass(frozen=True, slots=True)
class Mart:
    """A table that the API serves.

    `owned_by` is the column with a row's owner; if it is "", only operators may see the table. `claim` is the token
    claim that lists an owner's ids. `keys` are the columns that a caller may filter by.
    """

    name: str
    owned_by: str
    claim: str
    keys: tuple[str, ...]
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """The served parts of a project: its marts by name, and its dashboards in the order of declaration."""

    marts: Mapping[str, Mart]
    boards: tuple[Dashboard, ...]

    @property
    def claims(self) -> tuple[str, ...]:
        """Return the token claims that list owners' ids."""
        named = [board.entity.plural for board in self.boards]
        named += [mart.claim for mart in self.marts.values() if mart.claim]
        return tuple(dict.fromkeys(named))

    @property
    def nouns(self) -> Mapping[str, str]:
        """Return the claim of each noun that is an option of `sqlrun serve token`."""
        owned = {mart.claim.removesuffix("s"): mart.claim for mart in self.marts.values() if mart.claim}
        return owned | {board.entity.name: board.entity.plural for board in self.boards}


def offer(project: Project, required: bool = True) -> Offer:
    """Return what a project's exposures serve. A table in two exposures has the keys of both.

    Raises: UsageError if no exposure is served and one is `required`, or two assign a table to different owners.
    """
    columns = {m.name: [c.name for c in m.columns] for m in project.models}
    columns |= {s.name: [c.name for c in s.columns] for s in project.seeds}
    grains = {m.name: m.grain for m in project.models} | {s.name: s.grain for s in project.seeds}
    boards = tuple(exposure.dashboard for exposure in project.exposures if exposure.dashboard is not None)
    marts: dict[str, Mart] = {}
    for exposure in project.exposures:
        for name in exposure.depends_on if exposure.serve else ():
            assert exposure.serve is not None
            owned_by = exposure.serve.owned_by if exposure.serve.owned_by in columns[name] else ""
            claim = claim_of(owned_by, (exposure.dashboard, *boards)) if owned_by else ""
            known = marts.get(name)
            if known and (known.owned_by, known.claim) != (owned_by, claim):
                raise UsageError(f"two exposures serve {name}, one by `{known.owned_by}`, one by `{owned_by}`")
            keys = [key for key in exposure.serve.keys if key in columns[name]]
            keys = list(dict.fromkeys([*(known.keys if known else ()), *keys]))
            marts[name] = Mart(name, owned_by, claim, tuple(keys), grains[name] or tuple(columns[name]))
    if required and not marts and not boards:
        raise UsageError(
            "no exposure says what may be served. Declare one in models/marts/_exposures.yml, with `serve:` or "
            "`dashboard:` under `config:`"
        )
    return Offer(marts, boards)


def claim_of(column: str, boards: Iterable[Dashboard | None]) -> str:
    """Return the claim that lists a column's ids: from the first dashboard with this key, else the column's plural.

    >>> claim_of("site_id", ())
    'sites'
    """
    named = (board.entity.plural for board in boards if board is not None and board.entity.key == column)
    return next(named, f"{entity_name(column)}s")
