"""A real Postgres through Debezium: after each tick the tables are the database's, although the engine is killed."""

from __future__ import annotations

import itertools
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.sources.test_changes import AT, project, with_snapshots
from tests.support.databases import micros
from tests.support.projects import Site
from tests.support.servers.postgres import ChangeEngine, Postgres
from tests.support.waiting import wait_until

# `body` is too large to be in its row: Postgres leaves it out of a change that doesn't touch it.
TABLES = """
create table docs (id int primary key, name text, body text);
alter table docs alter body set storage external;
create table marks (id int primary key);
create table signals (id text primary key, type text, data text);
create schema audit;
create table audit.versions (seq bigserial, op text, id int, name text);
create function audit.row_changed() returns trigger language plpgsql as $$ begin
    if tg_op in ('DELETE', 'UPDATE') then insert into audit.versions (op, id) values ('end', old.id); end if;
    if tg_op in ('INSERT', 'UPDATE') then insert into audit.versions (op, id, name) values ('begin', new.id, new.name);
    end if;
    return null;
end $$;
create function audit.truncated() returns trigger language plpgsql as $$ begin
    insert into audit.versions (op) values ('truncate');
    return null;
end $$;
insert into docs select n, 'old', (select string_agg(md5(n || '-' || i), '') from generate_series(1, 200) as i)
    from generate_series(1, 5) as n;
create trigger changed after insert or update or delete on docs for each row execute function audit.row_changed();
create trigger truncated after truncate on docs for each statement execute function audit.truncated();
"""
MARK, XID = "insert into marks values (-{0})", "select pg_current_xact_id()"
# Asks for a snapshot by pieces, while changes go on.
ASK = """insert into signals values ('{0}', 'execute-snapshot', '{{"data-collections": ["public.docs"]}}')"""
LONG = "(select string_agg(md5({0} || '-' || i), '') from generate_series(1, 200) as i)"
AUDITED = """
select op, id, name, xmin::text::bigint as txid,
    (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000000)::bigint as at
from audit.versions order by seq
"""


def statement(random: Random, truncates: bool) -> str:
    one, other = random.randint(1, 12), random.randint(1, 12)
    long = LONG.format(random.random())
    return random.choice(
        [
            f"insert into docs values ({one}, 'n{random.random()}', {long}) on conflict do nothing",
            f"insert into docs values ({one}, null, null) on conflict do nothing",
            f"update docs set name = 'u{random.random()}' where id = {one}",
            f"update docs set name = 'u{random.random()}' where id between {one} and {other}",
            f"update docs set body = {long} where id = {one}",
            f"update docs set body = null where id = {one}",
            f"update docs set id = {one} where id = {other} and not exists (select from docs where id = {one})",
            f"delete from docs where id = {one}",
            "truncate docs" if truncates and random.random() < 0.2 else f"delete from docs where id = {other}",
        ]
    )


def transaction(random: Random, truncates: bool) -> str:
    """Return a transaction that lasts a moment, so that it overlaps those of other sessions."""
    wait = f"; select pg_sleep({random.uniform(0, 0.05):.3f}); "
    found = wait.join(statement(random, truncates) for _ in range(random.randint(1, 4)))
    return f"begin; {found}{wait}{random.choice(['commit', 'commit', 'commit', 'rollback'])};"


def write(postgres: Postgres, seed: int, transactions: int, truncates: bool) -> None:
    """Run random transactions; the database ends those that wait for each other, or take a key twice."""
    random = Random(seed)
    for _ in range(transactions):
        try:
            postgres.run(transaction(random, truncates))
        except subprocess.CalledProcessError as error:
            assert "deadlock detected" in error.stderr or "duplicate key" in error.stderr, error.stderr


@contextmanager
def writing(postgres: Postgres, seed: int, transactions: int = 15, truncates: bool = True) -> Iterator[None]:
    """Run random transactions in two sessions at once, until both are done."""
    seeds = (2 * seed, 2 * seed + 1)
    sessions = [threading.Thread(target=write, args=(postgres, one, transactions, truncates)) for one in seeds]
    for session in sessions:
        session.start()
    try:
        yield
    finally:
        for session in sessions:
            session.join()


def start_while_writing(postgres: Postgres, engine: ChangeEngine) -> None:
    """Start the engine so that a transaction is open at its snapshot: begun and written before, committed after.

    Postgres begins a slot in two steps, and waits at each for the transactions that are open then.
    """
    with closing(postgres.session()) as first, closing(postgres.session()) as second, closing(postgres.session()) as it:
        number = first.run(f"begin; {MARK.format(1)}; {XID}")[-1]

        def steps() -> None:
            wait_for(postgres, number)
            last = second.run(f"begin; {MARK.format(2)}; {XID}")[-1]
            first.run("commit")
            wait_for(postgres, last)
            it.run("begin; update docs set name = 'open' where id = 1; update docs set body = null where id = 2")
            it.run("delete from docs where id = 3; insert into docs values (300, 'open', 'b')")
            second.run("commit")

        # Not the engine in a thread: it would die with the thread that started it.
        stepping = threading.Thread(target=steps)
        stepping.start()
        engine.start()
        stepping.join()
        it.run("commit")


