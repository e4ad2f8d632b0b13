"""Quarantined lines are sent once a tick is published: to a folder exactly once, to a topic at least once."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import EngineError, ProjectError
from sqlrun.land import dead_letters
from sqlrun.operations import maintenance
from sqlrun.pipeline import prepare
from sqlrun.project import Connection
from sqlrun.publish.ledger import Ledger
from sqlrun.runtime import atomic_files
from sqlrun.sources import kafka_producer
from tests.support import kafka_site
from tests.support.kafka_site import line
from tests.support.projects import Site
from tests.support.servers import topics
from tests.support.servers.kafka import Broker

ENGINE = DuckDBEngine()
START = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
FIVE = timedelta(minutes=5)
FOLDER = "{path: data/dead}"
BAD = "{poison"


def project(folder: Path, letters: str, tags: str = "") -> Path:
    """Write a project that lands a folder and sends its quarantined lines."""
    kafka_site.project(folder, "topic: none", "", "", "127.0.0.1:9")
    file = folder / "models/_sources.yml"
    text = file.read_text().replace(
        "format: kafka\n        topic: none", f"path: data/in\n        dead_letters: {letters}"
    )
    file.write_text(text.replace("{name: shop, ", f"{{name: shop, {tags}"))
    (folder / "data/in").mkdir(parents=True, exist_ok=True)
    return folder


class Sender:
    """A site of such a project, whose ticks are five minutes apart."""

    def __init__(self, folder: Path, letters: str = FOLDER, **connections: Connection) -> None:
        self.site = Site(project(folder, letters), ENGINE, connections=connections)
        self.folder = folder / "data/dead"
        self.ticks = 0

    def tick(self, *lines: str, **more: Any) -> Any:
        if lines:
            text = "".join(f"{each}\n" for each in lines)
            (self.site.root / f"data/in/{self.ticks}.jsonl").write_text(text)
        self.ticks += 1
        return self.site.tick(START + FIVE * self.ticks, **more)

    def files(self) -> dict[str, list[dict[str, Any]]]:
        found = sorted(self.folder.glob("*")) if self.folder.is_dir() else []
        return {file.name: [json.loads(each) for each in file.read_text().splitlines()] for file in found}

    def letters(self) -> list[tuple[str, int]]:
        return [(one["raw"], one["tick"]) for lines in self.files().values() for one in lines]


def died(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


def test_each_published_tick_writes_its_letters_once(tmp_path: Path) -> None:
    one = Sender(tmp_path / "p")
    assert one.tick(line(1), BAD, '{"id":"o2","n":"x"}').published
    assert one.tick(line(3)).published
    assert one.tick("[]").published
    assert one.tick().published

    files = one.files()
    assert [*files] == ["stg-00000001.jsonl", "stg-00000003.jsonl"]
    first = {row["raw"]: row for row in files["stg-00000001.jsonl"]}
    assert {*first} == {BAD, '{"id":"o2","n":"x"}'}
    assert {*first[BAD]} == {"raw", "reason", "origin", "landed_at", "model", "tick"}
    assert (first[BAD]["reason"], first[BAD]["model"], first[BAD]["tick"]) == ("not a JSON object", "stg", 1)
    assert first[BAD]["origin"].endswith("0.jsonl") and datetime.fromisoformat(first[BAD]["landed_at"]).tzinfo
    assert one.site.said == []


def test_lines_of_an_unpublished_tick_are_letters_of_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Sender(tmp_path / "p")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "publish", lambda *_: (_ for _ in ()).throw(EngineError("killed")))
        with pytest.raises(EngineError, match="killed"):
            one.tick(line(1), BAD)
    assert one.files() == {}
    assert one.tick("[]").published

    assert sorted(one.letters()) == [("[]", 2), (BAD, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["before the send", "before the file", "before the mark"])
def test_a_crash_after_the_publish_leaves_the_letters_to_the_next_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The next tick writes the file of the tick that published them, and the same file only once."""
    one = Sender(tmp_path / "p")
    assert one.tick(line(0), "{first").published
    with monkeypatch.context() as patch:
        match step:
            case "before the send":
                patch.setattr(dead_letters, "send", lambda *_: None)
            case "before the file":
                patch.setattr(atomic_files, "write_new_parts", died)
            case _:
                patch.setattr(dead_letters, "_put", died)
        assert one.tick(line(1), BAD).published
    assert one.ticks == 2 and one.site.ledger.read().published is not None
    assert one.tick("[]").published

    assert one.letters() == [("{first", 1), (BAD, 2), ("[]", 3)]
    assert [*one.files()] == [f"stg-0000000{n}.jsonl" for n in (1, 2, 3)]


