"""What tests of several files begin with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest import mock

import pytest

if TYPE_CHECKING:
    from tests.crash.lives import Lives


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    """A warm process that builds are forked from."""
    from tests.crash.lives import Lives

    with Lives() as made:
        yield made


@pytest.fixture(scope="module")
def unchecked() -> Iterator[None]:
    """Ticks of this process check nothing: Great Expectations takes longer to import than they take."""
    with mock.patch("sqlrun.check.expectations_of", lambda *_: ()):
        yield
