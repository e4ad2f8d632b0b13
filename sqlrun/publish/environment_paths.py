"""Environments by name: where their ledgers are, and which of them a table belongs to. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlrun.errors import UsageError
from sqlrun.publish.table_state import Published, TableState

PRODUCTION = "prod"


NAME = re.compile(r"[a-z0-9_-]{1,40}")


# A generation is parted by `-`, an environment by `.`, which no name of one has.
PLACE = re.compile(r"(?P<meaning>[^/]+/[0-9a-f]{12})(?:-\d+)?(?:\.(?P<env>[a-z0-9_-]{1,40}))?")


def environment(text: str | None) -> str:
    """Read an environment's name; production is the empty one.

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
    """Return where an environment's ledger, receipts and checks are, from the warehouse.

    >>> system_folder(""), system_folder("dev")
    ('_sqlrun', '_sqlrun/environments/dev')
    """
    return f"_sqlrun/environments/{env}" if env else "_sqlrun"


def fingerprint_of(path: str) -> str:
    """Take the hash of a table's meaning from its path; "" where it has none.

    >>> fingerprint_of("orders/0a1b2c3d4e5f-12.dev")
    '0a1b2c3d4e5f'
    """
    found = PLACE.fullmatch(path)
    return found["meaning"].partition("/")[2] if found else ""


def has_fingerprint(path: str, meaning: str) -> bool:
    """Return whether a table holds a meaning, `model/hash`, whoever built it and when."""
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
    """Return True: in a warehouse with one environment, each version was made from the one before."""
    del path, after, until
    return True


@dataclass(frozen=True, slots=True)
class OtherEnvironments:
    """What the plan of a tick knows of the warehouse's other environments.

    In an environment `production` is production's newest tick. In production `offers` gives the environments' newest
    ticks, the first one to be asked first; it is called where a model has to be built. `reaches` tells whether a
    later version of a table was made from an earlier one.
    """

    env: str = ""
    production: Published | None = None
    offers: Callable[[], Sequence[tuple[str, Published]]] = tuple
    is_ancestor: Callable[[str, int, int], bool] = always

    @property
    def taken(self) -> Collection[str]:
        """List the paths of tables that are production's, seen from an environment."""
        return {state.path for state in self.production.tables.values()} if self.production else set()


ALONE = OtherEnvironments()


def own(published: Published | None, other_environments: OtherEnvironments) -> dict[str, TableState]:
    """List the published tables that a tick may write to."""
    if published is None:
        return {}
    if not other_environments.env:
        return dict(published.tables)
    taken = other_environments.taken
    return {
        n: s for n, s in published.tables.items() if owner(s.path) == other_environments.env and s.path not in taken
    }


def absolute(is_ancestor: Callable[[str, int, int], bool], warehouse: str) -> Callable[[str, int, int], bool]:
    """Have paths looked up below a warehouse."""
    return lambda path, after, until: is_ancestor(f"{warehouse}/{path}", after, until)
