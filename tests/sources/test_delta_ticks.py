"""A Delta table of others in single ticks: what a tick reads, what it refuses, and when it starts from scratch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from sqlrun.commands.pending_input import messages
from sqlrun.engines.delta import state as delta_state
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import EngineError, ProjectError
from sqlrun.maintain import source_versions
from sqlrun.pipeline import prepare
from sqlrun.plan.plan import tick_plan
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from tests.sources.test_delta import FIVE, copied, lake_of, row, tick, wrong
from tests.support.lakes import MODELS, START, Lake, add_model, project
from tests.support.projects import READER, Site
from tests.support.tested import run

MANY = 20_000


def site_of(folder: Path, *models: str) -> Site:
    return Site(project(folder, models), READER)


def rebuild_notes(site: Site) -> list[str]:
    return [event.text for event in site.events if type(event).__name__ == "Note" and "rebuilt" in event.text]


def read(result: Any, table: str) -> int:
    """Return the number of rows that a tick read for a table."""
    return sum(s.receipt.rows_read or 0 for node in result.nodes for s in node.stages if s.table == table)


def edit(lake: Lake, change: Callable[[list[dict[str, Any]]], None], version: int = 0) -> None:
    """Edit a commit of the log."""
    file = Path(lake.path) / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    change(actions)
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.slow
def test_a_tick_reads_what_changed(tmp_path: Path) -> None:
    """Appended rows, a compaction, and a copy of the same rows: the cost is that of the change."""
    lake = lake_of(tmp_path)
    lake.append(row(number, "abc"[number % 3]) for number in range(MANY))
    site = site_of(tmp_path, "totals", "extremes")
    tick(site, 0)
    lake.append([row(-1), row(-2, "z")])
    result = tick(site, 1)
    assert read(result, "totals") < 20
    lake.optimize()
    lake.vacuum()
    result = tick(site, 2)
    assert {node.status for node in result.nodes} == {"no-op"}
    assert rebuild_notes(site) == []
    lake.overwrite(lake.rows.elements())  # every row is copied, and the files differ
    result = tick(site, 3)
    assert [node.stages[0].receipt.rows_written or 0 for node in result.nodes if node.stages] == [0, 0, 0]
    assert not wrong(site)


@pytest.mark.slow
def test_a_feed_is_read_instead_of_rewritten_files(tmp_path: Path) -> None:
    """An update of one row costs two rows with the change feed; files of the commit have many."""
    for kind, most in (("feed", 20), ("vectors", 20)):
        lake = lake_of(tmp_path / kind, kind)
        lake.append(row(number, "abc"[number % 3]) for number in range(MANY))
        site = site_of(tmp_path / kind, "totals")
        tick(site, 0)
        if kind == "feed":
            lake.update(7, 100)
        else:
            lake.append([row(-1)])
            lake.mark_one()
        assert read(tick(site, 1), "totals") < most
        assert not wrong(site)


@pytest.mark.slow
def test_a_version_that_is_gone_rebuilds_the_readers(tmp_path: Path) -> None:
    """The message names the source, the version, what is missing and the oldest readable version."""
    lake = lake_of(tmp_path)
    lake.append([row(1), row(2, "b")])
    site = site_of(tmp_path, "totals", "above", "copied")
    tick(site, 0)
    lake.overwrite([row(3)])
    lake.vacuum()
    tick(site, 1)
    assert copied(site) == lake.rows
    assert not wrong(site)
    said = [text for text in rebuild_notes(site) if text.startswith("totals")]
    assert len(said) == 1
    assert "version 1 of its source lake.orders" in said[0]
    assert "lacks 1 file, for example part-" in said[0]
    assert "oldest readable version is 2" in said[0]
    tick(site, 2)
    assert len(rebuild_notes(site)) == 2  # each reader once


def test_a_log_without_the_version_rebuilds_the_readers(tmp_path: Path) -> None:
    """The writer has cleaned up its log, behind a checkpoint."""
    lake = lake_of(tmp_path)
    lake.append([row(1), row(2, "b")])
    site = site_of(tmp_path, "totals", "copied")
    tick(site, 0)
    lake.append([row(3)])
    lake.table.create_checkpoint()
    for version in (0, 1):
        (Path(lake.path) / "_delta_log" / f"{version:020d}.json").unlink()
    tick(site, 1)
    assert copied(site) == lake.rows
    assert "its entry in the log is gone" in rebuild_notes(site)[0]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["created again", "rewritten"])
def test_another_history_rebuilds_the_readers(tmp_path: Path, how: str) -> None:
    """A table of the same name, and a log whose versions were written again, are other tables."""
    lake = lake_of(tmp_path)
    lake.append([row(1), row(2, "b")])
    site = site_of(tmp_path, "totals", "copied")
    tick(site, 0)
    if how == "created again":
        lake.create()
        lake.append([row(9), row(8)])
    else:
        (Path(lake.path) / "_delta_log" / f"{1:020d}.json").unlink()
        lake.rows.clear()
        lake.append([row(9), row(8)])
    lake.append([row(7)])
    tick(site, 1)
    assert copied(site) == lake.rows
    assert not wrong(site)
    assert ("was created again" if how == "created again" else "its log was rewritten") in rebuild_notes(site)[0]


class Stop(Exception):
    """A crash at a chosen moment."""


@pytest.mark.slow
def test_a_source_that_moves_on_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tick is pinned, and dies. Meanwhile the source's writer commits: the next tick reads everything once."""
    lake = lake_of(tmp_path)
    lake.append([row(1), row(2, "b")])
    site = site_of(tmp_path, "copied", "totals", "named", "best")
    tick(site, 0)
    lake.append([row(3)])

    def crash(*args: object, **kwargs: object) -> None:
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "publish", crash)
        with pytest.raises(Stop):
            site.tick(START + FIVE)
    lake.delete(1)
    lake.append([row(4, "b")])
    tick(site, 2)
    assert copied(site) == lake.rows
    assert not wrong(site)


