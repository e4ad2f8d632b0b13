"""Jinja to SQL text, with the refs that it asks for and the line that each line came from. Pure."""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.contract import CHOICES, CONFIG_KEYS
from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.model import Config, Model, Project, Rendered

# Private-use characters: they mark ends of source lines through Jinja and are taken out again.
OPEN, CLOSE = "\ue000", "\ue001"
TAGS = re.compile(r"(\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\})", re.DOTALL)


class _Mistake(Exception):
    """A call in a template that asks for what does not exist."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        self.code, self.hint = code, hint
        super().__init__(message)


@dataclass(slots=True)
class _Recorder:
    """What one model's template asks for while it renders."""

    refs: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    config: dict[str, object] = field(default_factory=dict)
    this: str = ""


def project(nouns: Project) -> tuple[Rendered, ...]:
    """Render every model; raise one `ProjectError` with all problems (SR2xx)."""
    rendered, problems = attempt(nouns)
    if problems:
        raise ProjectError(problems)
    return rendered


def attempt(nouns: Project) -> tuple[tuple[Rendered, ...], tuple[Problem, ...]]:
    """Render what can be rendered and list what is wrong with the rest."""
    problems: list[Problem] = []
    engine = _Engine(nouns, nouns.vars)
    problems.extend(engine.problems)
    done = []
    for model in nouns.models:
        try:
            done.append(engine.render(model))
        except ProjectError as error:
            problems.extend(error.problems)
    return tuple(done), tuple(dict.fromkeys(problems))


def with_vars(nouns: Project, model: Model, values: Mapping[str, object]) -> Rendered:
    """Render one model with other vars, for a unit test.

    Raises: ProjectError.
    """
    return _Engine(nouns, {**nouns.vars, **values}).render(model)


class _Engine:
    """Jinja's sandbox with the project's macros in it."""

    def __init__(self, nouns: Project, values: Mapping[str, object]) -> None:
        from jinja2 import FunctionLoader, StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        self.nouns, self.values = nouns, values
        self.recorder = _Recorder()
        self.problems: list[Problem] = []
        self._texts = {macro.file: macro.text for macro in nouns.macros}
        self._sources = dict(self._texts)
        loader = FunctionLoader(lambda name: (self._texts[name], name, lambda: True) if name in self._texts else None)
        self._env = ImmutableSandboxedEnvironment(undefined=StrictUndefined, loader=loader, keep_trailing_newline=True)
        self._env.globals.clear()
        self._env.globals.update(
            ref=self._ref,
            source=self._source,
            var=self._var,
            config=self._config,
            is_incremental=self._is_incremental,
            env_var=self._env_var,
            range=_range,
        )
        for macro in nouns.macros:
            try:
                module = self._env.get_template(macro.file).module
                self._env.globals[macro.name] = getattr(module, macro.name)
            except Exception as error:
                self.problems.append(self._problem(error, macro.file))

    def render(self, model: Model) -> Rendered:
        """Render one model."""
        self.recorder = recorder = _Recorder(this=f"`ref`.`{model.name}`")
        self._sources[model.file] = model.sql
        self._texts[model.file] = _marked(model.sql)
        try:
            text = self._env.get_template(model.file).render(this=recorder.this)
        except Exception as error:
            raise ProjectError([self._problem(error, model.file)]) from None
        sql, lines = _unmarked(text, model.sql.count("\n") + 1)
        config = _merged(model.config, recorder.config)
        refs, sources = dict.fromkeys(recorder.refs), dict.fromkeys(recorder.sources)
        return Rendered(model, sql, tuple(refs), tuple(sources), lines, config)

    def _ref(self, name: str, *rest: object) -> str:
        if rest:
            raise _Mistake("SR202", "ref() takes one name", "Names are unique over the project: {{ ref('orders') }}")
        known = [noun.name for noun in (*self.nouns.models, *self.nouns.seeds)]
        if name not in known:
            raise _Mistake("SR202", f"unknown ref `{name}`", _near(str(name), known, "Models and seeds"))
        self.recorder.refs.append(str(name))
        return f"`ref`.`{name}`"

    def _source(self, group: str, name: str) -> str:
        known = [f"{s.group}.{s.name}" for s in self.nouns.sources]
        if f"{group}.{name}" not in known:
            message = f"unknown source `{group}.{name}`"
            raise _Mistake("SR203", message, _near(f"{group}.{name}", known, "Sources"))
        self.recorder.sources.append(f"{group}__{name}")
        return f"`source`.`{group}__{name}`"

    def _var(self, name: str, *default: object) -> object:
        if name in self.values:
            return self.values[name]
        if default:
            return default[0]
        hint = _near(name, list(self.values), "Vars") + " Set it under [tool.sqlrun.vars] in pyproject.toml."
        raise _Mistake("SR204", f"unknown var `{name}`", hint)

    def _config(self, **values: object) -> str:
        for key, value in values.items():
            if key not in CONFIG_KEYS:
                raise _Mistake("SR205", f"unknown config `{key}`", _near(key, list(CONFIG_KEYS), "Known keys"))
            if key in CHOICES and value not in CHOICES[key]:
                message = f"config `{key}` can't be `{value}`"
                raise _Mistake("SR205", message, f"Choose one of {', '.join(CHOICES[key])}.")
        self.recorder.config.update(values)
        return ""

    def _is_incremental(self) -> str:
        raise _Mistake(
            "SR206",
            "sqlrun has no is_incremental(): every model is the whole query, and is kept incrementally from it",
            "Delete the block; `sqlrun explain` shows how the model is kept.",
        )

    def _env_var(self, name: str, *default: object) -> str:
        del default
        message = f"env_var('{name}'): a model sees no environment, so that the same project gives the same tables"
        raise _Mistake("SR207", message, "Use var() here; profiles take ${NAME} from the environment.")

    def _problem(self, error: Exception, file: str) -> Problem:
        """Find where in the project's own files an error of a template arose."""
        from jinja2 import TemplateSyntaxError

        where, line = file, 1
        if isinstance(error, TemplateSyntaxError):
            where, line = error.filename or error.name or file, error.lineno
        else:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in self._sources]
            if frames:
                where, line = frames[-1].filename, frames[-1].lineno or 1
        source = self._sources.get(where, "").splitlines()
        excerpt = source[line - 1] if 0 < line <= len(source) else ""
        code, hint = ("SR202", "") if not isinstance(error, _Mistake) else (error.code, error.hint)
        message = str(error)
        if not isinstance(error, _Mistake):
            code = "SR201"
            message = f"Jinja: {error}"
            hint = "A model may use ref, source, var, config, this and the project's macros."
        column = len(excerpt) - len(excerpt.lstrip()) + 1
        word = re.search(r"`([^`]+)`", message) or re.search(r"'([^']+)'", message)
        if word and word[1].split(".")[-1] in excerpt:
            column = excerpt.index(word[1].split(".")[-1]) + 1
        return Problem(code, Place(where, line, column), message, hint, excerpt)


