"""Spark's functions on dates and times in DuckDB's SQL; the time zone is UTC in both. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlrun.transpile.casts import to_whole
from sqlrun.transpile.templates import Translation, UnlikeSparkError, number, of, piece, text

# Spark's pattern letters: the code of strftime and strptime, and the regular expression of their text.
_LETTERS: Mapping[str, tuple[str, str]] = {
    "yyyy": ("%Y", r"\d{4}"),
    "MM": ("%m", r"\d{2}"),
    "M": ("%-m", r"\d{1,2}"),
    "MMM": ("%b", "[A-Z][a-z]{2}"),
    "MMMM": ("%B", "[A-Z][a-z]+"),
    "dd": ("%d", r"\d{2}"),
    "d": ("%-d", r"\d{1,2}"),
    "HH": ("%H", r"\d{2}"),
    "H": ("%-H", r"\d{1,2}"),
    "hh": ("%I", r"\d{2}"),
    "h": ("%-I", r"\d{1,2}"),
    "mm": ("%M", r"\d{2}"),
    "m": ("%-M", r"\d{1,2}"),
    "ss": ("%S", r"\d{2}"),
    "s": ("%-S", r"\d{1,2}"),
    "SSS": ("%g", r"\d{3}"),
    "SSSSSS": ("%f", r"\d{6}"),
    "a": ("%p", "AM|PM"),
}
_SHOWN_ONLY: Mapping[str, str] = {
    "y": "%Y", "yy": "%y", "D": "%-j", "DDD": "%j", "E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A",
}  # fmt: skip
_TRUNCATED: Mapping[str, str] = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month", "mon": "month",
    "week": "week",
}  # fmt: skip
_TRUNCATED_TIMES: Mapping[str, str] = {
    **_TRUNCATED,
    "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
    "millisecond": "millisecond", "microsecond": "microsecond",
}  # fmt: skip
_FIELDS: Mapping[str, str] = {
    "year": "year", "y": "year", "years": "year", "yr": "year", "yrs": "year",
    "quarter": "quarter", "qtr": "quarter", "month": "month", "mon": "month", "mons": "month", "months": "month",
    "week": "week", "w": "week", "weeks": "week", "day": "day", "d": "day", "days": "day",
    "doy": "doy", "dayofyear": "doy", "yearofweek": "isoyear", "yearofweekiso": "isoyear",
    "dow_iso": "isodow", "dowiso": "isodow", "dayofweek_iso": "isodow", "dayofweekiso": "isodow",
    "hour": "hour", "h": "hour", "hours": "hour", "hr": "hour", "hrs": "hour",
    "minute": "minute", "m": "minute", "min": "minute", "mins": "minute", "minutes": "minute",
}  # fmt: skip
_STEPS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_MICROS: Mapping[str, int] = {
    "microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6,
    "day": 86400 * 10**6, "week": 7 * 86400 * 10**6,
}  # fmt: skip
_MADE = "timezone('UTC', make_timestamp(arg_y, arg_m, arg_d, arg_h, arg_i, arg_s))"
_MONTHS: Mapping[str, int] = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A date pattern of Spark: its strftime format, and the regular expression of texts that it parses, or ""."""

    format: str
    reads: str


