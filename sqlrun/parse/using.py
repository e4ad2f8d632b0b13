"""Rewrite USING and NATURAL joins as ON, with the columns and the stars that Spark gives them. Pure.

The value of a joined column depends on all joins before it: the left column after an inner or a left join, the right
one after a right join, the first that isn't NULL after a full join. Spark lists these columns first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.qualify_tables import qualify_tables
from sqlglot.optimizer.scope import Scope, traverse_scope

from sqlrun.parse import comma_joins
from sqlrun.parse.scopes import lateral_columns
from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.refusals import Refusal
from sqlrun.transpile.trees import every

# Returns the columns of a table, by database and name; none if they are unknown.
Columns = Callable[[str, str], Iterable[str]]
CLAUSES = ("expressions", "where", "group", "having", "qualify", "windows", "order", "laterals")


@dataclass(frozen=True, slots=True)
class _Slot:
    """A column of FROM: its name, its value, and the table that may qualify it, "" if none."""

    name: str
    value: exp.Expr
    table: str = ""


@dataclass(frozen=True, slots=True)
class _Relation:
    """The columns of FROM so far; `hidden` ones are visible only as `table.column` and in `table.*`."""

    slots: tuple[_Slot, ...]
    hidden: tuple[_Slot, ...] = ()

    def beside(self, other: _Relation) -> _Relation:
        return _Relation(self.slots + other.slots, self.hidden + other.hidden)

    def named(self, name: str) -> list[_Slot]:
        return [slot for slot in self.slots if slot.name == name]


class _Unknown(Exception):
    """The columns of a table are unknown."""


def written_out(tree: exp.Query, columns: Columns, sql: str) -> exp.Query:
    """Return a query with USING and NATURAL joins rewritten as ON. Raise a `Refusal` for columns that don't match.

    `sql` is the text of the tree.
    """
    text = comma_joins.Text(sql)
    comma_joins.check(tree, text)
    if not any(_is_tied(join) for join in every(tree, exp.Join)):
        return tree
    normalized = normalize_identifiers(tree, dialect=DIALECT)
    tree = qualify_tables(normalized, dialect=DIALECT)
    scopes = traverse_scope(tree)
    reader = _Reader({id(scope.expression): scope for scope in scopes}, columns)
    for scope in scopes:
        select = scope.expression
        if isinstance(select, exp.Select) and any(_is_tied(join) for join in select.args.get("joins") or ()):
            try:
                _Rewrite(select, reader, text).run()
            except _Unknown:
                continue
    return tree


def _is_tied(join: exp.Join) -> bool:
    return bool(join.args.get("using")) or join.method == "NATURAL"


@dataclass(frozen=True, slots=True)
class _Reader:
    """Resolves the columns of a table, a CTE or a subquery."""

    scopes: Mapping[int, Scope]
    columns: Columns

    def source(self, node: exp.Expr, scope: Scope) -> _Relation:
        """Return the columns of a source in FROM."""
        alias = node.alias_or_name
        if node.args.get("joins") or node.args.get("pivots") or not alias:
            raise Refusal(
                "SR552",
                "USING or NATURAL isn't supported together with this part of FROM",
                "Write the join's condition in ON.",
                node,
            )
        given = node.args.get("alias")
        names = [column.name for column in given.columns] if given is not None and given.columns else []
        names = names or list(self._names(node, scope))
        found = tuple(_Slot(name, exp.column(name, table=alias), alias) for name in names)
        laterals = [slot for lateral in node.args.get("laterals") or () for slot in _lateral(lateral)]
        return _Relation((*found, *laterals))

    def _names(self, node: exp.Expr, scope: Scope) -> Iterator[str]:
        match node:
            case exp.Subquery() if isinstance(node.this, exp.Query):
                yield from self.outputs(node.this)
            case exp.Table() if not node.db and isinstance(scope.sources.get(node.alias_or_name), Scope):
                inner = scope.sources[node.alias_or_name].expression
                above = inner.parent.args.get("alias") if isinstance(inner.parent, exp.CTE) else None
                names = [column.name for column in above.columns] if above is not None else []
                yield from names or self.outputs(inner)
            case exp.Table():
                names = list(self.columns(node.db, node.name))
                if not names:
                    raise _Unknown
                yield from names
            case _:
                raise _Unknown

    def outputs(self, query: exp.Expr) -> Iterator[str]:
        """Yield the names of a query's output columns."""
        while not isinstance(query, exp.Select):
            if not isinstance(query, exp.SetOperation | exp.Subquery):
                raise _Unknown
            query = query.this
        for position, item in enumerate(query.expressions):
            if item.is_star:
                yield from (slot.name for slot in _starred(item, self.relation(query)))
            else:
                yield item.output_name or f"_col_{position}"

    def relation(self, select: exp.Select) -> _Relation:
        """Return the columns of a FROM whose joins have ON."""
        scope = self.scopes.get(id(select))
        clause = select.args.get("from_")
        if scope is None or clause is None:
            raise _Unknown
        found = self.source(clause.this, scope)
        for join in select.args.get("joins") or ():
            if isinstance(join.this, exp.Lateral):
                found = found.beside(_Relation(tuple(_lateral(join.this))))
            elif not _only_judges(join):
                found = found.beside(self.source(join.this, scope))
        laterals = tuple(slot for lateral in select.args.get("laterals") or () for slot in _lateral(lateral))
        return found.beside(_Relation(laterals))