def wait_for(postgres: Postgres, transaction: str) -> None:
    """Return when another session waits for the end of a transaction."""
    waiting = f"select 1 from pg_locks where not granted and transactionid::text = '{transaction}'"
    wait_until(lambda: postgres.rows(waiting), "no session waits for the transaction")


def settle(postgres: Postgres, engine: ChangeEngine, number: int) -> None:
    """Wait until everything before now is in the files."""
    postgres.run(f"insert into marks values ({number})")
    wanted = (f'"after":{{"id":{number}}}', '"table":"marks"')

    def is_there() -> bool:
        return any(all(text in file.read_text() for text in wanted) for file in files(engine))

    wait_until(is_there, "the engine sends no changes")


def files(engine: ChangeEngine) -> list[Path]:
    """Return the complete files: a hidden one is being written, and is renamed at any moment."""
    return sorted(file for file in engine.folder.glob("*.jsonl") if not file.name.startswith("."))


def same(site: Site, postgres: Postgres) -> int:
    """Compare the current rows with the table, and the history with what the triggers wrote down.

    Return the number of bodies that aren't known: their rows say so.
    """
    rows = site.rows("docs")
    unknown = {row["id"] for row in rows if not row["is_resolved"]}
    assert not [row for row in rows if row["id"] in unknown and row["body"] is not None]
    wanted = {row["id"]: (row["name"], row["body"]) for row in postgres.rows("select * from docs")}
    wanted |= {key: (wanted[key][0], None) for key in unknown & wanted.keys()}
    assert {row["id"]: (row["name"], row["body"]) for row in rows} == wanted
    history = site.rows("docs_history")
    begun = {row["id"]: micros(row["valid_from"]) for row in history if row["position"].endswith("/0")}
    found = [(row["id"], row["name"], micros(row["valid_from"]), micros(row["valid_to"])) for row in history]
    assert sorted(found, key=str) == sorted(versions(postgres, begun), key=str)
    return len(unknown)


def versions(postgres: Postgres, begun: dict[int, int | None]) -> list[tuple[Any, ...]]:
    """Return the versions that the triggers wrote down and that lasted; rows of the snapshot begin with it."""
    current: dict[int, tuple[Any, ...]] = {key: (key, "old", at) for key, at in begun.items()}
    found = []
    for row in postgres.rows(AUDITED):
        ended = list(current) if row["op"] == "truncate" else [row["id"]] if row["op"] == "end" else []
        found += [(*current.pop(key), row["at"]) for key in ended]
        if row["op"] == "begin":
            current[row["id"]] = (row["id"], row["name"], row["at"])
    lasting = [version for version in found if version[2] != version[3]]
    return [*lasting, *((*version, None) for version in current.values())]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("identity", ["default", "full"])
def test_a_database_is_its_tables_after_each_tick(tmp_path: Path, postgres: Postgres, identity: str) -> None:
    """Two sessions write at once, one was writing when the engine took its snapshot, and both while it takes others.

    By default a row that gets another key lacks its untouched body, and says so; `full` sends it.
    """
    site, random = project(tmp_path / "project", DuckDBEngine()), Random(1)
    postgres.run(f"{TABLES} alter table docs replica identity {identity};")
    unknown = 0
    engine = ChangeEngine(postgres, site.orders, tmp_path / "engine.log")
    try:
        start_while_writing(postgres, engine)
        for mark in itertools.count(1000):
            settle(postgres, engine, mark)
            if engine.streamed():
                break
        for number in range(6):
            # A row that gets another key, whatever the random statements do.
            postgres.run(f"insert into docs values ({100 + number}, 'moved', {LONG.format(number)})")
            postgres.run(f"update docs set id = {200 + number} where id = {100 + number}")
            with writing(postgres, number):
                if number % 2:
                    postgres.run(ASK.format(number))
                time.sleep(random.uniform(0, 1))
                if random.random() < 0.7:
                    engine.kill()
                    engine.start()
            settle(postgres, engine, number)
            assert site.tick(AT + timedelta(minutes=5 * number)).published
            unknown += same(site, postgres)
    finally:
        engine.kill()
    committed = [row["txid"] for row in sorted(postgres.rows(AUDITED), key=lambda row: row["at"])]
    assert committed != sorted(committed), "no transaction began before one that committed earlier"
    texts = "".join(file.read_text() for file in files(engine))
    assert '"snapshot":"incremental"' in texts
    assert ("__debezium_unavailable_value" in texts) == (identity == "default") and '"op":"t"' in texts
    assert (unknown > 0) == (identity == "default")


