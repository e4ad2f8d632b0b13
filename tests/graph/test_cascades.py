"""Errors that follow from other errors are counted, not printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.graph.cascades import causes
from sqlrun.pipeline import prepare
from tests.artifacts.test_artifacts import project

CASES = Path(__file__).parents[1] / "cases" / "errors"
LACKS = Problem("SR104", Place("models/a.yml", 5, 9), "a column of `a` lacks `data_type`")
TYPO = Problem("SR102", Place("models/a.yml", 5, 30), "unknown key `dtype`", "Did you mean `data_type`?")


def test_a_missing_key_follows_from_the_same_key_misspelled() -> None:
    assert causes([LACKS, TYPO], []) == (TYPO,)


def test_a_missing_key_without_a_misspelled_one_is_printed() -> None:
    other = Problem("SR102", Place("models/b.yml", 5, 30), TYPO.message, TYPO.hint)

    assert causes([LACKS, other], []) == (LACKS, other)


def test_an_unknown_model_follows_from_errors_in_its_own_files() -> None:
    missing = Problem("SR106", Place("models/a.sql"), "the model has no contract next to it")
    unknown = [Problem("SR202", Place("models/b.sql"), f"unknown model `{name}`") for name in ("a", "c")]

    assert causes([missing, *unknown], []) == (missing, unknown[1])


def test_an_error_in_a_contract_holds_back_the_errors_of_its_readers() -> None:
    with pytest.raises(ProjectError) as caught:
        prepare(CASES / "all_with_effects")

    assert {problem.place.file for problem in caught.value.problems} == {"models/dishes.yml", "models/dishes.sql"}
    assert caught.value.following == 1
    assert str(caught.value).endswith(
        "1 more problem follows from these. Fix these first.\nmore: sqlrun error SR102 SR306 SR307"
    )


def test_errors_that_only_follow_from_each_other_are_printed() -> None:
    assert causes([LACKS], []) == (LACKS,)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{materialised: history}", "Did you mean `materialized`"),
        ("{materialized: histroy}", "Did you mean `history`"),
    ],
)
def test_columns_of_a_history_follow_from_its_misspelled_kind(config: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=says) as caught:
        project(
            tmp_path,
            models__prices_sql="select id, cents from {{ ref('raw') }}",
            models__prices_yml="models:\n  - name: prices\n    description: Prices.\n"
            f"    config: {config}\n    columns:\n"
            "      - {name: id, data_type: int}\n      - {name: cents, data_type: int}\n"
            "      - {name: valid_from, data_type: timestamp}\n      - {name: valid_to, data_type: timestamp}\n"
            "      - {name: is_current, data_type: boolean}\n",
        )

    assert len(caught.value.problems) == 1
    assert caught.value.following == 3
