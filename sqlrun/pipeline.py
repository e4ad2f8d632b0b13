"""The pipeline above the engines: load, render, parse, graph, compile. Shell: the project folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlrun import pipeline_cache, project_files
from sqlrun.engines.duckdb import binding
from sqlrun.errors import Problem, ProjectError
from sqlrun.expectations import relationships, validate
from sqlrun.graph import cascades, graph
from sqlrun.graph.graph import Graph
from sqlrun.incremental import compile as compiler
from sqlrun.incremental.landing import drops, letters
from sqlrun.load import load, profile
from sqlrun.load.load import Loaded
from sqlrun.parse import parse
from sqlrun.parse.parse import Query
from sqlrun.plan import plan
from sqlrun.plan.values import Workspace
from sqlrun.project import Profile, Project, Rendered
from sqlrun.render import render
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.stopping import limit_statements
from sqlrun.test_definitions.upstream import problems as unit_problems

if TYPE_CHECKING:
    from sqlrun.publish.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Prepared:
    """A valid project: its values, graph, queries and stages.

    `spark_only_models`: models that only Spark can run, each with the reason, if a build has a choice.
    """

    project: Project
    graph: Graph
    queries: tuple[Query, ...]
    workspace: Workspace
    spark_only_models: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the models, inputs first."""
        return tuple(model.name for model in self.workspace.models)


# The models that render, or parse, and the problems of all others.
Render = Callable[[Loaded], tuple[tuple[Rendered, ...], tuple[Problem, ...]]]
Parse = Callable[[Iterable[Rendered], Loaded], tuple[tuple[Query, ...], tuple[Problem, ...]]]


@dataclass(frozen=True, slots=True)
class Attempts:
    """How the models of a project with problems are rendered and parsed; a server remembers those without any."""

    render: Render = lambda loaded: render.attempt(loaded.project)
    parse: Parse = lambda rendered, loaded: parse.attempt(rendered, loaded.project)


def prepare(root: Path, cache: Cache | None = None) -> Prepared:
    """Read, validate and compile a project without an engine; results in `cache` are reused.

    Raises: ProjectError with all problems, in file order.
    """
    return of_loaded(project_files.read(root, cache), cache)


def of_loaded(loaded: Loaded, cache: Cache | None, attempts: Attempts | None = None) -> Prepared:
    """Validate and compile a project that is read; results in `cache` are reused.

    Raises: ProjectError with all problems, in file order.
    """
    project, attempts = loaded.project, attempts or Attempts()
    quick = pipeline_cache.prepare(loaded, cache) if cache is not None else None
    if cache is not None and quick is not None:
        cache.save()
        return _promised(Prepared(project, *quick))
    rendered, problems = attempts.render(loaded)
    problems = (*loaded.problems, *problems)
    queries, wrong = attempts.parse(rendered, loaded)
    problems = (*problems, *wrong, *_suite_problems(project, queries), *drops.problems(project.sources))
    try:
        made = graph.build(project, rendered)
    except ProjectError as error:
        raise _first_causes((*problems, *error.problems), rendered) from None
    if problems:
        raise _first_causes(problems, rendered)
    by_name = {query.name: query for query in queries}
    ordered = tuple(by_name[name] for name in made.order if name in by_name)
    try:
        compiled = compiler.project(ordered, project)
        workspace = plan.workspace(project, compiled, {m.name: plan.rules_of(project, m) for m in compiled})
    except parse.TOO_DEEP_ERRORS:
        raise ProjectError([parse.deepest(ordered)]) from None
    return _promised(Prepared(project, made, ordered, workspace))


def _first_causes(problems: tuple[Problem, ...], rendered: Iterable[Rendered]) -> ProjectError:
    """Return an error with the problems that don't follow from others; it counts the rest."""
    # A macro's mistake shows in the models and in the checks that call it.
    found = dict.fromkeys(problems)
    shown = cascades.causes(found, rendered)
    return ProjectError(shown, len(found) - len(shown))


def _promised(prepared: Prepared) -> Prepared:
    """Validate promises of contracts about other tables, and unit tests, which need all models.

    Raises: ProjectError.
    """
    project, graph = prepared.project, prepared.graph
    landings = [(m.query.rendered.model, m.source) for m in prepared.workspace.tables if m.source is not None]
    problems = (
        *relationships.problems(project, graph, prepared.workspace.views),
        *unit_problems(project, graph),
        *letters.problems(project.sources, landings),
    )
    if problems:
        raise ProjectError(problems)
    return prepared


