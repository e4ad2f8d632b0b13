"""The examples in docstrings: each is run, and shows what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMPT = ">>> "


# One test a package: one a module takes longer to report than to run.
@pytest.mark.parametrize("package", ["sqlrun", "benchmarks"])
def test_examples_hold(package: str) -> None:
    output: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    written = 0
    for path in sorted((ROOT / package).rglob("*.py")):
        lines = path.read_text().splitlines()
        here = sum(line.lstrip().startswith(PROMPT) for line in lines)
        if not here:
            continue
        written += here
        module = importlib.import_module(
            ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        )
        for test in doctest.DocTestFinder().find(module):
            runner.run(test, out=output.append)

    assert "".join(output) == ""
    # None is where doctest doesn't look, as behind a decorator that hides its function.
    assert runner.tries == written > 0
