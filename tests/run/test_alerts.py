"""Alerts: one when ticks break and one when they heal; no receiver can delay a tick."""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.errors import Place, ProjectError
from sqlrun.events import CheckResult, NodeResult, Status, TickResult
from sqlrun.load import profile
from sqlrun.outcome import Outcome
from sqlrun.project import Alerts
from sqlrun.report.findings import About
from sqlrun.run import alert_sender, alerts
from tests.commands.test_check_command import sale
from tests.run.test_machine import project

AT = datetime(2026, 1, 10, 12, 5, tzinfo=timezone.utc)
TABLES = ("orders", "daily", "weekly")
ABOUT = About("shop", "duckdb", "prod", "", 4, AT, tables=TABLES, parents={"daily": ("orders",), "weekly": ("daily",)})
SECRET = "T0K3N"


def node(name: str, status: Status = "success") -> NodeResult:
    return NodeResult(1, 3, name, "merge", status, 0.1, message="can't cast 'secret@mail.example'")


def check(status: str, model: str = "orders") -> CheckResult:
    place = Place("expectations/orders.yml", 2, 5)
    samples = ("email=secret@mail.example",)
    said = ("critical", Outcome(status), 900, 3, samples, 0.5, "observed secret@mail.example", "Nobody pays less.")
    return CheckResult(model, "expect_x", ("amount",), *said, place, "f00")


GOOD = TickResult(6, AT, True, 1.0, tuple(map(node, TABLES)), (check("pass"), check("warn")))
BAD = TickResult(5, AT, False, 1.0, (node("orders"), node("daily", "skipped")), (check("fail"),))
STEP = TickResult(7, AT, False, 1.0, (node("weekly", "error"),))


