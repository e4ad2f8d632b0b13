"""Templates filled in without Jinja against Jinja's own: the same text, lines, refs and mistakes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from sqlrun.project import Model, Project, Rendered
from sqlrun.render import render
from sqlrun.render.fast_path import CALL, fill
from tests.support import projects

NOUNS = projects.nouns()
MODEL = next(model for model in NOUNS.models if model.name == "stg_orders")
PIECES = [
    "select a", "\n", "\n\n", "  ", " from ", "{{ ref('stg_orders') }}", "{{ref('stg_orders')}}",
    "{{ ref('nothing') }}", "{{ source('orders', 'events') }}", "{{ source('orders') }}", "{{ var('window_hours') }}",
    "{{ var('none', 'x') }}",
    "{{ hour_of('a.b') }}", "{{ hour_of( 'a' ) }}", "{{ hour_of() }}", "{{ hour_of('a', 'b') }}", "{{ var() }}",
    "{{ hour_of(five_minute_slot('a')) }}", "{{- ref('stg_orders') -}}", "{{ ref(\"stg_orders\") }}", "{{ this }}",
    "{{ ref('it\\'s') }}", "{# no #}", "{% if true %}", "{% endif %}", "{{", "}}", "%}", "#}", "{", "}", "'", "é",
    "{{ config(materialized='view') }}", "{{ env_var('x') }}", "{{ range('3') }}", "{{ ref('a{b') }}", "{{ 'x' }}",
    "{{ ref('stg_orders')\n }}", "{{ is_incremental() }}", "-- {{ ref('stg_orders') }}\n", "{{ namespace('a') }}",
    "{{ rolling_windows('a', 'b', 'cd', 'ef') }}", "{{ ref ('stg_orders') }}", "{% raw %}", "{% endraw %}", "\ue000",
]  # fmt: skip


NAMES = ("ref", "source", "var", "hour_of", "five_minute_slot")


def anything(*texts: str) -> str:
    return " ".join(texts)


def both(nouns: Project, model: Model, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, object]]:
    """The same model rendered both ways, with the problems of each."""
    found = []
    for quick in (True, False):
        with monkeypatch.context() as patch:
            if not quick:
                patch.setattr(render, "fill", lambda text, functions: None)
            found.append(render.attempt(replace(nouns, models=(model,))))
    return found  # type: ignore[return-value]


@pytest.mark.slow
def test_the_reference_project_renders_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of its models need no Jinja."""
    taken = [model for model in NOUNS.models if fill(model.sql, dict.fromkeys(NAMES, anything)) is not None]
    for model in NOUNS.models:
        quick, slow = both(NOUNS, model, monkeypatch)
        assert quick == slow

    assert len(taken) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 10))])
def test_scrambled_templates_render_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls, text and tags in any order."""
    dice = random.Random(seed)
    plain = PIECES[:7] + PIECES[8:9] + PIECES[10:14]
    done = 0
    for number in range(60):
        pieces = plain if number % 2 else PIECES
        text = "".join(dice.choice(pieces) for _ in range(dice.randint(1, 8)))
        quick, slow = both(NOUNS, replace(MODEL, sql=text), monkeypatch)
        done += bool(CALL.search(text)) and any(isinstance(item, Rendered) for item in quick[0])  # type: ignore[attr-defined, index]

        assert quick == slow, text
    assert done > 15