def test_commits_during_a_tick_belong_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All models of a tick read one version, even if the source's writer commits in between."""
    lake = lake_of(tmp_path)
    lake.append([row(1), row(2, "b")])
    site = site_of(tmp_path, "copied", "totals")
    real = Ledger.pin

    def late(self: Ledger, *args: Any, **kwargs: Any) -> int:
        write_deltalake(lake.path, lake.table.to_pyarrow_table().slice(0, 1), mode="append")
        return real(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "pin", late)
        tick(site, 0)
    assert copied(site) == lake.rows
    versions = {s.inputs["lake__orders"][1] for s in tick_of(site.ledger).tables.values() if s.inputs}
    assert versions == {1}
    tick(site, 1)
    assert sum(copied(site).values()) == 3


def test_nothing_is_written_to_the_sources_folder(tmp_path: Path) -> None:
    """A build, a vacuum and a doctor leave the folder as it is."""
    from sqlrun.operations import maintenance
    from tests.support.projects import now

    lake = lake_of(tmp_path, "vectors and feed")
    lake.append([row(1), row(2, "b")])
    site = site_of(tmp_path, "copied", "totals")
    before = sorted(str(file) for file in Path(lake.path).rglob("*"))
    tick(site, 0)
    maintenance.vacuum(site.ledger, 1, now(), lambda _: None)
    tick(site, 1)
    assert sorted(str(file) for file in Path(lake.path).rglob("*")) == before


@pytest.mark.slow
def test_an_environment_shares_and_reads_on(tmp_path: Path) -> None:
    """Unedited models are production's; an edited one reads the source itself, and is promoted with what it read."""
    lake = lake_of(tmp_path)
    lake.append([row(1), row(2, "b")])
    prod = site_of(tmp_path, "copied", "totals")
    tick(prod, 0)
    add_model(prod.root, "totals", MODELS["totals"][0].replace("sum(amount)", "sum(amount + 1)"), *MODELS["totals"][1:])
    dev = Site(prod.root, READER, "dev")
    lake.append([row(3)])
    tick(dev, 1)
    assert [text for event in dev.events if "shared" in (text := getattr(event, "text", ""))] == [
        "Environment dev: 2 tables shared with production"
    ]
    assert sum(copied(dev).values()) == 2
    assert {one["shop"]: one["total"] for one in dev.rows("totals")} == {"a": 12, "b": 6}
    lake.append([row(4)])
    prod.prepared = dev.prepared
    result = tick(prod, 2)
    assert any("promoted from dev" in getattr(event, "text", "") for event in prod.events)
    assert {one["shop"]: one["total"] for one in prod.rows("totals")} == {"a": 18, "b": 6}
    assert read(result, "totals") < 10
    assert not wrong(prod)


