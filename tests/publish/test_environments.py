"""Environments: shared tables cost nothing, edited ones are separate, and production takes over tested tables."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner

import sqlrun
from sqlrun.cli.main import main
from sqlrun.commands import environments as environment_commands
from sqlrun.engines.delta import table as delta_table
from sqlrun.engines.duckdb.engine import DuckDBEngine
from sqlrun.errors import LockedError, UsageError
from sqlrun.events import Note, TickResult
from sqlrun.operations import maintenance, rollback
from sqlrun.operations.verify import verify
from sqlrun.plan import diff as plan_diff
from sqlrun.plan.plan import tick_plan
from sqlrun.publish import environment_paths, environments
from sqlrun.publish.ledger import Ledger
from sqlrun.publish.reader import tick_of
from sqlrun.report.console import Console
from tests.run.test_machine import EDITS, QUERIES, Stop, project, stopping
from tests.support import broken
from tests.support.projects import Site, prepared
from tests.support.script import FIVE, START
from tests.support.whole import differences

# `test_quality.py` tests checks.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]
NOW = datetime.now(timezone.utc)
SEED = {
    "seeds/areas.csv": "shop,area\nx,north\ny,south\n",
    "seeds/areas.yml": (
        "seeds:\n  - name: areas\n    description: Where shops are.\n    columns:\n"
        "      - {name: shop, data_type: string, description: The shop.}\n"
        "      - {name: area, data_type: string, description: Where.}\n"
    ),
    "models/mart_areas.sql": (
        "select a.area, count(*) as sales from {{ ref('stg_sales') }} as s\n"
        "join {{ ref('areas') }} as a on a.shop = s.shop group by a.area\n"
    ),
    "models/mart_areas.yml": broken.contract("mart_areas", "area string", "sales bigint"),
}


def sales(site: Site, name: str, *lines: tuple[str, int, str, int, int]) -> None:
    texts = [
        json.dumps(
            {"id": i, "version": v, "shop": s, "amount": f"{a}.00", "sold_at": f"{START + m * FIVE:%Y-%m-%dT%H:%M:%SZ}"}
        )
        for i, v, s, a, m in lines
    ]
    site.write(name, texts)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Production after one tick over three sales."""
    root = project(tmp_path_factory.mktemp("built") / "shops")
    broken.write(root, SEED)
    made = Site(root, DuckDBEngine())
    sales(made, "0.jsonl", ("a", 1, "x", 5, -1), ("b", 1, "y", 3, -2), ("c", 1, "x", 4, -3))
    assert made.tick(START).published
    return root


@pytest.fixture
def prod(built: Path, tmp_path: Path) -> Site:
    return Site(shutil.copytree(built, tmp_path / "site"), DuckDBEngine())


def beside(site: Site, env: str) -> Site:
    """Open another environment, with the project's current files."""
    return Site(site.root, site.engine, env)


def edit(site: Site, *names: str) -> None:
    """Edit models' files; only projects prepared afterwards see the edit."""
    for name in names:
        file = site.root / "models" / f"{name}.sql"
        old, new = EDITS[name]
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))


def edited(prod: Site, *names: str, env: str = "dev") -> Site:
    edit(prod, *names)
    return beside(prod, env)


def paths(site: Site) -> dict[str, str]:
    return {name: state.path for name, state in tick_of(site.ledger).tables.items()}


def heads(site: Site) -> dict[str, int | None]:
    folders = (p for p in Path(site.warehouse).glob("*/*") if not p.parent.name.startswith("_"))
    return {str(p.relative_to(site.warehouse)): delta_table.head(str(p)) for p in folders}


def true(site: Site) -> bool:
    """Return whether `sqlrun verify` passes for every table of the latest tick."""
    names = tuple(m.name for m in site.prepared.workspace.tables)
    found = verify(site.prepared.workspace, site.warehouse, tick_of(site.ledger), names, 1)
    return all(verdict.ok for verdict in found)


def writes(result: TickResult) -> dict[str, int]:
    return {s.table: s.receipt.commits for node in result.nodes for s in node.stages}


def planned(site: Site) -> dict[str, plan_diff.Edit]:
    names = tuple(n for n in site.prepared.graph.order if not n.startswith("source:"))
    known, other_environments = site.ledger.read(), environments.other_environments(site.ledger)
    plan = tick_plan(
        site.prepared.workspace,
        site.warehouse,
        known.published,
        known.last_tick + 1,
        START + FIVE,
        names,
        False,
        other_environments,
    )
    return {found.name: found for found in plan_diff.edits(site.prepared.workspace, plan)}


