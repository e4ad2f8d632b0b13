"""Every operator answers every question of the compiler; one that lacks an answer can't be instantiated."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from sqlrun.incremental import operators
from sqlrun.incremental.algebra import Node, Unary
from sqlrun.incremental.operators.filter import Filter
from sqlrun.incremental.operators.registry import OPERATORS

ROOT = Path(__file__).parents[2]
QUESTIONS = sorted(Node.__abstractmethods__)


def test_no_question_has_a_default() -> None:
    """A default would be the silent answer of an operator without its own; the shape of a tree isn't a question."""
    assert {name for name in vars(Node) if not name.startswith("_")} == set(QUESTIONS)
    assert {name for name in vars(Unary) if not name.startswith("_")} == {"child", "children", "with_children"}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_operator_without_an_answer_cannot_be_instantiated(question: str) -> None:
    answers = {name: getattr(Filter, name) for name in QUESTIONS}
    whole = type(Node)("Planted", (Node,), answers)
    lacking = type(Node)("Planted", (Node,), {name: answers[name] for name in QUESTIONS if name != question})

    whole()
    with pytest.raises(TypeError, match=rf"Planted.* {question}\b"):
        lacking()


@pytest.mark.long
@pytest.mark.slow
def test_mypy_reports_a_missing_answer(tmp_path: Path) -> None:
    """On the registry's line, whether or not anything instantiates the operator."""
    file = ROOT / "sqlrun" / "incremental" / "operators" / "filter.py"
    lines = file.read_text().splitlines(keepends=True)
    (left_out,) = (
        one for one in ast.walk(ast.parse("".join(lines))) if isinstance(one, ast.FunctionDef) and one.name == "grain"
    )
    planted = tmp_path / "filter.py"
    planted.write_text("".join(lines[: left_out.lineno - 1] + lines[left_out.end_lineno :]))

    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache")]
    command += ["--shadow-file", str(file), str(planted), str(file.with_name("registry.py"))]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout

    assert "operators/registry.py" in output
    assert "Only concrete class can be given" in output


def found() -> dict[str, list[type[Node]]]:
    """Return the operators that the folder's modules define, by the module's name."""
    made: dict[str, list[type[Node]]] = {}
    for info in pkgutil.iter_modules(operators.__path__):
        module = importlib.import_module(f"{operators.__name__}.{info.name}")
        defined = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Node)]
        here = [one for one in defined if one.__module__ == module.__name__]
        if here:
            made[info.name] = here
    return made


def test_the_registry_lists_every_operator_once() -> None:
    assert sorted(one.__name__ for several in found().values() for one in several) == sorted(
        one.__name__ for one in OPERATORS
    )


def test_each_operator_has_a_file_a_case_and_a_paragraph() -> None:
    page = (ROOT / "docs" / "concepts" / "incremental.md").read_text()
    wrong = {
        name: several
        for name, several in found().items()
        if [one.__name__ for one in several] != ["".join(word.title() for word in name.split("_"))]
        or not (ROOT / "tests" / "cases" / "incremental" / f"{name}.case").exists()
        or f"** (`{name}.case`)" not in page
    }

    assert wrong == {}