def test_pending_changes_are_listed(tmp_path: Path) -> None:
    """`sqlrun plan` prints the source's changes, and why a model is rebuilt."""
    lake = lake_of(tmp_path)
    lake.append([row(1), row(2, "b")])
    site = site_of(tmp_path, "totals")
    tick(site, 0)
    assert _pending(site) == ["No new input is pending."]
    lake.append([row(3)])
    assert _pending(site)[-1] == "  lake.orders  about 1 changed row up to version 2"


def _pending(site: Site) -> list[str]:
    published = site.ledger.read().published
    names = ("totals",)
    sources = source_versions.read(site.prepared.workspace, names, published)
    plan = tick_plan(
        site.prepared.workspace, site.warehouse, published, 9, START + 9 * FIVE, names, False, sources=sources
    )
    return messages(site.prepared.workspace, plan, {})


def declare(site_root: Path, old: str, new: str) -> None:
    file = site_root / "models" / "_sources.yml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: amount, data_type: bigint", "name: amounts, data_type: bigint", "has no column `amounts`"),
        ("name: amount, data_type: bigint", "name: amount, data_type: int", "is bigint, not int"),
        ("name: shop, data_type: string", "name: shop, data_type: string, nulls: false", "may be NULL"),
        ("path: ../lake/orders", "path: ../lake", "isn't a Delta table"),
    ],
)
def test_a_declaration_that_differs_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """The message has a code, a place in `_sources.yml` and the way out; nothing is written."""
    lake = lake_of(tmp_path)
    lake.append([row(1)])
    root = project(tmp_path, ("copied",))
    declare(root, old, new)
    if "amounts" in new:
        add_model(root, "copied", MODELS["copied"][0].replace("amount", "amounts as amount"), *MODELS["copied"][1:])
    site = Site(root, READER)
    with pytest.raises(EngineError, match=message) as raised:
        site.tick(START)
    assert str(raised.value).startswith(("SR780 models/_sources.yml:", "SR781 models/_sources.yml:"))
    assert site.ledger.read().published is None


@pytest.mark.slow
def test_other_spellings_wider_types_and_more_columns(tmp_path: Path) -> None:
    """Names of columns ignore case, a wider type holds all values, and undeclared columns are ignored."""
    rows = pa.table({"ID": pa.array([1, 2], pa.int32()), "Shop": ["a", None], "amount": pa.array([5, 6], pa.int16()),
                     "At": pa.array([START, START], pa.timestamp("us", "UTC")), "more": [1.5, 2.5]})  # fmt: skip
    write_deltalake(str(tmp_path / "lake" / "orders"), rows, partition_by=["Shop"])
    site = site_of(tmp_path, "copied", "totals")
    tick(site, 0)
    write_deltalake(str(tmp_path / "lake" / "orders"), rows.slice(0, 1), mode="append")
    tick(site, 1)
    assert copied(site) == {row(1): 2, row(2, None, 6): 1}
    assert not wrong(site)


def test_a_column_that_came_later_is_null_before(tmp_path: Path) -> None:
    """Older files lack the column."""
    path = str(tmp_path / "lake" / "orders")
    table = pa.table({"id": [1], "shop": ["a"], "at": pa.array([START], pa.timestamp("us", "UTC"))})
    write_deltalake(path, table)
    write_deltalake(path, table.append_column("amount", pa.array([5])), mode="append", schema_mode="merge")
    site = site_of(tmp_path, "copied")
    tick(site, 0)
    assert copied(site) == {row(1): 1, row(1, amount=None): 1}
    DeltaTable(path).delete("amount is null")
    tick(site, 1)
    assert copied(site) == {row(1): 1}


def test_another_type_for_a_while_rebuilds(tmp_path: Path) -> None:
    """Files of a version with another type can't be compared."""
    lake = lake_of(tmp_path)
    lake.append([row(1)])
    site = site_of(tmp_path, "copied")
    tick(site, 0)
    rows = lake.table.to_pyarrow_table()
    texts = rows.set_column(2, "amount", pa.array(["many"]))
    write_deltalake(lake.path, texts, mode="overwrite", schema_mode="overwrite")
    write_deltalake(lake.path, rows, mode="overwrite", schema_mode="overwrite")
    tick(site, 1)
    assert copied(site) == lake.rows
    assert "its source lake.orders had the column amount as string for a while" in rebuild_notes(site)[0]