def _lateral(lateral: exp.Expr) -> Iterator[_Slot]:
    alias = lateral.alias
    for name in lateral_columns(lateral) if isinstance(lateral, exp.Lateral) else ():
        yield _Slot(name, exp.column(name, table=alias), alias)


def _only_judges(join: exp.Join) -> bool:
    return (join.kind or "").upper() in ("SEMI", "ANTI")


class _Rewrite:
    """The rewrite of one SELECT: its joins in order, then its stars and its columns without a table."""

    def __init__(self, select: exp.Select, reader: _Reader, text: comma_joins.Text) -> None:
        self.select, self.reader, self.text = select, reader, text
        self.scope = reader.scopes[id(select)]
        self.keys: set[str] = set()

    def run(self) -> None:
        # Tables before a comma are separate from the joins behind it.
        apart, found = _Relation(()), self.reader.source(self.select.args["from_"].this, self.scope)
        for join in self.select.args["joins"]:
            if self.text.is_comma(join):
                apart, found = apart.beside(found), self.reader.source(join.this, self.scope)
            else:
                found = self._joined(found, join)
        found = apart.beside(found)
        laterals = [slot for lateral in self.select.args.get("laterals") or () for slot in _lateral(lateral)]
        found = found.beside(_Relation(tuple(laterals)))
        items = [made for item in self.select.expressions for made in self._items(item, found)]
        outputs = {item.output_name for item in items}
        self.select.set("expressions", items)
        for key in CLAUSES:
            value = self.select.args.get(key)
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, exp.Expr):
                    self._resolve(part, found, outputs if key == "order" else set())

    def _joined(self, left: _Relation, join: exp.Join) -> _Relation:
        if isinstance(join.this, exp.Lateral):
            return left.beside(_Relation(tuple(_lateral(join.this))))
        right = self.reader.source(join.this, self.scope)
        if _is_tied(join):
            return self._tied(left, right, join)
        both = left.beside(right)
        if join.args.get("on") is not None:
            self._resolve(join.args["on"], both, set())
        return left if _only_judges(join) else both

    def _tied(self, left: _Relation, right: _Relation, join: exp.Join) -> _Relation:
        """Join on columns of one name, which come first and occur once."""
        names = [identifier.name for identifier in join.args.get("using") or ()]
        if join.method == "NATURAL":
            names = [slot.name for slot in left.slots if right.named(slot.name)]
            names = list(dict.fromkeys(names))
        mine = [_first(left.named(name), name, join, "left") for name in names]
        theirs = [_first(right.named(name), name, join, "right") for name in names]
        self.keys |= set(names)
        equal = [a.value.copy().eq(b.value.copy()) for a, b in zip(mine, theirs, strict=True)]
        join.set("using", None)
        join.set("method", None)
        if equal:
            join.set("on", exp.and_(*equal, copy=False))
        elif not join.side and not join.kind:
            join.set("kind", "CROSS")
        else:
            join.set("on", exp.true())
        rest = tuple(slot for slot in left.slots if slot not in mine)
        if _only_judges(join):
            return _Relation((*mine, *rest), left.hidden)
        others = tuple(slot for slot in right.slots if slot not in theirs)
        match (join.side or "").upper():
            case "FULL":
                first = [
                    _Slot(a.name, exp.func("coalesce", a.value.copy(), b.value.copy()))
                    for a, b in zip(mine, theirs, strict=True)
                ]
                hidden = [*mine, *theirs]
            case "RIGHT":
                first, hidden = theirs, mine
            case _:
                first, hidden = mine, theirs
        return _Relation((*first, *rest, *others), (*hidden, *left.hidden, *right.hidden))

    def _items(self, item: exp.Expr, found: _Relation) -> Iterator[exp.Expr]:
        if item.is_star and isinstance(item, exp.Star | exp.Column):
            for slot in _starred(item, found):
                yield _item(slot)
        elif isinstance(item, exp.Column) and not item.table and item.name in self.keys:
            self._resolve(holder := exp.Paren(this=item), found, set())
            value = holder.this
            yield value if isinstance(value, exp.Column) else exp.alias_(value, item.this.copy())
        else:
            yield item

    def _resolve(self, part: exp.Expr, found: _Relation, outputs: set[str]) -> None:
        """Replace joined columns that are named without a table by their values."""
        for column in list(part.find_all(exp.Column)):
            if column.table or column.name not in self.keys or column.name in outputs or self._is_inner(column, part):
                continue
            slot = _only(found.named(column.name), column.name, column)
            if isinstance(slot.value, exp.Column):
                column.set("table", slot.value.args["table"].copy())
            else:
                column.replace(slot.value.copy())

    def _is_inner(self, column: exp.Column, part: exp.Expr) -> bool:
        """Return whether a nested query has a column of that name."""
        node: exp.Expr | None = column.parent
        while node is not None and node is not part.parent:
            if isinstance(node, exp.Select) and node is not self.select:
                try:
                    if self.reader.relation(node).named(column.name):
                        return True
                except _Unknown:
                    pass
            node = node.parent
        return False


