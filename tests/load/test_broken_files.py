"""The reference project with its files cut, swapped and scrambled: problems at most, never a traceback."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sqlrun.errors import ProjectError
from sqlrun.load import load, profile
from sqlrun.parse import parse
from sqlrun.pipeline import prepare, prepare_to_build
from sqlrun.render import render
from tests.support import projects
from tests.support.projects import copy_project

ROOT = Path(__file__).parents[2]
ROOMS = ("models", "macros", "seeds", "expectations", "profiles", "tests/fixtures")
SPLINTERS = [
    "'", '"', "`", "{{", "}}", "{%", "%}", "{#", "(", ")", "[", "]", "{", "}", ",", ":", "- ", "\t", "\n", "\\", ";",
    "--", "/*", "*/", "&a", "*a", "!!int ", "<<: ", "null", "~", "1e999", "0x", "é", "\x00", "\u2028", "𝄞", "#", "| ",
    "select ", " from ", " group by 99 ", " order by 1 ", " limit 1 ", "{{ ref('x') }}", "{{ this }}", " over () ",
    "union all ", " qualify ", "with x as (select 1) ", " lateral view explode(x) ", "using (x)", "pivot ", ".", "$1",
    " natural join ", "distinct ", "::int", " -> ", "1 as a, ", "*", "?", "{% for x in y %}", "{% endfor %}",
]  # fmt: skip


def mutated(text: str, dice: random.Random) -> str:
    """Return a text with a piece cut, repeated, swapped, deleted or replaced."""
    a, b = sorted(dice.randrange(len(text) + 1) for _ in range(2))
    b = min(b, a + 60)
    lines = text.split("\n")
    line = dice.randrange(len(lines))
    match dice.randrange(7):
        case 0:
            return text[:a]
        case 1:
            return text[:a] + text[b:]
        case 2:
            return text[:b] + text[a:b] + text[b:]
        case 3 | 4:
            return text[:a] + dice.choice(SPLINTERS) + text[a:]
        case 5:
            return "\n".join([*lines[:line], *lines[line + 1 :]])
        case _:
            other = dice.randrange(len(lines))
            lines[line], lines[other] = lines[other], lines[line]
            return "\n".join(lines)


def copied(folder: Path) -> list[Path]:
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room)
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    rooms = [f for room in ROOMS for f in (folder / room).rglob("*") if f.suffix in (".sql", ".yml", ".csv")]
    return sorted([*rooms, folder / "pyproject.toml"])


def shake(folder: Path, seed: int) -> str:
    """Break one to three files, read the project and restore the files. Return what was printed."""
    dice = random.Random(seed)
    files = sorted([*folder.rglob("*.sql"), *folder.rglob("*.yml"), *folder.rglob("*.csv"), folder / "pyproject.toml"])
    broken = dice.sample(files, dice.choice((1, 1, 1, 2, 3)))
    before = {file: file.read_bytes() for file in broken}
    try:
        for file in broken:
            file.write_text(mutated(file.read_text("utf-8"), dice), "utf-8")
        load.missing_sources(prepare(folder).project)
        profile.load(folder, "local")
    except ProjectError as error:
        return str(error)
    finally:
        for file, data in before.items():
            file.write_bytes(data)
    return ""


@pytest.mark.slow
def test_no_broken_query_ends_in_a_traceback() -> None:
    """Each problem is within its file, and its caret within its line."""
    loaded = projects.project()
    for seed in range(60):
        dice = random.Random(seed)
        model = dice.choice(loaded.models)
        broken = replace(model, sql=mutated(model.sql, dice))
        project = replace(loaded, models=tuple(broken if m is model else m for m in loaded.models))
        rendered, problems = render.attempt(project)
        _, wrong = parse.attempt([item for item in rendered if item.model is broken], project)
        for problem in (*problems, *wrong):
            if problem.place.file == broken.file:
                assert problem.place.line <= broken.sql.count("\n") + 1
            assert problem.place.column <= len(problem.excerpt) + 1 or not problem.excerpt


@pytest.mark.slow
def test_no_mistake_ends_in_a_traceback(tmp_path: Path) -> None:
    """Each problem has a code and a place within its file."""
    copied(tmp_path)
    printed = [shake(tmp_path, seed) for seed in range(6)]

    assert sum(bool(text) for text in printed) > 3
    assert all(text == "" or text.startswith("SR") for text in printed)


@pytest.mark.slow
def test_a_build_reports_models_sources_and_profile_at_once(tmp_path: Path) -> None:
    """An analyst can fix all of it at once."""
    root = copy_project(tmp_path)
    (root / "data" / "orders").rmdir()
    model = root / "models" / "facts" / "fct_restaurant_slots.sql"
    model.write_text(model.read_text().replace("is_cancelled", "is_canceled"))
    (root / "profiles" / "broken.yml").write_text("engine: duckdb\nwarehouse: w\nspeed: high\n")

    with pytest.raises(ProjectError) as caught:
        prepare_to_build(root, "broken")

    assert [problem.code for problem in caught.value.problems] == ["SR304", "SR120", "SR102"]
