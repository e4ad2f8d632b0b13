"""A cut takes whole transactions, whatever lags, is sent again or is gone: judged by the transactions themselves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from sqlrun.decoding import transaction_marks
from sqlrun.decoding.change_events import ChangeEvents
from sqlrun.decoding.transaction_marks import Mark
from sqlrun.project import Changes, Column, Place
from sqlrun.sources.transaction_cut import Complete, Cut, Partition, cut
from tests.support.commits import TOPIC, Commits, Lagging, Sent, events, with_crashes

EVENTS = ChangeEvents(
    Changes("debezium", ("id",)),
    (Column("id", "bigint", "It.", Place("a")), Column("amount", "bigint", "It.", Place("a"))),
)


def looked(broker: Lagging, ends: Mapping[str, int], complete: Complete) -> Cut:
    """Return the next cut of what has arrived."""
    marks = list[tuple[int, Mark]]()
    partitions = dict[str, Partition]()
    for (topic, number), log in broker.logs.items():
        if topic == TOPIC:
            found = [transaction_marks.mark(json.dumps(one.value)) for one in log]
            marks = [(n, one) for n, one in enumerate(found) if one is not None and n >= complete.offset]
            continue
        name = f"{topic}/{number}"
        since = ends.get(name, 0)
        one = Partition(topic.removeprefix("shop."), since, len(log), name not in ends)
        for offset, sent in enumerate(log):
            if offset >= since:
                member = transaction_marks.member(EVENTS, json.dumps(sent.value))
                assert member is not None
                one.add(offset, sent.key.encode(), member)
        partitions[name] = one
    return cut(marks, partitions, complete)


def taken(broker: Lagging, ends: Mapping[str, int]) -> set[tuple[str, int]]:
    """Return the events before the ends: table and position. A repeated event counts once."""
    return {
        (one.topic, one.value["source"]["lsn"])
        for (topic, number), log in broker.logs.items()
        if topic != TOPIC
        for one in log[: ends.get(f"{topic}/{number}", 0)]
    }


def whole(log: Sequence[Sent], until: int) -> set[tuple[str, int]]:
    """Return the events of the transactions up to a number."""
    return {(one.topic, one.value["source"]["lsn"]) for one in log if one.topic != TOPIC and one.transaction <= until}


def arrived(broker: Lagging, log: Sequence[Sent]) -> int:
    """Return the number of the last transaction of which, and before which, everything has arrived."""
    sizes = Counter(one.transaction for one in log)
    here: dict[int, set[str]] = {}
    for messages in broker.logs.values():
        for one in messages:
            here.setdefault(one.transaction, set()).add(json.dumps(one.value))
    found = 0
    while sizes[found + 1] and len(here.get(found + 1, ())) == sizes[found + 1]:
        found += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("crashes", [0.0, 0.03, 0.08])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_each_cut_has_whole_transactions_and_all_that_have_arrived(seed: int, partitions: int, crashes: float) -> None:
    random, commits = Random(seed), Commits(seed, partitions)
    log = [one for _ in range(40) for one in commits.transaction()]
    broker = Lagging(list(with_crashes(log, random, crashes)), random)
    ends, complete, cuts = dict[str, int](), Complete(), 0

    while not broker.is_done:
        broker.go_on(30)
        found = looked(broker, ends, complete)
        assert all(found.ends[name] >= end for name, end in ends.items())
        ends, complete = dict(found.ends), found.complete
        number = int(complete.transaction or 0)
        assert taken(broker, ends) == events(log, number)
        # A connector that began again sends marks again, and what they tell of may be on its way.
        assert number == arrived(broker, log) or crashes
        assert bool(found.waiting) == bool(found.reason)
        cuts += 1

    assert cuts > 5
    assert taken(broker, ends) == events(log, commits.number)
    assert looked(broker, ends, complete).waiting == 0
