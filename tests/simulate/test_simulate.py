"""The simulated orders: their shape, their rates, their files, and that they fit the seeds and the oracle."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import astuple, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner

from sqlrun.errors import UsageError
from sqlrun.runtime.clock import parse_duration
from sqlrun.simulate import simulate
from sqlrun.simulate.broken_lines import broken
from sqlrun.simulate.catalogue import MENU_SIZE, dish_catalogue, menu, restaurant_names
from sqlrun.simulate.command import command
from sqlrun.simulate.orders import events, minutes
from sqlrun.simulate.orders_folder import SETTINGS_FILE, OrdersFolder
from sqlrun.simulate.settings import Settings, parse_moment, to_minute
from tests.support import oracle

SEEDS = Path(__file__).parents[2] / "seeds"
END = datetime(2026, 11, 21, 12, 5, tzinfo=timezone.utc)
MINUTE = to_minute(END)
DAY = 24 * 60
CLEAN = Settings(
    repeat_rate=0,
    late_rate=0,
    correction_rate=0,
    cancellation_rate=0,
    broken_rate=0,
    future_rate=0,
    delivered_rate=0,
)
DEFAULT = Settings()


@pytest.fixture(scope="module")
def busy() -> list[tuple[int, str]]:
    """Three days with many orders under the default rates: (minute of arrival, line)."""
    settings = replace(DEFAULT, orders_per_day=7_000)
    return [(minute, line) for minute, lines in minutes(settings, MINUTE - 3 * DAY, MINUTE) for line in lines]


@pytest.fixture(scope="module")
def good(busy) -> list[tuple[int, oracle.OrderEvent]]:
    """The unbroken events of `busy`, repeats left out, each with the minute of its first arrival."""
    first = {}
    for minute, line in busy:
        first.setdefault(line, minute)
    return [(minute, event) for line, minute in first.items() if (event := parsed(line))]


def parsed(line: str) -> oracle.OrderEvent | None:
    try:
        return oracle.parse(line)
    except oracle.Broken:
        return None


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def write(folder: Path, start: datetime, end: datetime, settings=DEFAULT, step=5, history_step=60):
    return list(
        simulate.write_history(OrdersFolder(folder), settings, start, end, step=step, history_step=history_step)
    )


class TestEvents:
    def test_a_line_is_one_compact_object_with_the_agreed_keys(self):
        line = events(CLEAN, MINUTE - 60, MINUTE)[0]

        assert line.endswith("}\n") and line.count("\n") == 1
        event = json.loads(line)
        assert list(event) == [
            "event_id", "order_id", "version", "restaurant_id", "customer_id", "ordered_at", "status", "items",
        ]  # fmt: skip
        assert re.fullmatch(r"e\d{12}-1", event["event_id"])
        assert re.fullmatch(r"o\d{12}", event["order_id"])
        assert re.fullmatch(r"r\d{4}", event["restaurant_id"])
        assert re.fullmatch(r"c\d{6}", event["customer_id"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", event["ordered_at"])
        assert event["status"] == "placed"
        for item in event["items"]:
            assert list(item) == ["dish_id", "quantity", "unit_price"]
            assert isinstance(item["quantity"], int) and re.fullmatch(r"\d+\.\d\d", item["unit_price"])

    @pytest.mark.slow
    def test_without_faults_every_event_is_a_good_placed_order_that_arrives_within_90_seconds(self):
        for minute, lines in minutes(CLEAN, MINUTE - DAY, MINUTE):
            for event in map(oracle.parse, lines):
                arrived = datetime.fromtimestamp(minute * 60, tz=timezone.utc)
                assert timedelta(0) < arrived - event.ordered_at < timedelta(seconds=150)
                assert (event.version, event.status) == (1, "placed")

    @pytest.mark.slow
    def test_order_ids_sort_by_time_and_are_unique(self):
        orders = sorted((e.order_id, e.ordered_at) for e in map(oracle.parse, events(CLEAN, MINUTE - DAY, MINUTE)))

        assert [at for _, at in orders] == sorted(at for _, at in orders)
        assert len({order_id for order_id, _ in orders}) == len(orders)

    @pytest.mark.slow
    def test_the_number_of_orders_is_as_asked(self):
        for per_day in (300, 8_000):
            lines = events(replace(CLEAN, orders_per_day=per_day), MINUTE - 3 * DAY, MINUTE)
            assert len(lines) == pytest.approx(3 * per_day, rel=0.05)

    @pytest.mark.slow
    def test_other_seeds_give_other_orders_from_the_same_menus(self):
        ours, others = (events(replace(DEFAULT, seed=seed), MINUTE - DAY, MINUTE) for seed in (1, 2))

        assert not set(ours) & set(others)
        assert prices(ours) | prices(others) <= {
            (restaurant.restaurant_id, entry.dish_id, entry.price)
            for restaurant in restaurant_names()
            for entry in menu(restaurant.restaurant_id)
        }

    @pytest.mark.slow
    def test_pieces_of_any_size_make_the_whole(self):
        start = MINUTE - 2 * DAY
        whole = events(DEFAULT, start, MINUTE)

        for size in (7, 1441):
            ends = [*range(start + size, MINUTE, size), MINUTE]
            pieces = [events(DEFAULT, a, b) for a, b in list(zip([start, *ends], ends, strict=False))[:4]]
            joined = [line for piece in pieces for line in piece]
            assert joined == whole[: len(joined)] and joined

    @pytest.mark.slow
    def test_two_processes_agree_to_the_byte(self):
        code = (
            "import sys; from sqlrun.simulate.orders import *; "
            "sys.stdout.writelines(events(Settings(), *map(int, sys.argv[1:])))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(MINUTE - DAY), str(MINUTE)], capture_output=True, text=True, check=True
        )

        assert done.stdout == "".join(events(DEFAULT, MINUTE - DAY, MINUTE))


def prices(lines):
    good = filter(None, map(parsed, lines))
    return {(event.restaurant_id, item.dish_id, int(item.unit_price * 100)) for event in good for item in event.items}


@pytest.mark.slow
class TestRates:
    def test_repeats(self, busy):
        counts = Counter(line for _, line in busy)

        assert sum(counts.values()) / len(counts) - 1 == pytest.approx(DEFAULT.repeat_rate, rel=0.15)
        first, later = {}, []
        for minute, line in busy:
            later += [minute - first.setdefault(line, minute)] if line in first else []
            first.setdefault(line, minute)
        assert 0.4 < sum(pause == 0 for pause in later) / len(later) < 0.6 and max(later) <= 61

    def test_late_ones_are_up_to_three_days_late(self, good):
        delays = [minute * 60 - event.ordered_at.timestamp() for minute, event in good if event.version == 1]

        assert sum(delay > 600 for delay in delays) / len(delays) == pytest.approx(DEFAULT.late_rate, rel=0.15)
        assert 71 * 3600 < max(delays) <= 72 * 3600 + 60

    def test_future_dated_orders_are_up_to_two_hours_ahead(self, good):
        ahead = [event.ordered_at.timestamp() - minute * 60 for minute, event in good if event.version == 1]

        share = sum(seconds > 0 for seconds in ahead) / len(ahead)
        assert share == pytest.approx(DEFAULT.future_rate, rel=0.35)
        assert 5000 < max(ahead) <= 7200

    def test_corrections_cancellations_and_deliveries(self, good):
        counts = Counter(event.status for _, event in good)

        for status, rate in {
            "updated": DEFAULT.correction_rate,
            "cancelled": DEFAULT.cancellation_rate,
            "delivered": DEFAULT.delivered_rate,
        }.items():
            assert counts[status] / counts["placed"] == pytest.approx(rate, rel=0.15), status

    def test_broken_lines_are_of_all_kinds(self):
        settings = replace(DEFAULT, broken_rate=0.05, repeat_rate=0)
        lines = events(settings, MINUTE - 4 * DAY, MINUTE)
        reasons = Counter(why_broken(line) for line in lines)

        assert 1 - reasons.pop("good") / len(lines) == pytest.approx(0.05, rel=0.15)
        assert len(reasons) == 5
        for reason, count in reasons.items():
            assert count / reasons.total() == pytest.approx(0.2, abs=0.05), reason

    def test_the_default_share_of_broken_lines_is_small(self, busy, good):
        lines = {line for _, line in busy}

        assert 1 - len(good) / len(lines) == pytest.approx(DEFAULT.broken_rate, rel=0.4)


def why_broken(line: str) -> str:
    try:
        oracle.parse(line)
    except oracle.Broken as reason:
        message = str(reason)
        for words in ("no JSON", "missing", "quantity -", r"ordered_at is (?=1970|9999)"):
            if re.search(words, message):
                return words
        return "wrong type"
    return "good"


@pytest.mark.slow
class TestLifeOfAnOrder:
    def test_versions_count_up_and_keep_time_restaurant_and_customer(self, good):
        orders: dict[str, list[oracle.OrderEvent]] = {}
        for _, event in good:
            orders.setdefault(event.order_id, []).append(event)

        for versions in orders.values():
            assert len({(e.ordered_at, e.restaurant_id, e.customer_id) for e in versions}) == 1
            assert len({e.version for e in versions}) == len(versions)
            assert all((e.status == "placed") == (e.version == 1) for e in versions)

    def test_a_cancellation_is_the_last_version(self, good):
        last = {}
        for _, event in good:
            last[event.order_id] = max(last.get(event.order_id, 0), event.version)

        assert all(event.version == last[event.order_id] for _, event in good if event.status == "cancelled")

    def test_a_correction_changes_the_items_and_what_follows_keeps_the_change(self, good):
        found = {(event.order_id, event.version): event for _, event in good}
        kinds = Counter()
        for (order_id, version), event in found.items():
            before = found.get((order_id, version - 1))
            if before is None or event.status == "placed":
                continue
            if event.status != "updated":
                assert event.items == before.items
                continue
            assert event.items != before.items
            if len(event.items) < len(before.items):
                kinds["removed"] += 1
            else:
                [(old, new)] = [p for p in zip(before.items, event.items, strict=True) if p[0] != p[1]]
                kinds["quantity" if old.dish_id == new.dish_id else "dish"] += 1

        assert set(kinds) == {"removed", "quantity", "dish"} and min(kinds.values()) > 50

    def test_deliveries_come_20_to_50_minutes_after_the_order(self, good):
        pauses = [m - e.ordered_at.timestamp() / 60 for m, e in good if e.status == "delivered"]

        on_time = [pause for pause in pauses if pause < 53]
        assert min(pauses) >= 20 and len(on_time) / len(pauses) > 0.97

    def test_some_corrections_arrive_before_their_original(self, good):
        arrived = {(event.order_id, event.version): minute for minute, event in good}

        assert any(arrived.get((order, version - 1), 0) > minute for (order, version), minute in arrived.items())


@pytest.mark.slow
class TestShape:
    def test_a_day_peaks_at_lunch_and_dinner(self, good):
        hours = Counter(event.ordered_at.hour for _, event in good)

        assert hours[12] > 2 * hours[16] and hours[19] > 2 * hours[16] and hours[16] > hours[4] > 0
        assert max(hours, key=hours.__getitem__) in (18, 19)

    def test_restaurants_follow_zipf(self, good):
        counts = Counter(event.restaurant_id for _, event in good if event.version == 1)

        assert len(counts) == DEFAULT.restaurants
        for rank in (2, 5, 10):
            assert counts["r0001"] / counts[f"r{rank:04d}"] == pytest.approx(rank, rel=0.15)

    def test_an_exponent_of_zero_makes_restaurants_alike(self):
        lines = events(replace(CLEAN, zipf=0.0, restaurants=4, orders_per_day=4_000), MINUTE - DAY, MINUTE)
        counts = Counter(oracle.parse(line).restaurant_id for line in lines)

        assert min(counts.values()) / max(counts.values()) > 0.9

    def test_orders_have_one_to_five_lines(self, good):
        assert {len(event.items) for _, event in good} == {1, 2, 3, 4, 5}

    def test_dishes_of_a_restaurant_follow_its_menu(self, good):
        sold = Counter(item.dish_id for _, e in good if e.restaurant_id == "r0001" for item in e.items)
        dishes = [entry.dish_id for entry in menu("r0001")]

        assert set(sold) == set(dishes) and len(dishes) == MENU_SIZE
        assert sold[dishes[0]] / sold[dishes[3]] == pytest.approx(4, rel=0.2)


@pytest.mark.slow
def test_every_way_of_breaking_breaks_any_line():
    """Whatever `choice` picks, the result is one line that the oracle refuses."""
    for line in events(replace(CLEAN, orders_per_day=300), MINUTE - DAY, MINUTE)[:20]:
        for step in range(200):
            damaged = broken(line.rstrip("\n"), step / 200)
            assert damaged and "\n" not in damaged and why_broken(damaged) != "good"


class TestSeeds:
    """The seed tables and the simulator are one world."""

    def test_the_csv_files_hold_what_the_simulator_sells(self):
        assert rows("dishes") == [(d.dish_id, d.dish_name, d.category) for d in dish_catalogue()]
        assert rows("restaurants") == [astuple(restaurant) for restaurant in restaurant_names()]

    def test_there_are_40_dishes_and_50_restaurants_with_names_of_their_own(self):
        dishes, restaurants = dish_catalogue(), restaurant_names()

        assert len({d.dish_name for d in dishes}) == len({d.dish_id for d in dishes}) == 40
        assert len({r.restaurant_name for r in restaurants}) == len({r.restaurant_id for r in restaurants}) == 50

    def test_the_contracts_name_the_columns_of_the_files(self):
        for name in ("dishes", "restaurants"):
            header = (SEEDS / f"{name}.csv").read_text().splitlines()[0].split(",")
            contract = (SEEDS / f"{name}.yml").read_text()
            assert re.findall(r"- \{name: (\w+), data_type: string", contract) == header
            assert f"grain: [{header[0]}]" in contract

    @pytest.mark.slow
    def test_every_event_names_a_known_dish_and_restaurant(self, good):
        assert {item.dish_id for _, event in good for item in event.items} == {row[0] for row in rows("dishes")}
        assert {event.restaurant_id for _, event in good} == {row[0] for row in rows("restaurants")}

    @pytest.mark.slow
    def test_prices_differ_a_little_between_restaurants(self):
        for dish in dish_catalogue():
            sold = [e.price for r in restaurant_names() for e in menu(r.restaurant_id) if e.dish_id == dish.dish_id]
            assert sold and all(0.85 * dish.usual_price <= price <= 1.16 * dish.usual_price for price in sold)


def rows(seed: str) -> list[tuple[str, ...]]:
    with (SEEDS / f"{seed}.csv").open(encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


@pytest.mark.slow
class TestHistory:
    def test_a_file_holds_what_arrived_in_its_tick_and_sorts_by_time(self, tmp_path):
        written = write(tmp_path, END - timedelta(hours=2), END)

        names = sorted(path.name for path in tmp_path.glob("*.jsonl"))
        assert [file.path.name for file in written] == names and len(names) == 24
        assert names[-1] == "orders-20261121T120500Z.jsonl"
        assert written[-1].path.read_text() == "".join(events(DEFAULT, MINUTE - 5, MINUTE))
        assert [file.lines for file in written] == [file.path.read_text().count("\n") for file in written]

    def test_old_history_comes_in_bigger_files_of_the_same_content(self, tmp_path):
        start = END - timedelta(days=2)
        coarse = write(tmp_path / "coarse", start, END)
        fine = write(tmp_path / "fine", start, END, history_step=5)

        assert content(coarse) == content(fine)
        assert len(fine) == 2 * 288
        assert 25 + 288 <= len(coarse) <= 25 + 300
        assert {file.end.minute for file in coarse[:24]} == {0}

    def test_pieces_make_the_same_files_as_the_whole(self, tmp_path):
        start, middle = END - timedelta(hours=9), END - timedelta(hours=4)
        write(tmp_path / "whole", start, END)
        write(tmp_path / "pieces", start, middle)
        write(tmp_path / "pieces", start, END)

        assert folder_bytes(tmp_path / "whole") == folder_bytes(tmp_path / "pieces")

    def test_an_interrupted_history_leaves_whole_files_only_and_can_be_completed(self, tmp_path):
        start = END - timedelta(hours=3)
        interrupted = simulate.write_history(OrdersFolder(tmp_path / "a"), DEFAULT, start, END, step=5, history_step=60)
        for _ in range(7):
            next(interrupted)
        interrupted.close()
        assert len(list((tmp_path / "a").glob("*.jsonl"))) == 7
        write(tmp_path / "a", start, END)
        write(tmp_path / "b", start, END)

        assert folder_bytes(tmp_path / "a") == folder_bytes(tmp_path / "b")

    def test_a_file_appears_under_its_name_only_when_it_is_whole(self, tmp_path, monkeypatch):
        def fails(settings, start, end):
            yield start + 1, ["half\n"]
            assert [path.name[0] for path in tmp_path.iterdir()] == [".", "."]
            raise OSError("the disk is full")

        monkeypatch.setattr(simulate, "minutes", fails)
        with pytest.raises(OSError, match="disk is full"):
            write(tmp_path, END - timedelta(minutes=5), END)

        assert [path.name for path in tmp_path.iterdir()] == [SETTINGS_FILE]

    def test_a_folder_is_not_continued_with_other_settings(self, tmp_path):
        write(tmp_path, END - timedelta(minutes=10), END - timedelta(minutes=5))

        with pytest.raises(UsageError, match=r"other settings: seed 1 \(now 2\)"):
            write(tmp_path, END - timedelta(minutes=10), END, settings=replace(DEFAULT, seed=2))

    def test_the_oracle_reads_the_folder(self, tmp_path):
        settings = replace(DEFAULT, orders_per_day=1_000)
        files = write(tmp_path, END - timedelta(days=8), END, settings=settings)
        rows = oracle.mart(oracle.read_lines(file.path for file in files), END)

        assert {hours for hours, _ in rows} == set(oracle.WINDOW_HOURS)
        assert len([key for key in rows if key[0] == 168]) == DEFAULT.restaurants
        # 7 days of 1,000 orders less the cancelled, the broken and those that are still to arrive.
        assert sum(row["n_orders"] for (hours, _), row in rows.items() if hours == 168) == pytest.approx(
            6_930, rel=0.02
        )
        assert all(len(row["top_dishes"]) == 3 for (hours, _), row in rows.items() if hours == 168)


def content(files):
    return "".join(file.path.read_text() for file in files)


class Clock:
    """A clock that a test moves on: each look takes a while."""

    def __init__(self, start: datetime, tick: timedelta) -> None:
        self.time, self.tick = start, tick

    def __call__(self) -> datetime:
        self.time += self.tick
        return self.time


class Unhurried(Event):
    """An event that is never waited for."""

    def wait(self, timeout=None):
        return self.is_set()


class TestLive:
    def take(self, folder, count, *, clock, speed=1.0):
        """Run live until `count` files are there; give them with the clock's time at each."""
        stop, files = Unhurried(), []
        for file in simulate.live(OrdersFolder(folder), DEFAULT, step=5, speed=speed, stop=stop, now=clock):
            files.append((file, clock.time))
            if len(files) == count:
                stop.set()
        return files

    @pytest.mark.slow
    def test_it_continues_the_history_without_a_seam(self, tmp_path):
        start = END - timedelta(hours=1)
        write(tmp_path / "live", start, END - timedelta(minutes=30))
        self.take(tmp_path / "live", 6, clock=Clock(END, timedelta(seconds=1)))
        write(tmp_path / "whole", start, END)

        assert folder_bytes(tmp_path / "live") == folder_bytes(tmp_path / "whole")

    def test_no_file_comes_before_its_time(self, tmp_path):
        for file, at in self.take(tmp_path, 4, clock=Clock(END, timedelta(seconds=10))):
            assert file.end <= at <= file.end + timedelta(seconds=20)

    def test_speed_makes_ticks_shorter(self, tmp_path):
        files = self.take(tmp_path, 10, clock=Clock(END, timedelta(seconds=1)), speed=60)

        assert [file.end for file, _ in files][-1] == END + timedelta(minutes=50)
        assert files[-1][1] - files[0][1] == pytest.approx(timedelta(seconds=45), abs=timedelta(seconds=2))

    def test_it_stops_on_request(self, tmp_path):
        stop = Event()
        stop.set()

        assert list(simulate.live(OrdersFolder(tmp_path), DEFAULT, step=5, speed=1, stop=stop, now=lambda: END)) == []


