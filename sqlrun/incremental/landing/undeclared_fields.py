"""Fields of a line that its source doesn't declare, kept as they were written, and declared ones that it lacks. Pure.

Readers of JSON write numbers and escapes anew, each in its own way; so the fields are cut out of the line's text, by
regular expressions that mean the same to both engines. A line is only cut where it has an unknown field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from sqlrun.engine_api import Dialect
from sqlrun.incremental import types
from sqlrun.incremental.landing import line_grammar
from sqlrun.project import Source
from sqlrun.transpile import writer as sql

# How deeply values may be nested; the first is tried first, being several times as quick. The line of a value that is
# nested more deeply is kept whole.
DEPTHS = (2, 6)
# A step into an array, in a path of field names.
EACH = None
Path = tuple[str | None, ...]


def rescued(source: Source, dialect: Dialect) -> str:
    """Write the rescued fields of a line as one JSON object; NULL where the source declares all of them.

    A declared field whose value has undeclared fields inside is kept as a whole. In Spark it reads `_raw`, in DuckDB
    `value` and its JSON `_line`.
    """
    line = "_raw" if dialect == "spark" else "value"
    names = [c.name for c in source.columns]
    inner = {c.name: _inner(c.name, types.parse(c.type), dialect) for c in source.columns}
    unknown = [_unknown_keys((), names, dialect), *(test for test in inner.values() if test)]
    cuts = [_cut(line, names, inner, dialect, depth) for depth in DEPTHS]
    kept = " ".join(f"when {fits} then {fields}" for fits, fields in cuts)
    return f"case when {' or '.join(unknown)} then case {kept} else {line_grammar.stripped(line, dialect)} end end"


def _cut(line: str, names: list[str], inner: Mapping[str, str], dialect: Dialect, depth: int) -> tuple[str, str]:
    """Write whether a line can be cut at a depth, and its undeclared fields as one object.

    What is asked of the line is asked outside of the lambdas: inside it would be asked for each field anew.
    """
    key, member = (sql.string(pattern, dialect) for pattern in patterns(dialect, depth))
    empty = sql.string(r"^\s*\{[\s,]*\}\s*$", dialect)
    quoted = {name: sql.string(_quoted(name), dialect) for name in names}
    spark = dialect == "spark"
    members = f"regexp_extract_all({line}, {member}{', 0' if spark else ''})"

    def those(condition: str) -> str:
        condition = f"regexp_extract(m, {key}{', 0' if spark else ''}) {condition}"
        return f"filter({members}, m -> {condition})" if spark else f"list_filter({members}, lambda m: {condition})"

    fields = those(f"not in ({', '.join(quoted.values())})")
    for name, test in inner.items():
        if test:
            inside = f"case when {test} then {those(f'= {quoted[name]}')} else {_array([], dialect)} end"
            fields = f"{'concat' if spark else 'list_concat'}({fields}, {inside})"
    fields = f"array_sort({fields})" if spark else f"list_sort({fields})"
    every = "" if spark else ", 'g'"
    left = f"regexp_replace({line}, {member}, ''{every})"
    # Where more is left than brackets and commas, a value is nested too deeply: what was found may lie inside of it.
    fits = f"{'rlike' if spark else 'regexp_matches'}({left}, {empty})"
    return fits, f"concat('{{', {'array_join' if spark else 'array_to_string'}({fields}, ','), '}}')"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def plain(source: Source) -> str:
    """Write the test, in DuckDB, that a line has just the declared keys, each once, and no undeclared ones inside.

    Most lines pass, and are spared what is asked of the others.
    """
    names = [c.name for c in source.columns]
    declared, ordered = (_array(each, "duckdb") for each in (names, sorted(names)))
    keys = _keys((), "duckdb")
    tests = [f"case when {keys} = {declared} then true else list_sort({keys}) = {ordered} end"]
    inner = [_inner(c.name, types.parse(c.type), "duckdb") for c in source.columns]
    inner += [_repeats(path) for path in _inner_structs(source)]
    return f"coalesce({' and '.join([*tests, *(f'not ({test})' for test in inner if test)])}, false)"


def twice(source: Source, dialect: Dialect) -> str:
    """Write the test that a key stands twice in a line's object, or in an object inside that is declared."""
    keys = _keys((), dialect)
    if dialect == "duckdb":
        tests = [f"len({keys}) <> len(list_distinct({keys}))", *map(_repeats, _inner_structs(source))]
    else:
        tests = [_uneven(keys)]
        tests += [_in_texts(path) for path in _inner_structs(source)]
    return " or ".join(tests)


def _repeats(path: Path) -> str:
    """Write the test that an object at a path has a key twice, in DuckDB."""
    keys = f"json_keys(_line, {sql.string(json_path(path), 'duckdb')})"
    if EACH not in path:
        return f"coalesce(len({keys}) <> len(list_distinct({keys})), false)"
    return f"coalesce(len(list_filter({keys}, lambda k: len(k) <> len(list_distinct(k)))) > 0, false)"


def _inner_structs(source: Source) -> list[Path]:
    """Return the path of each declared struct."""
    return [path for c in source.columns for path, _ in _structs((c.name,), types.parse(c.type))]


