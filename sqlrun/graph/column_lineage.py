"""Lineage of one query: from an output column to columns of the tables that it reads. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from sqlrun.parse.scopes import lateral_columns, scopes_of, source_of
from sqlrun.transpile.trees import place_of

# Steps into a value: `.name` is a struct's field, `[]` an element of an array or a map.
Path = tuple[str, ...]
# Window functions whose value depends on the order of rows alone.
RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)
ELEMENT = "[]"


@dataclass(slots=True)
class Found:
    """The origins of one column, in the order of discovery.

    `values`: table, column and path. `also`: table, column and the clause that reads it. `steps`: expressions with
    line and column in the rendered SQL.
    """

    values: list[tuple[exp.Table, str, Path]] = field(default_factory=list)
    also: list[tuple[exp.Table, str, str]] = field(default_factory=list)
    steps: list[tuple[exp.Expr, int, int]] = field(default_factory=list)


class Walk:
    """A qualified query, whose columns are traced on request. It uses a stack, not recursion, for long queries."""

    def __init__(self, tree: exp.Query) -> None:
        self.scopes = scopes_of(tree)

    def column(self, name: str, path: Path = ()) -> Found:
        """Return the origins of an output column, or of a field of it."""
        run = _Run(self)
        run.output(self.scopes.root, name, path, "")
        return run.finish()

    def rows(self) -> Found:
        """Return the origins of the rows: the tables they come from, and the columns that filter them."""
        run = _Run(self)
        run.rows_of(self.scopes.root)
        return run.finish()


class _Run:
    """One trace. The clause is "" while values are traced, else the clause that reads them."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.found = Found()
        self.left: list[tuple[exp.Expr, Scope, Path, str]] = []
        self.seen: set[tuple[int, Path, str]] = set()
        self.entered: set[tuple[int, str]] = set()

    def finish(self) -> Found:
        while self.left:
            self._expression(*self.left.pop())
        return self.found

    def push(self, node: object, scope: Scope, path: Path, clause: str) -> None:
        if isinstance(node, list):
            for one in reversed(node):
                self.push(one, scope, path, clause)
        elif isinstance(node, exp.Expr) and (id(node), path, clause) not in self.seen:
            self.seen.add((id(node), path, clause))
            self.left.append((node, scope, path, clause))

    # ── queries ──────────────────────────────────────────────────────────────────────────────────────────────────

    def output(self, scope: Scope, name: str, path: Path, clause: str) -> None:
        """Trace an output column of a query into each SELECT of its union."""
        names = cast(exp.Query, scope.expression).named_selects
        if name in names:
            self._position(scope, names.index(name), path, clause)

    def _position(self, scope: Scope, index: int, path: Path, clause: str) -> None:
        for part, word in _parts(scope):
            item = cast(exp.Query, part.expression).selects[index]
            value = item.unalias()
            # A column that a filter reads is traced by value alone: filters below it don't filter this query.
            if not clause:
                self.enter(part, word)
            if not clause and not word and not isinstance(_taken_from(value), exp.Column):
                self._step(value, item)
            self.push(value, part, path, clause or word)

    def _step(self, value: exp.Expr, item: exp.Expr) -> None:
        line, column = place_of(cast(exp.Expression, value))
        if not line:
            line, column = place_of(cast(exp.Expression, item))
        if not any(value is known for known, _, _ in self.found.steps):
            self.found.steps.append((value, line, column))

    def enter(self, scope: Scope, clause: str) -> None:
        """Trace what filters a query's rows: its own clauses and those of the queries that it reads."""
        if (id(scope.expression), clause) in self.entered:
            return
        self.entered.add((id(scope.expression), clause))
        if not isinstance(scope.expression, exp.Select):
            for part, word in _parts(scope) if isinstance(scope.expression, exp.Query) else ():
                self.enter(part, clause or word)
                if word:
                    self.push([s.unalias() for s in cast(exp.Query, part.expression).selects], part, (), clause or word)
            return
        select = scope.expression
        for key, word in (("where", "where"), ("group", "group by"), ("having", "having"), ("qualify", "qualify")):
            self.push(select.args.get(key), scope, (), clause or word)
        self.push(select.args.get("windows"), scope, (), clause or "window")
        if select.args.get("distinct"):
            self.push([item.unalias() for item in select.selects], scope, (), clause or "distinct")
        if select.args.get("limit"):
            self.push(select.args.get("order"), scope, (), clause or "limit")
        for lateral in select.args.get("laterals") or ():
            self.push(lateral.this, scope, (), clause or "explode")
        self._joined(select, scope, clause)

    def _joined(self, select: exp.Select, scope: Scope, clause: str) -> None:
        first = select.args.get("from_")
        self._relation(first.this if first is not None else None, scope, clause)
        for join in select.args.get("joins") or ():
            self.push(join.args.get("on"), scope, (), clause or "join")
            # A left join adds columns: a filter of the rows that it finds affects those columns alone.
            if join.side != "LEFT" or join.kind in ("SEMI", "ANTI"):
                self._relation(join.this, scope, clause)

    def _relation(self, node: exp.Expr | None, scope: Scope, clause: str) -> None:
        source = source_of(scope, node.alias_or_name) if node is not None else None
        if isinstance(source, Scope):
            self.enter(source, clause)
            if isinstance(source.expression, exp.Lateral):
                self.push(source.expression.this, scope, (), clause or "explode")
        elif isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            self.push(node.this, scope, (), clause or "explode")

    def rows_of(self, scope: Scope) -> None:
        """Add the rows of every table that a query reads, as count(*) counts them."""
        left, seen = [scope], set()
        while left:
            one = left.pop()
            if id(one.expression) in seen:
                continue
            seen.add(id(one.expression))
            for part, word in _parts(one):
                self.enter(part, word)
                if not word:
                    left.extend(self._tables(part))

    def _tables(self, scope: Scope) -> list[Scope]:
        select, inner = scope.expression, []
        first = select.args.get("from_")
        for node in [first.this if first is not None else None, *(j.this for j in select.args.get("joins") or ())]:
            source = source_of(scope, node.alias_or_name) if node is not None else None
            if isinstance(source, exp.Table) and source.db:
                self._note(source, "*", (), "")
            elif isinstance(source, Scope) and isinstance(source.expression, exp.Query):
                inner.append(source)
        return inner

    # ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────

    def _expression(self, node: exp.Expr, scope: Scope, path: Path, clause: str) -> None:
        match node:
            case exp.Column():
                self._column(node, scope, path, clause)
            case exp.Dot():
                self.push(node.this, scope, (f".{node.expression.name}", *path), clause)
            case exp.Paren() | exp.Alias():
                self.push(node.this, scope, path, clause)
            case exp.Bracket():
                self.push(node.this, scope, (ELEMENT, *path), clause)
                self.push(node.expressions, scope, (), clause)
            case exp.Struct() if path and path[0] in (fields := _fields(node)):
                self.push(fields[path[0]], scope, path[1:], clause)
            case exp.Window():
                self._window(node, scope, clause)
            case exp.Filter():
                self.push(node.this, scope, (), clause)
                self.push(node.expression, scope, (), clause or "filter")
            case exp.Count() if isinstance(node.this, exp.Star) and not clause:
                self.rows_of(scope)
            case exp.Query() if id(node) in self.walk.scopes.inner:
                inner = self.walk.scopes.inner[id(node)]
                self.enter(inner, clause)
                for index in range(len(node.selects)):
                    self._position(inner, index, (), clause)
            case _:
                self.push(list(node.iter_expressions()), scope, (), clause)

    def _window(self, node: exp.Window, scope: Scope, clause: str) -> None:
        self.push(node.this, scope, (), clause)
        self.push(node.args.get("partition_by"), scope, (), clause or "partition by")
        ranks = isinstance(node.this, RANKS)
        self.push(node.args.get("order"), scope, (), clause or ("" if ranks else "order by"))

    def _column(self, column: exp.Column, scope: Scope, path: Path, clause: str) -> None:
        if not column.table:  # ORDER BY may name an output column of its own SELECT
            items = [item for item in cast(exp.Query, scope.expression).selects if item.alias == column.name]
            self.push([item.unalias() for item in items], scope, path, clause)
            return
        source = source_of(scope, column.table)
        match source:
            case exp.Table() if source.db:
                self._note(source, column.name or "*", path, clause)
            case exp.Table():
                self.push(source.this, scope, (ELEMENT, *path), clause)
            case Scope() if isinstance(source.expression, exp.Lateral):
                self._lateral(source, column.name, path, clause)
            case Scope() if isinstance(source.expression, exp.Query):
                self.output(source, column.name, path, clause)

    def _lateral(self, source: Scope, name: str, path: Path, clause: str) -> None:
        lateral = cast(exp.Lateral, source.expression)
        call = lateral.this
        if isinstance(call, exp.Subquery) and id(call.this) in self.walk.scopes.inner:
            self.output(self.walk.scopes.inner[id(call.this)], name, path, clause)
            return
        if not clause:
            self._step(call, lateral)
        names = lateral_columns(lateral)
        whole = isinstance(call, exp.Posexplode | exp.PosexplodeOuter) and name == names[0]
        self.push(call.this, source, () if whole else (ELEMENT, *path), clause)
        self.push(call.expressions, source, (), clause)

    def _note(self, table: exp.Table, column: str, path: Path, clause: str) -> None:
        if clause:
            self.found.also.append((table, column, clause))
        else:
            self.found.values.append((table, column, path))


def _parts(scope: Scope) -> list[tuple[Scope, str]]:
    """Return the SELECTs of a set operation, with EXCEPT or INTERSECT for SELECTs that are only compared."""
    found: list[tuple[Scope, str]] = []
    left = [(scope, "")]
    while left:
        one, word = left.pop()
        if not one.set_operation_scopes:
            found.append((one, word))
            continue
        first, second = one.set_operation_scopes
        kind = "" if isinstance(one.expression, exp.Union) else one.expression.key
        left += [(second, word or kind), (first, word)]
    return found


def _taken_from(value: exp.Expr) -> exp.Expr:
    """Return the expression that a field, or a field of a field, is read from."""
    while isinstance(value, exp.Dot | exp.Paren):
        value = value.this
    return value


def _fields(struct: exp.Struct) -> dict[str, exp.Expr]:
    """Return a struct's fields by the path step of each."""
    found = {}
    for item in struct.expressions:
        named = isinstance(item, exp.PropertyEQ)
        found[f".{item.this.name if named else item.alias_or_name}"] = item.expression if named else item.unalias()
    return found