def said(site: Site) -> list[str]:
    return [event.text for event in site.events if isinstance(event, Note)]


def test_an_environment_without_edits_builds_no_table(prod: Site) -> None:
    dev, before = beside(prod, "dev"), heads(prod)
    sales(prod, "1.jsonl", ("d", 1, "x", 9, 0))

    result = dev.tick(START + FIVE)

    assert result.published
    assert result.nodes == ()
    assert heads(prod) == before
    assert paths(dev) == paths(prod)
    assert dev.everything() == prod.everything()
    assert said(dev) == ["Environment dev: 7 tables shared with production"]
    assert {found.fate for found in planned(dev).values()} == {"shared"}


def test_only_edited_models_and_their_readers_are_built(prod: Site) -> None:
    dev, before = edited(prod, "fct_slots"), heads(prod)

    found = planned(dev)
    result = dev.tick(START)

    own = {"fct_slots", "mart_hour"}
    assert {name for name, each in found.items() if each.fate == "rebuilt"} == own
    assert {node.name for node in result.nodes} == own
    assert {name for name, path in paths(dev).items() if path != paths(prod)[name]} == own
    assert {path: heads(prod)[path] for path in before} == before
    assert true(dev)
    assert true(prod)
    assert differences(dev, START) == {}


def test_an_environment_follows_production(prod: Site) -> None:
    """Changes arrive only through production's tables: corrections, skipped ticks and moving windows included."""
    dev = edited(prod, "fct_slots")
    dev.tick(START)
    for step in (1, 2):
        sales(prod, f"{step}.jsonl", ("a", step + 1, "x", 10 + step, -1), (f"n{step}", 1, "z", 2, step))
        assert prod.tick(START + step * FIVE).published
    assert true(dev)

    result = dev.tick(START + 2 * FIVE)

    assert {node.name: node.status for node in result.nodes} == {"fct_slots": "success", "mart_hour": "success"}
    assert all(s.strategy != "full" and s.rows_in for node in result.nodes for s in node.stages)
    assert differences(dev, START + 2 * FIVE) == {}
    assert differences(prod, START + 2 * FIVE) == {}
    assert true(dev)


def test_a_tick_of_an_environment_does_not_lie_before_production_s(prod: Site) -> None:
    prod.tick(START + FIVE)

    with pytest.raises(UsageError, match="is earlier than the published tick 2 of production"):
        beside(prod, "dev").tick(START)


def test_promotion_takes_over_the_tables_and_continues_them(prod: Site) -> None:
    dev = edited(prod, "fct_slots")
    dev.tick(START)
    tried, old = paths(dev), paths(prod)
    sales(prod, "1.jsonl", ("d", 1, "z", 9, 0))
    prod.prepared = prepared(prod.root)

    found = planned(prod)
    result = prod.tick(START + FIVE)

    assert {name for name, each in found.items() if each.fate == "promoted"} == {"fct_slots", "mart_hour"}
    assert found["mart_hour"].why == "built in dev, tick 1; it continues from there"
    assert not any(each.reads for each in found.values())
    assert "fct_slots: promoted from dev, tick 1" in said(prod)
    assert {n: paths(prod)[n] for n in ("fct_slots", "mart_hour")} == {n: tried[n] for n in ("fct_slots", "mart_hour")}
    assert not set(heads(prod)) - {*old.values(), *tried.values()}
    assert [s.rows_in for node in result.nodes for s in node.stages if s.table == "fct_slots"] == [1]
    assert differences(prod, START + FIVE) == {}
    assert true(prod)
    # Each has its own tick numbers: Spark skips a write whose number its writer has used.
    table = delta_table.open_table(f"{prod.warehouse}/{tried['fct_slots']}")
    writers = [table.transaction_version(f"small{env}.{tried['fct_slots']}") for env in ("@dev", "")]
    assert writers == [1, 2]
    # From here on it is production's.
    before = heads(prod)
    assert dev.tick(START + FIVE).nodes == ()
    assert heads(prod) == before
    assert dev.everything() == prod.everything()


