"""The list of cases holds: how many there are, and what has broken other systems is among them by name."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.incremental.test_incremental import CASES

NAMES = [str(case.id) for case in CASES]
HOSTILE = [
    "a value flipped by an update, in a CASE with IN",
    "a sum whose remaining arguments are all NULL",
    "a delete of one copy",
    "an update of the group key",
    "the last row of a group leaves",
    "NULL keys",
    "ties at K",
    "a row that expires in the tick that corrects it",
    "delete and reinsert",
    "a stale version after a delete",
    "skipped, repeated and empty ticks",
    "an outage longer than the window",
    "dated in the future",
    "UTC day edge",
    "decimal overflow",
    "OPTIMIZE between ticks",
    "a column added mid-stream",
]


def test_there_are_enough() -> None:
    assert len(NAMES) >= 150


def test_each_has_a_name_of_its_own() -> None:
    assert not [name for name, times in Counter(NAMES).items() if times > 1]


def test_each_has_steps_or_is_refused() -> None:
    """A case that lost its steps would pass whatever the rules say."""
    cases = [case.values[0] for case in CASES]

    assert not [case.place for case in cases if bool(case.steps) == bool(case.refuse)]


@pytest.mark.parametrize("words", HOSTILE)
def test_the_hostile_list_is_among_them(words: str) -> None:
    assert any(words in name for name in NAMES)
