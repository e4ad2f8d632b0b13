"""Unusual measures are reported and block nothing; a stale source fails as its contract declares."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlrun import project_files
from sqlrun.check import measure
from sqlrun.cli.main import main
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import Place, ProjectError
from sqlrun.events import CheckResult, Measure, TickResult
from sqlrun.operations import doctor
from sqlrun.outcome import Outcome
from sqlrun.pipeline import prepare
from sqlrun.report.findings import About, failures, warnings
from sqlrun.system_tables import measures
from sqlrun.transpile.writer import timestamp
from tests.support import broken
from tests.support.marks import rest_slow
from tests.support.projects import Site
from tests.support.script import FIVE, START

SOURCES = """\
sources:
  - name: shops
    tables:
      - name: lines
        format: json
        path: data/orders
        columns:
          - {name: id, data_type: string, description: The sale.}
          - {name: amount, data_type: int, description: What was paid., unit: EUR}
          - {name: sold_at, data_type: timestamp, description: When., unit: UTC}
"""
SALE = ("id string", "amount int", "sold_at timestamp")
LANDS = "select id, amount, sold_at from {{ source('shops', 'lines') }}\n"
BELOW = "select id, amount, sold_at from {{ ref('stg') }}\n"
FRESH = "    freshness: {warn_after: 30 minutes, error_after: {count: 2, period: hour}}"
WEEK = timedelta(weeks=1)
# 1,000 lines in a tick: noise plays no part.
MANY = 1000


def project(folder: Path, extra: str = "", config: str = "") -> Path:
    (folder / "data" / "orders").mkdir(parents=True)
    about = f"    repeats: true\n    event_time: sold_at\n{extra}\n{config}"
    return broken.write(
        folder,
        {
            "models/_sources.yml": SOURCES,
            "models/stg.sql": LANDS,
            "models/stg.yml": broken.contract("stg", *SALE, extra=about),
            "models/fct.sql": BELOW,
            "models/fct.yml": broken.contract("fct", *SALE, extra="    repeats: true"),
            "profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\nvacuum_every: 0\n",
        },
    )


def lines(count: int, at: datetime, *, nulls: float = 0.0, late: timedelta = timedelta(0)) -> list[str]:
    sold = (at - late - FIVE / 2).isoformat()
    empty = round(count * nulls)
    return [json.dumps({"id": str(n), "amount": None if n < empty else n, "sold_at": sold}) for n in range(count)]


class Played:
    """Ticks whose measures are stored, after six equal weeks."""

    def __init__(self, folder: Path, extra: str = "", config: str = "", env: str = "") -> None:
        self.site = Site(project(folder, extra, config), DuckDBEngine(), env)
        self.number = 0
        self.tick(START, lines(MANY, START))

    def tick(self, at: datetime, some: list[str]) -> TickResult:
        self.number += 1
        if some:
            self.site.write(f"{self.number}.jsonl", some)
        result = self.site.tick(at)
        measures.write(self.site.warehouse, result, at, self.site.env)
        return result

    def weeks(self, published: bool = True) -> None:
        """Store measures of six weeks at the time of the next tick."""
        usual = {"rows": float(MANY), "quarantined": 0.0, "lateness_p95_seconds": 150.0}
        found = [Measure("stg", name, value, "shops.lines", 300.0) for name, value in usual.items()]
        found += [Measure(model, "null_share:amount", 0.1, None, 300.0) for model in ("stg", "fct")]
        for n in range(1, 7):
            past = TickResult(n, START + FIVE - n * WEEK, published, 1.0, (), (), tuple(found))
            measures.write(self.site.warehouse, past, START, self.site.env)


def warned(result: TickResult) -> dict[tuple[str, str], str]:
    return {(c.model, c.type): c.message for c in result.checks if c.status.stored == "warn"}


def checks(result: TickResult, kind: str) -> list[CheckResult]:
    return [check for check in result.checks if check.type == kind]


@pytest.fixture
def played(tmp_path: Path) -> Callable[..., Played]:
    def play(extra: str = "", config: str = "", env: str = "") -> Played:
        return Played(tmp_path, extra, config, env)

    return play


@pytest.mark.slow
def test_a_first_tick_is_measured_without_a_verdict(played: Callable[..., Played]) -> None:
    found = {(m["subject"], m["measure"]): m for m in measures.read(played().site.warehouse)}

    landed = {name: found["stg", name]["value"] for name in ("rows", "quarantined", "files", "rescued")}
    assert landed == {"rows": MANY, "quarantined": 0.0, "files": 1.0, "rescued": 0.0}
    times = [found["stg", f"{name}_seconds"]["value"] for name in ("lateness_median", "lateness_p95", "freshness")]
    assert times == [150.0, 150.0, 150.0]
    assert found["fct", "null_share:amount"]["value"] == 0.0
    assert {m["source"] for m in found.values()} == {"shops.lines", None}
    assert not any(m["unusual"] or m["high"] for m in found.values())
    assert found["stg", "rows"]["interval_seconds"] is None
    assert found["stg", "rows"]["detail"] == "not enough history"


@pytest.mark.slow
def test_a_usual_tick_passes_and_reports_the_expected_range(played: Callable[..., Played]) -> None:
    play = played()
    play.weeks()

    result = play.tick(START + FIVE, lines(MANY, START + FIVE, nulls=0.1))

    assert warned(result) == {}
    assert {(c.model, c.type) for c in result.checks if c.status == "pass"} == {
        ("stg", "volume"), ("stg", "quarantined"), ("stg", "lateness"), ("stg", "null_share"), ("fct", "null_share"),
    }  # fmt: skip
    band = next(m for m in result.measures if m.measure == "rows")
    assert (band.low, band.value, band.high) == (750.0, MANY, pytest.approx(1333.3, abs=0.1))
    assert (band.source, band.interval_seconds, band.detail) == (
        "shops.lines", 300.0, "Tuesdays 12:00 to 13:00 UTC, 6 weeks",
    )  # fmt: skip


@pytest.mark.slow
def test_unusual_volume_nulls_and_lateness_are_reported_and_published(played: Callable[..., Played]) -> None:
    play = played()
    play.weeks()

    at = START + FIVE
    result = play.tick(at, lines(MANY // 2, at, nulls=0.5, late=timedelta(hours=3)))

    assert result.published
    like = "(Tuesdays 12:00 to 13:00 UTC, 6 weeks)"
    assert warned(result) == {
        ("stg", "volume"): f"500 rows, 750 to 1,334 expected {like}",
        ("stg", "lateness"): f"5 in 100 lines came 3 h 2 min late or more, at most 3 min 30 s expected {like}",
        ("stg", "null_share"): f"50 % NULL, 4.6 % to 15.4 % expected {like}",
        ("fct", "null_share"): f"50 % NULL, 4.6 % to 15.4 % expected {like}",
    }
    assert checks(result, "null_share")[0].columns == ("amount",)
    assert checks(result, "volume")[0].place.file == "models/_sources.yml"
    kept = {m["measure"] for m in measures.read(play.site.warehouse) if m["unusual"]}
    assert kept == {"rows", "lateness_p95_seconds", "null_share:amount"}


@pytest.mark.slow
def test_a_source_that_is_silent_has_too_little_volume(played: Callable[..., Played]) -> None:
    play = played()
    play.weeks()

    assert warned(play.tick(START + FIVE, [])) == {
        ("stg", "volume"): "0 rows, 750 to 1,334 expected (Tuesdays 12:00 to 13:00 UTC, 6 weeks)"
    }


@pytest.mark.slow
def test_anomalies_can_be_turned_off_while_measures_are_stored(played: Callable[..., Played]) -> None:
    play = played(config="    config: {anomalies: false}")
    play.weeks()

    result = play.tick(START + FIVE, lines(MANY // 2, START + FIVE, nulls=0.5))

    assert set(warned(result)) == {("fct", "null_share")}
    assert next(m.value for m in result.measures if m.measure == "rows") == MANY // 2


@pytest.mark.slow
def test_unpublished_ticks_are_not_history(played: Callable[..., Played]) -> None:
    play = played()
    play.weeks(published=False)

    assert not warned(play.tick(START + FIVE, lines(MANY // 2, START + FIVE)))


@pytest.mark.slow
def test_an_environment_has_its_own_history(played: Callable[..., Played]) -> None:
    play = played(env="dev")
    production = TickResult(1, START, True, 1.0, (), (), (Measure("stg", "rows", 9.0, None, 300.0),))
    measures.write(play.site.warehouse, production, START)
    play.weeks()

    assert ("stg", "volume") in warned(play.tick(START + FIVE, []))
    assert len(measures.read(play.site.warehouse)) == 1


@pytest.mark.slow
def test_an_unreadable_history_is_reported_and_blocks_nothing(
    played: Callable[..., Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    play = played()
    folder = Path(measures.path_of(play.site.warehouse))
    for file in folder.rglob("*.parquet"):
        file.write_text("torn")
    # A build begins by moving corrupt files aside.
    monkeypatch.setattr(doctor, "at_start", lambda *_: None)

    result = play.site.tick(START + FIVE)

    assert result.published
    (said,) = warned(result).values()
    assert said.startswith(f"not compared with earlier ticks: the measures at {folder} can't be read")
    assert not any(m.unusual for m in result.measures)


# ---------------------------------------------------------------------------------------- freshness


@pytest.mark.slow
def test_a_stale_source_warns_then_blocks_publishing_then_recovers(played: Callable[..., Played]) -> None:
    play = played(FRESH)
    fresh, old, stale, healed = (START + minutes * FIVE / 5 for minutes in (5, 40, 130, 135))

    results = [play.tick(at, lines(1, at) if at == healed else []) for at in (fresh, old, stale, healed)]

    said = [checks(result, "freshness")[0] for result in results]
    assert [(check.status, check.severity) for check in said] == [
        ("pass", "critical"), ("warn", "warning"), ("fail", "critical"), ("pass", "critical"),
    ]  # fmt: skip
    assert [result.published for result in results] == [True, True, False, True]
    assert len({check.check_id for check in said}) == 1
    limits = "(warning after 30 min, error after 2 h)"
    assert said[1].message == f"the newest event is from 2026-03-10 11:57 UTC, 42 min 30 s before the tick {limits}"
    assert str(said[2].place) == "models/stg.yml:6:5"
    assert [node.status for node in results[2].nodes if node.name == "fct"] == ["skipped"]


@pytest.mark.slow
def test_an_event_of_the_future_does_not_hide_that_a_source_is_stale(played: Callable[..., Played]) -> None:
    play = played(FRESH)
    late, future = START + timedelta(hours=3), START + timedelta(days=9)

    (said,) = checks(play.tick(late, lines(1, future)), "freshness")

    assert said.status == "fail" and "3 h 2 min before the tick" in said.message


@pytest.mark.slow
def test_a_source_without_any_event_is_stale(tmp_path: Path) -> None:
    site = Site(project(tmp_path, FRESH), DuckDBEngine())

    result = site.tick(START)

    (said,) = checks(result, "freshness")
    assert said.status == "fail" and said.message.startswith("no event up to the time of the tick")
    assert next(m.value for m in result.measures if m.measure == "freshness_seconds") is None


@pytest.mark.slow
@pytest.mark.parametrize(("remembered", "again"), [(10_000, 0), (1, 3)])
def test_a_table_that_grew_is_not_searched_again(
    remembered: int, again: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each tick the age is that of the newest event up to it, as in all landed rows.

    The table is searched again only if more future events arrived than are cached.
    """
    monkeypatch.setattr(measure, "MOST_LATER", remembered)
    searched: list[datetime] = []
    real = measure._search_newest
    site = Site(project(tmp_path, FRESH), DuckDBEngine())
    monkeypatch.setattr(measure, "_search_newest", lambda p, *rest: searched.append(p.plan.as_of) or real(p, *rest))
    events = list[datetime]()
    # Minutes from the tick to its events: late, future, none at all, all quarantined.
    played = ((-3, -1), (-9, 12, 17), (-2,), (), (None,), (-30, 40), (), (-1, 5), (-40,), (3,), ())
    times = [START + number * FIVE for number in range(len(played))]
    for at, dated in zip(times, played, strict=True):
        found = [at + timedelta(minutes=minutes) for minutes in dated if minutes is not None]
        some = [line for each in found for line in lines(1, each + FIVE / 2)] + ["no json"] * dated.count(None)
        if some:
            site.write(f"{at:%H%M}.jsonl", some)
        events += found
        result = site.tick(at)
        age = next(m.value for m in result.measures if m.measure == "freshness_seconds")

        assert age == (at - max(each for each in events if each <= at)).total_seconds()

    assert searched[0] == START and len(searched) == 1 + again


