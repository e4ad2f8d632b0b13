"""The columns of open contracts, inferred from the models' queries, inputs first. Shell: the project's cache.

A contract lists what its author promises. What it leaves out follows from the query: the names of columns, and their
types as far as `parse.type_check` knows them. A model whose query has a problem has no columns, so that the models that
read it aren't checked: the problem itself is reported when all queries are parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.load.contract_files import facts
from sqlrun.load.folder import Folder
from sqlrun.load.freshness import EVENT_TIME
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.parse import declared_types, parse, type_check
from sqlrun.parse.select_list import are_valid_names
from sqlrun.parse.source_map import source_place
from sqlrun.project import Column, Model, Project, Rendered, Seed
from sqlrun.render import render
from sqlrun.runtime.disk_cache import digest
from sqlrun.transpile.trees import place_of

# The columns of each model.
Inferred = dict[str, tuple[Column, ...]]


def complete(folder: Folder, project: Project) -> Project:
    """Return the project with the columns of its open contracts; problems and facts are added to the folder's."""
    wanted = {model.name: model for model in project.models if model.is_open and not _is_complete(model)}
    if not wanted:
        return project
    made: list[Inferred] = []

    def infer() -> Inferred | None:
        made.append(_inferred(project, wanted))
        return made[0] if all(made[0].get(name) for name in wanted) else None

    kept = folder.cache.get_or_make("inferred", _dependencies(project), Inferred, infer)
    found = kept if kept is not None else made[0]
    models = tuple(
        replace(model, columns=found.get(model.name, ())) if model.name in wanted else model for model in project.models
    )
    for model in models:
        if model.name in wanted:
            folder.facts[model.name] = digest([facts(model.config), facts(model)])
            folder.problems.extend(_problems(model) if model.columns else ())
    return replace(project, models=models)


def _is_complete(model: Model) -> bool:
    return bool(model.columns) and all(column.type for column in model.columns)


def _dependencies(project: Project) -> list[object]:
    """Return all that an inferred column can depend on, its place included."""
    tables: tuple[Model | Seed, ...] = (*project.seeds, *project.models)
    nouns = [[noun.name, facts(noun.columns)] for noun in tables]
    sources = [[source.table, facts(source.columns)] for source in project.sources]
    texts = [
        [model.file, model.sql, facts(model.config), [str(column.place) for column in model.columns]]
        for model in project.models
        if model.is_open
    ]
    macros = [[macro.name, macro.text] for macro in (*project.macros, *project.built_in)]
    return [nouns, sources, texts, macros, facts(project.seen_by_templates), project.functions]


def _inferred(project: Project, wanted: Mapping[str, Model]) -> Inferred:
    schema = parse.schema_of(project)
    found: Inferred = {}
    for rendered in _ordered(project, wanted):
        try:
            columns = _columns(rendered, parse.walked(rendered, schema, project.functions))
        except (ProjectError, parse.Unknowable, *parse.TOO_DEEP_ERRORS):
            columns = ()
        found[rendered.model.name] = columns
        schema[parse.REF][rendered.model.name] = declared_types.types_of(columns)
    return found


def _ordered(project: Project, wanted: Mapping[str, Model]) -> Iterator[Rendered]:
    """Yield the models that can be rendered, each after those of them that it reads."""
    one, rendered = render.later(project), dict[str, Rendered]()
    for name, model in wanted.items():
        made = one(model)
        if made is None:
            one = render.later(project)  # after a problem, it renders nothing more
        else:
            rendered[name] = made
    begun = set[str]()

    def after(name: str) -> Iterator[Rendered]:
        if name in rendered and name not in begun:
            begun.add(name)
            for ref in rendered[name].refs:
                yield from after(ref)
            yield rendered[name]

    for name in rendered:
        yield from after(name)


def _columns(rendered: Rendered, walk: type_check.Walk) -> tuple[Column, ...]:
    """Return a query's columns with what the contract says of them; () if the names are invalid.

    Columns of the contract that the query lacks come last; the type of a column is "" if it can't be inferred.
    """
    names, items = walk.tree.named_selects, walk.tree.selects
    if not are_valid_names(walk.tree, rendered.config):
        return ()
    written = {column.name: column for column in rendered.model.columns}
    found = []
    for name, item, kind in zip(names, items, type_check.outputs(walk), strict=True):
        line, at = place_of(item.unalias())
        place = source_place(rendered, line, at, name)[0] if line else Place(rendered.model.file)
        column = written.pop(name, Column(name, "", "", place))
        inferred = "" if kind is None or "void" in str(kind) else str(kind)
        found.append(column if column.type else replace(column, type=inferred))
    missing = (column if column.type else replace(column, type="string") for column in written.values())
    return (*found, *missing)


def _problems(model: Model) -> Iterator[Problem]:
    """Yield what a contract says of columns that the model doesn't have."""
    names = {column.name: column for column in model.columns}
    keys = {"grain": model.grain, "partition_by": model.config.partition_by, "event_time": (model.event_time,)}
    for key, listed in keys.items():
        for name in listed:
            if name and name not in names:
                hint = f"Columns: {', '.join(names)}.{did_you_mean(name, names)}"
                message = f"unknown column `{name}` in `{key}` of `{model.name}`"
                yield Problem("SR108", model.place, message, hint)
    at = names.get(model.event_time)
    if at is not None and at.type != "timestamp":
        message = f"`event_time` must be a timestamp column, but `{at.name}` is {at.type}"
        yield Problem("SR110", model.place, message, f"Cast {EVENT_TIME} in the query.")
