"""Window functions: partitions, orders, ROWS and RANGE frames."""

from __future__ import annotations

from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from sqlglot import exp

from tests.support.evaluator.aggregates import aggregate, is_aggregate
from tests.support.evaluator.arithmetic import added
from tests.support.evaluator.expressions import evaluate, on
from tests.support.evaluator.scope import Scope
from tests.support.evaluator.values import Unknown, Value, order

RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)
POSITIONS = (exp.FirstValue, exp.LastValue, exp.First, exp.Last, exp.NthValue)


@on(exp.Window)
def _window(node: exp.Window, scope: Scope) -> Value:
    if id(node) not in scope.windows:
        raise Unknown(f"a window in this place: {node.sql('databricks')}")
    return scope.windows[id(node)]


def compare(keys: list[exp.Ordered]) -> Any:
    """Return a comparison function for two lists of ORDER BY values."""

    def by(a: list[Value], b: list[Value]) -> int:
        for x, y, key in zip(a, b, keys, strict=True):
            found = ordered(x, y, key)
            if found:
                return found
        return 0

    return by


def ordered(a: Value, b: Value, key: exp.Ordered) -> int:
    """Return the order of two values under ASC, DESC, NULLS FIRST and LAST; NULLs come first in ascending order."""
    down = bool(key.args.get("desc"))
    if a is None or b is None:
        first = key.args.get("nulls_first")
        first = not down if first is None else first
        return ((a is not None) - (b is not None)) * (1 if first else -1)
    return -order(a, b) if down else order(a, b)


def fill(node: exp.Window, named: dict[str, exp.Window], scopes: list[Scope]) -> None:
    """Store a window function's value for every row in its scope."""
    over = _resolved(node, named)
    partition_by = over.args.get("partition_by") or []
    keys: list[exp.Ordered] = list(over.args["order"].expressions) if over.args.get("order") else []
    parts: dict[tuple[Value, ...], list[Scope]] = {}
    for scope in scopes:
        parts.setdefault(tuple(evaluate(e, scope) for e in partition_by), []).append(scope)
    for part in parts.values():
        rows = [([evaluate(k.this, scope) for k in keys], scope) for scope in part]
        rows.sort(key=cmp_to_key(lambda a, b: compare(keys)(a[0], b[0])))
        _Partition(node, over, keys, [r[0] for r in rows], [r[1] for r in rows]).fill()


def _resolved(node: exp.Window, named: dict[str, exp.Window]) -> exp.Window:
    alias = node.args.get("alias")
    if alias is None:
        return node
    if node.args.get("order") or node.args.get("partition_by") or alias.name not in named:
        raise Unknown(f"window {node.sql('databricks')}")
    return named[alias.name]


