"""A build's ticks: one, one every few minutes, or a replay of history. Shell: the clock, signals, the engine."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.engines.factory import catalog_of, engine_of
from sqlrun.errors import EngineError, LockedError, SqlrunError, UsageError
from sqlrun.events import Event, TickResult
from sqlrun.land import land
from sqlrun.load import unread_files
from sqlrun.maintain.tick_context import TickContext
from sqlrun.operations import doctor, maintenance, outcome_lines
from sqlrun.pipeline import Prepared
from sqlrun.plan import query_texts, sampling
from sqlrun.project import Profile
from sqlrun.publish import current_folders, environments, published_queries, warehouse_format
from sqlrun.publish.catalog_tables import CatalogTables
from sqlrun.publish.ledger import Ledger
from sqlrun.report import evidence as check_evidence
from sqlrun.report import log_lines, report_files
from sqlrun.report.build_display import BuildDisplay
from sqlrun.report.findings import About
from sqlrun.report.log_lines import Line
from sqlrun.report.run_results_file import Artifacts
from sqlrun.run import alert_sender
from sqlrun.run.tick import Request, tick
from sqlrun.runtime import priority, stopping
from sqlrun.runtime.clock import floor, parse_time
from sqlrun.storage import lock
from sqlrun.system_tables import check_results, completeness, measures, receipts

STOPPED = "Stopped. This tick is not published; the next build rolls it back."
# With --every: how long before a tick its files start to land. With shorter steps they land in the tick itself.
AHEAD = timedelta(seconds=20)
LEAST_STEP = timedelta(minutes=1)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def step_of(text: str) -> timedelta:
    """Return a step such as 5m, 30s, 1h as a duration.

    >>> step_of("5m")
    datetime.timedelta(seconds=300)
    """
    found = re.fullmatch(r"(\d+)([smhd])", text.strip())
    if not found or not int(found[1]):
        raise UsageError(f"`{text}` isn't a valid step. Write 30s, 5m, 1h or 1d")
    return timedelta(seconds=int(found[1]) * UNITS[found[2]])


def time_of(text: str) -> datetime:
    """Return a time from the command line. Raises: UsageError."""
    try:
        return parse_time(text)
    except ValueError:
        raise UsageError(f"`{text}` isn't a valid time. Write 2026-01-31T12:05 (UTC)") from None


@dataclass(frozen=True, slots=True)
class Times:
    """Times of a build's ticks: one at `as_of`, a `replay` from one time to another, or one now.

    `is_endless`: one at each multiple of `step`, from now on. `step` also divides a replay, and rounds "now".
    """

    step: timedelta
    as_of: datetime | None = None
    replay: tuple[datetime, datetime] | None = None
    is_endless: bool = False


def times_of(options: dict[str, Any]) -> Times:
    """Return the times from the command line, parsed once before anything runs.

    Raises: UsageError.
    """
    if sum(1 for key in ("as_of", "every", "replay") if options[key]) > 1:
        raise UsageError("--as-of, --every and --replay can't be combined")
    step = step_of(options["every"] or options["step"])
    if options["as_of"]:
        return Times(step, as_of=time_of(options["as_of"]))
    if options["replay"]:
        first, last = map(time_of, options["replay"])
        if last < first:
            raise UsageError("--replay goes forward: FROM must be before TO")
        return Times(step, replay=(first, last))
    return Times(step, is_endless=bool(options["every"]))


class Session:
    """A build: one lock, one engine, one or many ticks."""

    def __init__(
        self,
        root: Path,
        prepared: Prepared,
        target: Profile,
        names: tuple[str, ...],
        display: BuildDisplay,
        clock: Callable[[], datetime],
        receipts: bool,
    ) -> None:
        self.root, self.prepared, self.target, self.names = root, prepared, target, names
        self.display, self.console, self.clock, self.receipts = display, display.console, clock, receipts
        # The project before a sample limits its sources, which may be another one in each tick.
        self._whole = prepared
        self._stop = threading.Event()
        # DuckDB reads the few rows to check faster than a Spark job.
        self._reader = DuckDBEngine() if target.engine == "spark" else None
        self._progress: TickContext | None = None
        self._catalog: CatalogTables | None = None

    def run(self, options: dict[str, Any], times: Times) -> int:
        """Run ticks at the given times; return the exit code of the last failed tick, else 0."""
        priority.apply_nice_to_session()
        warehouse_format.require(self.target.warehouse, self.prepared.project.name)
        # The lock creates the warehouse's folder, or reports why it can't.
        engine = engine_of(self.target, self.prepared.spark_only_models)
        catalog = catalog_of(self.target, engine)
        self._catalog = CatalogTables(catalog) if catalog is not None else None
        ledger = Ledger(self.target.warehouse, self.prepared.project.name, options["env"])
        code = 0
        wait = self.console.print if options["wait"] else None
        with lock.hold(self.target.warehouse, self.clock(), wait) as holder, self._signals():
            try:
                refresh = options["full_refresh"]
                # Before the first tick's time is read from the ledger; each tick examines more.
                doctor.heal_books(ledger, self.clock(), self._say)
                current_folders.follow(ledger, ledger.read().published, self._say)
                for as_of in self._times(times, ledger):
                    result = self._tick(engine, ledger, as_of, refresh, holder, options)
                    if result.published:
                        self._vacuum(ledger, result.tick, holder)
                    refresh = False
                    code = 0 if result.published else 1
                    if code and not times.is_endless:
                        break
            except KeyboardInterrupt:
                self.console.print(STOPPED, "error")
                return stopping.INTERRUPTED
            finally:
                engine.close()
        return code

    def _times(self, times: Times, ledger: Ledger) -> Iterator[datetime]:
        """Yield the ticks' times; in an endless build, wait for each."""
        step = times.step
        if times.as_of is not None:
            yield times.as_of
        elif times.replay is not None:
            first, last = times.replay
            while first <= last and not self._stop.is_set():
                yield first
                first += step
        else:
            waited = False
            yield self._now(step, ledger)
            while times.is_endless and not self._stop.is_set():
                following = floor(self.clock(), step) + step
                if not waited or self.display.detail == "verbose":
                    self.console.print(f"Next tick at {following:%H:%M:%S} UTC; Ctrl-C stops.")
                waited = True
                if step >= LEAST_STEP:
                    if self._waits_until(following - AHEAD):
                        return
                    self._land_ahead()
                if self._waits_until(following):
                    return
                yield self._now(step, ledger)

    def _waits_until(self, time: datetime) -> bool:
        """Wait until a time; return whether the build has to stop."""
        return self._stop.wait(max(0.0, (time - self.clock()).total_seconds()))

    def _land_ahead(self) -> None:
        """Land the files that arrived since the last tick, so that the next one doesn't wait for it."""
        if self._progress is not None:
            # The next tick meets the same error and reports it.
            with suppress(EngineError, OSError):
                land.ahead(self._progress, self.clock())

    def _now(self, step: timedelta, ledger: Ledger) -> datetime:
        """Return the clock's time, rounded down, but never before the published tick (a clock may go back)."""
        now = floor(self.clock(), step)
        found = (ledger.read().published, environments.other_environments(ledger).production)
        newest = max((tick.as_of for tick in found if tick), default=now)
        # `now` may be before `newest` only because this build rounds to a longer step, so the test takes the clock.
        if newest > self.clock():
            self._say_once(
                f"The clock says {now:%Y-%m-%d %H:%M}, the published tick {newest:%Y-%m-%d %H:%M}: ticks keep "
                "that time until the clock reaches it. If the tick's time was wrong, run `sqlrun rollback`.",
                "clock",
            )
        return max(now, newest)

    def _tick(
        self, engine: Any, ledger: Ledger, as_of: datetime, refresh: bool, holder: str, options: dict[str, Any]
    ) -> TickResult:
        args = {name: value for name, value in options.items() if value not in (None, (), False)}
        self.prepared = self._sampled(ledger, as_of, options.get("sample"))
        artifacts = Artifacts(self.root / "target", self.prepared.project.name, self.clock, args)
        about, started = self._about(ledger), self.clock()
        report_files.clear(self.root / "target")

        def emit(event: Event) -> None:
            self.display.emit(event)
            artifacts.emit(event)

        request = self._request(as_of, refresh, holder, options)
        self._progress = None
        self.display.begin_tick()
        for text in unread_files.messages(self.root, self.prepared.project.sources):
            self._say_once(text)
        try:
            result = tick(self.prepared.workspace, engine, ledger, request, emit, self._reader)
        except (SqlrunError, KeyboardInterrupt) as error:
            self.display.end_broken_tick()
            broken = TickResult(0, as_of, False, (self.clock() - started).total_seconds(), ())
            # A build that lost its lock writes nothing: the report belongs to the other build.
            if not isinstance(error, LockedError):
                about = replace(about, problem=str(error) or "The build was interrupted.")
                self._report(broken, about)
                if isinstance(error, SqlrunError) and error.exit_code == 1:
                    self._alert(broken, about, request.assert_lock_held)
            if isinstance(error, KeyboardInterrupt) or not options["every"] or error.exit_code != 1:
                raise
            self.console.problem(error)
            return broken
        artifacts.finish(result)
        names_report = self.display.end_tick(result, about.before)
        if self.receipts:
            self.console.lines(log_lines.receipts_table(result))
        self._report(result, about, names_report)
        self._write_down(result, ledger, request.assert_lock_held)
        self._alert(result, about, request.assert_lock_held)
        return result

    def _request(self, as_of: datetime, refresh: bool, holder: str, options: dict[str, Any]) -> Request:
        """Return the parameters of a tick."""
        target = self.target
        return Request(
            warehouse=target.warehouse,
            as_of=as_of,
            selected=self.names,
            refresh=refresh,
            threads=target.threads,
            holder=holder,
            clock=self.clock,
            accept_lost=options["accept_lost_files"],
            accept_unexplained=options.get("accept_unexplained_lines", False),
            connections=target.connections,
            assert_lock_held=partial(self._assert_lock_held, holder),
            say=self._say,
            check_timeout=target.check_timeout,
            fail_fast=options.get("fail_fast", False),
            defer=options.get("defer", False),
            published=self._keep,
            current_folders=target.current_folders,
            catalog=self._catalog,
            own_commits=target.delta_writer == "sqlrun",
        )

    def _sampled(self, ledger: Ledger, as_of: datetime, length: str | None) -> Prepared:
        """Return the project whose landing models have the events of a tick's sample alone, if there is one."""
        if length is None:
            return self._whole
        sample = sampling.chosen(sampling.minutes_of(length, ledger.env), as_of, ledger.read().published)
        return replace(self._whole, workspace=sampling.applied(self._whole.workspace, sample))

    def _keep(self, context: TickContext) -> None:
        """Remember the context of the last published tick."""
        self._progress = context

    def _alert(self, result: TickResult, about: About, assert_lock_held: Callable[[], None]) -> None:
        """Send the tick's alerts once; a failure to send doesn't change the tick."""
        tables = tuple(model.name for model in self.prepared.workspace.tables) + tuple(
            s.name for s in self.prepared.project.seeds
        )
        try:
            assert_lock_held()
            alert_sender.send(self.target.alerts, self.root, self.target.warehouse, result, about, tables, self._say)
        except LockedError:
            self._say("No alert was sent for this tick: another build has taken over the warehouse.")
        except KeyboardInterrupt:
            self._say("The alert was interrupted. sqlrun sends it after the next tick.")

    def _write_down(self, result: TickResult, ledger: Ledger, assert_lock_held: Callable[[], None]) -> None:
        """Write run stats, check results, measures and queries of new tables; a failure doesn't change the tick."""
        warehouse, env, now = self.target.warehouse, ledger.env, self.clock()
        writes: list[Callable[[], None]] = [
            partial(receipts.write, warehouse, result, self._writer, now, env),
            partial(check_results.write, warehouse, result, now, env),
            partial(measures.write, warehouse, result, now, env),
            partial(completeness.write, warehouse, result, now, env),
        ]
        if self._progress is not None:  # the tick was published
            texts = query_texts.built(self.prepared.workspace, self._progress.plan)
            writes.append(partial(published_queries.write, warehouse, texts))

        def carry_out(write: Callable[[], None]) -> None:
            assert_lock_held()
            write()

        with ThreadPoolExecutor(len(writes), "sqlrun-book") as threads:
            for done in [threads.submit(carry_out, write) for write in writes]:
                try:
                    done.result()
                except EngineError as error:
                    self.console.problem(error)

    @property
    def _writer(self) -> str:
        """Return the engine's name for tables without a choice of their own: with `auto` that is DuckDB."""
        return "duckdb" if self.target.engine == "auto" else self.target.engine

    def _about(self, ledger: Ledger) -> About:
        """Return what a report says about a tick in addition to its results; read before the tick starts."""
        before, graph, project = ledger.read().published, self.prepared.graph, self.prepared.project
        options = f" --profile {quote(self.target.name)}" if self.target.name != project.profile else ""
        options += f" --env {quote(ledger.env)}" if ledger.env else ""
        sample = self.prepared.workspace.sample
        return About(
            project=project.name,
            engine=self.target.engine,
            profile=self.target.name,
            env=ledger.env,
            sample=str(sample) if sample else "",
            before=before.tick if before else 0,
            at=self.clock(),
            options=options,
            tables=tuple(model.name for model in self.prepared.workspace.tables if model.name in self.names),
            parents=graph.parents,
        )

    def _report(self, result: TickResult, about: About, names_it: bool = True) -> None:
        """Write the report, and print its path unless it has no news; a full disk doesn't fail the tick."""
        try:
            rules = check_evidence.declared(self.prepared, {check.model for check in result.checks})
            about = replace(about, rules={key: rule.kwargs for key, (_, rule) in rules.items()})
            evidence = check_evidence.gather(self.prepared, self.target, about.env, result, rules)
            about = replace(about, evidence=evidence)
        except Exception as error:  # of any library: it is reported, and the tick keeps its run stats
            self._say(f"The report lacks the history of checks: {error}")
        try:
            page = report_files.write(self.root / "target", result, replace(about, at=self.clock()))
        except OSError as error:
            self._say(f"The report can't be written: {error}")
        else:
            if names_it:
                self.console.print(f"Report: {page.relative_to(self.root)}", "plain")

    def _assert_lock_held(self, holder: str) -> None:
        """Allow a step to start, unless the build stops at once or another one has taken over the warehouse."""
        if stopping.is_stopping():
            raise KeyboardInterrupt
        lock.require(self.target.warehouse, holder)

    def _say(self, text: str) -> None:
        self.console.print(text, "warning")

    def _say_once(self, text: str, about: str = "") -> None:
        """Print a warning that applies to every tick once per run, unless every step is printed."""
        if self.display.is_first(about or text):
            self._say(text)

    def _vacuum(self, ledger: Ledger, tick: int, holder: str) -> None:
        """Vacuum the tables when it is due; a failure doesn't affect the tick, which is published already."""
        keep = self.target.keep_ticks
        if not maintenance.due(ledger, tick, self.target.vacuum_every):
            return
        try:
            done = maintenance.vacuum_held(ledger, keep, self.clock(), holder, lambda _: None)
        except LockedError:
            raise
        except (SqlrunError, OSError) as error:
            self.console.print(f"The vacuum failed; the build tries again after the next tick: {error}", "warning")
        else:
            self.console.lines([Line(text) for text in outcome_lines.vacuumed(done, keep)])

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Make SIGINT, SIGTERM and SIGHUP end the build after the current tick, or when the grace period is over.

        The next build rolls back what an interrupted tick has written.
        """
        grace = self.target.stop_grace

        def announce(name: str) -> None:
            soon = (
                f"stopping after this tick, or in {grace} s; send it again to stop at once." if grace else "stopping."
            )
            self.console.print(f"{name}: {soon}")

        with stopping.graceful(self._stop, grace, announce, STOPPED):
            yield
