"""Functions of text, numbers and times; a function without a handler is `Unknown`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from sqlglot import exp

from tests.support.evaluator.arithmetic import remainder
from tests.support.evaluator.expressions import argument, evaluate, on, strict
from tests.support.evaluator.nested import BY_ORDER, distinct, for_all
from tests.support.evaluator.scope import Scope
from tests.support.evaluator.values import (
    EPOCH,
    Interval,
    Struct,
    Unknown,
    Value,
    day,
    instant,
    last_day,
    rounded,
    shift,
    text_of,
    truncated,
)

# Text

strict(exp.Upper)(str.upper)
strict(exp.Lower)(str.lower)
strict(exp.Length)(lambda text: len(text_of(text)))
strict(exp.StartsWith, keys=("this", "expression"))(str.startswith)
strict(exp.EndsWith, keys=("this", "expression"))(str.endswith)
strict(exp.Contains, keys=("this", "expression"))(lambda text, part: part in text)
strict(exp.Left, keys=("this", "expression"))(lambda text, count: text[: max(count, 0)])
strict(exp.Right, keys=("this", "expression"))(lambda text, count: text[-count:] if count > 0 else "")
strict(exp.Repeat, keys=("this", "times"))(lambda text, count: text * count)
strict(exp.StrPosition, keys=("this", "substr"))(lambda text, part: text.find(part) + 1)
strict(exp.RegexpLike, keys=("this", "expression"))(lambda text, regex: re.search(regex, text) is not None)
strict(exp.RegexpSplit, keys=("this", "expression"))(lambda text, regex: tuple(re.split(regex, text)))
strict(exp.Ascii)(lambda text: ord(text[0]) if text else 0)


@strict(exp.Substring, keys=("this", "start", "length"))
def _substring(text: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else 0)
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


@on(exp.Trim)
def _trim(node: exp.Trim, scope: Scope) -> str | None:
    text, letters = evaluate(node.this, scope), argument(node, scope, "expression") or " "
    if text is None:
        return None
    position = (node.args.get("position") or "BOTH").upper()
    text = text if position == "TRAILING" else text.lstrip(letters)
    return text if position == "LEADING" else text.rstrip(letters)


@strict(exp.Replace, keys=("this", "expression", "replacement"))
def _replace(text: str, part: str, by: str = "") -> str:
    return text.replace(part, by) if part else text


@on(exp.ConcatWs)
def _joined(node: exp.ConcatWs, scope: Scope) -> str | None:
    mark, *values = (evaluate(e, scope) for e in node.expressions)
    flat = [x for v in values for x in (v if isinstance(v, tuple) else (v,)) if x is not None]
    return None if mark is None else mark.join(text_of(v) for v in flat)


@on(exp.Pad)
def _pad(node: exp.Pad, scope: Scope) -> str | None:
    text, size, fill = (
        evaluate(node.this, scope),
        evaluate(node.expression, scope),
        argument(node, scope, "fill_pattern"),
    )
    if text is None or size is None:
        return None
    more = ((fill or " ") * size)[: max(size - len(text), 0)]
    return (more + text if node.args.get("is_left") else text + more)[:size]


@on(exp.Reverse)
def _reverse(node: exp.Reverse, scope: Scope) -> Value:
    value = evaluate(node.this, scope)
    return None if value is None else value[::-1]


@on(exp.RegexpReplace)
def _regexp_replace(node: exp.RegexpReplace, scope: Scope) -> str | None:
    text, regex, by = (argument(node, scope, key) for key in ("this", "expression", "replacement"))
    return None if None in (text, regex, by) else re.sub(regex, re.sub(r"\$(\d)", r"\\\1", by), text)


@on(exp.RegexpExtract)
def _regexp_extract(node: exp.RegexpExtract, scope: Scope) -> str | None:
    text, regex, group = (argument(node, scope, key) for key in ("this", "expression", "group"))
    if text is None or regex is None:
        return None
    found = re.search(regex, text)
    return (found[1 if group is None else group] or "") if found else ""


@on(exp.JSONExtractScalar, exp.JSONExtract)
def _json(node: exp.Expression, scope: Scope) -> str | None:
    text = evaluate(node.this, scope)
    if text is None:
        return None
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None
    for part in node.expression.expressions:
        match part:
            case exp.JSONPathRoot():
                continue
            case exp.JSONPathKey(this=str(key)):
                value = value.get(key) if isinstance(value, dict) else None
            case exp.JSONPathSubscript(this=int(index)):
                value = value[index] if isinstance(value, list) and index < len(value) else None
            case _:
                raise Unknown(node.sql("databricks"))
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))


# Numbers

strict(exp.Abs)(abs)
strict(exp.Pow, keys=("this", "expression"))(lambda a, b: float(a) ** float(b))
strict(exp.Sqrt)(lambda a: math.sqrt(a))
strict(exp.Sign)(lambda a: float((a > 0) - (a < 0)))
strict(exp.BitwiseAnd, keys=("this", "expression"))(lambda a, b: a & b)
strict(exp.BitwiseOr, keys=("this", "expression"))(lambda a, b: a | b)
strict(exp.BitwiseXor, keys=("this", "expression"))(lambda a, b: a ^ b)


def _towards(how: str) -> Callable[[Value], int]:
    return lambda value: int(Decimal(value).to_integral_value(rounding=how))


strict(exp.Ceil)(_towards(ROUND_CEILING))
strict(exp.Floor)(_towards(ROUND_FLOOR))


@strict(exp.Round, keys=("this", "decimals"))
def _round(value: Value, decimals: int = 0) -> Value:
    if isinstance(value, float):
        return float(rounded(Decimal(repr(value)), decimals))
    made = rounded(Decimal(value), decimals)
    return int(made) if isinstance(value, int) else made


@on(exp.Greatest, exp.Least)
def _extreme(node: exp.Expression, scope: Scope) -> Value:
    values = [v for v in (evaluate(e, scope) for e in (node.this, *node.expressions)) if v is not None]
    if not values:
        return None
    return (max if isinstance(node, exp.Greatest) else min)(values, key=BY_ORDER)


# Times

strict(exp.Year)(lambda d: d.year)
strict(exp.Month)(lambda d: d.month)
strict(exp.Day, exp.DayOfMonth)(lambda d: d.day)
strict(exp.Hour)(lambda t: instant(t).hour)
strict(exp.Minute)(lambda t: instant(t).minute)
strict(exp.Second)(lambda t: instant(t).second)
strict(exp.Quarter)(lambda d: (d.month + 2) // 3)
strict(exp.DayOfWeek)(lambda d: d.isoweekday() % 7 + 1)
strict(exp.DayOfYear)(lambda d: d.timetuple().tm_yday)
strict(exp.WeekOfYear)(lambda d: d.isocalendar()[1])
strict(exp.LastDay)(last_day)
strict(exp.AddMonths, keys=("this", "expression"))(lambda d, n: shift(day(d), Interval(n, timedelta())))
strict(exp.UnixSeconds)(lambda t: (t - EPOCH) // timedelta(seconds=1))
strict(exp.UnixMillis)(lambda t: (t - EPOCH) // timedelta(milliseconds=1))
strict(exp.UnixMicros)(lambda t: (t - EPOCH) // timedelta(microseconds=1))
strict(exp.UnixDate)(lambda d: (day(d) - EPOCH.date()).days)
strict(exp.TimeStrToTime, exp.Timestamp)(instant)


def floor_to(moment: Value, unit: str) -> datetime:
    """Return the start of the unit of time that contains a time."""
    moment = instant(moment).replace(microsecond=0)
    unit = unit.lower()
    if unit == "week":
        return instant(day(moment) - timedelta(days=moment.weekday()))
    if unit == "quarter":
        return moment.replace(month=(moment.month - 1) // 3 * 3 + 1, day=1, hour=0, minute=0, second=0)
    names = {
        "second": 0,
        "minute": 1,
        "hour": 2,
        "day": 3,
        "dd": 3,
        "month": 4,
        "mm": 4,
        "mon": 4,
        "year": 5,
        "yyyy": 5,
    }
    if unit not in names:
        raise Unknown(f"date_trunc to {unit}")
    parts = (("second", 0), ("minute", 0), ("hour", 0), ("day", 1), ("month", 1))[: names[unit]]
    return moment.replace(**dict(parts))


@on(exp.TimestampTrunc, exp.DateTrunc)
def _floor(node: exp.Expression, scope: Scope) -> Value:
    value = evaluate(node.this, scope)
    if value is None:
        return None
    start = floor_to(value, node.args["unit"].name)
    return start if isinstance(node, exp.TimestampTrunc) else day(start)


@on(exp.TsOrDsToDate)
def _to_date(node: exp.TsOrDsToDate, scope: Scope) -> date | None:
    if node.args.get("format") is not None:
        raise Unknown(node.sql("databricks"))
    value = evaluate(node.this, scope)
    return None if value is None else day(value)


@on(exp.TsOrDsAdd, exp.DateAdd, exp.TimestampAdd, exp.DateSub, exp.TimestampSub)
def _shifted(node: exp.Expression, scope: Scope) -> Value:
    value, count = evaluate(node.this, scope), evaluate(node.expression, scope)
    if value is None or count is None:
        return None
    unit = node.args["unit"].name.lower().rstrip("s")
    length = Interval(count, timedelta()) if unit == "month" else Interval(0, timedelta(**{unit + "s": count}))
    start = day(value) if isinstance(node, exp.TsOrDsAdd) else value
    return shift(start, length, -1 if isinstance(node, exp.DateSub | exp.TimestampSub) else 1)


@on(exp.DateDiff, exp.TimestampDiff)
def _between_times(node: exp.Expression, scope: Scope) -> int | None:
    end, start = evaluate(node.this, scope), evaluate(node.expression, scope)
    if end is None or start is None:
        return None
    unit = node.args["unit"].name.lower().rstrip("s") if node.args.get("unit") else "day"
    if isinstance(node, exp.DateDiff):
        if unit != "day":
            raise Unknown(node.sql("databricks"))
        return (day(end) - day(start)).days
    if unit not in ("second", "minute", "hour", "day", "week"):
        raise Unknown(node.sql("databricks"))
    length, one = instant(end) - instant(start), timedelta(**{unit + "s": 1})
    return abs(length) // one * (1 if length >= timedelta() else -1)


@on(exp.Extract)
def _extract(node: exp.Extract, scope: Scope) -> Value:
    value = evaluate(node.expression, scope)
    if value is None:
        return None
    parts = {"YEAR": "year", "MONTH": "month", "DAY": "day", "HOUR": "hour", "MINUTE": "minute"}
    if node.this.name.upper() not in parts:
        raise Unknown(node.sql("databricks"))
    return getattr(value, parts[node.this.name.upper()])


@on(exp.TimeToStr)
def _format(node: exp.TimeToStr, scope: Scope) -> str | None:
    value = evaluate(node.this, scope)
    pattern = node.args["format"].name.replace("strict", "")
    if set(re.findall(r"%(.)", pattern)) - set("YmdHMS"):
        raise Unknown(node.sql("databricks"))
    return None if value is None else instant(value).strftime(pattern)


# Functions that sqlglot has no class for


def _null_safe(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *values: None if any(v is None for v in values) else function(*values)


NAMED: dict[str, Callable[..., Value]] = {
    "isnull": lambda v: v is None,
    "isnotnull": lambda v: v is not None,
    "nvl": lambda a, b: b if a is None else a,
    "pmod": _null_safe(lambda a, b: remainder(remainder(a, b) + b, b)),
    "hour": _null_safe(lambda t: instant(t).hour),
    "minute": _null_safe(lambda t: instant(t).minute),
    "timestamp_seconds": _null_safe(lambda n: EPOCH + timedelta(microseconds=int(truncated(Decimal(n) * 1_000_000)))),
    "timestamp_millis": _null_safe(lambda n: EPOCH + timedelta(milliseconds=n)),
    "timestamp_micros": _null_safe(lambda n: EPOCH + timedelta(microseconds=n)),
    "make_date": _null_safe(date),
    "date_add": _null_safe(lambda d, n: day(d) + timedelta(days=n)),
    "date_sub": _null_safe(lambda d, n: day(d) - timedelta(days=n)),
    "cardinality": _null_safe(len),
    "array_union": _null_safe(lambda a, b: distinct(a + b)),
    "map_values": _null_safe(lambda entries: tuple(v for _, v in entries)),
    "map_entries": _null_safe(lambda entries: tuple(Struct((("key", k), ("value", v))) for k, v in entries)),
    "named_struct": lambda *parts: Struct(zip(parts[::2], parts[1::2], strict=True)),
}


@on(exp.Anonymous)
def _named(node: exp.Anonymous, scope: Scope) -> Value:
    name = node.name.lower()
    if name in NAMED:
        return NAMED[name](*(evaluate(e, scope) for e in node.expressions))
    if name == "datediff" and len(node.expressions) == 2:
        end, start = (evaluate(e, scope) for e in node.expressions)
        return None if end is None or start is None else (day(end) - day(start)).days
    if name == "forall":
        return for_all(evaluate(node.expressions[0], scope), node.expressions[1], scope)
    raise Unknown(f"{name}()")