@pytest.mark.parametrize("path", ["/etc/passwd", "../../secret.parquet", "%2e%2e/secret.parquet", "file:///etc/a"])
def test_files_outside_of_the_folder_are_refused(tmp_path: Path, path: str) -> None:
    """A stranger's log can't make sqlrun read other files, neither at first nor later."""
    lake = lake_of(tmp_path)
    lake.append([row(1)])
    site = site_of(tmp_path, "copied")
    tick(site, 0)
    lake.append([row(2)])

    def leave(actions: list[dict[str, Any]]) -> None:
        next(action["add"] for action in actions if "add" in action)["path"] = path

    edit(lake, leave, 2)
    with pytest.raises(EngineError, match=r"SR782.*outside of the table's folder.*deep clone"):
        site.tick(START + FIVE)
    other = Site(project(tmp_path / "other", ("copied",)), READER)
    (tmp_path / "other" / "lake").symlink_to(tmp_path / "lake")
    with pytest.raises(EngineError, match="SR782"):
        other.tick(START)


@pytest.mark.parametrize("kind", ["p", "u"])
def test_vectors_outside_of_the_folder_are_refused(tmp_path: Path, kind: str) -> None:
    """Nor can a deletion vector."""
    lake = lake_of(tmp_path, "vectors")
    lake.append([row(1), row(2)])
    lake.mark_one()
    name = "/etc/passwd" if kind == "p" else "../../" + "a" * 20

    def leave(actions: list[dict[str, Any]]) -> None:
        add = next(action["add"] for action in actions if "add" in action)
        add["deletionVector"] = {**add["deletionVector"], "storageType": kind, "pathOrInlineDv": name, "offset": 1}

    edit(lake, leave, 2)
    with pytest.raises(EngineError, match="SR782"):
        site_of(tmp_path, "copied").tick(START)


def test_features_that_sqlrun_cannot_read_are_named(tmp_path: Path) -> None:
    """Column mapping gives files other column names; an unknown feature may mean anything."""
    lake = lake_of(tmp_path)

    def mapped(actions: list[dict[str, Any]]) -> None:
        next(a["metaData"] for a in actions if "metaData" in a)["configuration"] = {"delta.columnMapping.mode": "name"}

    edit(lake, mapped)
    with pytest.raises(EngineError, match=r"SR780 .*column mapping by name"):
        site_of(tmp_path, "copied").tick(START)

    other = lake_of(tmp_path / "other", "vectors")

    def featured(actions: list[dict[str, Any]]) -> None:
        protocol = next(a["protocol"] for a in actions if "protocol" in a)
        protocol["readerFeatures"] = [*protocol["readerFeatures"], "typeWidening"]
        protocol["writerFeatures"] = [*protocol["writerFeatures"], "typeWidening"]

    edit(other, featured)
    with pytest.raises(EngineError, match=r"SR780 .*typeWidening"):
        site_of(tmp_path / "other", "copied").tick(START)


def test_quarantine_has_no_meaning(tmp_path: Path) -> None:
    """Nothing lands, so nothing can be quarantined."""
    root = project(tmp_path, ("copied",))
    (root / "expectations").mkdir()
    (root / "expectations" / "copied.yml").write_text(
        "expectations:\n  - type: expect_column_values_to_not_be_null\n"
        "    kwargs: {column: shop}\n    on_fail: quarantine\n"
    )
    with pytest.raises(ProjectError, match="SR708"):
        prepare(root)


@pytest.mark.slow
def test_checks_run_on_a_reader(tmp_path: Path) -> None:
    """A model over the table is checked like any other."""
    lake = lake_of(tmp_path)
    lake.append([row(1)])
    root = project(tmp_path, ("copied",))
    (root / "expectations").mkdir()
    (root / "expectations" / "copied.yml").write_text(
        "expectations:\n  - type: expect_column_values_to_not_be_null\n    kwargs: {column: shop}\n"
    )
    site = Site(root, READER)
    tick(site, 0)
    lake.append([row(2, None)])
    assert not site.tick(START + FIVE).published
    lake.delete(2)
    tick(site, 2)
    assert copied(site) == lake.rows