def _range(*bounds: int) -> Iterable[int]:
    found = range(*bounds)
    if len(found) > 10_000:
        raise _Mistake("SR201", f"range() of {len(found)} is too long for a template", "Keep loops short.")
    return found


def _near(name: str, known: list[str], what: str) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"Did you mean `{near[0]}`?" if near else f"{what}: {', '.join(sorted(known)) or 'none'}."


def _merged(config: Config, values: Mapping[str, Any]) -> Config:
    tags = values.get("tags", ())
    partition_by = values.get("partition_by", config.partition_by)
    return Config(
        str(values.get("materialized", config.materialized)),
        (partition_by,) if isinstance(partition_by, str) else tuple(partition_by),
        str(values.get("at_worst", config.at_worst)),
        tuple(dict.fromkeys((*config.tags, *((tags,) if isinstance(tags, str) else tags)))),
    )


def _marked(source: str) -> str:
    """Put a mark at the end of each line of plain text; Jinja's own tags stay as they are."""
    parts, line = [], 1
    for part in TAGS.split(source):
        if TAGS.fullmatch(part):
            parts.append(part)
            line += part.count("\n")
            continue
        pieces = part.split("\n")
        for piece in pieces[:-1]:
            parts.append(f"{piece}{OPEN}{line}{CLOSE}\n")
            line += 1
        parts.append(pieces[-1])
    return "".join(parts) + f"{OPEN}{line}{CLOSE}"


def _unmarked(text: str, last: int) -> tuple[str, tuple[int, ...]]:
    """Take the marks out; a line without one (a macro's) came from the line of the next mark: that of the call."""
    lines, numbers = [], []
    for line in text.split("\n"):
        marks = re.findall(f"{OPEN}(\\d+){CLOSE}", line)
        numbers.append(int(marks[-1]) if marks else 0)
        lines.append(re.sub(f"{OPEN}\\d+{CLOSE}", "", line))
    following = last
    for index in range(len(numbers) - 1, -1, -1):
        following = numbers[index] or following
        numbers[index] = following
    return "\n".join(lines), tuple(numbers)