def pattern_of(node: exp.Expr) -> Pattern:
    """Return a Spark date pattern for DuckDB. Raise UnlikeSparkError if it isn't constant or has no equivalent."""
    written = text(node)
    if written is None:
        raise UnlikeSparkError(
            "it has other patterns, so this one must be a literal", "Write the pattern as a literal."
        )
    shown, reads, readable = "", "", True
    for found in re.finditer(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", written, re.DOTALL):
        plain, letters = found[1] if found[1] is not None else found[4], found[2]
        if letters is None:
            literal = "'" if found[1] == "" else (plain or "").replace("''", "'")
            if plain in ("[", "]", "{", "}", "#"):
                raise UnlikeSparkError(f"it has no `{plain}` in patterns")
            shown, reads = shown + literal.replace("%", "%%"), reads + re.escape(literal)
        elif letters in _LETTERS:
            shown, reads = shown + _LETTERS[letters][0], reads + f"({_LETTERS[letters][1]})"
        elif letters in _SHOWN_ONLY:
            shown, readable = shown + _SHOWN_ONLY[letters], False
        else:
            raise UnlikeSparkError(f"it has no pattern letters `{letters}`")
    # A missing field is that of 1970 in Spark and of 1900 in DuckDB.
    whole = {"%Y"} <= set(re.findall(r"%-?\w", shown)) and ("%p" in shown) == ("%I" in shown or "%-I" in shown)
    return Pattern(shown, reads if readable and whole else "")


def shown(value: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """Return SQL that formats a time by a Spark pattern."""
    template = "strftime(cast(cast(arg_x as timestamptz) as timestamp), arg_f)"
    return piece(template, x=value, f=exp.Literal.string(pattern_of(pattern).format))


def read(value: exp.Expr, pattern: exp.Expr, *, strict: bool, kind: str) -> exp.Expr:
    """Return SQL that parses a text by a pattern as `kind` (timestamptz or date).

    A text that doesn't match is an error, or NULL if not `strict`.
    """
    known = pattern_of(pattern)
    if not known.reads:
        raise UnlikeSparkError("it can't parse text with this pattern", "Name year, month and day by yyyy, MM and dd.")
    parsed = "cast(strptime(arg_x, arg_f) as timestamp) at time zone 'UTC'"
    parsed = f"cast({parsed} as date)" if kind == "date" else parsed
    other = "error(concat('''', left(arg_x, 60), ''' does not fit the pattern of its date'))"
    if not strict:
        parsed, other = parsed.replace("strptime", "try_strptime"), "null"
    template = f"case when arg_x is null then null when regexp_full_match(arg_x, arg_r) then {parsed} else {other} end"
    forms = {"f": exp.Literal.string(known.format.replace("%-", "%")), "r": exp.Literal.string(known.reads)}
    return piece(template, x=value, **forms)


def _read(kind: str, *, strict: bool = True) -> Translation:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        if len(arguments) == 2:
            return read(arguments[0], arguments[1], strict=strict, kind=kind)
        if strict or kind == "date":
            return piece(f"{'cast' if strict else 'try_cast'}(arg_x as {kind})", x=arguments[0])
        # try_cast of a number would be NULL: the plain cast fails instead.
        template = (
            f"case when typeof(arg_x) = 'VARCHAR' then try_cast(cast(arg_x as varchar) as {kind}) "
            f"else cast(arg_x as {kind}) end"
        )
        return piece(template, x=arguments[0])

    return build


def _seconds(arguments: list[exp.Expr]) -> exp.Expr:
    """Return unix_timestamp() of a text or a time; before 1970 it truncates towards 0, unlike unix_seconds()."""
    value = arguments[0]
    pattern = arguments[1] if len(arguments) == 2 else exp.Literal.string("yyyy-MM-dd HH:mm:ss")
    if len(arguments) == 2 or text(value) is not None:
        value = read(value, pattern, strict=True, kind="timestamptz")
    return piece("epoch_us(cast(arg_x as timestamptz)) // 1000000", x=value)


def seconds(value: exp.Expr, unit: int = 10**6) -> exp.Expr:
    """Return the number of whole units of `unit` microseconds since 1970, rounded down."""
    micros = "epoch_us(cast(arg_x as timestamptz))"
    return piece(f"({micros} - (({micros} % {unit}) + {unit}) % {unit}) // {unit}", x=value)


def _unit(node: exp.Expr) -> str:
    unit = (text(node) or node.name).lower().removesuffix("s")
    if unit in ("dayofyear",):
        unit = "day"
    if unit not in _STEPS:
        raise UnlikeSparkError(f"it has no unit `{unit}`")
    return unit


def _add(arguments: list[exp.Expr]) -> exp.Expr:
    """Return date_add(date, days) or dateadd(unit, number, time)."""
    if len(arguments) == 2:
        return piece("cast(arg_d as date) + cast(arg_n as int)", d=arguments[0], n=arguments[1])
    unit = _unit(arguments[0])
    template = f"cast(arg_t as timestamptz) + to_{'quarter' if unit == 'quarter' else unit}s(cast(arg_n as bigint))"
    if unit in ("month", "quarter", "year", "day", "week"):
        template = template.replace("bigint", "int")
    return piece(template, n=arguments[1], t=arguments[2])


def _difference(arguments: list[exp.Expr]) -> exp.Expr:
    """Return datediff(end, start) in days, or datediff(unit, start, end) in whole units."""
    if len(arguments) == 2:
        return piece("cast(arg_e as date) - cast(arg_s as date)", e=arguments[0], s=arguments[1])
    unit = _unit(arguments[0])
    start, end = (piece("cast(arg_x as timestamptz)", x=argument) for argument in arguments[1:])
    if unit in _MICROS:
        return piece(f"(epoch_us(arg_e) - epoch_us(arg_s)) // {_MICROS[unit]}", e=end, s=start)
    months = "((year(arg_e) - year(arg_s)) * 12 + month(arg_e) - month(arg_s))"
    inside = "(epoch_us(arg_{0}) - epoch_us(date_trunc('month', arg_{0})))"
    end_in, start_in = inside.format("e"), inside.format("s")
    counted = (
        f"case when {months} > 0 and {end_in} < {start_in} then {months} - 1 "
        f"when {months} < 0 and {end_in} > {start_in} then {months} + 1 else {months} end"
    )
    return piece(f"({counted}) // {_MONTHS[unit]}", e=end, s=start)


def _months_between(arguments: list[exp.Expr]) -> exp.Expr:
    exact = len(arguments) == 3 and isinstance(arguments[2], exp.Boolean) and not arguments[2].this
    if len(arguments) == 3 and not isinstance(arguments[2], exp.Boolean):
        raise UnlikeSparkError("the rounding must be a literal")
    first, second = (piece("cast(arg_x as timestamptz)", x=argument) for argument in arguments[:2])
    months = "((year(arg_a) - year(arg_b)) * 12 + month(arg_a) - month(arg_b))"
    last = "day(arg_{0}) = day(last_day(cast(arg_{0} as date)))"
    into = "(day(arg_{0}) * 86400 + hour(arg_{0}) * 3600 + minute(arg_{0}) * 60 + second(arg_{0}))"
    part = f"{months} + cast({into.format('a')} - {into.format('b')} as double) / 2678400"
    part = part if exact else f"floor(({part}) * 100000000 + 0.5) / 100000000"
    same = f"day(arg_a) = day(arg_b) or ({last.format('a')} and {last.format('b')})"
    template = f"case when {same} then cast({months} as double) else {part} end"
    return piece(template, a=first, b=second)


def field(name: str, value: exp.Expr) -> exp.Expr:
    """Return extract(name from value)."""
    name = name.lower()
    if name in ("dow", "dayofweek"):
        return piece("cast(dayofweek(cast(arg_x as timestamptz)) + 1 as int)", x=value)
    if name in ("second", "s", "sec", "secs", "seconds"):
        micros = "date_part('microseconds', cast(arg_x as timestamptz))"
        return piece(f"cast(cast({micros} as decimal(8, 0)) * 0.000001 as decimal(8, 6))", x=value)
    if name not in _FIELDS:
        raise UnlikeSparkError(f"it has no field `{name}`")
    return piece(f"cast(date_part('{_FIELDS[name]}', cast(arg_x as timestamptz)) as int)", x=value)


def _date_part(arguments: list[exp.Expr]) -> exp.Expr:
    name = text(arguments[0])
    if name is None:
        raise UnlikeSparkError("the field must be a literal")
    return field(name, arguments[1])


def truncated(node: exp.TimestampTrunc) -> exp.Expr:
    """Return date_trunc(): always a time, NULL for an unknown unit."""
    unit = node.args.get("unit")
    if unit is None or unit.find(exp.Column):
        raise UnlikeSparkError("the unit must be a literal")
    known = _TRUNCATED_TIMES.get((text(unit) or unit.name).lower())
    if known is None:
        return exp.cast(exp.null(), "timestamptz", dialect="duckdb")
    return piece(f"date_trunc('{known}', cast(arg_x as timestamptz))", x=node.this)


def truncated_date(node: exp.DateTrunc) -> exp.Expr:
    """Return trunc(): always a date, NULL for a unit that is unknown or shorter than a week."""
    unit = node.args.get("unit")
    if unit is None or unit.find(exp.Column):
        raise UnlikeSparkError("the unit must be a literal")
    known = _TRUNCATED.get((text(unit) or unit.name).lower())
    if known is None:
        return exp.cast(exp.null(), "date", dialect="duckdb")
    return piece(f"cast(date_trunc('{known}', cast(arg_x as date)) as date)", x=node.this)


def _from_unixtime(arguments: list[exp.Expr]) -> exp.Expr:
    pattern = arguments[1] if len(arguments) == 2 else exp.Literal.string("yyyy-MM-dd HH:mm:ss")
    return shown(piece("to_timestamp(arg_n)", n=to_whole(arguments[0], "bigint")), pattern)


def _next_day(arguments: list[exp.Expr]) -> exp.Expr:
    days = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    word = (text(arguments[1]) or "").lower()
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    at = next((n for n, day in enumerate(days, 1) if word in (day, day[:2], full[n - 1])), None)
    if text(arguments[1]) is None:
        raise UnlikeSparkError("the day must be a literal")
    if at is None:
        return piece("error('next_day: no such day of the week')")
    day = "cast(arg_d as date)"
    return piece(f"{day} + cast((({at} - isodow({day}) + 6) % 7) + 1 as int)", d=arguments[0])


def interval(node: exp.MakeInterval) -> exp.Expr:
    """Return make_interval() of constants: DuckDB parses an interval's text, which can't contain columns."""
    parts = [part for key, part in node.args.items() if isinstance(part, exp.Expr)]
    if any(number(part) is None for part in parts):
        raise UnlikeSparkError(
            "it creates intervals from constants only", "Use dateadd(day, n, x), one unit at a time."
        )
    return node


CALLS: Mapping[str, Translation] = {
    "add_months": lambda a: piece(
        "cast(cast(arg_d as date) + to_months(arg_n) as date)", d=a[0], n=to_whole(a[1], "int")
    ),
    "date_add": _add,
    "date_diff": _difference,
    "date_format": lambda a: shown(a[0], a[1]),
    "date_from_unix_date": lambda a: piece("date '1970-01-01' + arg_n", n=to_whole(a[0], "int")),
    "date_part": _date_part,
    "date_sub": of("cast(arg_d as date) - cast(arg_n as int)", "dn"),
    "dateadd": _add,
    "datediff": _difference,
    "datepart": _date_part,
    "dayname": of("strftime(cast(arg_d as date), '%a')", "d"),
    "dayofweek": of("cast(dayofweek(cast(arg_d as date)) + 1 as int)", "d"),
    "from_unixtime": _from_unixtime,
    "from_utc_timestamp": of("timezone('UTC', timezone(arg_z, cast(arg_t as timestamptz)))", "tz"),
    "hour": of("cast(hour(cast(arg_t as timestamptz)) as int)", "t"),
    "last_day": of("last_day(cast(arg_d as date))", "d"),
    "make_timestamp": of(_MADE, "ymdhis"),
    "minute": of("cast(minute(cast(arg_t as timestamptz)) as int)", "t"),
    "monthname": of("strftime(cast(arg_d as date), '%b')", "d"),
    "months_between": _months_between,
    "next_day": _next_day,
    "quarter": of("cast(quarter(cast(arg_d as date)) as int)", "d"),
    "second": of("cast(second(cast(arg_t as timestamptz)) as int)", "t"),
    "timestampadd": _add,
    "timestampdiff": _difference,
    "timestamp_micros": of("make_timestamptz(arg_n)", "n"),
    "timestamp_millis": of("make_timestamptz(arg_n * 1000)", "n"),
    "timestamp_seconds": of("to_timestamp(arg_n)", "n"),
    "to_date": _read("date"),
    "to_timestamp": _read("timestamptz"),
    "to_unix_timestamp": _seconds,
    "to_utc_timestamp": of("timezone(arg_z, cast(cast(arg_t as timestamptz) as timestamp))", "tz"),
    "try_make_timestamp": of(f"try({_MADE})", "ymdhis"),
    "try_to_date": _read("date", strict=False),
    "try_to_timestamp": _read("timestamptz", strict=False),
    "unix_micros": of("epoch_us(arg_t)", "t"),
    "unix_millis": lambda a: seconds(a[0], 1000),
    "unix_timestamp": _seconds,
    "weekday": of("cast(isodow(cast(arg_d as date)) - 1 as int)", "d"),
}