def _first(slots: list[_Slot], name: str, at: exp.Expr, side: str) -> _Slot:
    """Return the first column of a name, as Spark does on each side of such a join. Raise SR304 if there is none."""
    if slots:
        return slots[0]
    raise Refusal(
        "SR304", f"unknown column `{name}` on the {side} of this join", "Name a column that both sides have.", at
    )


def _only(slots: list[_Slot], name: str, at: exp.Expr) -> _Slot:
    if len(slots) == 1:
        return slots[0]
    if slots:
        tables = " and ".join(slot.table or "a join" for slot in slots)
        raise Refusal("SR308", f"ambiguous column `{name}`", f"{tables} have this column. Add the table.", at)
    raise Refusal("SR304", f"unknown column `{name}`", "", at)


def _starred(star: exp.Expr, found: _Relation) -> list[_Slot]:
    """Return the columns of a star: of all tables, or of one table with its hidden columns first."""
    bare = star.this if isinstance(star, exp.Column) else star
    if any(bare.args.get(key) for key in ("replace", "rename", "ilike")):
        raise Refusal("SR552", "this star isn't supported together with USING or NATURAL", "List the columns.", star)
    left_out = {one.name for one in bare.args.get("except_") or ()}
    slots = found.slots
    if isinstance(star, exp.Column):
        slots = tuple(slot for slot in (*found.hidden, *found.slots) if slot.table == star.table)
        if not slots:
            raise _Unknown
    return [slot for slot in slots if slot.name not in left_out]


def _item(slot: _Slot) -> exp.Expr:
    value = slot.value.copy()
    return value if isinstance(value, exp.Column) else exp.alias_(value, slot.name)