@pytest.mark.slow
def test_a_table_that_had_lines_before_sends_new_ones_alone(tmp_path: Path) -> None:
    one = Sender(tmp_path / "p")
    file = one.site.root / "models/_sources.yml"
    text = file.read_text()
    file.write_text(text.replace(f"        dead_letters: {FOLDER}\n", ""))
    one.site = Site(one.site.root, ENGINE)
    assert one.tick(BAD, line(1)).published
    file.write_text(text)
    one.site = Site(one.site.root, ENGINE)
    assert one.tick("[]", line(2)).published

    assert one.letters() == [("[]", 2)]


@pytest.mark.slow
def test_a_replayed_line_is_no_new_letter(tmp_path: Path) -> None:
    one = Sender(tmp_path / "p")
    assert one.tick(BAD, line(1)).published
    from click.testing import CliRunner

    from sqlrun.cli.main import main

    done = CliRunner().invoke(main, ["--project-dir", str(one.site.root), "quarantine", "replay", "stg", "--all"])
    assert done.exit_code == 0, done.output
    assert one.tick(line(2)).published

    assert one.letters() == [(BAD, 1)]


@pytest.mark.slow
def test_a_new_warehouse_does_not_hide_its_letters_behind_old_files(tmp_path: Path) -> None:
    one = Sender(tmp_path / "p")
    assert one.tick(BAD, line(1)).published
    import shutil

    shutil.rmtree(one.site.warehouse)
    one.site = Site(one.site.root, ENGINE)
    (one.site.root / "data/in/0.jsonl").unlink()
    assert one.tick("[]", line(2)).published

    assert [*one.files()] == ["stg-00000001-2.jsonl", "stg-00000001.jsonl"]


def test_a_folder_that_cannot_be_written_does_not_fail_the_tick(tmp_path: Path) -> None:
    one = Sender(tmp_path / "p")
    one.folder.parent.mkdir(exist_ok=True)
    one.folder.write_text("a file")
    assert one.tick(BAD, line(1)).published
    assert "dead letters of stg were not sent. The next tick sends them" in one.site.said[0]
    one.folder.unlink()
    assert one.tick(line(2)).published

    assert one.letters() == [(BAD, 1)]


def test_an_environment_sends_nothing(tmp_path: Path) -> None:
    one = Sender(tmp_path / "p")
    one.site.env = "dev"
    one.site.ledger = Ledger(one.site.warehouse, one.site.prepared.project.name, "dev")
    assert one.tick(BAD, line(1)).published

    assert one.files() == {} and one.site.said == []


@pytest.mark.slow
def test_vacuum_leaves_the_files_of_unsent_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Sender(tmp_path / "p")
    assert one.tick(line(0)).published
    monkeypatch.setattr(dead_letters, "send", lambda *_: None)
    for number in range(1, 4):
        assert one.tick(f"{{bad{number}", line(number)).published
    maintenance.vacuum(one.site.ledger, 1, START + timedelta(days=365), lambda _: None)
    monkeypatch.undo()
    assert one.tick(line(9)).published

    assert sorted(raw for raw, _ in one.letters()) == ["{bad1", "{bad2", "{bad3"]
    assert one.site.said == []


