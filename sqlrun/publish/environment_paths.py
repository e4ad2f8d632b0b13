"""Paths of environments: their ledgers, and the environment that owns a table. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlrun.errors import UsageError
from sqlrun.publish.table_state import Published, TableState, is_source

PRODUCTION = "prod"


NAME = re.compile(r"[a-z0-9_-]{1,40}")


# `-` separates a generation, `.` an environment; names of environments contain neither.
PLACE = re.compile(r"(?P<meaning>[^/]+/[0-9a-f]{12})(?:-\d+)?(?:\.(?P<env>[a-z0-9_-]{1,40}))?")


def environment(text: str | None) -> str:
    """Return an environment's name; production's is empty.

    >>> environment("prod"), environment("dev")
    ('', 'dev')
    """
    if not text or text == PRODUCTION:
        return ""
    if not NAME.fullmatch(text):
        raise UsageError(
            f"`{text}` isn't a valid name for an environment. Use at most 40 lowercase letters, digits, - and _"
        )
    return text


def system_folder(env: str) -> str:
    """Return the folder of an environment's ledger and system tables, relative to the warehouse.

    >>> system_folder(""), system_folder("dev")
    ('_sqlrun', '_sqlrun/environments/dev')
    """
    return f"_sqlrun/environments/{env}" if env else "_sqlrun"


def schema(project: str, env: str) -> str:
    """Return the schema of a project's tables in catalogs and artifacts; an environment has its own.

    >>> schema("shop", ""), schema("shop", "dev")
    ('shop', 'shop__dev')
    """
    return f"{project}__{env}" if env else project


def fingerprint_of(path: str) -> str:
    """Return the fingerprint of a table's definition from its path; "" if it has none.

    >>> fingerprint_of("orders/0a1b2c3d4e5f-12.dev")
    '0a1b2c3d4e5f'
    """
    found = PLACE.fullmatch(path)
    return found["meaning"].partition("/")[2] if found else ""


def has_fingerprint(path: str, meaning: str) -> bool:
    """Return whether a table has the fingerprint `model/hash`, in any environment and generation."""
    found = PLACE.fullmatch(path)
    return found is not None and found["meaning"] == meaning


def owner(path: str) -> str:
    """Return the name of the environment that built a table.

    >>> owner("orders/0a1b2c3d4e5f-12.dev"), owner("orders/0a1b2c3d4e5f")
    ('dev', '')
    """
    found = PLACE.fullmatch(path)
    return (found["env"] or "") if found else ""


def always(path: str, after: int, until: int) -> bool:
    """Return True: in a warehouse with one environment, each version derives from the previous one."""
    del path, after, until
    return True


@dataclass(frozen=True, slots=True)
class OtherEnvironments:
    """The warehouse's other environments, as far as the plan of a tick needs them.

    In an environment `production` is production's latest tick. In production `offers` returns the environments' latest
    ticks, in order of preference; the plan calls it when it has to build a model. `reaches` returns whether a later
    version of a table derives from an earlier one.
    """

    env: str = ""
    production: Published | None = None
    offers: Callable[[], Sequence[tuple[str, Published]]] = tuple
    is_ancestor: Callable[[str, int, int], bool] = always

    @property
    def taken(self) -> Collection[str]:
        """Return the paths of production's tables; empty in production."""
        return {state.path for state in self.production.tables.values()} if self.production else set()


ALONE = OtherEnvironments()


def own(published: Published | None, other_environments: OtherEnvironments) -> dict[str, TableState]:
    """Return the published tables that a tick may write to."""
    if published is None:
        return {}
    if not other_environments.env:
        return dict(published.tables)
    taken = other_environments.taken
    return {
        n: s for n, s in published.tables.items() if owner(s.path) == other_environments.env and s.path not in taken
    }


def absolute(is_ancestor: Callable[[str, int, int], bool], warehouse: str) -> Callable[[str, int, int], bool]:
    """Return `is_ancestor` for paths relative to the warehouse; a tick's start compares versions of sources."""

    def reaches(path: str, after: int, until: int) -> bool:
        return after <= until if is_source(path) else is_ancestor(f"{warehouse}/{path}", after, until)

    return reaches
