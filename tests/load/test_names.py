"""Names of anything in a project: it builds correctly, or is refused with a code before anything is written.

`SQLRUN_NAMES=200` tries 200 random names in addition to the known awkward ones.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from tests.support import broken, named_projects, shops
from tests.values import pool

DRAWN = int(os.environ.get("SQLRUN_NAMES", "3"))
CHANCE = random.Random(1)
RANDOM = ["".join(CHANCE.choice(pool.ALPHABET) for _ in range(CHANCE.choice((1, 2, 3, 5, 20)))) for _ in range(DRAWN)]
FOLDERS = ("shop=r9/day=2026-01-01", "a*b?c", "a b'c\"d:~#&,;(x)!@+$={y}", "é日😀\u2028", "__HIVE_DEFAULT_PARTITION__")
REFUSED_FOLDERS = ("a[b]", "a|b", "a\\b", "a%20b", "a\nb", "\x1b[31m", "^", os.fsdecode(b"\xff"))
COLUMNS = ("a b", "a'b", "a`b", "select", "größe 日", "a.b", "a%20=b", "x" * 250, "_op", "filename", "-", "{x}")
REFUSED_COLUMNS = (
    "",
    " a",
    "a ",
    "a\xa0",
    "a\tb",
    "\x01",
    "a\u2028b",
    "\ufeffa",
    'a"b',
    "a\\b",
    "a;b",
    "*",
    "_n",
    "_part_1",
)
SALES = [shops.sale("1"), shops.sale("2", "bob"), shops.sale("3")]


def run(root: Path, *words: str) -> tuple[int, str]:
    """Run a command; with any name, it ends with an exit code."""
    done = CliRunner().invoke(main, ["--project-dir", str(root), *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def require_true(root: Path, name: str, column: str) -> None:
    """Build twice, maintain the tables' files, and compare what is shown with what was sent."""
    for number in range(2):
        code, output = run(root, "build")
        assert code == 0, output
        if number == 0:
            *_, last = (root / "data/orders/0.jsonl").read_text().split("\n")[:-1]
            (root / "data/orders/1.jsonl").write_text(last.replace('"3"', '"4"') + "\n")
    for command in ("vacuum", "verify", "doctor"):
        code, output = run(root, command)
        assert code == 0, output
    rows: list[dict[str, Any]] = json.loads(run(root, "show", name, "--output", "json")[1])
    assert sum(row["n"] for row in rows if row[column] == "ada") >= 2
    assert {row[column] for row in rows} == {"ada", "bob"}


def in_folder(root: Path) -> Path:
    made = shops.project(root)
    contract = made / "models" / "by_shop.yml"
    contract.write_text(
        contract.read_text().replace("grain: [shop]", "grain: [shop]\n    config: {partition_by: [shop]}")
    )
    (made / "data/orders/0.jsonl").write_text("".join(json.dumps(each) + "\n" for each in SALES))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_a_project_in_an_odd_folder_builds_correctly(tmp_path: Path, name: str) -> None:
    require_true(in_folder(tmp_path / name), "by_shop", "shop")


@pytest.mark.parametrize("name", REFUSED_FOLDERS)
def test_a_folder_that_engines_misread_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    root = in_folder(tmp_path / name)

    code, output = run(root, "build")

    assert code == 2 and "SR737" in output and not (root / "warehouse").exists()


@pytest.mark.parametrize("name", ["a[b]", "\ud83d", "a\0b"])
def test_a_warehouse_that_is_no_path_is_refused(tmp_path: Path, name: str) -> None:
    """YAML's escapes can write what no file system has."""
    root = in_folder(tmp_path / "p")
    (root / "profiles/local.yml").write_text(f"engine: duckdb\nwarehouse: {json.dumps('w/' + name)}\n")

    code, output = run(root, "build")

    assert code == 2 and "SR737" in output and not (root / "w").exists()


