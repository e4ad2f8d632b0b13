"""The folder that `sqlrun docs generate` writes: its facts, its files, its server."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import tomllib
from click.testing import CliRunner

from sqlrun.artifacts.artifact_files import naming_of
from sqlrun.cli.main import main
from sqlrun.docs_site import site_files
from sqlrun.docs_site.examples import example
from sqlrun.docs_site.levels import levels, places
from sqlrun.docs_site.nodes import Pages
from sqlrun.docs_site.server import serve
from sqlrun.docs_site.subject import Past, Subject
from sqlrun.errors import SqlrunError, UsageError
from sqlrun.explain import explain
from sqlrun.pipeline import Prepared
from sqlrun.runtime import atomic_files
from tests.artifacts.test_artifacts import project
from tests.support.projects import ROOT, prepared

AT = datetime(2026, 1, 1, 12, 5, tzinfo=timezone.utc)
FILES: dict[str, str] = {
    "models__paid_sql": "select id, cents, cents / 100 as euros from {{ ref('raw') }} where cents > 100\n",
    "models__paid_yml": "models:\n  - name: paid\n    description: |\n      The **paid** orders.\n    grain: [id]\n"
    "    columns:\n      - {name: id, data_type: int, description: The order., data_tests: [not_null]}\n"
    "      - {name: cents, data_type: int, description: Paid., unit: cent}\n"
    "      - {name: euros, data_type: double, description: In euros., unit: EUR}\n"
    "unit_tests:\n  - name: more_than_a_euro\n    model: paid\n    given:\n      - input: ref('raw')\n"
    "        rows: [{id: 1, cents: 100}, {id: 2, cents: 205}]\n"
    "    expect: {rows: [{id: 2, cents: 205, euros: 2.05}]}\n",
    "models__total_sql": "select sum(cents) as cents from {{ ref('paid') }}\n",
    "models__total_yml": "models:\n  - name: total\n    description: The sum.\n    grain: []\n    columns:\n"
    "      - {name: cents, data_type: bigint, description: The sum., unit: cent}\n",
    "models___exposures_yml": "exposures:\n  - name: board\n    type: dashboard\n    description: A board.\n"
    "    owner: {name: Shop}\n    depends_on: [ref('total')]\n",
}


def subject(made: Prepared, past: Past | None = None) -> Subject:
    return Subject(made, naming_of(made.project, None), past or Past(), dict.fromkeys(made.names, "duckdb"), AT)


def pages(made: Prepared, past: Past | None = None) -> dict[str, Any]:
    return dict(Pages(subject(made, past)))


def write(folder: Path, made: Prepared, at: datetime = AT) -> Path:
    return site_files.write(folder, subject(made), "", at)


def data(page: Path, name: str) -> Any:
    """Return what a kind of script hands over, of each file that is there."""
    found = sorted((page.parent / "files").glob(f"data-{name}-*.js"))
    return [json.loads(file.read_text().partition("(")[2].removesuffix(");\n")) for file in found]


# ── facts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_has_the_columns_with_units_tests_and_lineage(tmp_path: Path) -> None:
    found = pages(project(tmp_path, **FILES))

    assert set(found) == {"raw", "paid", "total", "exposure:board"}
    id_, cents, euros, rows = found["paid"]["columns"]
    assert (cents["name"], cents["type"], cents["unit"]) == ("cents", "int", "cent")
    assert [found["paid"]["checks"][place]["label"] for place in id_["checks"]] == ["not null", "unique"]
    assert id_["in_grain"] and not cents["in_grain"]
    assert (cents["how"], cents["made_of"]) == ("copied", [["raw", "cents", ""]])
    assert (euros["how"], euros["steps"][0]["at"]) == ("computed", "models/paid.sql:1:19")
    assert cents["feeds"] == [["total", "cents"]]
    assert cents["also"] == [["raw", "cents", ["where"]]]
    assert rows["name"] == "*" and rows["made_of"] == [["raw", "*", ""]]
    assert ["paid", ["where"]] in next(one for one in found["raw"]["columns"] if one["name"] == "cents")["filters"]
    assert found["exposure:board"]["reads"] == ["total"]


def test_a_page_has_the_statements_and_reasons_that_explain_prints(tmp_path: Path) -> None:
    made = project(tmp_path, **FILES)
    page = pages(made)["total"]
    about = explain.described(made.workspace, made.workspace.model("total"), "duckdb", AT, explain.Known({}, {}))

    assert page["plan"]["tables"] == about["tables"] and len(page["plan"]["tables"][0]["statement"]) > 100
    assert page["plan"]["reason"] == about["reason"]
    assert "from `spark_catalog`.`shop`.`paid`" in page["compiled_sql"]
    assert "{{ ref('paid') }}" in page["source_sql"]


def test_every_node_of_the_reference_project_has_a_page() -> None:
    made = prepared(ROOT)
    found = pages(made)

    assert {name for name in found if ":" not in name} == set(made.graph.nodes)
    assert f"source:{made.project.sources[0].group}.{made.project.sources[0].name}" in found
    tests = sum(len(page.get("examples", ())) for page in found.values())
    assert tests == len(made.project.unit_tests) > 40
    for name in made.names:
        columns = [one["name"] for one in found[name]["columns"]]
        assert columns == [*next(query for query in made.queries if query.name == name).columns, "*"]
        assert all(one["type"] for one in found[name]["columns"][:-1])


def test_lineage_leads_to_columns_that_have_a_page() -> None:
    """A link leads nowhere if its node or its column has no page."""
    found = pages(prepared(ROOT))
    known = {(name, one["name"]) for name, page in found.items() for one in page.get("columns", ())}
    linked = {
        tuple(link[:2])
        for page in found.values()
        for one in page.get("columns", ())
        for key in ("made_of", "also", "feeds")
        for link in one[key]
    }

    assert len(linked) > 50 and linked <= known


def test_the_way_up_and_the_way_down_are_the_same_edges() -> None:
    found = pages(prepared(ROOT))
    columns = [(name, one) for name, page in found.items() for one in page.get("columns", ())]
    up = {(*link[:2], name, one["name"]) for name, one in columns for link in one["made_of"]}
    down = {(name, one["name"], *link) for name, one in columns for link in one["feeds"]}

    assert up == down and len(up) > 50


def test_an_example_keeps_the_digits_of_a_long_number(tmp_path: Path) -> None:
    made = project(tmp_path, **FILES)
    shown = example(made.project.models[0].unit_tests[0])

    rows = {"columns": ["id", "cents"], "rows": [["1", "100"], ["2", "205"]]}
    assert shown["given"] == [{"input": "ref('raw')", "rows": rows}]
    assert shown["ticks"][0]["expect"]["whole"]["rows"]["rows"] == [["2", "205", "2.05"]]


def test_places_of_a_graph_are_all_different_and_readers_stand_right_of_inputs() -> None:
    made = prepared(ROOT)
    parents = {name: made.graph.parents[name] for name in made.graph.order}
    found = places(made.graph.order, parents)

    assert len(set(found.values())) == len(made.graph.order)
    assert all(found[parent][0] < found[name][0] for name in parents for parent in parents[name])
    assert levels([], {}) == {} and places([], {}) == {}


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────


def named(page: Path) -> set[str]:
    """Return the files that a site names: those of the page, and those of its index."""
    (index,) = data(page, "index")
    scripts = [node["script"] for node in index["nodes"]]
    viewers = [file for files in index["viewers"].values() for file in files]
    text = page.read_text()
    own = {f"files/{file.name}" for file in (page.parent / "files").iterdir() if f"files/{file.name}" in text}
    return {*own, index["columns"], *scripts, *viewers, *index["licenses"]}


def test_the_page_names_the_files_that_are_there(tmp_path: Path) -> None:
    page = write(tmp_path, project(tmp_path, **FILES))

    assert page == tmp_path / "target" / "docs" / "index.html"
    assert named(page) == {f"files/{file.name}" for file in (page.parent / "files").iterdir()}
    assert "<title>shop: docs</title>" in page.read_text() and "{{" not in page.read_text()
    (index,) = data(page, "index")
    assert [(node["id"], node["kind"]) for node in index["nodes"]] == [
        ("raw", "seed"), ("paid", "model"), ("total", "model"), ("exposure:board", "exposure"),
    ]  # fmt: skip
    assert index["edges"] == [[0, 1], [1, 2], [2, 3]]


def test_the_same_project_has_the_same_bytes_but_for_the_time(tmp_path: Path) -> None:
    made = project(tmp_path, **FILES)
    page = write(tmp_path, made)
    first = {file.name: file.read_bytes() for file in (page.parent / "files").iterdir()}
    write(tmp_path, made)
    assert {file.name: file.read_bytes() for file in (page.parent / "files").iterdir()} == first
    write(tmp_path, made, AT + timedelta(days=1))
    later = {file.name: file.read_bytes() for file in (page.parent / "files").iterdir()}

    changed = {name.rpartition("-")[0] for name in first.keys() ^ later.keys()}
    assert changed == {"data-index"} and len(first) == len(later)


def test_files_of_removed_models_go_and_foreign_files_stay(tmp_path: Path) -> None:
    page = write(tmp_path, project(tmp_path, **FILES))
    files = page.parent / "files"
    foreign = [
        page.parent / "notes.txt",
        files / "logo.png",
        files / "data-node-0123456789ab.js",
        files / "sub" / "x.js",
    ]
    for file in foreign:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    before = len(list(files.glob("data-node-*.js")))
    for name in ("models/total.sql", "models/total.yml", "models/_exposures.yml"):
        (tmp_path / name).unlink()
    write(tmp_path, project(tmp_path, **{key: text for key, text in FILES.items() if "paid" in key}))

    # The model and its exposure; the page of the model that it read is another file.
    assert len(list(files.glob("data-node-*.js"))) == before - 2
    assert all(file.read_text() == "mine" for file in foreign)


def test_a_run_that_ends_early_leaves_a_site_of_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = write(tmp_path, project(tmp_path, **FILES))
    old, before = page.read_text(), named(page)
    made = project(
        tmp_path, **{**FILES, "models__total_sql": "select sum(cents) + 1 as cents from {{ ref('paid') }}\n"}
    )
    put, left, stops = atomic_files.put, [0], 0

    def failing(file: Path, *words: Any, **options: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        put(file, *words, **options)

    monkeypatch.setattr(atomic_files, "put", failing)
    for stops in range(100):
        left[0] = stops
        # A file that an earlier try wrote isn't written again.
        for file in (page.parent / "files").iterdir():
            if f"files/{file.name}" not in before:
                file.unlink()
        try:
            write(tmp_path, made)
            break
        except SqlrunError as error:
            assert "No space left on device" in str(error)
            assert page.read_text() == old
            assert all((page.parent / name).is_file() for name in before)

    # The model, the model that it reads, whose lineage differs, the index and the page.
    assert stops == 3
    assert named(page) == {f"files/{file.name}" for file in (page.parent / "files").iterdir()}


def test_a_file_that_a_power_failure_emptied_is_written_again(tmp_path: Path) -> None:
    made = project(tmp_path, **FILES)
    page = write(tmp_path, made)
    whole = {file.name: file.read_bytes() for file in (page.parent / "files").iterdir()}
    for file in (page.parent / "files").iterdir():
        file.write_bytes(b"")
    write(tmp_path, made)

    assert {file.name: file.read_bytes() for file in (page.parent / "files").iterdir()} == whole


def test_a_link_in_the_folder_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path, **FILES)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "docs").symlink_to(elsewhere)

    with pytest.raises(UsageError, match="SR743"):
        write(tmp_path, made)
    assert list(elsewhere.iterdir()) == []


def test_hostile_texts_stay_inside_their_scripts(tmp_path: Path) -> None:
    text = "</script><script>alert(1)</script>\u2028`${x}`\\"
    edited = {**FILES, "models__total_yml": FILES["models__total_yml"].replace("The sum.", json.dumps(text), 1)}
    page = write(tmp_path, project(tmp_path, **edited))

    assert all(file.read_bytes().isascii() for file in (page.parent / "files").glob("data-node-*.js"))
    shown = dict(data(page, "node"))
    assert shown["total"]["description"] == text
    assert "alert" not in page.read_text()


def test_a_wheel_has_every_file_of_the_pages() -> None:
    globs = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["sqlrun"]
    package = ROOT / "sqlrun"
    listed = {file for pattern in globs for file in package.glob(pattern) if file.is_file()}
    there = {file for file in site_files.SOURCES.rglob("*") if file.is_file()}

    assert there <= listed
    copied = {site_files.PAGE, site_files.STYLE, site_files.BEFORE, *site_files.STARTED, *site_files.LICENSES}
    copied |= {name for names in site_files.VIEWERS.values() for name in names}
    assert {file.relative_to(site_files.SOURCES).as_posix() for file in there} == copied


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_site_has_the_last_checks_and_the_run_stats_of_the_warehouse(tmp_path: Path) -> None:
    project(tmp_path, **FILES)

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, ["--project-dir", str(tmp_path), *words])
        assert result.exit_code == 0, result.output
        return result.output

    run("build", "--quiet", "--skip-tests", "--as-of", "2026-01-01T12:00:00Z")
    shown = run("docs", "generate")
    page = tmp_path / "target" / "docs" / "index.html"
    (index,) = data(page, "index")
    found = dict(data(page, "node"))

    assert shown.splitlines() == [
        f"Wrote target/{name}" for name in ("manifest.json", "catalog.json", "docs/index.html")
    ]
    assert index["published"] == {"tick": 1, "as_of": "2026-01-01 12:00 UTC"}
    assert index["statements_at"] == "2026-01-01 12:00 UTC"
    assert (found["paid"]["rows"], found["total"]["rows"]) == (1, 1)
    assert {check["last"]["word"] for check in found["paid"]["checks"]} == {"passed"}
    (stats,) = found["paid"]["stats"]
    assert (stats["tick"], stats["table"], stats["engine"], stats["rows_changed"]) == (1, "paid", "duckdb", 1)
    # Nothing changed: the same folder.
    before = {file.name for file in (page.parent / "files").glob("data-node-*.js")}
    run("docs", "generate")
    assert {file.name for file in (page.parent / "files").glob("data-node-*.js")} == before


@contextmanager
def served(folder: Path) -> Iterator[int]:
    with serve(folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def ask(port: int, path: str, host: str = "localhost", method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_the_server_answers_for_the_site_alone(tmp_path: Path) -> None:
    page = write(tmp_path, project(tmp_path, **FILES))
    (tmp_path / "target" / "secret").write_text("secret")
    script = next((page.parent / "files").glob("data-node-*.js"))
    with served(page.parent) as port:
        assert ask(port, "/") == (200, page.read_bytes())
        assert ask(port, f"/files/{script.name}") == (200, script.read_bytes())
        assert ask(port, "/files/")[0] == 404
        assert ask(port, "/../secret")[0] == ask(port, "/%2e%2e/secret")[0] == 404
        assert ask(port, "/", host="evil.example")[0] == 421
        assert ask(port, "/", method="POST")[0] == 501
        with pytest.raises(UsageError, match=f"can't listen on 127.0.0.1:{port}.*--port"):
            serve(page.parent, port)


def test_without_a_site_the_server_names_the_command_that_writes_it(tmp_path: Path) -> None:
    project(tmp_path, **FILES)
    result = CliRunner().invoke(main, ["--project-dir", str(tmp_path), "docs", "serve"])

    assert result.exit_code != 0
    assert "there is no target/docs/index.html. Write it: sqlrun docs generate" in result.output
