"""Conversion between frozen values and plain JSON, by the types of their fields. Pure.

Types alone decide what is read: no name in a file ever chooses a class, and a value of another type is rejected. A
field whose type has no plain form (a syntax tree, an operator) is left out of a `Partial`, and computed on first
access.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

Ask = Callable[[], Any]
# Types of plain values in YAML and TOML, allowed for a field of type `object`.
SCALARS = (str, int, float, bool, type(None))


class NotStored(Exception):
    """JSON doesn't match the form of a type."""


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """Reader and writer for values of one type; `whole` is False if some fields are computed later.

    `json` is the form's only type in JSON; None if there are several.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any, Ask], Any]
    whole: bool = True
    json: type | None = None


def nothing() -> Any:
    """Stand in for the source of missing fields, where none can be missing."""
    raise NotStored


@functools.cache
def form(hint: Any) -> Form | None:
    """Return the form of a type; None if it has none."""
    if hint in (str, int, bool, type(None)):
        return Form(_same, functools.partial(_exactly, (hint,)), json=hint)
    if hint is float:  # Python accepts an int for a float
        return Form(_same, functools.partial(_exactly, (int, float)))
    if hint is object:
        return Form(_write_plain, lambda value, ask: _read_plain(value))
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return Form(_same, functools.partial(_one_of, frozenset(inner)))
    if origin in (typing.Union, types.UnionType):
        rest = [part for part in inner if part is not type(None)]
        return _optional(form(rest[0])) if len(rest) == 1 and len(inner) == 2 else None
    if origin is tuple:
        return _tuple(inner)
    if origin is not None and issubclass(origin, Mapping) and inner[0] is str:
        return _mapping(form(inner[1]))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _record(hint)
    return None


def _same(value: Any) -> Any:
    return value


def _exactly(kinds: tuple[type, ...], value: Any, ask: Ask) -> Any:
    if type(value) not in kinds:
        raise NotStored
    return value


def _one_of(known: frozenset[Any], value: Any, ask: Ask) -> Any:
    if not isinstance(value, str) or value not in known:
        raise NotStored
    return value


def _write_plain(value: Any) -> Any:
    match value:
        case dict():
            return {"map": [[str(key), _write_plain(inner)] for key, inner in value.items()]}
        case list() | tuple():
            return {"list" if isinstance(value, list) else "tuple": [_write_plain(inner) for inner in value]}
        case Decimal():
            return {"decimal": str(value)}
        case _ if isinstance(value, SCALARS):
            return value
        case _:
            raise NotStored


def _read_plain(value: Any) -> Any:
    match value:
        case {"map": list(items)}:
            return {str(key): _read_plain(inner) for key, inner in items}
        case {"list": list(items)}:
            return [_read_plain(inner) for inner in items]
        case {"tuple": list(items)}:
            return tuple(_read_plain(inner) for inner in items)
        case {"decimal": str(text)}:
            return Decimal(text)
        case _ if isinstance(value, SCALARS):
            return value
        case _:
            raise NotStored


def _optional(inner: Form | None) -> Form | None:
    if inner is None:
        return None
    write, read = inner.write, inner.read
    return Form(
        lambda value: None if value is None else [write(value)],
        lambda value, ask: None if value is None else read(_list(value, 1)[0], ask),
        inner.whole,
    )


def _list(value: Any, length: int) -> list[Any]:
    if type(value) is not list or len(value) != length:
        raise NotStored
    return value


def _tuple(inner: tuple[Any, ...]) -> Form | None:
    if len(inner) == 2 and inner[1] is Ellipsis:
        return _row(form(inner[0]))
    forms = [form(part) for part in inner]
    if not all(part is not None and part.whole for part in forms):
        return None
    reads, writes = [part.read for part in forms if part], [part.write for part in forms if part]
    return Form(
        lambda value: [write(item) for write, item in zip(writes, value, strict=True)],
        lambda value, ask: tuple(read(item, ask) for read, item in zip(reads, _list(value, len(reads)), strict=True)),
    )


def _row(inner: Form | None) -> Form | None:
    if inner is None:
        return None
    write, read = inner.write, inner.read
    alike = {inner.json} if inner.json in SCALARS else set()

    def all_of(value: Any, ask: Ask) -> Any:
        if type(value) is not list:
            raise NotStored
        if not value or set(map(type, value)) == alike:
            return tuple(value)
        if inner.whole:
            return tuple([read(item, ask) for item in value])
        return tuple(read(item, functools.partial(_item, ask, index)) for index, item in enumerate(value))

    return Form(lambda value: [write(item) for item in value], all_of, inner.whole, list)


def _item(ask: Ask, index: int) -> Any:
    return ask()[index]


def _mapping(inner: Form | None) -> Form | None:
    if inner is None or not inner.whole:
        return None
    write, read = inner.write, inner.read

    def all_of(value: Any, ask: Ask) -> Any:
        if type(value) is not dict:
            raise NotStored
        return {key: read(item, ask) for key, item in value.items()}

    return Form(lambda value: {key: write(item) for key, item in value.items()}, all_of)


def _record(kind: type) -> Form | None:
    """Return a dataclass's form: its fields in order."""
    try:
        hints = typing.get_type_hints(kind)
    except NameError:
        return None
    names = [field.name for field in dataclasses.fields(kind)]
    forms = {name: form(hints[name]) for name in names}
    if all(part is not None and part.whole for part in forms.values()):
        return _whole_record(kind, [(name, part) for name, part in forms.items() if part])
    return _partial_record(kind, names, forms)


