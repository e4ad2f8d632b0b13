"""The functions of a template (ref, source, var, config), and the calls that it made. Pure."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sqlrun.load.contract import CHOICES, CONFIG_KEYS, FLAGS, MAPPINGS, NUMBERS, WORDS, enforced, is_number, json_of
from sqlrun.load.dbt_keys import instead
from sqlrun.load.yaml_reader import did_you_mean, listed
from sqlrun.project import ON_FAIL, SEVERITIES, Model
from sqlrun.render.mistakes import Mistake

# Maximum number of steps over range(): a template with more loops endlessly.
MOST_STEPS = 100_000
# Settings of a check's config(), and their allowed values; () allows any text.
CHECK_CHOICES: Mapping[str, tuple[str, ...]] = {"severity": SEVERITIES, "on_fail": ON_FAIL, "description": ()}


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a project's templates can refer to.

    `project` is its own. `environment` has the declared variables of the environment, None for one that isn't set.
    """

    names: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    vars: Mapping[str, object]
    project: str = ""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    disabled: tuple[str, ...] = ()


class Calls:
    """The functions of a template, and the calls of the model that is being rendered.

    After an unknown ref, source or config rendering continues, so that all of them are reported at once.
    """

    def __init__(self, known: Known, of_check: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._known, self.of_check = known, of_check
        self.begin(None)

    def begin(self, model: Model | None) -> None:
        """Reset the recorded calls, for a model or for none."""
        self.model = model
        self.refs: list[str] = []
        self.sources: list[str] = []
        self.config: dict[str, object] = {}
        self.mistakes: list[Mistake] = []
        self._steps = 0

    def functions(self) -> dict[str, Any]:
        """Return the functions that templates can call."""
        return {
            "ref": self._ref,
            "source": self._source,
            "var": self._var,
            "config": self._config,
            "env_var": self._env_var,
            "range": self._range,
            "this": This(self),
            "is_incremental": NotIncremental(),
        }

    def _ref(self, *names: object, **more: object) -> str:
        if len(names) == 2 and not more and all(isinstance(name, str) for name in names):
            if names[0] != self._known.project:
                message = f"`{names[0]}` in ref() is another package, and sqlrun has none"
                hint = f"Copy the model into models/, and write {{{{ ref('{names[1]}') }}}}"
                self.mistakes.append(Mistake("SR202", message, hint, f"ref({names[0]}"))
                return f"`ref`.`{names[1]}`"
            names = names[1:]
        name = names[0] if names and isinstance(names[0], str) else ""
        if len(names) != 1 or more or not name:
            # Jinja's undefined value, the value of a name without quotes.
            unquoted = str(getattr(names[0], "_undefined_name", "")) if len(names) == 1 else ""
            near = difflib.get_close_matches(unquoted, self._known.names, 1)
            shown = unquoted or "orders"
            message = f"`{unquoted}` in ref() is not in quotes" if unquoted else "ref() takes exactly one name"
            hint = f"Write the name in quotes: {{{{ ref('{(near or [shown])[0]}') }}}}"
            self.mistakes.append(Mistake("SR202", message, hint, "ref"))
        elif name in self._known.disabled:
            hint = "Enable it, or disable this model too: {{ config(enabled=false) }}"
            self.mistakes.append(Mistake("SR202", f"the model `{name}` isn't enabled", hint, f"ref({name}"))
        elif name not in self._known.names:
            hint = f"Models and seeds: {listed(sorted(self._known.names))}.{did_you_mean(name, self._known.names)}"
            self.mistakes.append(Mistake("SR202", f"unknown model `{name}`", hint, f"ref({name}"))
        self.refs.append(name)
        return f"`ref`.`{name}`"

    def _source(self, *names: object, **more: object) -> str:
        known = [f"{group}.{name}" for group, name in self._known.sources]
        parts = [str(name) for name in names]
        if len(parts) != 2 or more or not all(isinstance(name, str) for name in names):
            hint = f"Write both in quotes: {{{{ source('group', 'name') }}}}. Sources: {listed(sorted(known))}."
            self.mistakes.append(Mistake("SR203", "source() takes a group and a name", hint, "source"))
        elif ".".join(parts) not in known:
            hint = f"Sources: {listed(sorted(known))}.{did_you_mean('.'.join(parts), known)}"
            self.mistakes.append(Mistake("SR203", f"unknown source `{'.'.join(parts)}`", hint, f"source({parts[0]}"))
        self.sources.append("__".join(parts))
        return f"`source`.`{'__'.join(parts)}`"

    def _var(self, *names: object) -> object:
        name = str(names[0]) if names else ""
        if name in self._known.vars:
            # A template may change a list that it made itself, but not what another model sees.
            return copy.deepcopy(self._known.vars[name])
        if len(names) == 2:
            return names[1]
        known = list(self._known.vars)
        hint = f"Set it in pyproject.toml, under [tool.sqlrun.vars]. Vars: {listed(sorted(known))}."
        raise Mistake("SR204", f"unknown var `{name}`", hint + did_you_mean(name, known), f"var({name}")

    def _config(self, *positional: object, **values: Any) -> str:
        if positional:
            self.mistakes.append(
                Mistake(
                    "SR205",
                    "config() takes named arguments only",
                    "Write the name too: config(materialized='view')",
                    "config",
                )
            )
        for key, value in values.items():
            wrong = self._misfit(key, value) if self.of_check is None else _check_misfit(self.of_check, key, value)
            if wrong:
                self.mistakes.append(Mistake("SR205", *wrong, f"{key}="))
            elif self.of_check is not None:
                self.config[key] = value
            elif key == "contract":
                self.config["enforced"] = enforced(value)
            elif key in MAPPINGS:
                self.config[key] = json_of(value)
            elif key in CHOICES or key in NUMBERS or key in FLAGS or key in WORDS:
                self.config[key] = value
            else:
                self.config[key] = (value,) if isinstance(value, str) else tuple(value)
        return ""

    def _misfit(self, key: str, value: Any) -> tuple[str, str] | None:
        """Return (message, hint) for an invalid setting; None for a valid one."""
        if key not in CONFIG_KEYS:
            return f"unknown config `{key}`", _known(key, CONFIG_KEYS)
        if key in CHOICES:
            if value in CHOICES[key]:
                return None
            advice = " sqlrun maintains every table incrementally: use `table`." if value == "incremental" else ""
            return f"invalid config `{key}`: `{value}`", f"Choose one of: {', '.join(CHOICES[key])}.{advice}"
        if key in NUMBERS:
            return None if is_number(value) else (f"invalid config `{key}`: `{value}`", "Write a number, 1 or greater.")
        if key in FLAGS:
            wrong = f"invalid config `{key}`: `{value}`", f"Write config({key}=true) or config({key}=false)"
            return None if isinstance(value, bool) else wrong
        if key in WORDS:
            return None if isinstance(value, str) else (f"config `{key}` must be a name", f"Write config({key}='a')")
        if key in MAPPINGS:
            hint = f"Write config({key}={{'owner': 'sales'}})"
            return None if isinstance(value, Mapping) else (f"config `{key}` must be a mapping", hint)
        if key == "contract":
            wrong = "invalid config `contract`", "Write config(contract={'enforced': true})"
            return wrong if enforced(value) is None else None
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            return f"config `{key}` must be a list of strings", f"Write config({key}=['a', 'b'])"
        columns = [column.name for column in self.model.columns] if self.model else []
        unknown = [text for text in texts if columns and text not in columns] if key == "partition_by" else []
        if unknown:
            hint = f"Columns: {', '.join(columns)}.{did_you_mean(unknown[0], columns)}"
            return f"unknown column `{unknown[0]}` in `partition_by`", hint
        return None

    def _env_var(self, *names: object) -> str:
        name = str(names[0]) if names else ""
        if name not in self._known.environment:
            message = f"env_var('{name}') isn't allowed in a model: its result must not depend on the environment"
            hint = f'Use var(). Or declare it in pyproject.toml, under [tool.sqlrun]: env_vars = ["{name}"]. A build '
            hint += "with another value then computes the model from scratch."
            raise Mistake("SR207", message, hint, "env_var")
        value = self._known.environment[name]
        if value is None and len(names) < 2:
            message, hint = f"the variable `{name}` isn't set", f"Set it, or write env_var('{name}', 'default')."
            raise Mistake("SR207", message, hint, "env_var")
        return str(names[1]) if value is None else value

    def _range(self, *bounds: int) -> range:
        found = range(*bounds)
        self._steps += len(found)
        if self._steps > MOST_STEPS:
            message = f"the loops over range() take more than {MOST_STEPS:,} steps"
            raise Mistake("SR208", message, "Shorten the loops, or put the numbers into a seed.", "range")
        return found


def _known(key: str, known: Iterable[str]) -> str:
    return f"Known keys: {', '.join(known)}.{instead(key) or did_you_mean(key, known)}"


def _check_misfit(known: Mapping[str, tuple[str, ...]], key: str, value: object) -> tuple[str, str] | None:
    """Return (message, hint) for an invalid setting of a check; None for a valid one."""
    if key not in known:
        return f"unknown config `{key}` of a check", _known(key, known)
    if not isinstance(value, str):
        return f"config `{key}` must be a string", f"Write config({key}='...')"
    if known[key] and value not in known[key]:
        return (
            f"invalid config `{key}`: `{value}`",
            f"Choose one of: {', '.join(known[key])}.{did_you_mean(value, known[key])}",
        )
    return None


class This:
    """`{{ this }}`: the model itself as a ref, which the graph refuses as a cycle."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __str__(self) -> str:
        name = self._calls.model.name if self._calls.model else ""
        self._calls.refs.append(name)
        return f"`ref`.`{name}`"


class NotIncremental:
    """dbt's is_incremental: refused, called or not, since a function that isn't called counts as true."""

    def _refuse(self, *args: object, **more: object) -> NoReturn:
        del args, more
        raise Mistake(
            "SR206",
            "is_incremental() isn't supported: sqlrun maintains every model incrementally",
            "Delete the block and query the whole history. `sqlrun explain` shows how sqlrun maintains the model.",
            "is_incremental",
        )

    __call__ = __bool__ = __str__ = _refuse