@pytest.mark.slow
def test_events_older_than_a_day_are_found_too(played: Callable[..., Played]) -> None:
    (said,) = checks(played(FRESH).tick(START + timedelta(days=3), []), "freshness")

    assert "3 d 2 min before the tick" in said.message


# ---------------------------------------------------------------------------------------- commands


@pytest.mark.slow
def test_measures_survive_maintenance_and_are_unpublished_by_a_rollback(tmp_path: Path) -> None:
    root = project(tmp_path)

    def run(*words: str) -> str:
        done = CliRunner().invoke(main, ["--project-dir", str(root), *words, "--profile", "local"])
        assert done.exit_code == 0, done.output
        return done.output

    for n in range(3):
        (root / "data" / "orders" / f"{n}.jsonl").write_text("\n".join(lines(9, START + n * FIVE)) + "\n")
        run("build", "--skip-tests", "--as-of", (START + n * FIVE).isoformat())
    found = [m for m in measures.read(str(root / "warehouse")) if m["measure"] == "rows"]
    assert [(m["tick"], m["value"], m["interval_seconds"]) for m in found] == [(1, 9, None), (2, 9, 300), (3, 9, 300)]

    run("rollback", "--to", "1")
    run("build", "--skip-tests", "--as-of", (START + 3 * FIVE).isoformat())
    run("vacuum", "--keep-ticks", "1")
    # Comparisons need weeks of measures, however few ticks are retained. Ticks after tick 1 were measured again.
    found = [m for m in measures.read(str(root / "warehouse")) if m["measure"] == "rows"]
    assert [(m["tick"], m["published"], m["value"], m["interval_seconds"]) for m in found] == [
        (1, True, 9, None), (2, False, 9, 300), (3, False, 9, 300), (5, True, 18, 900),
    ]  # fmt: skip
    assert "All are intact." in run("doctor")

    place = Path(measures.path_of(str(root / "warehouse")))
    place.rename(root / "elsewhere")
    place.write_text("not a folder")
    said = run("build", "--skip-tests", "--as-of", "2026-03-10T13:00")
    assert "the measures of tick" in said and "can't be written" in said


