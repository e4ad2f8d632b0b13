"""Extreme queries in a process with limits: a result or an error with a code, in bounded time."""

from __future__ import annotations

import re

import pytest

from tests.support import hostile
from tests.support.broken import contract

T = "{{ ref('t') }}"


def union(parts: int, word: str = "union all") -> str:
    return f"\n{word}\n".join(f"select id from {T} where a = {part}" for part in range(parts))


def ctes(number: int) -> str:
    """Return CTEs each of which reads the previous one twice: inlined, their size doubles each time."""
    steps = [
        f"c{n} as (select x.id, y.a from c{n - 1} as x join c{n - 1} as y on x.id = y.id)" for n in range(1, number)
    ]
    return f"with c0 as (select id, a from {T}),\n" + ",\n".join(steps) + f"\nselect id from c{number - 1}"


def chain(number: int) -> str:
    steps = [f"c{n} as (select id, a from c{n - 1})" for n in range(1, number)]
    return f"with c0 as (select id, a from {T}),\n" + ",\n".join(steps) + f"\nselect id from c{number - 1}"


def join(tables: int) -> str:
    more = "\n".join(f"join {T} as t{n} on t{n}.id = t{n - 1}.id" for n in range(1, tables))
    return f"select t0.id from {T} as t0\n{more}"


def nested(before: str, behind: str, times: int) -> str:
    return f"select {before * times}id{behind * times} as id from {T}"


# The query, and the code of its one problem; "" if it is maintained.
QUERIES = {
    "a UNION ALL of 300": (union(300), ""),
    "a UNION ALL of 1,000": (union(1000), "SR301"),
    "a CASE of 1,000 branches": (
        f"select case {' '.join(f'when a = {n} then {n + 1}' for n in range(1000))} end as id from {T}",
        "",
    ),
    "200 CTEs, each used twice": (ctes(200), "SR301"),
    "200 CTEs in a row": (chain(200), ""),
    "500 parentheses": (nested("(", ")", 500), "SR301"),
    "50,000 parentheses": (nested("(", ")", 50_000), "SR301"),
    "parentheses that never close": ("select " + "(" * 100_000, "SR301"),
    "500 subqueries": ("select id from (" * 500 + f"select id from {T}" + ") as x" * 500, "SR301"),
    "500 functions in each other": (nested("abs(", ")", 500), "SR301"),
    "300 CASEs in each other": (nested("case when id > 0 then ", " end", 300), "SR301"),
    "200 lambdas in each other": (nested("transform(array(id), x -> ", ")", 200), "SR301"),
    "10,000 times NOT": (f"select id from {T} where {'not ' * 10_000}true", "SR301"),
    "10,000 minus signs": (nested("- ", "", 10_000), "SR301"),
    "20,000 fields of fields": (nested("", ".a", 20_000), "SR301"),
    "20,000 elements of elements": (nested("", "[0]", 20_000), "SR301"),
    "5,000 casts": (nested("", "::int", 5_000), "SR301"),
    "2,000 arrays of arrays": (f"select cast(b as {'array<' * 2000}int{'>' * 2000}) as id from {T}", "SR301"),
    "an IN list of 20,000": (f"select id from {T} where a in ({', '.join(map(str, range(20_000)))})", ""),
    "a join of 64": (join(64), ""),
    "1,000 times OR": (f"select id from {T} where {' or '.join(f'a = {n}' for n in range(1000))}", ""),
    "10,000 times +": (nested("", " + 1", 10_000), ""),
    "100 lateral views": (
        f"select id from {T} {' '.join(f'lateral view explode(array(1, 2)) e{n} as x{n}' for n in range(100))}",
        "",
    ),
    "a text of 900,000 letters": (f"select id from {T} where b = '{'x' * 900_000}'", ""),
    "a number of 100,000 digits": (f"select id from {T} where a < {'9' * 100_000}", ""),
    "a pattern of 100,000 letters": (f"select id from {T} where b like '{'%a' * 50_000}'", ""),
    "a comment of 200,000 letters": (f"select id /* {'* ' * 100_000}*/ from {T}", ""),
    "100,000 semicolons": (";" * 100_000, "SR302"),
    "a file of a megabyte and more": (f"select id from {T} -- {'x' * 1_000_000}", "SR101 SR208"),
    "60,000 comments that begin": ("{#" * 60_000, "SR201"),
    "60,000 tags that begin": ("{%" * 60_000, "SR201"),
    "60,000 expressions that begin": ("{{" * 60_000, "SR201"),
    "20,000 blocks that are not closed": ("{% if x %}" * 20_000, "SR201"),
    "5,000 parentheses in Jinja": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "SR201"),
    "20,000 filters": ("{{ 1" + "|int" * 20_000 + " }}", "SR201"),
    "200 conditions in each other": ("{% if 1 %}" * 200 + "x" + "{% endif %}" * 200, "SR201"),
    "50 loops in each other": ("{% for x in [1] %}" * 50 + "x" + "{% endfor %}" * 50, "SR201"),
}
SLOW = {
    "a query of 10,000 lines": [f"a + {n} as c{n}" for n in range(10_000)],
    "5,000 columns": [f"a * {n} as c{n}" for n in range(5_000)],
}


