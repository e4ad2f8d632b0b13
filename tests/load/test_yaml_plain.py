"""libyaml's fast path for plain YAML against ruamel.yaml: the same values at the same places, or no answer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from sqlrun.errors import Problem
from sqlrun.load import yaml_fast
from sqlrun.load.yaml_fast import Listed, Mapped, Unusual
from sqlrun.load.yaml_reader import Reader
from tests.load.test_broken_files import SPLINTERS, mutated

ROOT = Path(__file__).parents[2]
FILES = [f for room in ("models", "expectations", "seeds", "profiles") for f in sorted((ROOT / room).rglob("*.yml"))]
SMALL = [
    "a: {b: 1, c: [x, y]}\nd: 'it''s'\ne: \"q\\n\"\n",
    "- a\n-  b: c\n   d: >-\n     x y\n      z\n\n     w\n- |\n  k\n   l\n",
    "a: 1\nb: 0x1f\nc: 1_000\nd: 1e5\ne: .5\nf: +.inf\ng: 2024-01-01\nh: =\ni: yes\nj: 0o17\nk: 017\nl: -\n",
    "a: 0\nb: -7\nc: +1.50\nd: True\ne: ~\nf: Null\ng: 1.\nh: 1e+5\ni: 12:30\nj: .e\nk: 'true'\nl: é𝄞\nm: x\n",
]
PIECES = [": ", " :", "''", "\n\n", "  ", ">\n", ">+\n", "|2\n", "? ", "- - ", "{a:1}", '{"a":1}', "[a:b]", "a:b", "::",
          "\\n", "\\/", " - ", "Yes", "01", "1.", "-.5", "1_0", ">#", "> ", "|-", " # x\n", "\n \n"]  # fmt: skip


class Slow(Reader):
    """The same text, always read by ruamel.yaml."""

    def _parse(self, text: str) -> Any:
        return self._composed(text)


def shape(value: Any) -> Any:
    """Return a value with its types and all its places."""
    match value:
        case Mapped():
            inner = [(key, shape(item)) for key, item in value.items()]
            return ("mapping", value.place, inner, value.keys_at, value.values_at)
        case Listed():
            return ("list", value.place, [shape(item) for item in value], value.items_at)
        case _:
            return (type(value), repr(value))


def quick(text: str) -> Any:
    try:
        return yaml_fast.read("f.yml", text)
    except Unusual:
        return Unusual


def slow(text: str) -> tuple[Any, list[Problem]]:
    problems: list[Problem] = []
    return Slow("f.yml", text, problems).root, problems


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.slow
def test_a_project_is_read_by_the_fast_path(file: Path) -> None:
    """The files of the reference project are plain, except those that use anchors and the like on purpose."""
    text = file.read_text()
    found = quick(text)

    assert (found is Unusual) == (yaml_fast.UNUSUAL.search(text) is not None)
    if found is not Unusual:
        assert (shape(found), []) == (shape(slow(text)[0]), slow(text)[1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_scrambled_files_mean_the_same(seed: int) -> None:
    """ruamel.yaml finds no problem in a text that the fast path accepts, and reads the same."""
    dice = random.Random(seed)
    texts = [*SMALL, *(file.read_text() for file in FILES)]
    taken = 0
    for _ in range(600):
        lines = dice.choice(texts).split("\n")
        start = dice.randrange(len(lines))
        text = "\n".join(lines[start : start + dice.randint(1, 20)])
        for _ in range(dice.randint(0, 3)):
            text = mutated(text, dice) if dice.random() < 0.7 else splintered(text, dice)
        found = quick(text)
        if found is Unusual:
            continue
        taken += 1
        value, problems = slow(text)

        assert (shape(found), problems) == (shape(value), []), text
    assert taken > 100


def splintered(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice([*PIECES, *SPLINTERS]) + text[at:]


@pytest.mark.parametrize("text", ["a: &x 1", "a: *x", "a: !!int 1", "a:", "a: 1\na: 2", "<<: {a: 1}", "? a", "a: 0x1f",
                                  "a: \t1", "a: [", "a: \u20281", "---\na: 1", "", "a: >#\n", '"\\u0041": 1',
                                  "[" * 25 + "]" * 25])  # fmt: skip
def test_text_that_is_not_plain_is_left_to_ruamel(text: str) -> None:
    """Anchors, tags, repeated keys, what YAML 1.1 and 1.2 read differently, and all invalid text."""
    assert quick(text) is Unusual