def absent(source: Source, dialect: Dialect) -> str:
    """Write the names of the columns that a line lacks, quoted and joined by commas; NULL where it lacks none."""
    keys = _keys((), dialect)
    has = "array_contains" if dialect == "spark" else "list_contains"
    names = [c.name for c in source.columns]
    some = f"list_has_all({keys}, {_array(names, dialect)})"
    if dialect == "spark":
        some = f"size(array_except({_array(names, dialect)}, {keys})) = 0"
    items = [
        f"case when not {has}({keys}, {sql.string(c.name, dialect)}) then {sql.string(_quoted(c.name), dialect)} end"
        for c in source.columns
    ]
    return f"case when not {some} then concat_ws(',', {', '.join(items)}) end"


def patterns(dialect: Dialect, depth: int) -> tuple[str, str]:
    """Return the regular expressions of a key, at the start of its text, and of a key with its value.

    Java needs possessive repetitions: others recurse for each character, and a long line overflows its stack. RE2 knows
    none and needs none. On JSON both match the same.
    """
    more = "*+" if dialect == "spark" else "*"
    text = rf'"[^"\\]{more}(?:\\.[^"\\]{more}){more}"'
    plain = rf'[^"\[\]{{}}]{more}'
    nested = rf"[\[{{]{plain}(?:{text}{plain}){more}[\]}}]"
    for _ in range(depth - 1):
        nested = rf"[\[{{]{plain}(?:(?:{text}|{nested}){plain}){more}[\]}}]"
    scalar = rf'[^\s,"\[\]{{}}]+{"+" if dialect == "spark" else ""}'
    return f"^{text}", rf"{text}\s*:\s*(?:{text}|{scalar}|{nested})"


def _array(texts: list[str], dialect: Dialect) -> str:
    if dialect == "spark":
        return (
            f"array({', '.join(sql.string(text, dialect) for text in texts)})"
            if texts
            else "cast(array() as array<string>)"
        )
    return f"[{', '.join(sql.string(text, dialect) for text in texts)}]::varchar[]"


def _keys(path: Path, dialect: Dialect) -> str:
    if dialect == "spark":
        return "json_object_keys(_raw)"
    if not path:
        return "json_keys(_line)"
    keys = f"json_keys(_line, {sql.string(json_path(path), dialect)})"
    return f"flatten({keys})" if EACH in path else keys


def json_path(path: Path) -> str:
    """Write a path as DuckDB's functions of JSON take it."""
    return "$" + "".join("[*]" if step is EACH else f'."{step}"' for step in path)


def _unknown_keys(path: Path, names: list[str], dialect: Dialect) -> str:
    """Write the test that the object at a path has a key which isn't one of the names."""
    if dialect == "spark":
        return f"coalesce(size(array_except({_keys(path, dialect)}, {_array(names, dialect)})) > 0, false)"
    return f"coalesce(not list_has_all({_array(names, dialect)}, {_keys(path, dialect)}), false)"


def _inner(name: str, kind: exp.DataType | None, dialect: Dialect) -> str:
    """Write the test that a column's value has undeclared fields inside; empty for one without structs."""
    structs = list(_structs((name,), kind))
    if dialect == "duckdb":
        return " or ".join(_unknown_keys(path, names, dialect) for path, names in structs)
    return " or ".join(_unknown_inside(path, names) for path, names in structs)


def _structs(path: Path, kind: exp.DataType | None) -> Iterator[tuple[Path, list[str]]]:
    """Return the path of each struct of a type, with its fields' names."""
    assert kind is not None
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            yield from _structs((*path, EACH), kind.expressions[0])
        case exp.DataType.Type.STRUCT:
            yield path, [f.name for f in kind.expressions]
            for f in kind.expressions:
                yield from _structs((*path, f.name), f.args["kind"])


def _unknown_inside(path: Path, names: list[str]) -> str:
    """Look for keys that aren't among the names, in Spark SQL."""
    return _in_maps(path, lambda keys: f"size(array_except({keys}, {_array(names, 'spark')})) > 0")


def _in_maps(path: Path, test: Callable[[str], str]) -> str:
    """Read the objects at a path as maps, in Spark SQL, and ask of each one's keys; a map keeps those there twice."""
    kind = "map<string, string>"
    for step in reversed(path[1:]):
        kind = f"array<{kind}>" if step is EACH else f"struct<{sql.identifier(str(step), 'spark')}: {kind}>"
    schema = sql.string(f"{sql.identifier(str(path[0]), 'spark')} {kind}", "spark")
    value = f"from_json(_raw, {schema}).{sql.identifier(str(path[0]), 'spark')}"
    return f"coalesce({_exists(value, path[1:], test, 0)}, false)"


def _in_texts(path: Path) -> str:
    """Write the test that an object at a path has a key twice, in Spark SQL, whatever is beside it or below."""
    return f"coalesce({_some_text('_text', path, 0)}, false)"


def _some_text(value: str, path: Path, depth: int) -> str:
    if not path:
        return _uneven(f"json_object_keys({value})")
    if path[0] is EACH:
        return (
            f"exists(from_json({value}, 'array<string>'), e{depth} -> {_some_text(f'e{depth}', path[1:], depth + 1)})"
        )
    name = sql.identifier(path[0], "spark")
    return _some_text(f"from_json({value}, {sql.string(f'{name} string', 'spark')}).{name}", path[1:], depth)


def _uneven(keys: str) -> str:
    return f"size({keys}) <> size(array_distinct({keys}))"


def _exists(value: str, path: Path, test: Callable[[str], str], depth: int) -> str:
    if not path:
        return test(f"map_keys({value})")
    if path[0] is EACH:
        return f"exists({value}, e{depth} -> {_exists(f'e{depth}', path[1:], test, depth + 1)})"
    return _exists(f"{value}.{sql.identifier(path[0], 'spark')}", path[1:], test, depth)
