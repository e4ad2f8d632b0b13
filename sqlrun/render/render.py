"""Render Jinja to SQL text, with its refs and the source line of each line. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from sqlrun.errors import Place, Problem, ProjectError, SqlrunError
from sqlrun.load import histories
from sqlrun.load.constraints import CONFIG_OF_TABLES
from sqlrun.load.contract import configured
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.project import Config, Macro, Model, Project, Rendered
from sqlrun.render import dbt_names, template_places
from sqlrun.render.context import CHECK_CHOICES, Calls, Known
from sqlrun.render.line_map import unmarked
from sqlrun.render.mistakes import Chain, Mistake
from sqlrun.render.sandbox import MOST_TEXT, SHORTEN, Budget, environment
from sqlrun.runtime.text_table import counted

# Begins the name of a macro in its own file.
HIDDEN = "sqlrun_macro__"


class _Skip(Exception):
    """A call of a macro that could not be read; the macro's own problem is already reported."""


def project(project: Project) -> tuple[Rendered, ...]:
    """Return every model rendered. Raise one `ProjectError` with all problems (SR2xx)."""
    rendered, problems = attempt(project)
    if problems:
        raise ProjectError(problems)
    return rendered


def attempt(
    project: Project, models: Iterable[Model] | None = None
) -> tuple[tuple[Rendered, ...], tuple[Problem, ...]]:
    """Return the models that render, and the problems of all others; of all models unless some are given."""
    engine = _Engine(project, project.vars)
    engine.start()
    chosen = project.models if models is None else models
    done = [rendered for model in chosen if (rendered := engine.render(model)) is not None]
    # A macro's own mistake is reported once, for any number of models that call it.
    once = {(problem.code, problem.place, problem.message): problem for problem in reversed(engine.problems)}
    return tuple(done), tuple(once.values())[::-1]


def later(project: Project) -> Callable[[Model], Rendered | None]:
    """Return a function that renders one model, or returns None for a problem; creation is lazy."""
    made: list[_Engine] = []

    def one(model: Model) -> Rendered | None:
        if not made:
            made.append(_Engine(project, project.vars))
        rendered = made[0].render(model)
        return None if made[0].problems else rendered

    return one


def enabled(project: Project, models: Iterable[Model]) -> dict[str, bool | None]:
    """Return what config() in each file says of `enabled`, None for nothing; mistakes are found later."""
    engine = _Engine(project, project.vars)
    return {model.file: engine.enabled(model) for model in models}


def macros_are_right(project: Project) -> bool:
    """Return whether Jinja can read every macro."""
    engine = _Engine(project, project.vars)
    engine.start()
    return not engine.problems


def overridden(
    project: Project, values: Mapping[str, object], macros: Mapping[str, object]
) -> Callable[[Model], Rendered]:
    """Return a function that renders models with other vars, and with macros replaced by values, for a unit test.

    It raises: ProjectError.
    """
    engine = _Engine(project, {**project.vars, **values}, instead=macros)

    def one(model: Model) -> Rendered:
        rendered = engine.render(model)
        if rendered is None:
            raise ProjectError(engine.problems)
        return rendered

    return one


def check(
    project: Project,
    text: Model,
    values: Mapping[str, object] | None = None,
    macros: Mapping[str, object] | None = None,
) -> tuple[Rendered, Mapping[str, object]]:
    """Return a check's text, or a macro's test, rendered as a model, and the values of its config().

    Raises: ProjectError.
    """
    engine = _Engine(project, {**project.vars, **(values or {})}, text.file, macros)
    rendered = engine.render(text)
    if rendered is None:
        raise ProjectError(engine.problems)
    return rendered, engine.config


