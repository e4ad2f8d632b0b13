"""Arrow arrays to JSON texts, column by column; each value keeps its exact digits. Pure.

Each function returns an array of large strings without NULLs: a NULL is the text `null`. A value that JSON can't write,
such as NaN or a time in the year 10000, becomes a quoted text, and the landing query quarantines it by its type.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from sqlrun.decoding.records import quoted

SPECIAL = r'[\x00-\x1f"\\]'
# The names of doubles that JSON has no numbers for, as most writers of JSON quote them.
NAMED = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
NUMBER = r"\A-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?\z"


def joined(*parts: Any) -> Any:
    """Return the texts of arrays and constants, joined element by element."""
    import pyarrow as pa
    import pyarrow.compute as pc

    scalars = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*scalars, pa.scalar("", pa.large_string()))


def objects(names: Sequence[str], texts: Sequence[Any], count: int) -> Any:
    """Return one JSON object per row; `texts` are the JSON texts of the members, column by column."""
    import pyarrow as pa

    if not names:
        return pa.repeat(pa.scalar("{}", pa.large_string()), count)
    parts: list[Any] = []
    for name, text in zip(names, texts, strict=True):
        parts += [f"{',' if parts else '{'}{quoted(name)}:", text]
    return joined(*parts, "}")


def strings(array: Any) -> Any:
    """Return texts as JSON texts; a byte that isn't part of UTF-8 is replaced, as in JSON lines."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = _as_large(array)
    special = pc.fill_null(pc.match_substring_regex(array, SPECIAL), False)
    if pc.any(special).as_py():
        escaped = [quoted(text)[1:-1] for text in array.filter(special).to_pylist()]
        array = pc.replace_with_mask(array, special, pa.array(escaped, pa.large_string()))
    return _or_null(joined('"', array, '"'))


def numbers_or_strings(array: Any) -> Any:
    """Return texts that are JSON numbers as they are, and others as JSON texts."""
    import pyarrow.compute as pc

    plain = pc.fill_null(pc.match_substring_regex(array, NUMBER), False)
    return pc.if_else(plain, array, strings(array))


def booleans_or_strings(array: Any) -> Any:
    """Return the texts `true` and `false` as they are, and others as JSON texts."""
    import pyarrow.compute as pc

    plain = pc.fill_null(pc.match_substring_regex(array, r"\A(?:true|false)\z"), False)
    return pc.if_else(plain, array, strings(array))


def texts(array: Any) -> Any:
    """Return the JSON text of each value of an array of any type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, known = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _uuids(array.storage) if kind.extension_name == "arrow.uuid" else texts(array.storage)
    if known.is_dictionary(kind):
        return texts(array.dictionary_decode())
    if known.is_run_end_encoded(kind):
        return texts(pc.run_end_decode(array))
    if known.is_null(kind):
        return pa.repeat(pa.scalar("null", pa.large_string()), len(array))
    if known.is_boolean(kind) or known.is_integer(kind):
        return _or_null(array.cast(pa.large_string()))
    if known.is_floating(kind):
        return _floats(array)
    if known.is_decimal(kind):
        return _decimals(array)
    if known.is_string(kind) or known.is_large_string(kind) or known.is_string_view(kind):
        return strings(array)
    if known.is_timestamp(kind):
        return _timestamps(array)
    if known.is_date(kind) or known.is_time(kind):
        return _or_null(joined('"', array.cast(pa.large_string()), '"'))
    if known.is_duration(kind):
        return _or_null(array.cast(pa.int64()).cast(pa.large_string()))
    if known.is_struct(kind):
        return _structs(array)
    if known.is_map(kind):
        return _maps(array)
    if known.is_list(kind) or known.is_large_list(kind) or known.is_fixed_size_list(kind):
        return _lists(array)
    if _is_binary(kind):
        return _each(array, lambda value: f'"{base64.b64encode(value).decode()}"')
    return _each(array, lambda value: quoted(str(value)))


def _is_binary(kind: Any) -> bool:
    import pyarrow.types as known

    tests = (known.is_binary, known.is_large_binary, known.is_fixed_size_binary, known.is_binary_view)
    return any(test(kind) for test in tests)


def _or_null(array: Any) -> Any:
    import pyarrow as pa

    return array.fill_null(pa.scalar("null", pa.large_string()))


def _as_large(array: Any) -> Any:
    import pyarrow as pa

    try:
        array.validate(full=True)  # Parquet's reader doesn't decode texts
    except pa.ArrowInvalid:
        binary = array.cast(pa.large_binary()).to_pylist()
        return pa.array(
            [None if value is None else value.decode("utf-8", "replace") for value in binary], pa.large_string()
        )
    return array.cast(pa.large_string())


def _each(array: Any, text: Callable[[Any], str]) -> Any:
    import pyarrow as pa

    return pa.array(["null" if v is None else text(v) for v in array.to_pylist()], pa.large_string())


def _uuids(array: Any) -> Any:
    return _each(array, lambda value: f'"{uuid.UUID(bytes=value)}"')


def _floats(array: Any) -> Any:
    """Return the shortest texts that are read back as the same values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    found = array.cast(pa.large_string())
    if not pc.all(pc.fill_null(pc.is_finite(array), True)).as_py():
        for name, text in NAMED.items():
            found = pc.if_else(pc.fill_null(pc.equal(found, name), False), text, found)
    return _or_null(found.cast(pa.large_string()))


