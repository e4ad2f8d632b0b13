"""Undeclared fields of a line, preserved as text, and declared fields that the line lacks. Pure.

JSON readers rewrite numbers and escapes, each in its own way. So regular expressions that mean the same to both engines
cut the fields out of the line's text. Only lines with an undeclared field are cut.
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

# Maximum depths of nested values. The first is tried first because it is several times as fast. A line with a deeper
# value is preserved whole.
DEPTHS = (2, 6)
# A step into an array in a path of field names.
EACH = None
Path = tuple[str | None, ...]


def rescued(source: Source, dialect: Dialect) -> str:
    """Return SQL for the undeclared fields of a line as one JSON object; NULL if the source declares all fields.

    A declared field whose value has undeclared fields inside is preserved as a whole. The SQL reads `_raw` in Spark,
    and `value` and its JSON `_line` in DuckDB.
    """
    line = "_raw" if dialect == "spark" else "value"
    names = [c.name for c in source.columns]
    inner = {c.name: _inner(c.name, types.parse(c.type), dialect) for c in source.columns}
    unknown = [_unknown_keys((), names, dialect), *(test for test in inner.values() if test)]
    cuts = [_cut(line, names, inner, dialect, depth) for depth in DEPTHS]
    cases = " ".join(f"when {fits} then {fields}" for fits, fields in cuts)
    return f"case when {' or '.join(unknown)} then case {cases} else {line_grammar.stripped(line, dialect)} end end"


def _cut(line: str, names: list[str], inner: Mapping[str, str], dialect: Dialect, depth: int) -> tuple[str, str]:
    """Return SQL for whether a line can be cut at a depth, and for its undeclared fields as one object.

    Tests of the line are outside the lambdas; inside, the engine would repeat them for each field.
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
    # If more than brackets and commas is left, a value is nested too deeply, and a match may lie inside it.
    fits = f"{'rlike' if spark else 'regexp_matches'}({left}, {empty})"
    return fits, f"concat('{{', {'array_join' if spark else 'array_to_string'}({fields}, ','), '}}')"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def plain(source: Source) -> str:
    """Return DuckDB's test that a line has exactly the declared keys, each once, and no undeclared ones inside.

    Most lines pass, and skip the other tests.
    """
    names = [c.name for c in source.columns]
    declared, ordered = (_array(each, "duckdb") for each in (names, sorted(names)))
    keys = _keys((), "duckdb")
    tests = [f"case when {keys} = {declared} then true else list_sort({keys}) = {ordered} end"]
    inner = [_inner(c.name, types.parse(c.type), "duckdb") for c in source.columns]
    inner += [_repeats(path) for path in _inner_structs(source)]
    return f"coalesce({' and '.join([*tests, *(f'not ({test})' for test in inner if test)])}, false)"


def twice(source: Source, dialect: Dialect) -> str:
    """Return SQL that tests whether a key occurs twice in a line's object, or in a declared object inside it."""
    keys = _keys((), dialect)
    if dialect == "duckdb":
        tests = [f"len({keys}) <> len(list_distinct({keys}))", *map(_repeats, _inner_structs(source))]
    else:
        tests = [_uneven(keys)]
        tests += [_in_texts(path) for path in _inner_structs(source)]
    return " or ".join(tests)


def _repeats(path: Path) -> str:
    """Return DuckDB's test that an object at a path has a key twice."""
    keys = f"json_keys(_line, {sql.string(json_path(path), 'duckdb')})"
    if EACH not in path:
        return f"coalesce(len({keys}) <> len(list_distinct({keys})), false)"
    return f"coalesce(len(list_filter({keys}, lambda k: len(k) <> len(list_distinct(k)))) > 0, false)"


def _inner_structs(source: Source) -> list[Path]:
    """Return the paths of all declared structs."""
    return [path for c in source.columns for path, _ in _structs((c.name,), types.parse(c.type))]


def absent(source: Source, dialect: Dialect) -> str:
    """Return SQL for the names of the columns that a line lacks, quoted, joined by commas; NULL if it lacks none."""
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
    """Return the regular expressions of a key at the start of its text, and of a key with its value.

    Java needs possessive quantifiers: others recurse for each character, and a long line overflows the stack. RE2 has
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
    """Return a path in the syntax of DuckDB's JSON functions."""
    return "$" + "".join("[*]" if step is EACH else f'."{step}"' for step in path)


def _unknown_keys(path: Path, names: list[str], dialect: Dialect) -> str:
    """Return SQL that tests whether the object at a path has a key that isn't in `names`."""
    if dialect == "spark":
        return f"coalesce(size(array_except({_keys(path, dialect)}, {_array(names, dialect)})) > 0, false)"
    return f"coalesce(not list_has_all({_array(names, dialect)}, {_keys(path, dialect)}), false)"


def _inner(name: str, kind: exp.DataType | None, dialect: Dialect) -> str:
    """Return SQL that tests whether a column's value has undeclared fields inside; "" for a type without structs."""
    structs = list(_structs((name,), kind))
    if dialect == "duckdb":
        return " or ".join(_unknown_keys(path, names, dialect) for path, names in structs)
    return " or ".join(_unknown_inside(path, names) for path, names in structs)


def _structs(path: Path, kind: exp.DataType | None) -> Iterator[tuple[Path, list[str]]]:
    """Yield the path and the field names of each struct of a type."""
    assert kind is not None
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            yield from _structs((*path, EACH), kind.expressions[0])
        case exp.DataType.Type.STRUCT:
            yield path, [f.name for f in kind.expressions]
            for f in kind.expressions:
                yield from _structs((*path, f.name), f.args["kind"])


def _unknown_inside(path: Path, names: list[str]) -> str:
    """Return Spark's test that an object at a path has a key that isn't in `names`."""
    return _in_maps(path, lambda keys: f"size(array_except({keys}, {_array(names, 'spark')})) > 0")


def _in_maps(path: Path, test: Callable[[str], str]) -> str:
    """Return Spark's test of the keys of each object at a path, read as a map, which preserves repeated keys."""
    kind = "map<string, string>"
    for step in reversed(path[1:]):
        kind = f"array<{kind}>" if step is EACH else f"struct<{sql.identifier(str(step), 'spark')}: {kind}>"
    schema = sql.string(f"{sql.identifier(str(path[0]), 'spark')} {kind}", "spark")
    value = f"from_json(_raw, {schema}).{sql.identifier(str(path[0]), 'spark')}"
    return f"coalesce({_exists(value, path[1:], test, 0)}, false)"


def _in_texts(path: Path) -> str:
    """Return Spark's test that an object at a path has a key twice, regardless of its siblings and children."""
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