def operation(
    project: Project, name: str, arguments: Mapping[str, Any], names: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> object:
    """Return what a macro returns that runs outside of models, with other values of some names.

    Raises: ProjectError.
    """
    engine = _Engine(project, project.vars)
    engine.rename(names)
    return engine.called(name, arguments)


class _Engine:
    """Jinja's sandbox with the project's macros, and the problems found so far.

    `start`, or the first template that is rendered, creates the sandbox.
    """

    def __init__(
        self,
        project: Project,
        values: Mapping[str, object],
        check: str = "",
        instead: Mapping[str, object] | None = None,
    ) -> None:
        names = dict.fromkeys((*(model.name for model in project.models), *(seed.name for seed in project.seeds)))
        sources = tuple((source.group, source.name) for source in project.sources)
        known = Known(tuple(names), sources, values, project.name, project.environment, project.disabled)
        self.problems: list[Problem] = []
        self._project = project
        self._calls = Calls(known, CHECK_CHOICES if check else None)
        self.config: Mapping[str, object] = {}
        self._listed = (*project.macros, *(macro for macro in project.built_in if not macro.package))
        self._texts = {macro.file: macro.text for macro in self._listed}
        self._models = {check} if check else {model.file for model in project.models}
        self._budget = Budget()
        # Resolved at the call, so that macros may call each other regardless of their files' order.
        self._macros: dict[str, Any] = {}
        # Macros whose file sets a value that the macro could change: it must not reach the next model.
        self._remembering: list[Macro] = []
        own = {macro.name: self._late(macro.name) for macro in self._listed}
        self._globals = {**dbt_names.refused(), **self._calls.functions(), **self._of_dbt(own), **own}
        self._globals |= {name: _giving(value) for name, value in (instead or {}).items()}
        self._env: Any = None

    def start(self) -> None:
        """Create the sandbox and read the macros, unless that is done."""
        if self._env is not None:
            return
        self._calls.begin(None)
        self._env = environment(self._models, self._budget)
        self._env.globals.update(self._globals)
        # Names that are always refused are not suggested.
        self._names = sorted({*self._env.globals} - {"env_var", "is_incremental", *dbt_names.REFUSED})
        for macro in self._listed:
            self._budget.begin()
            try:
                self._macros[macro.name] = self._macro(macro)
            except Exception as error:
                self.problems.append(self._problem(error, macro.file))

    def rename(self, names: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Replace values of names, given all of them."""
        self._globals |= names(self._globals)

    def called(self, name: str, arguments: Mapping[str, Any]) -> object:
        """Return what a macro returns, one of a package by `package.name`. Raises: ProjectError."""
        self.start()
        self._calls.begin(None)
        self._budget.begin()
        package, _, short = name.rpartition(".")
        listed = (*self._project.macros, *self._project.built_in)
        macro = next(each for each in listed if (each.name, each.package) == (short, package))
        self._texts.setdefault(macro.file, macro.text)
        self.problems += self._unknown_arguments(macro, arguments)
        if self.problems:
            raise ProjectError(self.problems)
        found: object = None
        try:
            call = getattr(self._globals[package], short) if package else self._globals[short]
            found = call(**arguments)
        except _Skip:
            pass
        except SqlrunError:
            # The error of a query may only follow from an unknown ref().
            if not self._calls.mistakes:
                raise
        except Exception as error:
            self.problems.append(self._problem(error, macro.file))
        self.problems += map(self._mistake, self._calls.mistakes)
        if self.problems:
            raise ProjectError(self.problems)
        return found

    def _unknown_arguments(self, macro: Macro, arguments: Iterable[str]) -> Iterator[Problem]:
        found = self._macros.get(macro.name)
        if macro.package or found is None or found.catch_kwargs:
            return
        for key in arguments:
            if key not in found.arguments:
                hint = f"Arguments: {', '.join(found.arguments) or 'none'}.{did_you_mean(key, found.arguments)}"
                message = f"the macro `{macro.name}` has no argument `{key}`"
                yield self._at("SR201", ((macro.file, 1),), macro.name, message, hint)

    def _of_dbt(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return dbt's names that work in a template, and the packages of macros."""
        library: dict[str, dict[str, Any]] = {}
        for macro in self._project.built_in:
            if macro.package:
                library.setdefault(macro.package, {})[macro.name] = self._of_library(macro)
        packages = {name: dbt_names.Package(name, macros) for name, macros in library.items()}
        kind = self._project.adapter_type
        return {
            **packages,
            "adapter": dbt_names.Adapter(kind, own, packages),
            "target": dbt_names.Target(kind, self._project.target),
            "exceptions": dbt_names.Exceptions(),
            "return": dbt_names.returned,
            "log": dbt_names.silent,
            "print": dbt_names.silent,
        }

    def _late(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name not in self._macros:
                raise _Skip
            try:
                return self._macros[name](*args, **kwargs)
            except dbt_names.Returned as found:
                return found.value

        return call

    def _of_library(self, macro: Macro) -> Any:
        """Return a function that reads a macro of a package when it is called for the first time."""
        read: list[Any] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            if not read:
                read.append(self._macro(macro))
            try:
                return read[0](*args, **kwargs)
            except dbt_names.Returned as found:
                return found.value

        return call

    def _macro(self, macro: Macro) -> Any:
        """Return a macro of Jinja. It finds itself as others do, by its global name, so that `return` ends one call."""
        from jinja2 import nodes

        tree = self._env.parse(macro.text, macro.file, macro.file)
        for node in tree.find_all(nodes.Macro):
            node.name = f"{HIDDEN}{node.name}" if node.name == macro.name else node.name
        if any(isinstance(node, nodes.Assign | nodes.AssignBlock) for node in tree.body):
            self._remembering = [*(one for one in self._remembering if one != macro), macro]
        found = getattr(self._template(macro.file, tree).module, f"{HIDDEN}{macro.name}")
        found.name = macro.name
        return found

    def _template(self, file: str, text: Any) -> Any:
        code = self._env.compile(text, file, file)
        return self._env.template_class.from_code(self._env, code, self._env.make_globals(None), None)

    def render(self, model: Model) -> Rendered | None:
        """Return one model rendered; None after a problem, which is recorded."""
        self._texts[model.file] = model.sql
        self.start()
        self._calls.begin(model)
        self._budget.begin()
        text: str | None = None
        try:
            self._macros |= {macro.name: self._macro(macro) for macro in self._remembering}
            text = self._templated(model)
        except _Skip:
            pass
        except Exception as error:
            self.problems.append(self._problem(error, model.file))
        self.problems.extend(self._mistake(mistake) for mistake in self._calls.mistakes)
        if text is None or self._calls.mistakes:
            return None
        sql, lines = unmarked(text)
        refs, sources = dict.fromkeys(self._calls.refs), dict.fromkeys(self._calls.sources)
        if self._calls.of_check:
            self.config = dict(self._calls.config)
            return Rendered(model, sql, tuple(refs), tuple(sources), lines, model.config)
        before = {one.name: getattr(model.config, one.name) for one in fields(Config)}
        config = configured(before, self._calls.config)
        lands = bool(self._project.landed(sources))
        if config.materialized == "view" and lands:
            message = f"the view `{model.name}` reads a source, which only a table can land"
            hint = "Remove `materialized: view`, or read the source in another model."
            self.problems.append(self._at("SR715", _line_of(model, "source("), "source", message, hint))
        elif config.materialized == "view":
            self.problems.extend(self._of_a_table(model))
        elif model.repeats and model.grain and not lands:
            self.problems.extend(_repeating(model))
        if config.materialized != "view":
            self.problems.extend(histories.problems(model, config, lands=lands))
        return Rendered(model, sql, tuple(refs), tuple(sources), lines, config)

    def enabled(self, model: Model) -> bool | None:
        """Return the value of `enabled` in a model's config(); None if it has none. Problems are forgotten."""
        found, self.problems = self.problems, []
        self.render(model)
        self.problems = found
        value = self._calls.config.get("enabled")
        return value if isinstance(value, bool) else None

    def _of_a_table(self, model: Model) -> Iterator[Problem]:
        """Yield a problem for every contract key that has no effect on a view, since nothing of a view is stored."""
        hint = "Move it to the tables that read the view, or set `materialized: table`."
        for said in model.said:
            yield Problem("SR715", said.place, f"{said.words} has no effect: `{model.name}` is a view", hint)
        for key in CONFIG_OF_TABLES:
            if key in self._calls.config:
                message = f"`{key}` has no effect: `{model.name}` is a view"
                yield self._at("SR715", _line_of(model, "config("), key, message, hint)

    def _whole(self, pieces: Iterable[str]) -> str:
        """Return a model's text. Raise SR208 if it exceeds `MOST_TEXT`."""
        found, length = [], 0
        for piece in pieces:
            found.append(piece)
            length += len(piece)
            if length > MOST_TEXT:
                message = f"the SQL is longer than {MOST_TEXT:,} characters"
                raise Mistake("SR208", message, SHORTEN, "")
        return "".join(found)

    def _templated(self, model: Model) -> str:
        template = self._template(model.file, model.sql)
        # Not template.render(): it rewrites the traceback, which then lacks the lines of macros.
        return self._whole(template.root_render_func(template.new_context({})))

    def _mistake(self, mistake: Mistake) -> Problem:
        return self._at(mistake.code, mistake.chain, mistake.call, mistake.message, mistake.hint)

    def _problem(self, error: Exception, file: str) -> Problem:
        """Return an error of a template with its place in the project's own files."""
        from jinja2 import TemplateSyntaxError
        from jinja2.exceptions import SecurityError, UndefinedError

        if isinstance(error, Mistake):
            return self._at(error.code, error.chain or ((file, 1),), error.call, error.message, error.hint)
        if isinstance(error, dbt_names.Returned):
            chain = template_places.chain_of_error(error) or ((file, 1),)
            return self._at("SR201", chain, "return", "return() is outside of a macro", "Write the value itself.")
        if isinstance(error, TemplateSyntaxError):
            return self._syntax(error, error.filename or file)
        words = re.findall(r"'([^']*)'", str(error))
        chain, message = template_places.chain_of_error(error) or ((file, 1),), f"Jinja: {_said(error)}"
        hint = "Check the arguments of this tag or macro."
        if isinstance(error, RecursionError):
            message, hint = "these macros call each other endlessly", "Remove one of the calls."
            if not template_places.chain_of_error(error):
                message, hint = "the template is nested too deeply", "Split the template."
        elif isinstance(error, UndefinedError) and str(error).endswith("is undefined"):
            name = words[0] if words else ""
            message = f"unknown name `{name}` in the template"
            near = did_you_mean(name, self._names)
            macro = "" if near else f" If `{name}` is a macro, write it in macros/{name}.sql."
            hint = f"Known names: {', '.join(self._names)}.{near}{macro}"
        elif isinstance(error, SecurityError):
            hint = "Use vars and macros only. A template can't access Python's internals or change values."
        return self._at("SR201", chain, next((w for w in words if self._holds(chain[0], w)), ""), message, hint)

    def _holds(self, at: tuple[str, int], word: str) -> bool:
        lines = self._texts.get(at[0], "").split("\n")
        return bool(word) and at[1] <= len(lines) and word in lines[at[1] - 1]

    def _syntax(self, error: Any, file: str) -> Problem:
        message, chain = str(error.message).rstrip("."), ((file, int(error.lineno)),)
        opened = template_places.unclosed(self._texts[file])
        if "end of template" in message and opened:
            name, line = opened
            message, hint = (
                f"the block {{% {name} %}} is never closed",
                f"Add {{% end{name} %}} at the end of the block.",
            )
            return self._at("SR201", ((file, line),), name, message, hint)
        found = re.search(r"'([^']*)'", message)
        message = message[:1].lower() + message[1:]
        return self._at("SR201", chain, found[1] if found else "", f"Jinja: {message}", "Fix the template here.")

    def _at(self, code: str, chain: Chain, call: str, message: str, hint: str) -> Problem:
        """Return a problem at the innermost template that contains the words, with the call that led there."""
        # A reader can't edit the macros of the library: the place is the call of one.
        chain = tuple(step for step in chain if step[0] in self._texts) or chain
        for file, first in chain:
            lines = self._texts[file].split("\n")
            # A call over several lines has the line number of its first line.
            for line in range(first, min(first + 12, len(lines) + 1)):
                column = template_places.column(lines[line - 1], call)
                if column:
                    return self._problem_in(code, Place(file, line, column), chain, message, hint)
        file, line = chain[0]
        lines = self._texts[file].split("\n")
        line = min(line, len(lines))
        start = len(lines[line - 1]) - len(lines[line - 1].lstrip()) + 1
        return self._problem_in(code, Place(file, line, start, exact=False), chain, message, hint)

    def _problem_in(self, code: str, place: Place, chain: Chain, message: str, hint: str) -> Problem:
        excerpt = self._texts[place.file].split("\n")[place.line - 1]
        caller = next(((file, line) for file, line in chain if file in self._models), None)
        if caller and place.file not in self._models:
            hint = f"{hint} Called from {caller[0]}:{caller[1]}.".strip()
        return Problem(code, place, message, hint, excerpt)


def _said(error: Exception) -> str:
    """Return Jinja's message, with its plural in letters."""
    text = re.sub(r"\b(\d+) (\w+)\(s\)", lambda found: counted(int(found[1]), found[2]), str(error))
    return text.replace(HIDDEN, "").rstrip(".") or type(error).__name__


def _line_of(model: Model, call: str) -> Chain:
    return ((model.file, model.sql.count("\n", 0, max(model.sql.find(call), 0)) + 1),)


def _repeating(model: Model) -> Iterator[Problem]:
    """Yield a problem for `repeats` on a model without a source: nothing would show that its rows are copies."""
    for said in model.said:
        if said.words == "`repeats`":
            message = f"`repeats` requires a source, but `{model.name}` reads none"
            yield Problem(
                "SR110",
                said.place,
                message,
                "Remove `repeats`. The grain then makes rows unique. Without unique rows, remove the grain too.",
            )


def _giving(value: object) -> Callable[..., object]:
    def call(*args: object, **kwargs: object) -> object:
        del args, kwargs
        return value

    return call
