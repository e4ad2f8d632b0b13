"""Events of other tables, which files and topics of all tables have: left out, and counted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlrun.decoding.change_events import OTHER_TABLE

if TYPE_CHECKING:
    import pyarrow as pa


def without(records: pa.Table) -> pa.Table:
    """Return records with a column `fault`, without the events of other tables."""
    import pyarrow as pa
    import pyarrow.compute as pc

    faults = records.column("fault")
    is_other = pc.fill_null(pc.equal(faults, pa.scalar(OTHER_TABLE, faults.type)), False)
    return records.filter(pc.invert(is_other))