@pytest.mark.parametrize("form", ["parts", "sidecars"])
def test_checkpoints_of_every_form(tmp_path: Path, form: str) -> None:
    """A checkpoint of several files, or with sidecars, has the same state as the commits before it."""
    import pyarrow.parquet as pq

    lake = lake_of(tmp_path, "vectors")
    lake.append([row(1), row(2)])
    lake.append([row(3)])
    lake.mark_one()
    wanted = delta_state.at(lake.path, 3)
    lake.table.create_checkpoint()
    log, single = Path(lake.path) / "_delta_log", Path(delta_table.checkpoint_path(lake.path, 3))
    whole = pq.read_table(single)
    single.unlink()
    if form == "parts":
        half = whole.num_rows // 2
        for number, part in enumerate((whole.slice(0, half), whole.slice(half)), 1):
            pq.write_table(part, log / f"{3:020d}.checkpoint.{number:010d}.{2:010d}.parquet")
    else:
        (log / "_sidecars").mkdir()
        added = whole.column("add").is_valid()
        pq.write_table(whole.filter(added).select(["add"]), log / "_sidecars" / "one.parquet")
        rest = whole.filter(pa.compute.invert(added)).select(["protocol", "metaData"])
        sidecars = pa.array([{"path": "one.parquet"}, *[None] * (rest.num_rows - 1)])
        identity = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"
        pq.write_table(rest.append_column("sidecar", sidecars), log / f"{3:020d}.checkpoint.{identity}.parquet")
    for version in range(3):
        (log / f"{version:020d}.json").unlink()
    found = delta_state.at(lake.path, 3)
    assert {name: delta_state.vector_of(entry) for name, entry in found.files.items()} == {
        name: delta_state.vector_of(entry) for name, entry in wanted.files.items()
    }
    assert found.metadata is not None
    assert found.protocol is not None


def test_a_missing_partition_value_of_a_removal_is_null(tmp_path: Path) -> None:
    """Spark leaves NULL out of the entry, and has written the empty text into the file."""
    lake = lake_of(tmp_path, "partitioned")
    lake.append([row(1, None), row(2, "a")])
    site = site_of(tmp_path, "totals")
    tick(site, 0)
    lake.delete(1)

    def leave_out(actions: list[dict[str, Any]]) -> None:
        next(action["remove"] for action in actions if "remove" in action)["partitionValues"] = {}

    edit(lake, leave_out, 2)
    tick(site, 1)
    assert [one["shop"] for one in site.rows("totals")] == ["a"]


@pytest.mark.slow
def test_other_partitions_are_another_layout_of_the_same_rows(tmp_path: Path) -> None:
    """An overwrite may change the partition columns: old and new files have them in other places."""
    lake = lake_of(tmp_path)
    lake.append([row(1), row(2, "b"), row(3, None)])
    site = site_of(tmp_path, "totals", "copied")
    tick(site, 0)
    rows = lake.table.to_pyarrow_table().slice(0, 2)
    write_deltalake(lake.path, rows, mode="overwrite", partition_by=["shop"], schema_mode="overwrite")
    tick(site, 1)
    assert sum(copied(site).values()) == 2
    assert not wrong(site)
    assert rebuild_notes(site) == []


UNIT_TESTS = """
unit_tests:
  - name: rows_come_and_leave
    model: totals
    given:
      - input: source('lake', 'orders')
        rows:
          - {id: 1, shop: a, amount: 5}
          - {id: 2, shop: a, amount: 6}
    expect:
      rows: [{shop: a, total: 11, n: 2}]
    then:
      - changes:
          - input: source('lake', 'orders')
            left: [{id: 1}]
            came: [{id: 3, shop: b, amount: 1}]
        expect:
          rows: [{shop: a, total: 6, n: 1}, {shop: b, total: 1, n: 1}]
"""


def test_rows_of_a_unit_test_may_leave(tmp_path: Path) -> None:
    """In a unit test the table is no append-only source; it has no raw lines."""
    root = project(tmp_path, ("totals",))
    file = root / "models" / "totals.yml"
    contract = file.read_text()
    file.write_text(contract + UNIT_TESTS)
    result = run(root)
    assert result.exit_code == 0, result.output
    file.write_text(contract + UNIT_TESTS.replace("left: [{id: 1}]", "lines: ['{}']"))
    result = run(root)
    assert result.exit_code == 2
    assert "`lines` for source('lake', 'orders'), which is a table" in result.output
