"""Order, cycles and selection."""

from __future__ import annotations

import pytest

from sqlrun.errors import Place, ProjectError, UsageError
from sqlrun.graph import graph, selectors
from sqlrun.project import Config, Exposure, Model, Project, Rendered, Seed, Source

# name: (file, refs, sources, tags)
SHOP = {
    "stg_orders": ("models/staging/orders/stg_orders.sql", (), ("shop__orders",), ("hot",)),
    "stg_returns": ("models/staging/stg_returns.sql", (), ("shop_old__orders",), ()),
    "orders": ("models/facts/orders.sql", ("stg_orders", "dishes"), (), ("hot",)),
    "days": ("models/marts/days.sql", ("orders",), (), ("cold",)),
    "hours": ("models/marts/hours.sql", ("orders", "stg_returns"), (), ()),
}


def made(models: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = SHOP) -> graph.Graph:
    items = []
    for name, (file, refs, sources, tags) in models.items():
        sql = "select *\n" + "\n".join(f"from {{{{ ref('{ref}') }}}}" for ref in refs)
        out = "select *\n" + "\n".join(f"from `ref`.`{ref}`" for ref in refs)
        model = Model(name, file, sql, "", "", (), False, (), Config(), ())
        lines = tuple(range(1, out.count("\n") + 2))
        kind = "view" if name == "orders" else "table"
        items.append(Rendered(model, out, refs, sources, lines, Config(kind, tags=tags)))
    seeds = (Seed("dishes", "seeds/dishes.csv", "", "", (), (), ()),)
    sources = tuple(Source(group, "orders", "json", "", (), "", Place("")) for group in ("shop", "shop_old"))
    board = Exposure("board", "dashboard", "", "", ("orders", "hours"), Place(""))
    project = Project(
        "", "shop", "", {}, tuple(item.model for item in items), seeds, sources, (), (), exposures=(board,)
    )
    return graph.build(project, items)


def test_parents_come_first_and_names_decide_the_rest():
    found = made()

    first = "dishes source:shop.orders source:shop_old.orders"
    assert " ".join(found.order) == f"{first} stg_orders stg_returns orders days hours"
    assert made(dict(reversed(SHOP.items()))).order == found.order
    assert found.parents["hours"] == ("orders", "stg_returns")
    assert found.children["orders"] == ("days", "hours")
    assert found.children["source:shop.orders"] == ("stg_orders",)


@pytest.mark.parametrize(
    ("include", "chosen"),
    [
        ("", "dishes stg_orders stg_returns orders days hours"),
        ("stg_orders", "stg_orders"),
        ("stg_*", "stg_orders stg_returns"),
        ("*", "dishes stg_orders stg_returns orders days hours"),
        ("+days", "dishes stg_orders orders days"),
        ("1+days", "orders days"),
        ("orders+", "orders days hours"),
        ("stg_orders+1", "stg_orders orders"),
        ("2+days+1", "dishes stg_orders orders days"),
        ("1+stg_orders+1", "stg_orders orders"),
        ("@stg_returns", "dishes stg_orders stg_returns orders hours"),
        ("tag:hot", "stg_orders orders"),
        ("tag:h*", "stg_orders orders"),
        ("path:models/marts", "days hours"),
        ("path:models/marts/days.sql", "days"),
        ("marts", "days hours"),
        ("./models/marts/", "days hours"),
        ("models/staging+", "stg_orders stg_returns orders days hours"),
        ("staging/orders", "stg_orders"),
        ("seeds", "dishes"),
        ("source:shop+", "stg_orders orders days hours"),
        ("source:shop.orders+1", "stg_orders"),
        ("source:shop*+1", "stg_orders stg_returns"),
        ("source:shop", ""),
        ("tag:hot,path:models/facts", "orders"),
        ("tag:hot,marts", ""),
        ("file:days.sql", "days"),
        ("file:days", "days"),
        ("file:stg_*", "stg_orders stg_returns"),
        ("fqn:*", "dishes stg_orders stg_returns orders days hours"),
        ("fqn:shop.marts.days", "days"),
        ("shop.marts.days", "days"),
        ("shop.marts", "days hours"),
        ("fqn:marts", "days hours"),
        ("fqn:days", "days"),
        ("fqn:shop.staging.*.stg_orders", "stg_orders"),
        ("exposure:board", "orders hours"),
        ("+exposure:board,marts", "hours"),
        ("package:shop,marts", "days hours"),
        ("package:this,seeds", "dishes"),
        ("resource_type:seed", "dishes"),
        ("resource_type:model,marts", "days hours"),
        ("resource_type:source+1", "stg_orders stg_returns"),
        ("config.materialized:view", "orders"),
        ("config.tags:hot", "stg_orders orders"),
        ("days hours", "days hours"),
        ("days stg_orders,tag:hot", "stg_orders days"),
    ],
)
def test_selectors_are_dbts(include, chosen):
    names = selectors.select(made(), (include,) if include else ())

    assert " ".join(names) == chosen


