"""The hash of a seed's rows: it finds edited rows, and a process computes it once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sqlrun.plan import fingerprint
from sqlrun.project import Seed
from tests.support.script import FIVE, START, order, site_of_orders

DISHES = Seed("dishes", "seeds/dishes.csv", "", "", (), (), (("d1", "Pizza"), ("d2", None)))
HASH = "922bb4e0bd92"


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Collect what is hashed."""
    found: list[object] = []
    really = fingerprint._hash

    def hash_(value: object) -> str:
        found.append(value)
        return really(value)

    monkeypatch.setattr(fingerprint, "_hash", hash_)
    return found


def test_equal_rows_have_the_hash_that_ledgers_have() -> None:
    """A build of another process, or of an older version, stored the hash; another one would load the seed again."""
    again = replace(DISHES, rows=tuple(tuple(row) for row in list(DISHES.rows)))

    assert fingerprint.of_content(DISHES) == fingerprint.of_content(again) == HASH


def test_each_edit_of_a_row_has_another_hash() -> None:
    first, last = DISHES.rows
    rows = [(first, last), (last, first), (first,), (first, ("d2", "")), (("d1Pizza",), last)]

    assert len({fingerprint.of_content(replace(DISHES, rows=each)) for each in rows}) == len(rows)


def test_rows_are_hashed_once(hashed: list[object]) -> None:
    """A list of all restaurants of a nation takes half a second, in each tick."""
    seed = replace(DISHES, rows=(("d1", "Soup"),))

    assert len({fingerprint.of_content(each) for each in (seed, seed, replace(seed, name="other"))}) == 1
    assert len(hashed) == 1


def test_many_seeds_do_not_share_a_hash(hashed: list[object]) -> None:
    """Rows that are let go may leave their address to others."""
    found = [fingerprint.of_content(replace(DISHES, rows=((str(n), None),))) for n in range(3 * fingerprint.SEEDS)]

    assert len(set(found)) == len(found)


@pytest.mark.slow
def test_a_tick_hashes_no_seed_again(tmp_path: Path, hashed: list[object]) -> None:
    site = site_of_orders(tmp_path)
    site.tick(START)
    assert any(rows in hashed for rows in (seed.rows for seed in site.prepared.project.seeds))
    hashed.clear()
    site.write("1.jsonl", [order("1", START - FIVE, version=2, status="cancelled", restaurant="r9001")])

    assert site.tick(START + FIVE).published
    assert not any(rows in hashed for rows in (seed.rows for seed in site.prepared.project.seeds))
