"""Scopes of a qualified query: what it reads, and what its names resolve to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.qualify_tables import qualify_tables
from sqlglot.optimizer.scope import Scope, traverse_scope

from sqlrun.transpile.dialect import DIALECT
from sqlrun.transpile.trees import every

# The columns of each table and their types, by the group of tables (`ref` or a source's) and the table.
Schema = dict[str, dict[str, dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Scopes:
    """The scopes of one query: `root` is that of the whole query, `inner` has those of all queries by id."""

    root: Scope
    inner: Mapping[int, Scope]


def named(tree: exp.Query) -> exp.Query:
    """Return the tree with names for unnamed subqueries of one FROM, which sqlglot would confuse."""
    for select in every(tree, exp.Select):
        clause = select.args.get("from_")
        sources = [clause.this] if clause is not None else []
        sources += [join.this for join in select.args.get("joins") or ()]
        if sum(isinstance(source, exp.Subquery) and not source.alias for source in sources) > 1:
            return qualify_tables(tree, dialect=DIALECT)
    return tree


def scopes_of(tree: exp.Query) -> Scopes:
    """Return all scopes of a qualified query."""
    found = traverse_scope(tree)
    return Scopes(found[-1], {id(scope.expression): scope for scope in found})


def source_of(scope: Scope, alias: str) -> exp.Table | Scope | None:
    """Return what an alias refers to, in this scope or, for correlated subqueries and lateral views, an outer one."""
    here: Scope | None = scope
    while here is not None:
        if any(name == alias for name, _ in here.references):
            return here.sources.get(alias)
        here = here.parent
    return None


def selects(scope: Scope) -> Iterator[Scope]:
    """Yield the SELECTs of a set operation, or the scope itself if it is a SELECT."""
    left = [scope]
    while left:
        one = left.pop()
        if one.set_operation_scopes:
            left.extend(reversed(one.set_operation_scopes))
        else:
            yield one


def written(node: exp.Expr) -> str:
    r"""Return an expression as analysts write it: in lower case, on one line, without comments.

    >>> written(sqlglot.parse_one("CAST(SUM(`A b`) AS\n DECIMAL(18, 2)) || 'X'", read="databricks"))
    "cast(sum(`A b`) as decimal(18, 2)) || 'X'"
    """
    text = " ".join(node.sql("databricks", comments=False).split())
    verbatim = (sqlglot.TokenType.STRING, sqlglot.TokenType.IDENTIFIER)
    parts = list(text.lower())
    for token in sqlglot.tokenize(text, read="databricks"):
        if token.token_type in verbatim:
            parts[token.start : token.end + 1] = text[token.start : token.end + 1]
    return "".join(parts)


def lateral_columns(lateral: exp.Lateral) -> list[str]:
    """Return the names of the columns that a lateral view adds."""
    alias = lateral.args.get("alias")
    return [column.name for column in alias.columns] if alias is not None else []


def offered(
    column: exp.Column, scopes: Mapping[int, Scope], schema: Schema, known: dict[int, list[tuple[str, list[str]]]]
) -> dict[str, list[str]]:
    """Return the columns of each table that a column may belong to, the innermost query's first; `*` if unknown.

    `known` caches what each query offers.
    """
    found: dict[str, list[str]] = {}
    node: exp.Expr | None = column
    while node is not None:
        scope = scopes.get(id(node))
        if scope:
            if id(node) not in known:
                selected = ((alias, source) for alias, (_, source) in scope.selected_sources.items())
                known[id(node)] = [(alias, _names(source, schema)) for alias, source in selected]
            for alias, names in known[id(node)]:
                found.setdefault(alias, names)
            for alias, source in _judged(column, scope):
                found.setdefault(alias, _names(source, schema))
        if scope and not (scope.is_subquery or scope.is_udtf):
            break
        node = node.parent
    return found


def _names(source: exp.Table | Scope, schema: Schema) -> list[str]:
    if isinstance(source, exp.Table):
        return [name.lower() for name in schema.get(source.db, {}).get(source.name, {})] or ["*"]
    return [name for name in cast(exp.Query, source.expression).named_selects if name] or ["*"]


def _judged(column: exp.Column, scope: Scope) -> Iterable[tuple[str, exp.Table | Scope]]:
    """Yield the right table of a semi or anti join, which only the join's own condition may name."""
    join = column.find_ancestor(exp.Join, exp.Query)
    if isinstance(join, exp.Join) and (join.kind or "").upper() in ("SEMI", "ANTI"):
        alias = join.this.alias_or_name
        if alias in scope.sources:
            yield alias, scope.sources[alias]
