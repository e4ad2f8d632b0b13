"""The newest versions of tables, as seen once at the start of a tick. Shell: Delta files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.delta.table_check import Found


@dataclass(frozen=True, slots=True)
class Heads:
    """Versions by path; None where there is no table.

    They stay valid until the holder of the build lock writes. A commit of another writer that comes later is detected
    by the tick's own commit, which must be the version after, or by the next tick's check.
    """

    seen: Mapping[str, int | None] = field(default_factory=dict)

    def of(self, path: str) -> int | None:
        """Return a table's newest version; read it now if it wasn't seen."""
        return self.seen[path] if path in self.seen else delta_table.head(path)


def seen(warehouse: str, found: Iterable[Found]) -> Heads:
    """Return the newest versions of examined tables, except tables that are about to be repaired."""
    return Heads(
        {
            f"{warehouse}/{each.subject.path}": each.log.head if each.log.commits else None
            for each in found
            if not each.findings and not each.foreign
        }
    )