def with_column(folder: Path, name: str) -> Path:
    """Return a project whose source, landing and mart have a column of that name."""
    quoted, text = "`" + name.replace("`", "``") + "`", json.dumps(name, ensure_ascii=False)
    text = text if name.isprintable() else json.dumps(name)
    columns = f"{{name: {text}, data_type: string, description: It., nulls: false}}"
    head = "    description: It.\n"
    files = {
        "models/_sources.yml": f"sources:\n  - name: g\n{head}    tables:\n      - name: t\n        description: It.\n"
        "        format: json\n        path: data/orders\n        columns:\n"
        f"          - {{name: id, data_type: string, description: It., nulls: false}}\n          - {columns}\n",
        "models/stg.sql": f"select id, {quoted} from {{{{ source('g', 't') }}}}\n",
        "models/stg.yml": f"models:\n  - name: stg\n{head}    grain: [id]\n    columns:\n"
        f"      - {{name: id, data_type: string, description: It.}}\n      - {columns}\n",
        "models/m.sql": f"select {quoted}, count(*) as n from {{{{ ref('stg') }}}} group by {quoted}\n",
        "models/m.yml": f"models:\n  - name: m\n{head}    grain: [{text}]\n    config: {{partition_by: [{text}]}}\n"
        f"    columns:\n      - {columns}\n      - {{name: n, data_type: bigint, description: It.}}\n",
        "profiles/local.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "pyproject.toml": '[tool.sqlrun]\nname = "small"\nprofile = "local"\n',
    }
    (folder / "data" / "orders").mkdir(parents=True)
    lines = (json.dumps({"id": each["id"], name: each["shop"]}) for each in SALES)
    (folder / "data/orders/0.jsonl").write_text("".join(line + "\n" for line in lines))
    return broken.write(folder, files)


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_with_an_odd_name_builds_correctly(tmp_path: Path, name: str) -> None:
    require_true(with_column(tmp_path / "p", name), "m", name)


@pytest.mark.parametrize("name", REFUSED_COLUMNS)
def test_an_invalid_column_name_is_refused_with_one_code(tmp_path: Path, name: str) -> None:
    root = with_column(tmp_path / "p", name)

    code, output = run(root, "build")

    assert code == 2 and "SR738" in output and not (root / "warehouse").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
def test_any_name_of_a_column_builds_or_is_refused(tmp_path: Path, name: str) -> None:
    root = with_column(tmp_path / "p", name)

    code, output = run(root, "build")

    assert code == 0 or (code == 2 and "SR" in output and not (root / "warehouse").exists()), output


# Awkward for YAML, Jinja, SQL, CSV, TOML, paths or a terminal; some are refused for some things.
AWKWARD = (
    "a b", "a'b", 'a"b', "a`b", "a\\b", "select", "größe 日😀", "a.b", "a%20=b", "x" * 150, "{{ x }}", "{x}", "a/b",
    "a\nb", "\x1b[31m", "é\u2028", "shop=r9", "__HIVE_DEFAULT_PARTITION__", "null", "1", "-", "", " a", "Ab", "$x", "*",
)  # fmt: skip
SAMPLE = ("a b", "a'b", "größe 日😀", "shop=r9")


def named(root: Path, slot: str, name: str) -> None:
    """Give one thing a name: the project builds twice correctly, or it is refused and nothing is written."""
    names = named_projects.Names({slot: name})
    if not named_projects.write(root, names) or (name == "" and slot in ("model", "macro")):
        return  # the file system rejects it, or treats it as a hidden file
    env = ("--env", names.of("env", "")) if slot == "env" else ()
    code, output = run(root, "build", *env)
    if code != 0:
        assert code == 2 and ("SR" in output or "Error: " in output), output
        assert "Traceback" not in output and not (root / "warehouse").exists(), output
        return
    named_projects.deliver(root, names, 1)
    for command in ("build", "vacuum", "verify", "doctor"):
        code, output = run(root, command, *(env if command != "doctor" else ()))
        assert code == 0, output
    model = names.of("model", "by_region")
    rows = json.loads(run(root, "show", model, "--output", "json", *env)[1])
    hidden = names.of("source file", "f")[:1] in (".", "_")  # other programs may still be writing it
    region = names.of("seed value", "north")
    assert rows == ([] if hidden else [{"region": region, "city": "rome", "n": 4}]), rows


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("slot", named_projects.SLOTS)
def test_anything_with_an_odd_name_builds_correctly_or_is_refused(tmp_path: Path, slot: str) -> None:
    for number, name in enumerate(SAMPLE):
        named(tmp_path / str(number), slot, name)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("slot", named_projects.SLOTS)
def test_anything_with_any_name_builds_correctly_or_is_refused(tmp_path: Path, slot: str) -> None:
    # Each name in every second slot, unless SQLRUN_NAMES asks for more: all of them take a quarter of an hour.
    names = [*AWKWARD, *RANDOM]
    if "SQLRUN_NAMES" not in os.environ:
        names = names[named_projects.SLOTS.index(slot) % 2 :: 2]
    for number, name in enumerate(names):
        named(tmp_path / str(number), slot, name)