# ---------------------------------------------------------------------------------------- settings


def problems(root: Path) -> list[str]:
    try:
        project_files.project(root)
    except ProjectError as error:
        return [f"{problem.code} {problem.place} {problem.message}" for problem in error.problems]
    return []


def test_the_project_a_folder_or_a_query_disables_anomalies(tmp_path: Path) -> None:
    root = project(tmp_path)
    settings = root / "pyproject.toml"
    assert prepare(root).workspace.model("stg").query.rendered.config.anomalies
    settings.write_text(broken.SETTINGS + "[tool.sqlrun.models]\nanomalies = false\n")
    assert not prepare(root).workspace.model("stg").query.rendered.config.anomalies
    (root / "models" / "stg.sql").write_text("{{ config(anomalies=true) }}\n" + LANDS)
    assert prepare(root).workspace.model("stg").query.rendered.config.anomalies
    assert not prepare(root).workspace.model("fct").query.rendered.config.anomalies

    settings.write_text(broken.SETTINGS + '[tool.sqlrun.models]\nanomalies = "no"\n')
    assert problems(root) == ["SR103 pyproject.toml:4:1 `anomalies` must be true or false, not `no`"]


def test_turning_it_off_and_freshness_rebuild_nothing(tmp_path: Path) -> None:
    """Nor does the evaluator of its checks affect a table."""
    one = prepare(project(tmp_path / "one")).workspace.prints
    off = "    config: {anomalies: false, checks: great_expectations}"
    two = prepare(project(tmp_path / "two", FRESH, off)).workspace

    assert one == two.prints
    assert two.model("stg").query.rendered.config.checks == "great_expectations"