@pytest.mark.parametrize(
    ("letters", "tags", "code", "message"),
    [
        (FOLDER, "tags: [pii], ", "SR753", "its column `shop` is tagged pii"),
        ("{path: data/in/dead}", "", "SR754", "`a.b` reads this folder"),
        ("{path: ./data/in/}", "", "SR754", "`a.b` reads this folder"),
        ("{path: data/dead, topic: dead}", "", "SR104", "either `topic` or `path`"),
        ("{pii: true}", "", "SR104", "either `topic` or `path`"),
        ("{path: data/dead, connection: k}", "", "SR102", "no effect"),
        ("{path: data/dead, pii: yeah}", "", "SR110", "pii"),
    ],
)
def test_a_wrong_declaration_has_a_place(tmp_path: Path, letters: str, tags: str, code: str, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        prepare(project(tmp_path / "p", letters, tags))
    (problem,) = caught.value.problems
    assert problem.code == code and message in problem.message
    assert (problem.place.file, problem.place.line) == ("models/_sources.yml", 6)


def test_letters_with_personal_values_need_a_word(tmp_path: Path) -> None:
    assert prepare(project(tmp_path / "p", "{path: data/dead, pii: true}", "tags: [pii], "))


def test_a_missing_connection_stops_the_landing(tmp_path: Path) -> None:
    one = Sender(tmp_path / "p", "{topic: dead, connection: other}")
    result = one.tick(BAD)
    assert not result.published
    assert "SR749" in result.nodes[0].message and "`other`" in result.nodes[0].message


def test_a_topic_gets_each_letter_with_its_origin(tmp_path: Path, broker: Broker) -> None:
    name = topics.create(broker, topics.unique("dead"))
    one = Sender(tmp_path / "p", f"{{topic: {name}}}", kafka=Connection(broker.address))
    assert one.tick(line(1), BAD, "{ünï").published
    assert one.tick("[]").published

    found = [each.message for each in topics.messages(broker, name)]
    assert sorted((each.value or b"").decode() for each in found) == ["[]", BAD, "{ünï"]
    poison = next(each for each in found if each.value == BAD.encode())
    headers = {key: (value or b"").decode() for key, value in poison.headers}
    assert headers.pop("sqlrun-origin") == (poison.key or b"").decode()
    assert headers == {"sqlrun-reason": "not a JSON object", "sqlrun-model": "stg", "sqlrun-tick": "1"}


def test_letters_of_a_crash_after_delivery_are_sent_again(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topics.create(broker, topics.unique("dead"))
    one = Sender(tmp_path / "p", f"{{topic: {name}}}", kafka=Connection(broker.address))
    assert one.tick(line(1)).published
    with monkeypatch.context() as patch:
        patch.setattr(dead_letters, "_put", died)
        assert one.tick(BAD).published
    assert one.tick(line(2)).published
    assert one.tick(line(3)).published

    found = [(each.message.value, dict(each.message.headers)["sqlrun-tick"]) for each in topics.messages(broker, name)]
    assert found == [(BAD.encode(), b"2")] * 2


@pytest.mark.long
def test_a_broker_that_is_away_gets_its_letters_later(
    tmp_path: Path, own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_producer, "AWAY", 1.0)
    name = topics.create(own_broker, topics.unique("dead"))
    one = Sender(tmp_path / "p", f"{{topic: {name}}}", kafka=Connection(own_broker.address))
    assert one.tick(line(1)).published
    own_broker.kill()
    for number in (1, 2):
        assert one.tick(f"{{bad{number}", line(10 + number)).published
        assert "dead letters of stg were not sent" in one.site.said[-1] and "SR748" in one.site.said[-1]
    own_broker.start()
    assert one.tick().published

    found = [
        (each.message.value, dict(each.message.headers)["sqlrun-tick"]) for each in topics.messages(own_broker, name)
    ]
    assert found == [(b"{bad1", b"2"), (b"{bad2", b"3")]


def test_a_letter_that_is_too_large_for_the_broker_does_not_stop_the_others(tmp_path: Path, broker: Broker) -> None:
    name = topics.create(broker, topics.unique("dead"), settings={"max.message.bytes": "2000"})
    one = Sender(tmp_path / "p", f"{{topic: {name}}}", kafka=Connection(broker.address))
    assert one.tick("{" + "x" * 5000, BAD, line(1)).published

    assert [each.message.value for each in topics.messages(broker, name)] == [BAD.encode()]
    assert "1 dead letter of stg can't be sent" in one.site.said[0]


@pytest.mark.parametrize("reads", ["topic: orders", "topic_pattern: 'ord.*'"])
def test_a_topic_that_a_source_reads_is_refused(tmp_path: Path, reads: str) -> None:
    kafka_site.project(tmp_path, f"{reads}\n        dead_letters: {{topic: orders}}", "", "", "127.0.0.1:9")
    with pytest.raises(ProjectError, match="SR754"):
        prepare(tmp_path)
    file = tmp_path / "models/_sources.yml"
    file.write_text(file.read_text().replace("{topic: orders}", "{topic: orders, connection: other}"))
    assert prepare(tmp_path)
