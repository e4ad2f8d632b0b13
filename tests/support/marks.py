"""Marks of parametrized tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def rest_slow(examples: Sequence[Any], fast: int = 1) -> list[ParameterSet]:
    """Leave the first examples to `make test-fast`, and mark the others as slow."""
    return [
        pytest.param(*(e if isinstance(e, tuple) else (e,)), marks=[pytest.mark.slow] if number >= fast else [])
        for number, e in enumerate(examples)
    ]
