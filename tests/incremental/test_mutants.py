"""The list of mutations is valid: each still applies, and each rule has some. `make mutants` runs them."""

from __future__ import annotations

import pytest

from sqlrun.incremental.operators.registry import OPERATORS
from tests.mutate import FOLDER, ROOT, Mutant, judged, mutants

MUTANTS = mutants()


def fault(mutant: Mutant) -> str:
    text = (ROOT / mutant.file).read_text()
    try:
        mutated = mutant.mutated(text)
        compile(mutated, mutant.file, "exec")
    except (ValueError, SyntaxError, AssertionError) as error:
        return str(error) or type(error).__name__
    return "" if mutated != text else "it changes nothing"


@pytest.mark.slow
def test_each_still_applies() -> None:
    """The old text occurs exactly once, and the result is valid and different Python code."""
    assert {m.title: said for m in MUTANTS if (said := fault(m))} == {}
    assert len(MUTANTS) > 200


def test_each_has_a_name_of_its_own() -> None:
    titles = [m.title for m in MUTANTS]

    assert sorted(set(titles)) == sorted(titles)


def test_each_names_cases_that_exist() -> None:
    folder = ROOT / "tests" / "cases" / "incremental"
    missing = {(m.title, name) for m in MUTANTS for name in m.cases if not (folder / f"{name}.case").exists()}

    assert not missing


def test_each_rule_is_broken_in_some_way() -> None:
    """The one row without columns has nothing to break."""
    files = {operator.__module__.rpartition(".")[2] for operator in OPERATORS} - {"single"}

    assert files <= {path.stem for path in FOLDER.glob("*.toml")}


@pytest.mark.slow
def test_a_missing_or_repeated_text_is_reported() -> None:
    mutant = Mutant("sqlrun/incremental/operators/scan.py", "x", "aa", "b", ())

    for text in ("none", "aa and aa"):
        with pytest.raises(ValueError, match="scan: x: no longer applies"):
            mutant.mutated(text)
    assert judged(mutant).word == "error"


@pytest.mark.long
@pytest.mark.slow
def test_a_broken_rule_is_noticed_and_a_broken_module_is_an_error() -> None:
    """The mutated copy is what runs: a lost sign fails a case, a module that can't be parsed fails none."""
    file, text = "sqlrun/incremental/operators/scan.py", "{WEIGHT} from {source}"

    caught = judged(Mutant(file, "x", text, "1 as {WEIGHT} from {source}", ("scan",)))
    broken = judged(Mutant(file, "x", "from dataclasses import", "from nothing_of_that_name import", ("scan",)))

    assert (caught.word, caught.by.startswith("scan: ")) == ("caught", True)
    assert (broken.word, "nothing_of_that_name" in broken.by) == ("error", True)
