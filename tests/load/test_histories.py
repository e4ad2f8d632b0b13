"""What a history's contract lacks is said with its own names."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun.errors import ProjectError
from tests.artifacts.test_artifacts import project

CONTRACT = """models:
  - name: prices
    config: {{materialized: history}}
    grain: {}
    columns:
      - {{name: id, data_type: int}}
      - {{name: cents, data_type: int}}
      - {{name: valid_from, data_type: timestamp}}
      - {{name: valid_to, data_type: timestamp}}
      - {{name: is_current, data_type: boolean}}
"""


@pytest.mark.parametrize(
    ("grain", "hint"),
    [
        ("[cents]", "Write it as: grain: [cents, valid_from]."),
        ("[cents, id]", "Write it as: grain: [cents, id, valid_from]."),
        ("[cents, valid_to]", "Write it as: grain: [cents, valid_from]."),
        ("[valid_from]", "Name the columns of the key, for example grain: [id, valid_from]."),
        ("[]", "Name the columns of the key, for example grain: [id, valid_from]."),
    ],
)
def test_the_grain_of_a_history_is_shown_with_its_key(tmp_path: Path, grain: str, hint: str) -> None:
    with pytest.raises(ProjectError) as caught:
        project(
            tmp_path, models__prices_sql="select id, cents from {{ ref('raw') }}",
            models__prices_yml=CONTRACT.format(grain),
        )  # fmt: skip

    assert [(problem.code, problem.hint) for problem in caught.value.problems] == [("SR556", hint)]