def test_the_evaluator_is_one_of_two(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "pyproject.toml").write_text(broken.SETTINGS + '[tool.sqlrun.models]\nchecks = "pandas"\n')
    assert problems(root) == ["SR110 pyproject.toml:4:1 invalid `checks`: `pandas`"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "SR104 models/stg.yml:6:5 `freshness` has neither `warn_after` nor `error_after`"),
        ("soon", "SR103 models/stg.yml:6:16 `freshness` must be a mapping"),
        ("{error_after: 0 hours}", "SR110 models/stg.yml:6:30 invalid `error_after`: `0 hours`"),
        ("{error_after: {count: 2}}", "SR104 models/stg.yml:6:30 `error_after` lacks `period`"),
        (
            "{warn_after: 2 hours, error_after: 90 minutes}",
            "SR110 models/stg.yml:6:29 `warn_after` is later than `error_after`: `2 hours`",
        ),
    ],
)
def test_an_invalid_freshness_is_reported(tmp_path: Path, text: str, said: str) -> None:
    assert said in problems(project(tmp_path, f"    freshness: {text}"))


def test_the_report_has_advice_for_measures() -> None:
    place = Place("models/stg.yml", 6, 5)
    stale = CheckResult("stg", "freshness", ("at",), "critical", Outcome.FAIL, 1, 0, (), 0.0, "old", "", place)
    unusual = replace(stale, type="volume", severity="warning", status=Outcome.WARN, message="11 rows")
    result = TickResult(2, START, False, 1.0, (), (stale, unusual, replace(stale, status=Outcome.WARN)))
    about = About("p", "duckdb", "local", "", 1, START)

    assert "`error_after`" in failures(result, about)[0].advice
    advice = [finding.advice for finding in warnings(result)]
    assert "`anomalies: false`" in advice[0] and "`error_after`" in advice[1]