class _Partition:
    """The rows of one partition, in order."""

    def __init__(
        self,
        node: exp.Window,
        over: exp.Window,
        keys: list[exp.Ordered],
        order_by: list[list[Value]],
        rows: list[Scope],
    ) -> None:
        self.node, self.over, self.keys, self.order_by, self.rows = node, over, keys, order_by, rows
        by = compare(keys)
        # The peers of a row are equal under the order; without an order all rows are peers.
        self.first = [0] * len(rows)
        for i in range(1, len(rows)):
            self.first[i] = self.first[i - 1] if by(order_by[i], order_by[i - 1]) == 0 else i
        self.last = [len(rows) - 1] * len(rows)
        for i in range(len(rows) - 2, -1, -1):
            self.last[i] = self.last[i + 1] if self.first[i + 1] == self.first[i] else i

    def fill(self) -> None:
        call = self.node.this
        ignore = isinstance(call, exp.IgnoreNulls)
        inner = call.this if ignore else call
        for i, scope in enumerate(self.rows):
            scope.windows[id(self.node)] = self._value(inner, ignore, i)

    def _value(self, call: exp.Expression, ignore: bool, i: int) -> Value:
        match call:
            case exp.RowNumber() | exp.Ntile() | exp.Lag() | exp.Lead():
                self._no_tie()
        match call:
            case exp.RowNumber():
                return i + 1
            case exp.Rank():
                return self.first[i] + 1
            case exp.DenseRank():
                return len(set(self.first[: i + 1]))
            case exp.PercentRank():
                return self.first[i] / (len(self.rows) - 1) if len(self.rows) > 1 else 0.0
            case exp.CumeDist():
                return (self.last[i] + 1) / len(self.rows)
            case exp.Ntile():
                return self._bucket(int(evaluate(call.this, self.rows[i])), i)
            case exp.Lag() | exp.Lead():
                return self._neighbour(call, ignore, i)
        frame = self._frame(i)
        if isinstance(call, POSITIONS):
            return self._position(call, ignore, frame)
        if is_aggregate(call) or isinstance(call, exp.Filter):
            return aggregate(call, frame)
        raise Unknown(f"window function {call.sql('databricks')}")

    def _no_tie(self) -> None:
        """Raise Unknown for different rows with equal order: they have no defined row_number."""
        for i in range(1, len(self.rows)):
            here, before = self.rows[i], self.rows[i - 1]
            if self.first[i] != i and (here.group is not None or here.row != before.row):
                raise Unknown(f"a tie in {self.node.sql('databricks')}")

    def _bucket(self, buckets: int, i: int) -> int:
        size, larger = divmod(len(self.rows), buckets)
        edge = larger * (size + 1)
        return i // (size + 1) + 1 if i < edge else larger + (i - edge) // size + 1

    def _neighbour(self, call: exp.Expression, ignore: bool, i: int) -> Value:
        offset = call.args.get("offset")
        steps = 1 if offset is None else int(evaluate(offset, self.rows[i]))
        down = isinstance(call, exp.Lag)
        if ignore:
            side = range(i - 1, -1, -1) if down else range(i + 1, len(self.rows))
            known = [j for j in side if evaluate(call.this, self.rows[j]) is not None]
            place = known[steps - 1] if steps <= len(known) else -1
        else:
            place = i - steps if down else i + steps
        if 0 <= place < len(self.rows):
            return evaluate(call.this, self.rows[place])
        default = call.args.get("default")
        return None if default is None else evaluate(default, self.rows[i])

    def _position(self, call: exp.Expression, ignore: bool, frame: list[Scope]) -> Value:
        self._no_tie()
        values = [evaluate(call.this, row) for row in frame]
        if ignore:
            values = [v for v in values if v is not None]
        if isinstance(call, exp.NthValue):
            place = int(evaluate(call.args["offset"], self.rows[0])) - 1
            return values[place] if place < len(values) else None
        if not values:
            return None
        return values[0] if isinstance(call, exp.FirstValue | exp.First) else values[-1]

    def _frame(self, i: int) -> list[Scope]:
        spec = self.over.args.get("spec")
        if spec is None:
            return self.rows[: self.last[i] + 1] if self.keys else self.rows
        start, start_side = spec.args.get("start"), spec.args.get("start_side")
        end, end_side = spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side")
        if spec.args.get("exclude"):
            raise Unknown(f"frame {spec.sql('databricks')}")
        edge = self._row_edge if str(spec.args["kind"]).upper() == "ROWS" else self._range_edge
        low, high = edge(start, start_side, i, low=True), edge(end, end_side, i, low=False)
        if str(spec.args["kind"]).upper() == "ROWS":
            self._no_tie()
        return self.rows[max(low, 0) : max(high + 1, 0)]

    def _row_edge(self, edge: Any, side: str | None, i: int, *, low: bool) -> int:
        if isinstance(edge, str):
            return (
                i
                if edge == "CURRENT ROW"
                else (0 if side == "PRECEDING" or (side is None and low) else len(self.rows) - 1)
            )
        count = int(evaluate(edge, self.rows[i]))
        return i - count if (side or "").upper() == "PRECEDING" else i + count

    def _range_edge(self, edge: Any, side: str | None, i: int, *, low: bool) -> int:
        if isinstance(edge, str):
            if edge == "CURRENT ROW":
                return self.first[i] if low else self.last[i]
            return 0 if low else len(self.rows) - 1
        if len(self.keys) != 1:
            raise Unknown("a RANGE frame over more than one column")
        here = self.order_by[i][0]
        if here is None:
            return self.first[i] if low else self.last[i]
        down = bool(self.keys[0].args.get("desc"))
        before = (side or "").upper() == "PRECEDING"
        width = evaluate(edge, self.rows[i])
        if isinstance(here, Decimal) and isinstance(width, int):
            width = Decimal(width)
        bound = added(here, width, 1 if before == down else -1)
        inside = []
        for j, (value,) in enumerate(self.order_by):
            if value is None:
                continue
            found = ordered(value, bound, self.keys[0])
            if found >= 0 if low else found <= 0:
                inside.append(j)
        if not inside:
            return len(self.rows) if low else -1
        return min(inside) if low else max(inside)
