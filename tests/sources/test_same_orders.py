"""The same orders, hostile values included, have the same rows, types and quarantine from every kind of source."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support import same_orders
from tests.support.orders_in_formats import FORMATS, orders
from tests.support.servers.kafka import Broker

ENGINE = DuckDBEngine()


@pytest.mark.servers
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(1_000, marks=pytest.mark.slow),
        pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.long]),
    ],
)
def test_every_kind_of_source_lands_the_same(tmp_path: Path, broker: Broker, count: int) -> None:
    rows = orders(count)
    landed, reasons = same_orders.from_files(tmp_path / "lines", ENGINE, "lines", rows)
    good = [row for row in rows if same_orders.fits(row)]
    assert landed.count("'id': ") == len(good) and len(reasons) == count - len(good) > 0

    for kind in FORMATS.keys() - {"lines"}:
        found = same_orders.from_files(tmp_path / kind, ENGINE, kind, rows)
        # A difference of texts of 60 MB would take minutes to print.
        assert (found == (landed, reasons)) is True, kind
    assert (same_orders.from_topic(tmp_path / "topic", ENGINE, broker, rows) == (landed, reasons)) is True
    assert (same_orders.from_delta(tmp_path / "delta", ENGINE, good) == landed) is True
