"""selectors.yml: what definitions mean, and which mistakes are reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlrun.errors import Problem, UsageError
from sqlrun.graph import named_selectors, selectors
from sqlrun.graph.graph import Graph
from sqlrun.load.yaml_reader import Reader
from tests.graph.test_graph import made


def read(text: str) -> tuple[Graph, list[Problem]]:
    """Return the graph of the shop with the selectors of a file, and the problems of the file."""
    problems: list[Problem] = []
    found = tuple(named_selectors.read(Reader("selectors.yml", text, problems)))
    return replace(made(), named={one.name: one for one in found}), problems


def defined(definition: str) -> Graph:
    graph, problems = read("selectors:\n  - name: mine\n    definition:" + definition)
    assert problems == []
    return graph


@pytest.mark.parametrize(
    ("definition", "chosen"),
    [
        (" days", "days"),
        (" '+days,tag:hot'", "stg_orders orders"),
        (" {tag: hot}", "stg_orders orders"),
        (" {method: tag, value: cold}", "days"),
        (" {method: file, value: orders.sql, parents: true}", "dishes stg_orders orders"),
        (" {method: fqn, value: days, parents: true, parents_depth: 1}", "orders days"),
        (" {method: fqn, value: stg_orders, children: true, children_depth: 1}", "stg_orders orders"),
        (" {method: path, value: models/facts, children: true, exclude: [days]}", "orders hours"),
        (" {method: fqn, value: stg_returns, childrens_parents: true}", "dishes stg_orders stg_returns orders hours"),
        (" {method: fqn, value: days, indirect_selection: cautious}", "days"),
        (" {method: config.materialized, value: view}", "orders"),
        (" {union: [days, {tag: hot}]}", "stg_orders orders days"),
        (" {union: [+days, {exclude: [seeds, {tag: hot}]}]}", "days"),
        (" {intersection: [+days, {tag: hot}]}", "stg_orders orders"),
        (" {intersection: [{union: [days, hours]}, marts, {exclude: [hours]}]}", "days"),
    ],
)
def test_a_definition_means_what_dbts_does(definition: str, chosen: str) -> None:
    graph = defined(definition)

    assert " ".join(selectors.select(graph, ("selector:mine",))) == chosen


def test_a_named_selector_is_a_selector_like_any_other() -> None:
    graph, problems = read(
        "selectors:\n  - {name: hot, definition: 'tag:hot'}\n"
        "  - name: both\n    definition: {union: ['selector:hot', {selector: cold}]}\n"
        "  - {name: cold, definition: days, description: Old}\n"
    )

    assert problems == []
    assert selectors.select(graph, ("selector:both",)) == ("stg_orders", "orders", "days")
    assert selectors.select(graph, ("1+selector:cold",)) == ("orders", "days")
    assert selectors.select(graph, ("selector:both,marts", "hours")) == ("days", "hours")
    with pytest.raises(UsageError, match="Did you mean `cold`"):
        selectors.select(graph, ("selector:colt",))


def test_a_name_may_end_with_a_digit() -> None:
    graph, problems = read(
        "selectors:\n  - {name: v2, definition: days}\n  - {name: a, definition: '1+selector:v2+1'}\n"
    )

    assert problems == []
    assert selectors.select(graph, ("selector:a",)) == ("orders", "days")


def test_the_default_one_applies_without_any_other() -> None:
    graph, _ = read("selectors:\n  - {name: hot, default: true, definition: 'tag:hot'}\n")

    assert selectors.select(graph, ()) == ("stg_orders", "orders")
    assert selectors.select(graph, ("days",)) == ("days",)
    assert "days" in selectors.select(graph, (), ("hours",))
    assert selectors.compared_methods(graph, ()) == frozenset()


def test_methods_that_compare_are_found_in_named_selectors() -> None:
    graph, _ = read(
        "selectors:\n  - {name: a, definition: 'selector:b'}\n"
        "  - {name: b, default: true, definition: {union: [{method: state, value: new}, 'result:error+']}}\n"
    )

    assert selectors.compared_methods(graph, ("2+selector:a",)) == {"state", "result"}
    assert selectors.compared_methods(graph, ()) == {"state", "result"}
    assert selectors.compared_methods(graph, ("tag:state", "config.meta.state:x")) == frozenset()


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("selectors: 1", "SR103", "must be a list"),
        ("selector: []", "SR102", "Did you mean `selectors`?"),
        ("selectors: [{name: a}]", "SR104", "definition"),
        ("selectors: [{name: a, definition: ''}]", "SR110", "a selector is empty"),
        ("selectors: [{name: a, definition: [b]}]", "SR103", "must be a text or a mapping"),
        ("selectors: [{name: a, definition: {tags: b}}]", "SR110", "Did you mean `tag`?"),
        ("selectors: [{name: a, definition: {method: tag}}]", "SR104", "value"),
        ("selectors: [{name: a, definition: {method: tag, valu: x}}]", "SR102", "Did you mean `value`?"),
        ("selectors: [{name: a, definition: {union: []}}]", "SR110", "`union` has no selector"),
        ("selectors: [{name: a, definition: {union: [x], intersection: [y]}}]", "SR110", "exclude each other"),
        (
            "selectors: [{name: a, definition: {method: tag, value: x, parents_depth: -1, parents: true}}]",
            "SR103",
            "a number of levels",
        ),
        ("selectors: [{name: a, definition: 'selector:b'}]", "SR110", "unknown selector `b` in `a`"),
        ("selectors: [{name: a, definition: '+selector:a'}]", "SR110", "`a` refers to itself"),
        (
            "selectors: [{name: a, definition: 'selector:b'}, {name: b, definition: {selector: a}}]",
            "SR110",
            "`a` refers to itself",
        ),
        ("selectors: [{name: a, definition: b}, {name: a, definition: c}]", "SR111", "duplicate selector `a`"),
        (
            "selectors: [{name: a, definition: b, default: true}, {name: c, definition: d, default: true}]",
            "SR111",
            "two default selectors",
        ),
    ],
)
def test_a_mistake_is_reported(text: str, code: str, says: str) -> None:
    _, problems = read(text)

    assert code in [problem.code for problem in problems]
    assert says in "\n".join(map(str, problems))
    assert all(problem.place.file == "selectors.yml" for problem in problems)