@pytest.mark.slow
@pytest.mark.long
def test_extreme_queries_end_with_a_result_or_a_code() -> None:
    """All of them in one child: maintained, or one problem with its code; no traceback and no minutes."""
    verdicts = hostile.run({name: {"models/m.sql": sql} for name, (sql, _) in QUERIES.items()})

    codes = {
        name: " ".join(dict.fromkeys(problem[:5] for problem in answer.problems)) for name, answer in verdicts.items()
    }
    assert codes == {name: code for name, (_, code) in QUERIES.items()}
    assert all(answer.seconds < hostile.SECONDS for answer in verdicts.values())
    # A line of a megabyte isn't printed.
    assert all(len(answer.text) < 5_000 for answer in verdicts.values() if answer.problems)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
@pytest.mark.long
def test_a_wide_query_is_maintained(name: str) -> None:
    """Thousands of columns, each in the contract."""
    items = ["id", *SLOW[name]]
    columns = ["id", *(f"{item.rpartition(' ')[2]} bigint" for item in items[1:])]
    files = {
        "models/m.sql": "select\n  " + ",\n  ".join(items) + f"\nfrom {T}\n",
        "models/m.yml": contract("m", *columns),
    }

    verdict = hostile.run({name: files})[name]

    assert verdict.problems == ()
    # Compiled for both engines.
    assert len(re.findall(r" AS c4999\b", verdict.text)) == 2


YAML = {
    "100,000 brackets": ("x: " + "[" * 100_000, "SR101"),
    "50,000 braces": ("x: " + "{a: " * 50_000, "SR101"),
    "50,000 dashes": ("- " * 50_000 + "x", "SR101"),
    "50,000 question marks": ("? " * 50_000, "SR101"),
    "100,000 colons": ("a: " * 100_000, "SR101"),
    "200,000 commas": ("[" + "," * 200_000 + "]", "SR101"),
    "50,000 documents": ("---\n" * 50_000, "SR101"),
    "20,000 anchors": ("".join(f"a{n}: &a{n} x\n" for n in range(20_000)), "SR102 SR104"),
    "a line of 900,000 letters": (contract("m").replace("A row.", "x" * 900_000), ""),
    "a line of 200,000 escapes": (contract("m").replace("A row.", '"' + "\\x41" * 200_000 + '"'), ""),
    "100,000 tabs": ("\t" * 100_000, "SR101"),
    "200,000 empty comments": ("#\n" * 200_000 + contract("m"), ""),
    "a megabyte and more": ("#" * 1_000_001, "SR101"),
}


@pytest.mark.long
@pytest.mark.slow
def test_extreme_yaml_is_read_or_refused() -> None:
    """Neither long nor deep."""
    verdicts = hostile.run({name: {"models/m.yml": text} for name, (text, _) in YAML.items()})

    codes = {name: " ".join(sorted({problem[:5] for problem in answer.problems})) for name, answer in verdicts.items()}
    assert codes == {name: code for name, (_, code) in YAML.items()}
    assert all(answer.seconds < hostile.SECONDS for answer in verdicts.values())
    assert all(len(answer.text) < 200_000 for answer in verdicts.values() if answer.problems)