def _decimals(array: Any) -> Any:
    """Return all digits: Arrow writes a small amount with an exponent, which no decimal type accepts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = array.cast(pa.large_string())
    odd = pc.fill_null(pc.match_substring(found, "E"), False)
    if pc.any(odd).as_py():
        plain = [format(Decimal(text), "f") for text in found.filter(odd).to_pylist()]
        found = pc.replace_with_mask(found, odd, pa.array(plain, pa.large_string()))
    return _or_null(found)


def _timestamps(array: Any) -> Any:
    """Return ISO texts, with `Z` if the type has a time zone: Arrow stores such times in UTC.

    Nanoseconds that are a whole number of microseconds are written as such. Others have 9 digits, so that they are
    quarantined instead of rounded.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    zoned, unit = array.type.tz is not None, array.type.unit
    array = array.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit)) if zoned else array
    found = pc.replace_substring(array.cast(pa.large_string()), " ", "T", max_replacements=1)
    if unit == "ns":
        found = pc.replace_substring_regex(found, r"([.][0-9]{6})000\z", r"\1")
    return _or_null(joined('"', found, 'Z"' if zoned else '"'))


def _structs(array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [field.name for field in array.type]
    found = objects(names, [texts(inner) for inner in array.flatten()], len(array))
    return pc.if_else(array.is_valid(), found, pa.scalar("null", pa.large_string()))


def _lists(array: Any) -> Any:
    import pyarrow.compute as pc

    return _bracketed(array, pc.list_value_length(array), texts(array.flatten()), "[", "]")


def _maps(array: Any) -> Any:
    """Return maps as objects; a key that isn't text is the text of its value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    entries = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
    inner = entries.flatten()
    keys, values = (texts(part) for part in inner.flatten())
    bare = pc.invert(pc.starts_with(keys, '"'))
    keys = pc.if_else(bare, strings(keys), keys)
    return _bracketed(entries, pc.list_value_length(entries), joined(keys, ":", values), "{", "}")


def _bracketed(array: Any, lengths: Any, items: Any, opening: str, closing: str) -> Any:
    """Return the items of each list, joined by commas and in brackets."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.cumulative_sum(pc.fill_null(lengths, 0).cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    found = pc.binary_join(pa.ListArray.from_arrays(offsets, items), pa.scalar(",", pa.large_string()))
    return pc.if_else(array.is_valid(), joined(opening, found, closing), pa.scalar("null", pa.large_string()))