VOLUME = """expectations:
  - type: expect_landed_row_count_against_past_weeks_to_be_between
    kwargs: {min_ratio: 0.6, max_ratio: 1.4}
    severity: SEVERITY
"""


def held_to(play: Played, severity: str) -> Played:
    """Write a suite that compares the volume with last week's, and read the project again."""
    file = play.site.root / "expectations" / "stg.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(VOLUME.replace("SEVERITY", severity))
    play.site = Site(play.site.root, play.site.engine)
    return play


@pytest.mark.parametrize("count", rest_slow([0, MANY // 2, MANY * 2], fast=1))
@pytest.mark.slow
def test_a_volume_outside_of_its_share_fails_as_declared(played: Callable[..., Played], count: int) -> None:
    play = held_to(played(), "critical")
    play.weeks()

    result = play.tick(START + FIVE, lines(count, START + FIVE))

    (found,) = checks(result, "expect_landed_row_count_against_past_weeks_to_be_between")
    assert (found.status, found.severity, found.evaluated, result.published) == ("fail", "critical", count, False)
    assert "of the usual 1,000" in found.message and str(found.place) == "expectations/stg.yml:2:5"


@pytest.mark.slow
def test_a_volume_within_its_share_passes_and_a_warning_stops_no_tick(played: Callable[..., Played]) -> None:
    play = held_to(played(), "warning")
    play.weeks()

    good, bad = play.tick(START + FIVE, lines(MANY * 7 // 10, START + FIVE)), None
    for n in range(1, 7):
        past = TickResult(
            n, START + 2 * FIVE - n * WEEK, True, 1.0, (), (), (Measure("stg", "rows", 1e4, None, 300.0),)
        )
        measures.write(play.site.warehouse, past, START, play.site.env)
    bad = play.tick(START + 2 * FIVE, lines(MANY // 2, START + 2 * FIVE))

    kind = "expect_landed_row_count_against_past_weeks_to_be_between"
    assert [(c.status, r.published) for r in (good, bad) for c in checks(r, kind)] == [("pass", True), ("warn", True)]


@pytest.mark.slow
def test_a_volume_without_history_is_a_note_and_no_pass(played: Callable[..., Played]) -> None:
    """In its first ticks, and if last week's tick was not published."""
    play = held_to(played(), "critical")
    play.weeks(published=False)

    result = play.tick(START + FIVE, lines(1, START + FIVE))

    (found,) = checks(result, "expect_landed_row_count_against_past_weeks_to_be_between")
    assert (found.status, found.evaluated, result.published) == ("unjudged", 0, True)
    assert found.message.startswith("not evaluated: no history yet (")


@pytest.mark.slow
def test_an_unreadable_history_blocks_a_tick_with_declared_volume(
    played: Callable[..., Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "at_start", lambda *_: None)
    play = held_to(played(), "critical")
    play.weeks()
    for file in Path(measures.path_of(play.site.warehouse)).rglob("*.parquet"):
        file.write_bytes(b"torn")

    result = play.site.tick(START + FIVE)

    (found,) = checks(result, "expect_landed_row_count_against_past_weeks_to_be_between")
    assert (found.status, result.published) == ("error", False)
    assert "the history can't be read" in found.message


def test_a_time_before_the_year_1000_has_four_digits() -> None:
    """The newest of a tick's events is a bound in SQL, even if its year is wrong."""
    moment = datetime(5, 1, 2, 3, tzinfo=timezone.utc)

    assert timestamp(moment, "duckdb") == "timestamptz '0005-01-02 03:00:00.000000+00'"
    assert timestamp(moment, "spark") == "timestamp '0005-01-02 03:00:00.000000Z'"