def test_a_landing_model_edited_in_an_environment_lands_by_itself_and_is_promoted(prod: Site) -> None:
    dev, old = edited(prod, "stg_lines"), paths(prod)["stg_lines"]
    dev.tick(START)
    sales(prod, "1.jsonl", ("d", 1, "z", 9, 0))
    dev.tick(START + FIVE)

    assert {row["shop"] for row in dev.rows("stg_lines")} == {"X", "Y", "Z"}
    assert {row["shop"] for row in prod.rows("stg_lines")} == {"x", "y"}
    assert differences(dev, START + FIVE) == {}
    prod.tick(START + FIVE)
    assert len(prod.rows("stg_lines")) == len(dev.rows("stg_lines")) == 4
    sales(prod, "2.jsonl", ("e", 1, "z", 9, 0))
    prod.prepared = prepared(prod.root)
    result = prod.tick(START + 2 * FIVE)

    assert {each.partition(":")[0] for each in said(prod)} == set(prod.prepared.graph.order[-6:]) - {"areas"}
    assert next(node for node in result.nodes if node.name == "stg_lines").rows == 1
    assert paths(prod)["stg_lines"] != old
    assert len(prod.rows("stg_lines")) == 5
    assert differences(prod, START + 2 * FIVE) == {}


def test_an_edited_environment_does_not_write_to_promoted_tables(prod: Site) -> None:
    """The table of this hash has the environment's name in its path, and is production's now."""
    dev = edited(prod, "stg_sales")
    dev.tick(START)
    prod.prepared = prepared(prod.root)
    prod.tick(START)
    taken, before = paths(prod)["mart_areas"], heads(prod)
    assert environment_paths.owner(taken) == "dev"
    (prod.root / "seeds" / "areas.csv").write_text("shop,area\nx,west\ny,south\n")
    dev.prepared = prepared(dev.root)

    dev.tick(START)

    assert environment_paths.has_fingerprint(paths(dev)["mart_areas"], taken.removesuffix(".dev"))
    assert {path: heads(prod)[path] for path in before} == before
    assert true(dev)
    assert true(prod)


def test_an_edited_seed_is_the_environment_s_own(prod: Site) -> None:
    seed = prod.root / "seeds" / "areas.csv"
    seed.write_text("shop,area\nx,west\ny,south\n")
    dev = beside(prod, "dev")

    assert {name for name, each in planned(dev).items() if each.fate == "rebuilt"} == {"areas", "mart_areas"}
    dev.tick(START)

    assert {row["area"] for row in dev.rows("mart_areas")} == {"west", "south"}
    assert {row["area"] for row in prod.rows("mart_areas")} == {"north", "south"}
    assert true(dev)
    prod.prepared = prepared(prod.root)
    prod.tick(START)
    assert prod.everything()["mart_areas"] == dev.everything()["mart_areas"]
    assert dev.tick(START).nodes == ()
    assert paths(dev) == paths(prod)


@pytest.mark.parametrize(("who", "other", "where"), [("dev", "prod", "publish"), ("prod", "dev", "write")])
def test_a_crash_in_one_environment_does_not_affect_the_other(prod: Site, who: str, other: str, where: str) -> None:
    """Each rolls back its own unfinished writes."""
    dev = edited(prod, "mart_best")
    dev.tick(START)
    sites = {"dev": dev, "prod": prod}
    before = sites[other].everything()
    sales(prod, "1.jsonl", ("d", 1, "z", 9, 0), ("a", 2, "y", 9, 0))
    prod.tick(START + FIVE) if who == "dev" else None
    before = sites[other].everything()
    owner = {"write": (prod.engine, "write"), "publish": (Ledger, "publish")}[where]
    with stopping(*owner, 1, after=where == "write"), pytest.raises(Stop):
        sites[who].tick(START + FIVE)

    assert sites[other].everything() == before
    left = {path: version for path, version in heads(prod).items() if path in paths(sites[who]).values()}
    assert sites[other].tick(START + FIVE).published
    if other == "dev":
        assert {path: heads(prod)[path] for path in left} == left
    assert true(sites[other])
    assert sites[who].tick(START + FIVE).published
    assert dev.tick(START + FIVE).published
    assert differences(dev, START + FIVE) == {} == differences(prod, START + FIVE)


