"""`sqlrun new contract` completes contracts by what follows from the queries, and leaves all other text as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sqlrun import pipeline
from sqlrun.cli.main import main
from tests.support import broken

pytestmark = pytest.mark.slow

SEED = {
    "seeds/dishes.csv": "dish_id,price\n1,9.50\n2,12.00\n",
    "seeds/dishes.yml": (
        "seeds:\n  - name: dishes\n    grain: [dish_id]\n    columns:\n      - {name: dish_id, data_type: int}\n"
        '      - {name: price, data_type: "decimal(10,2)"}\n'
    ),
    "models/menu.sql": "select dish_id, price * 2 as twice, 'x' as word from {{ ref('dishes') }}\n",
    "models/marts/totals.sql": "select word, sum(twice) as total from {{ ref('menu') }} group by word\n",
}
TOTALS = """\
models:
  - name: totals
    grain: [word]
    columns:
      - {name: word, data_type: string}
      - {name: total, data_type: "decimal(22,2)"}
"""


def run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--project-dir", str(root), "new", "contract", *words])


def test_a_model_without_a_contract_gets_one(tmp_path: Path) -> None:
    """With the grain that the query groups by. Without --write it is printed."""
    root = broken.write(tmp_path, SEED)
    file = root / "models" / "marts" / "totals.yml"

    printed = run(root, "totals")
    assert printed.output == f"# models/marts/totals.yml\n{TOTALS}" and not file.exists()

    assert run(root, "totals", "--write").output == "Wrote 2 columns of totals to models/marts/totals.yml.\n"
    assert file.read_text() == TOTALS
    assert not next(m for m in pipeline.prepare(root).project.models if m.name == "totals").is_open


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "models:\n  - name: menu  # ours\n    description: >\n      Dishes\n      twice.\n",
            "models:\n  - name: menu  # ours\n    grain: [dish_id]\n    description: >\n      Dishes\n      twice.\n"
            "    columns:\n      - {name: dish_id, data_type: int}\n"
            '      - {name: twice, data_type: "decimal(12,2)"}\n      - {name: word, data_type: string}\n',
        ),
        (
            "models:\n- name: menu\n  columns:\n  - name: word\n    description: A word.\n\n- name: totals\n",
            "models:\n- name: menu\n  grain: [dish_id]\n  columns:\n  - name: word\n    data_type: string\n"
            "    description: A word.\n  - {name: dish_id, data_type: int}\n"
            '  - {name: twice, data_type: "decimal(12,2)"}\n\n- name: totals\n',
        ),
        (
            'models:\n  - name: menu\n    grain: [word]\n    columns: [{name: dish_id}, {name: "twice"}, {name: word}]',
            "models:\n  - name: menu\n    grain: [word]\n    columns: [{name: dish_id, data_type: int}, "
            '{name: "twice", data_type: "decimal(12,2)"}, {name: word, data_type: string}]',
        ),
        (
            "models:\n  - name: menu",
            "models:\n  - name: menu\n    columns:\n      - {name: dish_id, data_type: int}\n"
            '      - {name: twice, data_type: "decimal(12,2)"}\n      - {name: word, data_type: string}\n'
            "    grain: [dish_id]",
        ),
    ],
    ids=["no columns", "a part of several models", "types alone", "no end of the last line"],
)
def test_an_open_contract_is_completed_in_place(tmp_path: Path, before: str, after: str) -> None:
    """Comments, texts and other models stay."""
    root = broken.write(tmp_path, {**SEED, "models/schema.yml": before})

    done = run(root, "menu", "--write")

    assert done.exit_code == 0, done.output
    assert (root / "models" / "schema.yml").read_text() == after


def test_all_contracts_of_one_file_are_completed_together(tmp_path: Path) -> None:
    """A second run has nothing to do."""
    root = broken.write(tmp_path, {**SEED, "models/schema.yml": "models:\n  - name: menu\n  - name: totals\n"})

    assert run(root, "--all", "--write").exit_code == 0
    assert not any(model.is_open for model in pipeline.prepare(root).project.models)
    assert run(root, "--all", "--write").output == "Every contract is complete.\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: [{name: menu}]\n", "write the contract of `menu` as a block"),
        ("models:\n  - name: menu\n    columns: [{name: word}]\n", "write the columns of `menu` as a block"),
        ("models:\n  - name: menu\n    columns: []\n", "remove the empty `columns:` of `menu`"),
    ],
)
def test_what_cannot_be_edited_stays_as_it_is(tmp_path: Path, text: str, said: str) -> None:
    """The message says how to write it."""
    root = broken.write(tmp_path, {**SEED, "models/schema.yml": text})

    done = run(root, "--all", "--write")

    assert done.exit_code == 2 and said in done.output
    assert (root / "models" / "schema.yml").read_text() == text
    assert not (root / "models" / "marts" / "totals.yml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a model, or write --all"),
        (("--all", "menu"), "name a model, or write --all"),
        (("menus",), "unknown model `menus`. Did you mean `menu`?"),
    ],
)
def test_a_wrong_command_says_what_to_write(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """It names the nearest model."""
    done = run(broken.write(tmp_path, SEED), *words)

    assert done.exit_code == 2 and said in done.output


def test_a_model_without_a_contract_gets_a_test(tmp_path: Path) -> None:
    """`sqlrun new test` writes the file that the model lacks."""
    root = broken.write(tmp_path, SEED)

    done = CliRunner().invoke(main, ["--project-dir", str(root), "new", "test", "menu"])

    assert done.exit_code == 0, done.output
    model = next(m for m in pipeline.prepare(root).project.models if m.name == "menu")
    assert model.contract_file == "models/menu.yml" and model.unit_tests[0].name == "menu_example"
