"""Readers without pause see whole ticks, each always the same, during ticks, rollbacks and maintenance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.hammer import hammer
from tests.crash.lives import Lives, build
from tests.crash.project import World

pytestmark = [pytest.mark.slow, pytest.mark.long]
TICKS = 7


def test_readers_see_whole_ticks(lives: Lives, tmp_path: Path) -> None:
    world = World(tmp_path / "shops")
    reader = hammer(lives, world, TICKS)
    assert build(lives, world.root, world.as_of).code == 0

    assert reader.reads > TICKS
    assert len(reader.ticks) > TICKS // 2
    world.check()