@pytest.mark.parametrize("where", ["write", "publish"])
def test_an_interrupted_promotion_leaves_the_table_to_the_environment(prod: Site, where: str) -> None:
    dev = edited(prod, "stg_sales")
    dev.tick(START)
    before = dev.everything()
    sales(prod, "1.jsonl", ("d", 1, "z", 9, 0), ("a", 2, "y", 9, 0))
    prod.prepared = prepared(prod.root)
    owner = {"write": (prod.engine, "write"), "publish": (Ledger, "publish")}[where]
    with stopping(*owner, 1, after=where == "write"), pytest.raises(Stop):
        prod.tick(START + FIVE)

    assert dev.everything() == before
    assert dev.tick(START + FIVE).published
    assert true(dev)
    assert prod.tick(START + FIVE).published
    assert "stg_sales: promoted from dev, tick 2" in said(prod)
    assert differences(prod, START + FIVE) == {}


def test_production_rolls_back_after_a_promotion(prod: Site) -> None:
    """A promoted table has read rolled-back rows: no table derives from it, and all tables are correct again."""
    dev = edited(prod, "stg_sales")
    dev.tick(START)
    prod.prepared = prepared(prod.root)
    sales(prod, "1.jsonl", ("d", 1, "z", 9, 0), ("a", 2, "y", 9, 0))
    prod.tick(START + FIVE)
    dev.tick(START + FIVE)
    rollback.roll_back(prod.ledger, 1, NOW, Console(quiet=True))

    assert dev.tick(START + FIVE).published
    assert any("was rolled back to before what it read" in each for each in said(dev))
    assert true(dev)
    sales(prod, "2.jsonl", ("e", 1, "x", 1, 0))
    assert prod.tick(START + 2 * FIVE).published
    assert differences(prod, START + 2 * FIVE) == {}
    assert dev.tick(START + 2 * FIVE).published
    assert differences(dev, START + 2 * FIVE) == {}
    # And forward again, to a tick whose tables the environment has written to since.
    rollback.roll_back(prod.ledger, 2, NOW, Console(quiet=True))
    assert dev.tick(START + 2 * FIVE).published
    assert true(dev)
    assert prod.tick(START + 3 * FIVE).published
    assert differences(prod, START + 3 * FIVE) == {}


def test_an_environment_rolls_back(prod: Site) -> None:
    dev = edited(prod, "mart_best")
    dev.tick(START)
    before = dev.everything()
    sales(prod, "1.jsonl", ("d", 1, "x", 9, 0), ("e", 1, "x", 8, 0))
    prod.tick(START + FIVE)
    dev.tick(START + FIVE)
    assert dev.everything() != before

    rollback.roll_back(dev.ledger, 1, NOW, Console(quiet=True))

    assert dev.everything() == before
    assert dev.tick(START + FIVE).published
    assert differences(dev, START + FIVE) == {}


def test_tables_later_than_production_s_tick_are_not_promoted(prod: Site) -> None:
    dev = edited(prod, "mart_hour")
    dev.tick(START + 2 * FIVE)
    prod.prepared = prepared(prod.root)

    prod.tick(START + FIVE)

    assert any("mart_hour: rebuilt, not promoted from dev" in each for each in said(prod))
    assert paths(prod)["mart_hour"] != paths(dev)["mart_hour"]
    assert differences(prod, START + FIVE) == {}


def test_tables_that_have_read_more_than_production_are_not_promoted(prod: Site) -> None:
    sales(prod, "1.jsonl", ("d", 1, "z", 9, 0), ("a", 2, "y", 9, 0))
    prod.tick(START + FIVE)
    edited(prod, "mart_best").tick(START + FIVE)
    rollback.roll_back(prod.ledger, 1, NOW, Console(quiet=True))
    prod.prepared = prepared(prod.root)

    prod.tick(START + FIVE)

    assert "not promoted from dev: stg_sales was rolled back to before what it read there" in said(prod)[-1]
    assert differences(prod, START + FIVE) == {}


def test_tables_computed_from_another_table_are_not_promoted(prod: Site) -> None:
    seed, model = prod.root / "seeds" / "areas.csv", prod.root / "models" / "mart_areas.sql"
    rows = seed.read_text()
    seed.write_text(rows.replace("north", "west"))
    model.write_text(model.read_text().replace("count(*)", "count(s.id)"))
    beside(prod, "dev").tick(START)
    seed.write_text(rows)
    prod.prepared = prepared(prod.root)

    assert planned(prod)["mart_areas"].why.endswith(
        "edited; not promoted from dev: it was built there from another table of areas"
    )
    prod.tick(START)

    assert differences(prod, START) == {}


