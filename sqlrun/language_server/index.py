"""What the server knows of a project: its nodes with their columns, and its macros, as frozen values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlrun.errors import Place
from sqlrun.incremental.compile import Compiled
from sqlrun.project import Column, Macro, Model, Project, Seed, Source


@dataclass(frozen=True, slots=True)
class Known:
    """A column: what its contract says, and its place."""

    name: str
    type: str
    nullable: bool
    description: str
    unit: str
    place: Place


@dataclass(frozen=True, slots=True)
class Noun:
    """A model, a seed or a source; `group` is a source's own. `strategy` is "" for what no tick maintains."""

    name: str
    kind: str  # model | view | seed | source
    file: str
    place: Place
    description: str
    columns: tuple[Known, ...]
    grain: tuple[str, ...] = ()
    strategy: str = ""
    reason: str = ""
    group: str = ""

    @property
    def key(self) -> str:
        """Return the name in the index; a source has that of `source()`."""
        return f"{self.group}.{self.name}" if self.group else self.name

    def column(self, name: str) -> Known | None:
        """Return a column by name, in any case; None if there is none."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Template:
    """A macro: `package` is that of a macro which comes with sqlrun."""

    name: str
    file: str
    line: int
    signature: str
    package: str = ""


# What the columns of models are made of, as Markdown: by model and column.
Origins = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Index:
    """All that the server answers from. A change makes a new index, so that an answer sees one state.

    `origins` has the models of the texts that are open, and the models that these read.
    """

    nouns: Mapping[str, Noun] = field(default_factory=dict)
    templates: tuple[Template, ...] = ()
    names: tuple[str, ...] = ()
    origins: Origins = field(default_factory=dict)

    def with_nouns(self, nouns: Iterable[Noun], gone: Iterable[str] = ()) -> Index:
        """Return the index with some nouns added or replaced, and others removed."""
        left = {key: noun for key, noun in self.nouns.items() if key not in {*gone}}
        left |= {noun.key: noun for noun in nouns}
        return replace(self, nouns=left, names=tuple(sorted(key for key, one in left.items() if not one.group)))

    def of_file(self, file: str) -> Noun | None:
        """Return the model or seed of a file or of the contract in it; None if there is none."""
        return next((one for one in self.nouns.values() if not one.group and file in (one.file, one.place.file)), None)


def nouns_of(project: Project, compiled: Iterable[Compiled] | None, before: Mapping[str, Noun]) -> dict[str, Noun]:
    """Return the nouns of a project by their keys.

    `before` has those of the last project without problems: a model that can't be read keeps what was known of it.
    """
    stages = {model.name: model for model in compiled or ()}
    found: dict[str, Noun] = {} if compiled is not None else dict(before)
    for model in project.models:
        old = before.get(model.name)
        strategy, reason = (old.strategy, old.reason) if old else ("", "")
        made = stages.get(model.name)
        if made is not None and made.stages:
            strategy, reason = made.own.strategy, f"{made.own.reason.code} {made.own.reason.why}"
        noun = _noun(model, "view" if made is not None and made.is_view else "model", strategy, reason)
        # A model without columns, or whose contract is gone, may have a broken one.
        is_broken = compiled is None and old is not None and (not noun.columns or noun.place.file != old.place.file)
        found[noun.key] = old if is_broken and old is not None else noun
    for seed in project.seeds:
        found[seed.name] = _noun(seed, "seed")
    for source in project.sources:
        noun = _of_source(source)
        found[noun.key] = noun
    return found


def _noun(noun: Model | Seed, kind: str, strategy: str = "", reason: str = "") -> Noun:
    place = noun.place if isinstance(noun, Model) and noun.place.file else Place(noun.contract_file or noun.file)
    columns = tuple(map(_known, noun.columns))
    return Noun(noun.name, kind, noun.file, place, noun.description, columns, noun.grain, strategy, reason)


def _of_source(source: Source) -> Noun:
    columns = tuple(map(_known, source.columns))
    file = source.place.file
    return Noun(source.name, "source", file, source.place, source.description, columns, group=source.group)


def _known(column: Column) -> Known:
    return Known(column.name, column.type, column.nullable, column.description, column.unit, column.place)


def templates_of(macros: Iterable[Macro]) -> tuple[Template, ...]:
    """Return macros with their first lines."""
    return tuple(_template(macro) for macro in macros)


def _template(macro: Macro) -> Template:
    start = max(macro.text.find("macro "), 0)
    signature = macro.text[start:].partition("%}")[0].removeprefix("macro ").rstrip(" -+")
    return Template(macro.name, macro.file, macro.text.count("\n", 0, start) + 1, signature.strip(), macro.package)
