"""Lines with fields that no source declares, and their rescued text, on both engines."""

from __future__ import annotations

from sqlrun.engine_api import Dialect
from sqlrun.errors import Place
from sqlrun.incremental.landing import query as landing_query
from sqlrun.project import Column, Source
from sqlrun.transpile import writer as sql

FIELDS = {"id": "string", "size": "struct<w:int,h:struct<cm:int>>", "items": "array<struct<dish:string>>"}
HERE = Place("_sources.yml")
SOURCE = Source("a", "b", "json", "data", tuple(Column(n, k, "It.", HERE) for n, k in FIELDS.items()), "It.", HERE)
DEEP = "[" * 12 + '{"id": 1, "b": 2}' + "]" * 12
LONG = ", ".join('"word"' for _ in range(20_000))
# The line, and its `_rescued`.
HOSTILE: dict[str, tuple[str, str | None]] = {
    "nothing unknown": ('{"id": "1", "size": {"w": 1, "h": {"cm": 2}}, "items": [{"dish": "x"}]}', None),
    "empty": ("{}", None),
    "null": ('{"id": "1", "x": null}', '{"x": null}'),
    "zeros at the end": ('{"x": 1.50, "y": 1.0}', '{"x": 1.50,"y": 1.0}'),
    "many digits": ('{"x": 12345678901234567890123456789012345678901.123456789012345678901234567890}',) * 2,
    "exponents": ('{"x": 1e3, "y": -1.5E-07, "z": 0.1e+400}', '{"x": 1e3,"y": -1.5E-07,"z": 0.1e+400}'),
    "escapes": (r'{"x": "\u00e9\"\\\/\n", "id": "1"}', r'{"x": "\u00e9\"\\\/\n"}'),
    "letters": ('{"ü 🍕": "ünï 🍕", "id": "1"}', '{"ü 🍕": "ünï 🍕"}'),
    "brackets in text": ('{"x": "}{][,:", "id": "}", "y": ["]", "{"]}', '{"x": "}{][,:","y": ["]", "{"]}'),
    "a text like a member": (r'{"id": "\"x\": 1, \"y\"", "z": ": 1"}', '{"z": ": 1"}'),
    "keys like structure": ('{"a\\"b": 1, ",": 2, ":": 3, "{": 4}', '{",": 2,":": 3,"a\\"b": 1,"{": 4}'),
    "an empty key": ('{"": 1, "id": "1"}', '{"": 1}'),
    "no spaces": ('{"b":true,"a":[1,2],"id":"1"}', '{"a":[1,2],"b":true}'),
    "many spaces": ('  {  "x"  :  { "a" : 1 }  ,  "id" : "1" }  ', '{"x"  :  { "a" : 1 }}'),
    "tabs": ('{\t"x"\t:\t1\t,\t"id":"1"}', '{"x"\t:\t1}'),
    "an escaped name of a declared field": (r'{"\u0069d": "1", "x": 1}', r'{"\u0069d": "1","x": 1}'),
    "capitals": ('{"ID": "1"}', '{"ID": "1"}'),
    "inside a struct": ('{"size": {"w": 1, "h": {"cm": 2}, "d": 3}}',) * 2,
    "inside a struct of a struct": ('{"size": {"w": 1, "h": {"cm": 2, "in": 1}}}',) * 2,
    "inside an array": ('{"items": [{"dish": "x"}, {"q": 1}], "z": 1}', '{"items": [{"dish": "x"}, {"q": 1}],"z": 1}'),
    "no objects in an array": ('{"items": [], "id": "1"}', None),
    "deep": ('{"x": [[[[[{"id": 1, "b": "]"}]]]]], "id": "1"}', '{"x": [[[[[{"id": 1, "b": "]"}]]]]]}'),
    "deep and declared": ('{"id": [[[[[[[1]]]]]]], "x": 1}',) * 2,
    "too deep to cut": (f'  {{"x": {DEEP}, "id": "1"}}  ', f'{{"x": {DEEP}, "id": "1"}}'),
    "long": (f'{{"id": "1", "x": [{LONG}], "y": "{"z" * 50_000}"}}', f'{{"x": [{LONG}],"y": "{"z" * 50_000}"}}'),
    "a key twice": ('{"x": 1, "x": 2}', None),
    "no JSON": ('{"x": 1', None),
    "a list": ('[{"x": 1}]', None),
}  # fmt: skip


def rescued(dialect: Dialect) -> str:
    """Return a query for the name of each line and its rescued fields."""
    values = " union all ".join(
        f"select {sql.string(line, dialect)} as value, {sql.string(name, dialect)} as file"
        for name, (line, _) in HOSTILE.items()
    )
    kept = f"case when _json is not null and not _twice then {landing_query.RESCUED} end as kept"
    parsed = landing_query._parsed(SOURCE, dialect)
    return f"with lines as ({values}), parsed as ({parsed}) select _file, {kept} from parsed"