def test_two_environments_with_the_same_edit_write_tables_of_their_own(prod: Site) -> None:
    one = edited(prod, "mart_best")
    other = beside(prod, "dev-2")
    one.tick(START)
    other.tick(START)

    assert paths(one)["mart_best"] != paths(other)["mart_best"]
    assert one.everything() == other.everything()
    prod.prepared = prepared(prod.root)
    prod.tick(START)
    assert one.tick(START).nodes == other.tick(START).nodes == ()
    assert paths(one) == paths(other) == paths(prod)


def test_production_builds_an_edit_of_its_own(prod: Site) -> None:
    """An environment uses production's table of a definition, whoever built it first."""
    edit(prod, "mart_best")
    prod.prepared = prepared(prod.root)
    prod.tick(START)
    dev = beside(prod, "dev")

    assert dev.tick(START).nodes == ()


def test_an_environment_keeps_a_definition_that_production_drops(prod: Site) -> None:
    dev = beside(prod, "dev")
    dev.tick(START)
    edit(prod, "mart_best")
    prod.prepared = prepared(prod.root)
    prod.tick(START)

    assert planned(dev)["mart_best"].why == "production no longer maintains it this way"
    dev.tick(START)
    assert environment_paths.owner(paths(dev)["mart_best"]) == "dev"
    assert true(dev)


def test_maintenance_of_production_leaves_environments_intact(prod: Site) -> None:
    dev = edited(prod, "fct_slots")
    dev.tick(START)
    before = dev.everything()
    for step in (1, 2):
        sales(prod, f"{step}.jsonl", ("a", step + 1, "x", 10 + step, -1))
        prod.tick(START + step * FIVE)

    done = maintenance.vacuum(prod.ledger, 1, NOW, lambda _: None)

    assert done.merged
    assert done.tables == ()
    assert dev.everything() == before
    assert dev.tick(START + 2 * FIVE).published
    assert differences(dev, START + 2 * FIVE) == {}
    shared = {name: state.version for name, state in tick_of(prod.ledger).tables.items()}
    maintenance.vacuum(dev.ledger, 1, NOW, lambda _: None)
    assert {name: state.version for name, state in tick_of(prod.ledger).tables.items()} == shared
    assert true(dev)


def test_a_dropped_environment_leaves_tables_of_others(prod: Site) -> None:
    dev = edited(prod, "fct_slots", "mart_best")
    dev.tick(START)
    (prod.root / "models" / "fct_slots.sql").write_text(QUERIES["fct_slots"][0] + "\n")
    prod.prepared = prepared(prod.root)
    prod.tick(START)
    before, taken = prod.everything(), paths(prod)["mart_best"]
    rows = {row[0]: row[1:] for row in environment_commands.listed(prod.ledger)}
    assert rows["dev"] == (1, f"{START:%Y-%m-%d %H:%M}", 2, 5, "")
    assert rows["prod"][2:] == (7, 0, "")

    gone = environment_commands.drop(dev.ledger, NOW)

    assert environment_paths.owner(taken) == "dev"
    assert sorted(path.partition("/")[0] for path in gone) == ["fct_slots", "mart_hour"]
    assert prod.everything() == before
    assert environments.names(prod.warehouse) == []
    assert prod.tick(START + FIVE).published
    with pytest.raises(UsageError, match=r"unknown environment `dev` .* Environments: prod"):
        environment_commands.drop(dev.ledger, NOW)
    # Its tick numbers stay used: a table that it left may record them.
    edit(prod, "fct_slots")
    again = beside(prod, "dev")
    assert again.tick(START + FIVE).tick == 2
    assert true(again)


def test_a_drop_that_was_overtaken_deletes_no_table(prod: Site) -> None:
    """Another build may have taken over one of them."""
    dev = edited(prod, "fct_slots")
    dev.tick(START)
    before, real = heads(prod), Ledger.drop
    file = Path(prod.warehouse) / "_sqlrun" / "lock"

    def overtaken(ledger: Ledger) -> None:
        real(ledger)
        file.write_text("{}")

    overtaking = mock.patch.object(Ledger, "drop", overtaken)
    with overtaking, pytest.raises(LockedError, match="taken over by another build"):
        environment_commands.drop(dev.ledger, NOW)

    assert environments.names(prod.warehouse) == []
    assert heads(prod) == before