@pytest.mark.slow
class TestCommand:
    def run(self, folder, *arguments, code=0):
        result = CliRunner().invoke(command, ["--out", str(folder), *arguments])
        assert result.exit_code == code, result.output
        return result.output

    def test_a_history_between_two_times(self, tmp_path):
        output = self.run(tmp_path, "--from", "2026-11-21", "--to", "2026-11-21T06:02Z")

        assert "events in 72 files, arrived from 2026-11-21T00:00:00Z to 2026-11-21T06:00:00Z" in output
        again = self.run(tmp_path, "--from", "2026-11-21", "--to", "2026-11-21T06:00Z")
        assert "Nothing to add" in again

    def test_a_history_by_number_of_orders(self, tmp_path):
        for orders, end in [(3000, "2026-11-21"), (300, "2026-11-21T03:00Z"), (1000, "2026-11-21T14:00Z")]:
            folder = tmp_path / str(orders)
            self.run(folder, "--orders", str(orders), "--to", end, "--history-step", "1d")
            text = "".join(path.read_text() for path in folder.glob("*.jsonl"))
            # Late orders of the days before arrive as well, which a short history shows.
            assert text.count('"placed"') == pytest.approx(orders, rel=0.12)

    def test_by_default_it_ends_now_and_fills_the_week(self, tmp_path):
        self.run(tmp_path)

        end = OrdersFolder(tmp_path).end()
        names = sorted(path.name for path in tmp_path.glob("*.jsonl"))
        assert timedelta(0) <= datetime.now(timezone.utc) - end < timedelta(minutes=6)
        assert names[0] < f"orders-{end - timedelta(days=7, hours=22):%Y%m%dT%H%M%SZ}.jsonl"

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--hours", "1", "--orders", "5"], "can't be combined"),
            (["--live", "--to", "2026-11-21"], "can't be combined"),
            (["--step", "7m"], "isn't a valid step"),
            (["--step", "10m", "--history-step", "15m"], "multiple of --step"),
            (["--from", "yesterday"], "isn't a valid time"),
            (["--from", "2026-11-21", "--to", "2026-11-20"], "The history is empty"),
            (["--from", "1999-01-01", "--to", "1999-01-02"], "out of range"),
            (["--late-rate", "2"], "0<=x<=1"),
        ],
    )
    def test_what_makes_no_sense_is_refused_with_code_2(self, tmp_path, arguments, words):
        assert words in self.run(tmp_path, *arguments, code=2)
        assert list(tmp_path.iterdir()) == []


def test_durations_and_moments():
    assert [parse_duration(text) for text in ("1m", "5m", "2h", "1d")] == [1, 5, 120, 1440]
    assert parse_moment("2026-11-21T14:05:00+02:00") == parse_moment("2026-11-21 12:05") == END
    for text in ("", "5", "0m", "-5m", "7m", "2d", "5 m", "٥m"):
        with pytest.raises(UsageError):
            parse_duration(text)


@pytest.mark.parametrize(
    "wrong", [{"late_rate": -0.1}, {"restaurants": 0}, {"seed": -1}, {"orders_per_day": 0}, {"zipf": 9.0}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError):
        replace(DEFAULT, **wrong)
