"""Refusals: why a query has no rule or a costly strategy, with the place in its SQL. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrun.transpile.trees import place_of


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a table has its strategy: a code, the obstacle, and what to write instead."""

    code: str
    why: str
    instead: str = ""
    line: int = 0
    column: int = 0


class Refusal(Exception):
    """A query that an operator has no rule for; `reason` says why."""

    def __init__(self, code: str, why: str, instead: str = "", at: exp.Expr | None = None) -> None:
        line, column = place_of(at)
        self.reason = Reason(code, why, instead, line, column)
        super().__init__(f"{code} {why}")