def test_the_first_build_of_production_takes_over_all_of_an_environment(tmp_path: Path) -> None:
    root = project(tmp_path / "shops")
    broken.write(root, SEED)
    prod = Site(root, DuckDBEngine())
    sales(prod, "0.jsonl", ("a", 1, "x", 5, -1), ("b", 1, "y", 3, -2))
    dev = beside(prod, "dev")
    dev.tick(START)

    result = prod.tick(START)

    assert sum(writes(result).values()) == 0
    assert prod.everything() == dev.everything()
    assert paths(prod) == paths(dev)
    assert true(prod)
    # The environment must not load a seed that production has taken over, even if its rows differ.
    (prod.root / "seeds" / "areas.csv").write_text("shop,area\nx,west\ny,south\n")
    prod.prepared = prepared(prod.root)
    prod.tick(START)
    before = heads(prod)
    dev.tick(START)
    assert {path: heads(prod)[path] for path in before} == before
    assert true(dev)


@pytest.mark.parametrize("name", ["Dev", "a b", "../x", "a/b", "x" * 41, "é", "a.b"])
def test_an_invalid_name_is_rejected(name: str) -> None:
    with pytest.raises(UsageError, match="isn't a valid name for an environment"):
        Ledger("warehouse", "small", name)


def test_production_has_a_name(prod: Site) -> None:
    assert Ledger(prod.warehouse, "small", "prod").path == prod.ledger.path
    with pytest.raises(UsageError, match="prod can't be dropped"):
        environment_commands.drop(prod.ledger, NOW)


def test_an_unknown_environment_is_reported(prod: Site) -> None:
    with pytest.raises(UsageError, match=r"unknown environment `qa` .* prod. .*`sqlrun build --env qa`"):
        sqlrun.published("mart_best", prod.warehouse, env="qa")
    beside(prod, "qa").ledger.pin(1, START, {}, NOW, "test")
    with pytest.raises(UsageError, match=r"environment qa of .* has no published tick yet"):
        sqlrun.published("mart_best", prod.warehouse, env="qa")


def test_commands_take_an_environment(prod: Site) -> None:
    (prod.root / "profiles").mkdir()
    (prod.root / "profiles" / "duckdb.yml").write_text("engine: duckdb\nwarehouse: warehouse\n")
    (prod.root / "pyproject.toml").write_text('[tool.sqlrun]\nname = "small"\nprofile = "duckdb"\n')
    edit(prod, "mart_best")

    def run(*words: str) -> str:
        done = CliRunner().invoke(main, ["--project-dir", str(prod.root), *words])
        assert done.exit_code == 0, done.output
        return done.output

    assert "rebuilt  mart_best" in run("plan", "--env", "dev")
    run("build", "--env", "dev", "--skip-tests")
    assert "mart_best" in run("show", "mart_best", "--env", "dev")
    assert "published" in run("ticks", "--env", "dev")
    assert "Every table equals its query" in run("verify", "--env", "dev")
    assert ".dev`" in run("views", "--env", "dev")
    assert "promoted  mart_best" in run("plan")
    run("build", "--env", "dev", "--skip-tests")
    run("diff", "mart_best", "--env", "dev")
    assert "tick 1 again" in run("rollback", "--env", "dev", "--to", "1")
    run("vacuum", "--env", "dev")
    assert "dev" in run("env", "list")
    assert sqlrun.published("mart_best", prod.warehouse, env="dev").num_rows == 3
    assert any(".dev`" in each for each in sqlrun.views(prod.warehouse, env="dev"))
    assert "Deleted mart_best/" in run("env", "drop", "dev")


def test_a_column_added_at_the_end_is_a_new_table(prod: Site) -> None:
    """Earlier ticks show only the old table, in which no row ever changed its meaning."""
    old, before = paths(prod)["fct_slots"], prod.everything()["fct_slots"]
    head = heads(prod)[old]
    query = prod.root / "models" / "fct_slots.sql"
    query.write_text(query.read_text().replace("as total\n", "as total, max(amount) as largest\n"))
    contract = prod.root / "models" / "fct_slots.yml"
    line = "      - {name: largest, data_type: 'decimal(9,2)', description: It.}\n"
    contract.write_text(contract.read_text() + line)
    prod.prepared = prepared(prod.root)

    assert planned(prod)["fct_slots"].columns == ("+ largest decimal(9,2)",)
    prod.tick(START)

    assert paths(prod)["fct_slots"] != old
    assert heads(prod)[old] == head
    assert prod.everything(1)["fct_slots"] == before
    assert Counter(row["largest"] for row in prod.rows("fct_slots")) == Counter([5, 3, 4])
    assert true(prod)
