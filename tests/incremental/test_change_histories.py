"""Histories of random change events in random orders, with snapshots between them: spans last and don't overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tests.support.case_files import rendered
from tests.support.memory import START, Memory, Table, View

pytestmark = pytest.mark.slow

COLUMNS = (
    ("id", "int"), ("name", "string"), ("city", "string"), ("op", "string"), ("position", "string"),
    ("snapshot", "string"), ("committed_at", "int"), ("old_id", "int"),
)  # fmt: skip
CHANGES = Table("changes", COLUMNS, ("id", "position"), grows=True, repeats=True)
FORMS = {
    "plain": "",
    "snapshots": ", snapshots=true",
    "moves": ", old_key='old_id'",
    "tracked": ", track='name'",
    "tracked snapshots": ", snapshots=true, track='name'",
}
LATEST = 40
Event = dict[str, Any]
# Name and city of the row that is valid at a time, by key and time.
Found = dict[tuple[int, int], tuple[Any, ...]]


def log(random: Random, *, is_right: bool, moves: bool) -> list[Event]:
    """Return events in the order of the log; `is_right`: no time is before that of an earlier event."""
    found, clock = list[Event](), 1
    for number in range(20):
        clock = min(LATEST, clock + random.choice([0, 0, 1, 2]))
        at = clock if is_right else random.randint(1, LATEST)
        kind = random.random()
        if kind < 0.07:
            found.append(event(number, "t", None, at, None))
        elif kind < 0.2:
            # An incremental snapshot has no last row. Key 6 has no change.
            keys = random.sample(range(1, 7), random.randint(1, 6))
            last = random.choice(["last", "incremental"])
            marks = ["incremental" if last == "incremental" else "true"] * (len(keys) - 1) + [last]
            found += [event(number, "r", key, at, random, mark) for key, mark in zip(keys, marks, strict=True)]
        else:
            op, key = random.choice("ccuuud"), random.randint(1, 5)
            old = random.choice([None, None, random.randint(1, 5)]) if moves and op == "u" else None
            found.append(event(number, op, key, at, random) | {"old_id": None if old == key else old})
    return found


def event(number: int, op: str, key: int | None, at: int, random: Random | None, snapshot: str | None = None) -> Event:
    name, city = (None, None) if random is None else (random.choice(["a", "b", None]), random.choice("xyz"))
    place = f"{number:02}/{'0' if op == 'r' else '2'}"
    values = (key, name, city, op, place, snapshot, at, None)
    return dict(zip((name for name, _ in COLUMNS), values, strict=True))


def batches(events: list[Event], random: Random) -> list[list[Event]]:
    """Return the events for some ticks: most of them late, and some twice."""
    sent = events + random.sample(events, 4)
    random.shuffle(sent)
    sizes = [random.randint(3, 12) for _ in sent]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return [sent[start : start + size] for start, size in zip(starts, sizes, strict=True) if sent[start:]]


def expected(events: list[Event], *, snapshots: bool) -> Found:
    """Return what a table had at each moment after a time, event by event."""
    found: Found = {}
    keys = {one["id"] for one in events} - {None}
    for key in keys:
        own = [one for one in events if one["id"] == key]
        first = min((one["committed_at"] for one in own if one["op"] != "r"), default=LATEST + 1)
        read = [one for one in own if one["op"] == "r" and (snapshots or one["committed_at"] < first)]
        ends = [one for one in events if one["op"] == "t" or (snapshots and one["snapshot"] == "last")]
        steps = read + [one for one in own if one["op"] != "r"]
        steps += [{**one, "op": "d"} for one in ends if not any(s["position"] == one["position"] for s in steps)]
        steps.sort(key=lambda one: str(one["position"]))
        for at in range(LATEST + 1):
            past = [one for one in steps if one["committed_at"] <= at]
            if past and past[-1]["op"] != "d":
                found[key, at] = past[-1]["name"], past[-1]["city"]
    return found


def spans(rows: Iterable[tuple[Any, ...]]) -> Found:
    """Return the rows of a history by key and time: each lasts, and one at most is valid at a time."""
    found: Found = {}
    current = defaultdict[int, int](int)
    for key, name, city, _, begins, ends, is_current in rows:
        assert ends is None or begins < ends, (key, begins, ends)
        assert is_current == (ends is None)
        current[key] += is_current
        for at in range(begins, LATEST + 1 if ends is None else ends):
            assert (key, at) not in found, f"two versions of {key} at {at}"
            found[key, at] = name, city
    assert all(count <= 1 for count in current.values())
    return found


def played(form: str, random: Random, events: list[Event]) -> Found:
    """Land events in some ticks, and compare the history after each with its whole query; return its last spans."""
    query = f"{{{{ history_rows('changes', key='id', columns=['name', 'city']{FORMS[form]}) }}}}"
    memory = Memory([CHANGES], [View("versions", rendered(query), ("id", "position"))])
    for number, batch in enumerate(batches(events, random)):
        rows = [tuple(None if value is None else str(value) for value in one.values()) for one in batch]
        memory.change("changes", [(1, row) for row in rows])
        now = START + timedelta(minutes=number)
        memory.step(now)
        kept, whole = memory.kept("versions"), memory.oracle("versions", now)
        assert kept == whole, f"tick {number}: {kept - whole} too much, {whole - kept} missing"
        assert max(kept.values(), default=1) == 1
        found = spans(kept)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", FORMS)
def test_versions_last_and_never_overlap(form: str, seed: int) -> None:
    """Whatever the clocks say, and in whatever order events come."""
    random = Random(seed)
    played(form, random, log(random, is_right=False, moves=form == "moves"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", [form for form in FORMS if form != "moves"])
def test_a_history_has_the_row_of_each_moment(form: str, seed: int) -> None:
    """With clocks that never go back: by a plain definition of what was valid at a time."""
    random = Random(100 + seed)
    events = log(random, is_right=True, moves=False)

    found, wanted = played(form, random, events), expected(events, snapshots="snapshots" in form)
    if "tracked" in form:  # the city is the newest one of the version
        found, wanted = ({at: row[:1] for at, row in rows.items()} for rows in (found, wanted))
    assert found == wanted