def test_several_selectors_unite_and_exclude_subtracts():
    found = made()

    assert selectors.select(found, ("days", "hours")) == ("days", "hours")
    assert selectors.select(found, ("+days",), ("stg_orders", "dishes orders")) == ("days",)
    assert selectors.select(found, (), ("marts", "tag:hot")) == ("dishes", "stg_returns")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stg_order", "the selector `stg_order` matches nothing. Did you mean `stg_orders`"),
        ("mart", "Did you mean `marts`"),
        ("tag:hott", "Did you mean `hot`?"),
        ("path:models/mart", "Did you mean `models/marts`"),
        ("source:shp", "Did you mean `shop`"),
        ("tags:hot", "unknown selector method `tags:`. Known methods: tag:, path:, file:, fqn:, "),
        ("tags:hot", "source_status:. Did you mean `tag`?"),
        ("file:day.sql", "Did you mean `days.sql`"),
        ("fqn:shop.mart.days", "Did you mean `shop.marts.days`"),
        ("fqn:shop.mart", "Did you mean `shop.marts`"),
        ("exposure:bord", "Did you mean `board`?"),
        ("package:shops", "Did you mean `shop`?"),
        ("resource_type:modle", "Did you mean `model`?"),
        ("resource_type:test", "the selector `resource_type:test` matches nothing."),
        ("config.materialized:veiw", "Did you mean `view`?"),
        ("zzzzzz", "`sqlrun ls` lists what there is."),
        ("", "`` is not a selector."),
        ("days,", "`` is not a selector."),
        ("+", "`+` is not a selector."),
        ("@days+", "`@days+` is not a selector."),
        ("a++", "`a++` is not a selector."),
    ],
)
def test_an_invalid_selector_is_reported(text, says):
    for include, exclude in (((text,), ()), ((), (text,))):
        with pytest.raises(UsageError) as caught:
            selectors.select(made(), include, exclude)
        assert says in str(caught.value)


def circle(edges: dict[str, tuple[str, ...]]) -> list[str]:
    with pytest.raises(ProjectError) as caught:
        made({name: (f"models/{name}.sql", refs, (), ()) for name, refs in edges.items()})
    return [f"{problem.place}  {problem.message}" for problem in caught.value.problems]


def test_a_cycle_is_reported_edge_by_edge():
    assert circle({"a": ("b",), "b": ("d", "c"), "c": ("a",), "d": ()}) == [
        "models/a.sql:2:9  these models depend on each other in a cycle: a -> b -> c -> a"
    ]


def test_every_cycle_is_reported():
    found = circle({"a": ("b",), "b": ("a",), "c": ("c",), "d": ("e",), "e": ("d", "a")})

    assert [text.partition("  ")[2] for text in found] == [
        "these models depend on each other in a cycle: a -> b -> a",
        "the model `c` reads itself",
        "these models depend on each other in a cycle: d -> e -> d",
    ]


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion():
    chain = {f"m{i:04}": (f"models/m{i:04}.sql", (f"m{i - 1:04}",) if i else (), (), ()) for i in range(3000)}

    assert made(chain).nodes[-1] == "m2999"
