"""The result of one unit test. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlrun.errors import Place


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one unit test. `missing` and `unexpected` are rows as text, over `columns`.

    `step` is the failing step; 0 for the table before the first step. `compared` is "rows", "change", "quarantined",
    "whole" (the maintained table against the whole query), "contract", or "parity" (one engine against the other).
    """

    name: str
    model: str
    place: Place
    status: str  # pass | fail | error
    seconds: float
    columns: tuple[str, ...] = ()
    missing: tuple[tuple[str, ...], ...] = ()
    unexpected: tuple[tuple[str, ...], ...] = ()
    message: str = ""
    step: int = 0
    compared: str = "rows"

    __test__ = False  # pytest would take the name for a test class
