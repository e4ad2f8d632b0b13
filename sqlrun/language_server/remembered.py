"""Models without problems, remembered between two looks at a project with a broken one. Shell: this process."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from sqlrun.errors import Problem
from sqlrun.load.contract_files import facts
from sqlrun.load.load import Loaded
from sqlrun.parse import declared_types, parse
from sqlrun.parse.parse import Query
from sqlrun.pipeline import Attempts
from sqlrun.project import Model, Rendered
from sqlrun.render import render
from sqlrun.runtime.disk_cache import digest
from sqlrun.runtime.serialize import partly


class Memory:
    """What rendered and parsed without a problem, by the hash of all that it depends on."""

    def __init__(self) -> None:
        self._rendered: dict[str, Rendered] = {}
        self._parsed: dict[str, tuple[str, ...]] = {}

    @property
    def attempts(self) -> Attempts:
        """Return how a project with problems is rendered and parsed with the help of this memory."""
        return Attempts(self.render, self.parse)

    def learn(self, loaded: Loaded, queries: Iterable[Query]) -> None:
        """Remember the models of a project without problems, and forget all others."""
        models, keys = _Keys(loaded), {}
        schema = parse.schema_of(loaded.project)
        self._rendered, self._parsed = {}, {}
        for query in queries:
            keys[query.name] = models.of(query.rendered.model)
            self._rendered[keys[query.name]] = query.rendered
            self._parsed[_inputs(keys[query.name], query.rendered, schema)] = query.columns

    def render(self, loaded: Loaded) -> tuple[tuple[Rendered, ...], tuple[Problem, ...]]:
        """Return the models that render, and the problems of all others."""
        keys = _Keys(loaded)
        known = {model.name: self._rendered.get(keys.of(model)) for model in loaded.project.models}
        made, problems = render.attempt(loaded.project, [m for m in loaded.project.models if known[m.name] is None])
        new = {item.model.name: item for item in made}
        if not problems:
            self._rendered |= {keys.of(item.model): item for item in made}
        all_of_them = (known[model.name] or new.get(model.name) for model in loaded.project.models)
        return tuple(item for item in all_of_them if item is not None), problems

    def parse(self, rendered: Iterable[Rendered], loaded: Loaded) -> tuple[tuple[Query, ...], tuple[Problem, ...]]:
        """Return the models that parse, and the problems of all others."""
        keys, schema, functions = _Keys(loaded), parse.schema_of(loaded.project), loaded.project.functions
        found: dict[str, Query | None] = {}
        unknown = []
        for item in rendered:
            key = _inputs(keys.of(item.model), item, schema)
            columns = self._parsed.get(key)
            found[item.model.name] = None
            if columns is None:
                unknown.append((key, item))
            else:
                known = {"rendered": item, "columns": columns}
                found[item.model.name] = partly(Query, partial(parse.query, item, schema, functions), known)
        queries, problems = parse.attempt([item for _, item in unknown], loaded.project)
        made = {query.name: query for query in queries}
        self._parsed |= {key: made[item.model.name].columns for key, item in unknown if item.model.name in made}
        ordered = (query or made.get(name) for name, query in found.items())
        return tuple(query for query in ordered if query is not None), problems


class _Keys:
    """Hashes of models: of their texts, contracts, settings, and what all templates see."""

    def __init__(self, loaded: Loaded) -> None:
        project = loaded.project
        self._shared = digest(
            [
                [[macro.name, macro.text] for macro in project.macros],
                facts(project.seen_by_templates),
                sorted(source.table for source in project.sources),
                sorted([*(model.name for model in project.models), *(seed.name for seed in project.seeds)]),
                list(declared_types.problems(project)) == [],
                project.functions,
            ]
        )

    def of(self, model: Model) -> str:
        return digest([self._shared, model.file, model.sql, facts(model), str(model.place)])


def _inputs(key: str, rendered: Rendered, schema: parse.Schema) -> str:
    """Return the hash of a model and of the columns that it reads."""
    reads = [[ref, schema[parse.REF].get(ref)] for ref in rendered.refs]
    return digest([key, reads, [[table, schema[parse.SOURCE].get(table)] for table in rendered.sources]])