def prepare_to_build(root: Path, name: str | None, cache: Cache | None = None) -> tuple[Prepared, Profile]:
    """Prepare a project and read a profile, by default the project's own, before anything starts.

    Raises: ProjectError with all problems of the project, its sources' folders and the profile.
    """
    problems: list[Problem] = []
    following = 0
    prepared, target = None, None
    loaded = project_files.read(root, cache)
    project = loaded.project
    try:
        prepared = of_loaded(loaded, cache)
    except ProjectError as error:
        problems.extend(error.problems)
        following = error.following
    problems.extend(load.missing_sources(project))
    try:
        target = profile.load(root, name or project.profile)
    except ProjectError as error:
        problems.extend(error.problems)
    if target is not None:
        problems.extend(profile.missing_packages(root, target))
    if prepared is not None:
        from sqlrun.check import needed_packages

        problems.extend(needed_packages.problems(prepared.workspace))
    if prepared is not None and target is not None:
        problems.extend(_engine_problems(prepared, target, cache))
    if prepared is None or target is None or problems:
        raise ProjectError(problems, following)
    return replace(prepared, spark_only_models=spark_only_models_of(prepared, target, cache)), target


def require_engine(
    prepared: Prepared, target: Profile, cache: Cache | None = None, names: Collection[str] | None = None
) -> None:
    """Raise SR310 for a project on which the profile's engine would differ from Spark; `cache` has earlier answers.

    Only the models in `names` are looked at, if there are any.
    """
    problems = _engine_problems(prepared, target, cache, names)
    if problems:
        raise ProjectError(problems)


def _engine_problems(
    prepared: Prepared, target: Profile, cache: Cache | None = None, names: Collection[str] | None = None
) -> tuple[Problem, ...]:
    if target.engine != "duckdb":
        return ()
    found = binding.problems(binding.Fit(prepared.project, prepared.workspace.models, cache), names or prepared.names)
    if cache is not None:
        cache.save()
    return found


def spark_only_models_of(prepared: Prepared, target: Profile, cache: Cache | None = None) -> dict[str, str]:
    """Return the models on which DuckDB would differ from Spark, because of their calls or those of their views.

    {} if the profile names an engine: then there is no choice by model.
    """
    if target.engine != "auto":
        return {}
    fit = binding.Fit(prepared.project, prepared.workspace.models, cache)
    found: dict[str, str] = {}
    for query in prepared.queries:  # inputs first
        for problem in binding.problems(fit, [query.name])[:1]:
            found[query.name] = problem.message
        for view in set(query.rendered.refs) & set(prepared.workspace.views) & found.keys():
            found.setdefault(query.name, found[view])
    if cache is not None:
        cache.save()
    return found


def _suite_problems(project: Project, queries: tuple[Query, ...]) -> tuple[Problem, ...]:
    parsed = {query.name for query in queries}
    lands = {query.name for query in queries if project.landed(query.rendered.sources)}
    views = {query.name for query in queries if query.rendered.config.materialized == "view"}
    models = {model.name: model for model in project.models}
    found: list[Problem] = []
    for suite in project.suites:
        if models[suite.model].columns:
            # An invalid query may still land something.
            may_land = suite.model in lands or suite.model not in parsed
            found.extend(validate.problems(suite, models[suite.model], lands=may_land, is_view=suite.model in views))
    return tuple(found)


def profile_of(root: Path, prepared: Prepared, name: str | None) -> Profile:
    """Return the profile of that name, by default the project's own."""
    found = profile.load(root, name or prepared.project.profile)
    limit_statements(found.statement_timeout)
    return found


def ledger_of(root: Path, prepared: Prepared, name: str | None, env: str | None = None) -> Ledger:
    """Return the ledger of a profile's warehouse; of production, unless set otherwise."""
    from sqlrun.publish.ledger import Ledger

    return Ledger(profile_of(root, prepared, name).warehouse, prepared.project.name, env)


def published_ledger(root: Path, name: str | None, env: str | None = None) -> Ledger:
    """Return the ledger of a warehouse by the project's settings and profile alone.

    Published data can be read while a model, a test or a seed in the working tree is wrong.
    """
    from sqlrun.publish.ledger import Ledger

    settings = load.settings_of(root)
    found = profile.load(root, name or settings.profile)
    limit_statements(found.statement_timeout)
    return Ledger(found.warehouse, settings.name, env)