def _whole_record(kind: type, parts: list[tuple[str, Form]]) -> Form:
    reads, writes = [part.read for _, part in parts], [(name, part.write) for name, part in parts]
    length, known = len(parts), [part.json for _, part in parts]
    # Most fields are texts and numbers: one comparison of all types validates them.
    inner = [(at, part.read) for at, (_, part) in enumerate(parts) if part.json not in SCALARS]

    def read(value: Any, ask: Ask) -> Any:
        if type(value) is not list or len(value) != length:
            raise NotStored
        if list(map(type, value)) != known:
            return kind(*[read(item, ask) for read, item in zip(reads, value, strict=True)])
        made = value.copy()
        for at, read_one in inner:
            made[at] = read_one(made[at], ask)
        return kind(*made)

    return Form(lambda value: [write(getattr(value, name)) for name, write in writes], read, json=list)


def _partial_record(kind: type, names: list[str], forms: Mapping[str, Form | None]) -> Form | None:
    """Return the form of a dataclass with fields that are computed on demand; its stored properties are included."""
    if not issubclass(kind, Partial):
        return None
    kept = {name: part for name, part in forms.items() if part is not None}
    for name in kind.KEPT:
        stored = form(typing.get_type_hints(getattr(kind, name).fget)["return"])
        assert stored is not None and stored.whole, name
        kept[name] = stored

    def read(value: Any, ask: Ask) -> Any:
        raw = dict(zip(kept, _list(value, len(kept)), strict=True))
        return _with(kind, Parts(frozenset(names), kept, raw, ask))

    return Form(lambda value: [part.write(getattr(value, name)) for name, part in kept.items()], read, False)


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """Known parts of a value: raw, read by their forms on access; `ask` returns the whole value for the others."""

    fields: frozenset[str]
    forms: Mapping[str, Form]
    raw: Mapping[str, Any]
    ask: Ask

    def of(self, name: str) -> Any:
        """Return a field or a property's value: as stored, or of the whole value."""
        if name in self.raw:
            try:
                return self.forms[name].read(self.raw[name], functools.partial(_field, self.ask, name))
            except NotStored:
                pass
        return getattr(self.ask(), name)


class Partial:
    """Base of frozen dataclasses whose values may be stored without all of their fields.

    A value read from storage has the class itself. Its fields are unset until the first access, which reads them or
    takes them from the whole value. `KEPT` names properties whose values are stored with the fields.
    """

    __slots__ = ("_parts",)
    KEPT: ClassVar[tuple[str, ...]] = ()

    if not TYPE_CHECKING:  # a field has its own type

        def __getattr__(self, name: str) -> Any:
            """Set a field on its first access; never called for a value that was built whole."""
            parts = object.__getattribute__(self, "_parts")
            if name not in parts.fields:
                raise AttributeError(name)
            value = parts.of(name)
            object.__setattr__(self, name, value)
            return value

    def kept(self, name: str) -> Any:
        """Return the stored value of a property; None in a value that was built whole."""
        try:
            parts = object.__getattribute__(self, "_parts")
        except AttributeError:
            return None
        return parts.of(name)


P = TypeVar("P", bound=Partial)


def partly(kind: type[P], ask: Callable[[], P], parts: Mapping[str, Any]) -> P:
    """Return a value with some known fields and properties; `ask` returns the whole value for the others."""
    names = frozenset(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]
    return _with(kind, Parts(names, dict.fromkeys(parts, AS_IT_IS), parts, ask))


def _with(kind: type[P], parts: Parts) -> P:
    made = object.__new__(kind)
    object.__setattr__(made, "_parts", parts)
    return made


AS_IT_IS = Form(_same, lambda value, ask: value)


def _field(ask: Ask, name: str) -> Any:
    return getattr(ask(), name)
