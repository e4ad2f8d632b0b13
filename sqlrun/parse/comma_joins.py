"""Find the commas of FROM in a query's text: sqlglot's tree has CROSS JOIN for them. Pure.

A comma binds less tightly than JOIN: `from a, b right join c on ...` joins b and c, and pairs the result with a.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import sqlglot
from sqlglot import exp

from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import every


@dataclass
class Text:
    """A query's text and the places of its tokens, to find which cross joins are written as commas."""

    sql: str

    @cached_property
    def _tokens(self) -> list[sqlglot.Token]:
        return sqlglot.tokenize(self.sql, read=DIALECT)

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {token.start: number for number, token in enumerate(self._tokens)}

    def is_comma(self, join: exp.Join) -> bool:
        """Return whether a join is written as a comma."""
        if join.side or join.method or join.args.get("using") or join.kind not in ("", "CROSS"):
            return False
        first = self._first(join.this)
        return first is None or (first > 0 and self._tokens[first - 1].token_type == sqlglot.TokenType.COMMA)

    def _first(self, source: exp.Expr) -> int | None:
        """Return the number of the token that begins a table or a subquery; None if it isn't known."""
        starts = [one.meta["start"] for one in every(source, exp.Identifier) if "start" in one.meta]
        known = [self._places[start] for start in starts if start in self._places]
        if not known:
            return None
        if not isinstance(source, exp.Subquery):
            return min(known)
        alias = source.args.get("alias")
        start = alias.this.meta.get("start") if alias is not None and alias.this is not None else None
        place = self._places.get(start) if start is not None else None
        return self._opening(place) if place is not None else None

    def _opening(self, place: int) -> int | None:
        """Return the number of the parenthesis that opens the subquery before an alias; None if there is none."""
        depth = 0
        for number in range(place - 1, -1, -1):
            kind = self._tokens[number].token_type
            depth += (kind == sqlglot.TokenType.R_PAREN) - (kind == sqlglot.TokenType.L_PAREN)
            if kind == sqlglot.TokenType.L_PAREN and not depth:
                return number
        return None


def check(tree: exp.Query, text: Text) -> None:
    """Raise SR552 for a comma before RIGHT or FULL JOIN: sqlglot's tree joins in another order than the text."""
    for select in every(tree, exp.Select):
        joins = select.args.get("joins") or ()
        adding = [number for number, join in enumerate(joins) if join.side in ("RIGHT", "FULL")]
        if adding and any(text.is_comma(join) for join in joins[: adding[-1]]):
            last = joins[adding[-1]]
            why = f"{last.side} JOIN after a comma joins only the table after the comma"
            raise Refusal(
                "SR552", why, "Write the join before the comma, or replace the comma by CROSS JOIN.", last.this
            )
