"""Answers for an editor out of the index: completions, definitions and hovers. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlrun.errors import Place
from sqlrun.language_server import cursor, tables
from sqlrun.language_server.index import Index, Known, Noun, Template
from sqlrun.project import NOWHERE

# Most items of one answer: an editor asks again as the word grows.
MOST = 100
# Names that a template has beside macros.
NAMES = ("ref", "source", "var", "config", "env_var")


@dataclass(frozen=True, slots=True)
class Offer:
    """One completion: its text, what it is, and a short and a long description."""

    label: str
    kind: str  # model | view | seed | source | group | column | macro | alias
    detail: str = ""
    text: str = ""


def offers(text: str, offset: int, index: Index, *, is_sql: bool = True) -> tuple[cursor.At, list[Offer], bool]:
    """Return what is being typed, its completions, and whether there are more of them."""
    here = cursor.at(text, offset)
    found = _offered(here, text, offset, index) if is_sql or here.kind in ("ref", "group", "table") else ()
    begun = here.word.lower()
    first: list[Offer] = []
    inside: list[Offer] = []
    for offer in found:
        name = offer.label.lower()
        (first if name.startswith(begun) else inside if begun in name else []).append(offer)
    chosen = [*first, *inside]
    return here, chosen[:MOST], len(chosen) > MOST


def _offered(here: cursor.At, text: str, offset: int, index: Index) -> Iterable[Offer]:
    match here.kind:
        case "ref":
            return (_of_noun(index.nouns[name]) for name in index.names)
        case "group":
            groups = dict.fromkeys(noun.group for noun in index.nouns.values() if noun.group)
            return (Offer(group, "group") for group in groups)
        case "table":
            return (_of_noun(noun) for noun in index.nouns.values() if noun.group and noun.group == here.of)
        case "macro":
            own = (one for one in index.templates if one.package == here.of)
            packages = {one.package: None for one in index.templates if one.package}
            names = [Offer(name, "macro") for name in NAMES] + [Offer(name, "group") for name in packages]
            return (*([] if here.of else names), *(Offer(one.name, "macro", one.signature) for one in own))
        case "column":
            return map(_of_column, tables.aliases(text, offset, index).get(here.of, ()))
        case _:
            known = tables.aliases(text, offset, index)
            columns = {column.name: column for listed in known.values() for column in listed}
            words = dict.fromkeys((*known, *(part.name for part in tables.parts(text) if part.name)))
            return (*map(_of_column, columns.values()), *(Offer(name, "alias") for name in words))


def _of_noun(noun: Noun) -> Offer:
    return Offer(noun.name, noun.kind, noun.strategy or noun.kind, noun.description)


def _of_column(column: Known) -> Offer:
    return Offer(column.name, "column", typed(column), column.description)


def typed(column: Known) -> str:
    """Return a column's type with its unit, and `not null` if it may not be NULL."""
    unit = f" ({column.unit})" if column.unit else ""
    return f"{column.type}{unit}{'' if column.nullable or not column.type else ' not null'}"


def found(text: str, offset: int, index: Index, file: str = "") -> Noun | Known | Template | None:
    """Return what the word at a place names; None if it isn't known."""
    here = cursor.at(text, offset, whole=True)
    match here.kind:
        case "ref":
            return index.nouns.get(here.word)
        case "table":
            return index.nouns.get(f"{here.of}.{here.word}")
        case "macro":
            return next((one for one in index.templates if (one.name, one.package) == (here.word, here.of)), None)
        case "group":
            return next((noun for noun in index.nouns.values() if noun.group and noun.group == here.word), None)
    known = tables.aliases(text, here.end, index)
    listed = [known.get(here.of, ())] if here.of else list(known.values())
    same = [column for columns in listed for column in columns if column.name.lower() == here.word.lower()]
    if same:
        return same[0]
    own = index.of_file(file)
    return own.column(here.word) if own is not None and here.word else None


def to_rename(text: str, offset: int, index: Index, file: str) -> tuple[cursor.At | None, str]:
    """Return the name of a column at a place, and why it can't be renamed; None if there is no such name."""
    here = cursor.at(text, offset, whole=True)
    if not here.word or here.kind in ("ref", "table", "group"):
        return None, ""
    if not file.endswith(".sql"):
        return (here if any(noun.column(here.word) for noun in index.nouns.values()) else None), ""
    if here.kind == "macro":  # a name that a tag passes on
        known = tables.aliases(text, here.end, index).values()
        return (
            here if any(one.name.lower() == here.word.lower() for columns in known for one in columns) else None
        ), ""
    thing, own = found(text, offset, index, file), index.of_file(file)
    if not isinstance(thing, Known):
        return here if here.word in tables.made(text, index) else None, ""
    home = next((noun for noun in index.nouns.values() if thing in noun.columns), None)
    if home is None or home.kind not in ("source", "seed") or (own is not None and own.column(here.word)):
        return here, ""
    return (
        None,
        f"`{here.word}` is a column of the {home.kind} `{home.key}`. Rename it in a model: `{here.word} as NAME`",
    )


def place(thing: Noun | Known | Template | None) -> Place | None:
    """Return where a thing is defined; None if no file of a project defines it."""
    match thing:
        case Noun(kind="source") | Known():
            return thing.place if thing.place != NOWHERE else None
        case Noun():
            return Place(thing.file)
        case Template():
            return Place(thing.file, thing.line)
        case None:
            return None


def hover(thing: Noun | Known | Template | None, index: Index) -> str:
    """Return what an editor shows of a thing, as Markdown; "" for nothing."""
    match thing:
        case Noun():
            lines = [f"**{thing.key}** ({thing.kind})", thing.description]
            lines += [f"strategy: `{thing.strategy}`, {thing.reason}"] if thing.strategy else []
            lines += [f"grain: `{', '.join(thing.grain)}`"] if thing.grain else []
        case Known():
            lines = [f"**{thing.name}** `{typed(thing)}`".replace(" ``", ""), thing.description]
            home = next((noun for noun in index.nouns.values() if thing in noun.columns), None)
            lines += [f"from `{home.key}`"] if home is not None else []
            lines += [index.origins.get(home.key, {}).get(thing.name, "")] if home is not None else []
        case Template():
            lines = [f"`{f'{thing.package}.' if thing.package else ''}{thing.signature}`"]
        case None:
            return ""
    return "\n\n".join(line for line in lines if line)