@contextmanager
def receiver(*answers: int | str, wait: float = 0.0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield a webhook that sends one answer after the other, the last one forever, and the requests it got."""
    got: list[dict[str, Any]] = []
    given = iter(answers)
    last: list[int | str] = [200]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append(body)
            last[0] = answer = next(given, last[0])
            time.sleep(wait)
            self.send_response(301 if isinstance(answer, str) else answer)
            if isinstance(answer, str):
                self.send_header("Location", answer)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hooks/{SECRET}", got
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_sender, "WAITS", (0.01, 0.01))


def send(folder: Path, to: Alerts, *results: TickResult, about: About = ABOUT) -> list[str]:
    warnings: list[str] = []
    for result in results:
        alert_sender.send(to, folder, str(folder), result, about, TABLES, warnings.append)
    return warnings


def test_alerts_are_sent_once_when_ticks_break_and_once_when_they_heal(tmp_path):
    with receiver(200) as (address, got):
        to = Alerts(address)
        assert send(tmp_path, to, GOOD, BAD, BAD, STEP, GOOD, GOOD) == []

    assert [(body["state"], body["tick"]) for body in got] == [("broken", 5), ("healed", 6)]
    broke, healed = got
    assert broke["text"] == (
        "shop: Tick 5 is NOT published: readers still see tick 4, because 1 check failed in orders."
    )
    assert (broke["project"], broke["environment"], broke["profile"]) == ("shop", "", "prod")
    assert (broke["published"], broke["readers_see_tick"], broke["as_of"]) == (False, 4, AT.isoformat())
    (finding,) = broke["findings"]
    assert (finding["model"], finding["check"], finding["columns"]) == ("orders", "expect_x", ["amount"])
    assert (finding["rows"], finding["of_rows"], finding["severity"]) == (3, 900, "critical")
    assert broke["not_up_to_date"] == ["daily", "weekly"]
    assert broke["broke"] == [{"model": "orders", "check": "expect_x(amount)"}]
    assert healed["healed"] == [*broke["broke"], {"model": "weekly", "check": ""}]
    assert (healed["broken_since"], healed["readers_see_tick"]) == ({"tick": 5, "as_of": AT.isoformat()}, 6)


def test_alerts_have_no_values_of_rows(tmp_path):
    with receiver(200) as (address, got):
        send(tmp_path, Alerts(address), replace(BAD, nodes=(*BAD.nodes, node("daily", "error"))))

    assert "secret@" not in json.dumps(got) and "findings" in got[0]


def test_a_tick_that_ended_early_breaks_the_project(tmp_path):
    early = TickResult(0, AT, False, 0.1, ())
    with receiver(200) as (address, got):
        about = replace(ABOUT, problem="No space left on /disk/of/secret@mail.example")
        send(tmp_path, Alerts(address), early, early, GOOD, about=about)

    assert [body["state"] for body in got] == ["broken", "healed"]
    assert got[0]["tick"] is None and "secret" not in json.dumps(got)


def test_a_tick_without_the_broken_models_heals_nothing():
    sent = alerts.broken(BAD)
    elsewhere = replace(GOOD, nodes=(node("weekly"),))

    assert alerts.change(elsewhere, sent, TABLES) is None
    assert alerts.change(replace(GOOD, nodes=(node("orders", "no-op"),)), sent, TABLES) == "healed"
    assert alerts.change(elsewhere, sent, ("weekly",)) == "healed"  # orders is no model any more
    assert alerts.change(replace(GOOD, nodes=()), sent, TABLES) is None
    assert alerts.change(GOOD, None, TABLES) is None


def test_environments_have_separate_alerts(tmp_path):
    with receiver(200) as (address, got):
        for env in ("", "dev", "", "dev"):
            send(tmp_path, Alerts(address), BAD, about=replace(ABOUT, env=env))

    assert [body["environment"] for body in got] == ["", "dev"]


def test_a_failing_server_is_tried_again(tmp_path):
    with receiver(500, 429, 200) as (address, got):
        assert send(tmp_path, Alerts(address), BAD, BAD) == []

    assert len(got) == 3 and got[0] == got[2]


@pytest.mark.parametrize(
    ("answers", "why", "tries"),
    [
        ((500,), "it answered 500 (try 3 of 3)", 3),
        ((404,), "it answered 404", 1),
        (("/elsewhere",), "it answered 301, a redirect, which sqlrun doesn't follow", 1),
    ],
)
def test_an_undelivered_alert_is_reported_and_sent_after_the_next_tick(tmp_path, answers, why, tries):
    with receiver(*answers) as (address, got):
        (line,) = send(tmp_path, Alerts(address), BAD)
        assert len(got) == tries
    assert line.startswith("The alert to the webhook at http://127.0.0.1/… was not delivered") and line.endswith(why)
    assert SECRET not in line and "\n" not in line

    with receiver(200) as (address, got):
        assert send(tmp_path, Alerts(address), BAD, BAD) == []
    assert [body["state"] for body in got] == ["broken"]


def test_an_unreachable_webhook_is_reported(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        (line,) = send(tmp_path, Alerts(f"http://127.0.0.1:{taken.getsockname()[1]}/{SECRET}"), BAD)

    assert line.endswith("Connection refused (try 3 of 3)") and SECRET not in line


@pytest.mark.slow
@pytest.mark.parametrize("letters", [b"", b"H"], ids=["silent", "letter by letter"])
def test_a_hanging_webhook_is_abandoned(tmp_path, letters):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(5)
        over = threading.Event()

        def drip() -> None:
            try:
                connection, _ = server.accept()
                while letters and not over.wait(0.05):
                    connection.sendall(letters)
                over.wait()
            except OSError:
                return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        started = time.monotonic()
        (line,) = send(tmp_path, Alerts(f"http://127.0.0.1:{server.getsockname()[1]}/{SECRET}", timeout=1), BAD)
        over.set()

    assert time.monotonic() - started < 20
    assert "no answer within 1 s" in line and SECRET not in line


@pytest.mark.slow
def test_a_command_gets_the_alert_as_input(tmp_path):
    copy = "import pathlib, sys; pathlib.Path('got.json').open('a').write(sys.stdin.read() + chr(10))"
    to = Alerts(command=(sys.executable, "-c", copy))
    assert send(tmp_path, to, BAD, BAD, GOOD) == []

    bodies = [json.loads(line) for line in (tmp_path / "got.json").read_text().splitlines()]
    assert [body["state"] for body in bodies] == ["broken", "healed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((sys.executable, "-c", f"import sys; sys.exit('{SECRET}')"), "it ended with exit code 1 (try 3 of 3)"),
        (("no-such-program", SECRET), "it can't be started: No such file or directory (try 3 of 3)"),
        (
            (sys.executable, "-c", "import time; time.sleep(60)", SECRET),
            "it didn't end within 1 s, and sqlrun killed it",
        ),
    ],
    ids=["fails", "missing", "hangs"],
)
def test_a_failing_command_is_reported(tmp_path, words, why):
    started = time.monotonic()
    (line,) = send(tmp_path, Alerts(command=words, timeout=1 if "within" in why else 20), BAD)

    assert why in line and SECRET not in line and time.monotonic() - started < 30


def test_only_the_failed_receiver_is_tried_again(tmp_path):
    broken_command = ("no-such-program",)
    with receiver(200) as (address, got):
        send(tmp_path, Alerts(address, broken_command), BAD)
        copy = "import pathlib, sys; pathlib.Path('got.json').write_text(sys.stdin.read())"
        assert send(tmp_path, Alerts(address, (sys.executable, "-c", copy)), BAD) == []

    assert len(got) == 1 and json.loads((tmp_path / "got.json").read_text())["state"] == "broken"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"broken": 3}', '{"broken": {"webhook": null}}'])
def test_a_corrupt_record_repeats_alerts(tmp_path, text):
    file = Path(alert_sender.path_of(str(tmp_path)))
    file.parent.mkdir()
    file.write_text(text)
    with receiver(200) as (address, got):
        assert send(tmp_path, Alerts(address), BAD, BAD) == []
    assert len(got) == 1


def test_an_unwritable_record_is_reported(tmp_path):
    (tmp_path / "_sqlrun").write_text("in the way")
    with receiver(200) as (address, _):
        (line,) = send(tmp_path, Alerts(address), BAD)
    assert line.startswith("sqlrun can't record which alerts it sent")


def test_many_findings_are_truncated_and_counted(tmp_path):
    with receiver(200) as (address, got):
        send(tmp_path, Alerts(address), replace(BAD, checks=(check("fail"),) * 500))
    assert len(got[0]["findings"]) == alerts.MOST and got[0]["findings_left_out"] == 450


def load(folder: Path, text: str) -> Alerts:
    (folder / "profiles").mkdir(exist_ok=True)
    (folder / "profiles" / "own.yml").write_text(f"engine: duckdb\nwarehouse: w\nalerts: {text}\n")
    return profile.load(folder, "own").alerts


def test_the_profile_names_the_receivers(tmp_path, monkeypatch):
    monkeypatch.setenv("HOOK", f"https://hooks.example/{SECRET}")
    found = load(tmp_path, "{webhook: '${HOOK}', command: [notify, '--to=${HOOK}'], timeout: 5}")

    address = f"https://hooks.example/{SECRET}"
    assert found == Alerts(address, ("notify", f"--to={address}"), 5)
    assert SECRET not in repr(found)
    assert load(tmp_path, "{command: notify}").command == ("notify",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{webhook: 'ftp://x/${HOOK}'}", "SR131"),
        ("{webhook: '${HOOK}'}", "SR131"),
        ("{webhook: 'https://me:${HOOK}@x/'}", "SR131"),
        ("{webhook: 'https://x:99999/'}", "SR131"),
        ("{webhook: '${NO_SUCH_HOOK}'}", "SR132"),
        ("{command: [a, {b: c}]}", "SR103"),
        ("{command: ['']}", "SR131"),
        ("{timeout: 0}", "SR131"),
        ("{url: x}", "SR102"),
        ("[x]", "SR103"),
    ],
)
def test_an_invalid_profile_is_one_problem(tmp_path, monkeypatch, text, why):
    monkeypatch.setenv("HOOK", SECRET)
    with pytest.raises(ProjectError) as caught:
        load(tmp_path, text)

    assert [problem.code for problem in caught.value.problems] == [why]
    assert SECRET not in str(caught.value)


def shops(folder: Path, webhook: str) -> Path:
    root = project(folder / "shops")
    (root / "profiles").mkdir(exist_ok=True)
    text = f"engine: duckdb\nwarehouse: warehouse\nalerts: {{webhook: '{webhook}', timeout: 5}}\n"
    (root / "profiles" / "local.yml").write_text(text)
    (root / "expectations").mkdir(exist_ok=True)
    (root / "expectations" / "stg_sales.yml").write_text(
        "expectations:\n  - type: expect_column_values_to_be_between\n    kwargs: {column: amount, min_value: 0}\n"
    )
    (root / "data" / "orders").mkdir(parents=True, exist_ok=True)
    return root


def build(root: Path) -> tuple[int, str]:
    done = CliRunner().invoke(
        main, ["--project-dir", str(root), "build", "--profile", "local", "--as-of", "2026-01-10T13:00"]
    )
    return done.exit_code, done.output


@pytest.mark.slow
def test_builds_send_each_alert_once(tmp_path):
    with receiver(503, 503, 503, 200) as (address, got):
        root = shops(tmp_path, address)
        (root / "data/orders/1.jsonl").write_text(sale("a", 1, -3) + "\n")
        code, said = build(root)
        assert code == 1 and "was not delivered" in said and SECRET not in said
        assert build(root)[0] == 1
        assert build(root)[0] == 1  # stays broken
        (root / "data/orders/2.jsonl").write_text(sale("a", 2, 3) + "\n")
        code, said = build(root)
        assert code == 0 and "published" in said
        assert build(root)[0] == 0

    assert [body["state"] for body in got] == ["broken"] * 4 + ["healed"]
    assert re.search(r"because 1 check failed in stg_sales", got[3]["text"])
    state = alerts.from_json(Path(alert_sender.path_of(str(root / "warehouse"))).read_text())
    assert state == {}
