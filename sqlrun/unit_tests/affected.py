"""The unit tests that an edit affects. Shell: a loaded project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlrun.load.contract_files import facts
from sqlrun.parse.parse import Query
from sqlrun.pipeline import Prepared
from sqlrun.project import UnitTest
from sqlrun.test_definitions.names import inner
from sqlrun.unit_tests.choosing import key_of

# Dependencies of each test by its name. Equal values mean that its result can't have changed.
Seen = Mapping[str, object]


def seen(prepared: Prepared, tests: Iterable[UnitTest]) -> Seen:
    """Return what each test depends on: itself, the queries that it runs, and the columns that these read.

    A macro is part of the queries that call it. Comments, descriptions and places are no part of it.
    """
    project = prepared.project
    columns = {model.name: facts(model.columns) for model in project.models}
    columns |= {seed.name: facts(seed.columns) for seed in project.seeds}
    columns |= {source.table: [facts(source.columns), facts(source.drop_where)] for source in project.sources}
    queries = {query.name: query for query in prepared.queries}
    found: dict[str, object] = {}
    for test in tests:
        models = sorted(_models_run_by(test, prepared))
        read = sorted({name for model in models for name in _reads(queries[model])})
        # A test with its own macros or vars also depends on the text of all macros and on the project's vars.
        own = [project.macros, facts(project.seen_by_templates)] if test.vars or test.macros or test.macro else []
        found[key_of(test)] = [
            facts(test),
            [shape(queries[model]) for model in models],
            [[name, columns.get(name)] for name in read],
            own,
        ]
    return found


def _reads(query: Query) -> tuple[str, ...]:
    return (*query.rendered.refs, *query.rendered.sources)


def shape(query: Query) -> object:
    """Return what others can see of a model: its query, config and contract, without descriptions."""
    model, config = query.rendered.model, facts(query.rendered.config)
    return [query.canonical, config, model.grain, model.repeats, model.event_time, facts(model.columns)]


def changed_tests(before: Seen, after: Seen) -> frozenset[str]:
    """Return the names of the tests whose dependencies changed, new tests included.

    >>> sorted(changed_tests({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "d": 1}))
    ['b', 'd']
    """
    return frozenset(name for name, value in after.items() if name not in before or before[name] != value)


def _models_run_by(test: UnitTest, prepared: Prepared) -> Iterator[str]:
    """Return the models whose queries a test runs: its own, and in a chain those between it and the given inputs."""
    models = {query.name: query.rendered for query in prepared.queries}
    if test.model not in models:
        return
    given = {inner(one.input) for one in test.given}
    above: dict[str, bool] = {}

    def leads_to_given(name: str) -> bool:
        """Return whether a model reads a given input, directly or through other models that aren't given."""
        if name not in above:
            above[name] = False
            item = models.get(name)
            reads = [] if item is None else [*item.refs, *item.sources]
            above[name] = any(read in given or leads_to_given(read) for read in reads)
        return above[name]

    left, done = [test.model], set()
    while left:
        name = left.pop()
        if name in done:
            continue
        done.add(name)
        yield name
        left += [ref for ref in models[name].refs if ref in models and ref not in given and leads_to_given(ref)]