def looking_at_snapshots(folder: Path) -> Site:
    """Write the project so that its models look at snapshots."""
    project(folder, DuckDBEngine())
    with_snapshots(folder)
    return Site(folder, DuckDBEngine())


def present(site: Site) -> dict[int, tuple[Any, ...]]:
    """Return the current rows, which are those of the history's current versions; each version lasts."""
    rows, versions = site.rows("docs"), site.rows("docs_history")
    current = [(row["id"], row["name"]) for row in versions if row["is_current"]]
    assert sorted(current) == sorted((row["id"], row["name"]) for row in rows)
    assert all(row["valid_to"] is None or row["valid_from"] < row["valid_to"] for row in versions)
    return {row["id"]: (row["name"], row["body"] if row["is_resolved"] else "unknown") for row in rows}


def stored(postgres: Postgres) -> dict[int, tuple[Any, ...]]:
    return {row["id"]: (row["name"], row["body"]) for row in postgres.rows("select * from docs")}


@pytest.mark.slow
@pytest.mark.long
def test_new_snapshots_while_sessions_write(tmp_path: Path, postgres: Postgres) -> None:
    """The slot is lost twice, and changes with it. A lock lets each new snapshot wait for the open transactions."""
    site = looking_at_snapshots(tmp_path / "project")
    postgres.run(f"{TABLES} alter table docs replica identity full;")
    engine = ChangeEngine(postgres, site.orders, tmp_path / "engine.log")
    said = []
    try:
        engine.start()
        postgres.run("update docs set name = 'first' where id = 1")
        for number in range(3):
            if number:
                # A TRUNCATE that waits for the lock has a transaction id, and a new slot would wait for it.
                with writing(postgres, number, 45, truncates=False):
                    time.sleep(0.5)
                    engine.lose()
                    with closing(postgres.session()) as session:
                        session.run("begin; lock table docs in share mode")
                        engine.start()
                        session.run("commit")
                    # Both sessions wait for the lock, and write on.
                    assert threading.active_count() > 1
            settle(postgres, engine, number)
            result = site.tick(AT + timedelta(minutes=5 * number))
            assert result.published
            said += [stage.note for node in result.nodes for stage in node.stages if "SR603" in stage.note]
            assert present(site) == stored(postgres)
    finally:
        engine.kill()
    assert len(said) == 2 and all("a new snapshot of the table at position" in note for note in said), said


@pytest.mark.slow
@pytest.mark.long
def test_a_snapshot_without_the_lock_replaces_the_changes_of_an_open_transaction(
    tmp_path: Path, postgres: Postgres
) -> None:
    """With `snapshots=true` alone, and only those: the page says so. Another snapshot repairs it."""
    site = looking_at_snapshots(tmp_path / "project")
    postgres.run(TABLES)
    engine = ChangeEngine(postgres, site.orders, tmp_path / "engine.log")
    try:
        start_while_writing(postgres, engine)
        postgres.run("update docs set name = 'next' where id = 4")
        settle(postgres, engine, 1)
        assert site.tick(AT).published
        found, wanted = present(site), stored(postgres)
        assert {key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key)} == {1, 2, 3, 300}
        assert found[1][0] == "old" and found[4] == wanted[4]

        engine.lose()
        engine.start()
        settle(postgres, engine, 2)
        assert site.tick(AT + timedelta(minutes=5)).published
        assert present(site) == stored(postgres)
    finally:
        engine.kill()


@pytest.mark.slow
@pytest.mark.long
def test_a_publication_without_the_table_is_silent(tmp_path: Path, postgres: Postgres) -> None:
    """The snapshot comes, and no change after it. The database's catalogue says so; an added table's changes come."""
    site = project(tmp_path / "project", DuckDBEngine())
    postgres.run(f"{TABLES} create publication dbz_publication for table marks;")
    engine = ChangeEngine(postgres, site.orders, tmp_path / "engine.log")
    published = (
        "select schemaname || '.' || tablename as name from pg_publication_tables where pubname = 'dbz_publication'"
    )
    try:
        engine.start()
        postgres.run("update docs set name = 'missed' where id = 1; delete from docs where id = 2")
        settle(postgres, engine, 1)
        assert site.tick(AT).published
        assert {row["name"] for row in site.rows("docs") if row["id"] in (1, 2)} == {"old"}
        assert postgres.rows(published) == [{"name": "public.marks"}]

        postgres.run("alter publication dbz_publication add table docs")
        postgres.run("update docs set name = 'seen' where id = 3")
        settle(postgres, engine, 2)
    finally:
        engine.kill()
    assert site.tick(AT + timedelta(minutes=5)).published
    assert {row["id"]: row["name"] for row in site.rows("docs") if row["id"] <= 3} == {1: "old", 2: "old", 3: "seen"}
