"""Landing query: the lines of a source to typed rows and quarantined rows. Pure.

A line becomes text fields first, the same on both engines. Each field must match the form of its type before it is
cast, so that no engine's lenient JSON reader decides what a number is. An invalid line goes to quarantine with its
text, file and reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import sqlglot
from sqlglot import exp

from sqlrun.engine_api import Dialect, StoredColumn
from sqlrun.incremental import statement_cache, types
from sqlrun.incremental.landing import drops as landing_drops
from sqlrun.incremental.landing import fields as landing_fields
from sqlrun.incremental.landing import line_grammar, line_pattern, undeclared_fields
from sqlrun.incremental.landing.shape import Shape, shape_of
from sqlrun.incremental.stages import Stage
from sqlrun.project import BLANK_LINE, FILTERED, OUTSIDE_SAMPLE, Source
from sqlrun.transpile import writer as sql
from sqlrun.transpile.dialect import DIALECT

# The origin of a line has always been its file, hence the column's name.
REASON, RAW, ORIGIN, LANDED_AT = "_reason", "_raw", "_file", "_landed_at"
QUARANTINED_ROWS = f"{REASON} is not null"
RESCUED, ABSENT = "_rescued", "_absent"
# Why a line is left out, in a query `with_dropped`; no table stores it.
DROPPED = "_dropped"
# Why a record can't be read, in a source that has such records.
FAULT = "_fault"
NO_OBJECT, TWICE = "not a JSON object", "duplicate key"
# Reasons that a text which is no JSON object may have.
OF_TEXTS = (line_grammar.TOO_LONG, TWICE, NO_OBJECT)
PROVENANCE = (
    StoredColumn(REASON, "string"),
    StoredColumn(RAW, "string"),
    StoredColumn(ORIGIN, "string"),
    StoredColumn(LANDED_AT, "timestamp"),
)
HIDDEN = (
    *PROVENANCE,
    StoredColumn(RESCUED, "string"),  # a JSON object of the fields that the source doesn't declare
    StoredColumn(ABSENT, "string"),  # quoted names of the declared columns that the line lacks
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A row-level expectation that quarantines: `passes` is Spark SQL over the model's columns, true for valid rows."""

    reason: str
    passes: str


def query(
    stage: Stage,
    source: Source,
    rules: Sequence[Rule],
    dialect: Dialect,
    landed_at: datetime,
    *,
    with_text: bool = False,
    with_dropped: bool = False,
) -> str:
    """Return the landing query over `lines(value, file)`; its columns are the stage's and the hidden ones.

    Of a source that `has_faults`, `lines` has a third column `fault`: why a record can't be read, which is the reason
    of its quarantine before all others. NULL for any other record, and for one of blanks.

    `with_text`: valid rows keep their line's text, too. `with_dropped`: lines that are left out are rows with the
    reason in a last column `_dropped`, which is NULL for all others; their text is kept, their values mean nothing.
    """
    # All but the time of landing is the same in every tick.
    kind = ("landing", source, tuple(rules), dialect, with_dropped)
    ctes = statement_cache.cached(stage, kind, lambda: _ctes(stage, source, rules, dialect, with_dropped))
    return f"with\n{ctes}\n{_final(stage, dialect, landed_at, with_text, with_dropped)}"


def drops(stage: Stage, source: Source) -> tuple[str, ...]:
    """Return the reasons why lines other than blank ones can be left out; () if none can.

    They are in the order in which they are tested: the sample, the source's drop rules, then the model's own WHERE.
    """
    filters = _shape(stage).condition is not None
    sampled = [OUTSIDE_SAMPLE] if source.recent is not None else []
    return (*sampled, *(rule.reason for rule in source.drop_where), *([FILTERED] if filters else []))


def _ctes(stage: Stage, source: Source, rules: Sequence[Rule], dialect: Dialect, with_dropped: bool) -> str:
    modelled = _modelled_or_dropped(stage, source, dialect) if with_dropped else _modelled(stage, source, dialect)
    parts = [
        ("_parsed", _parsed(source, dialect, with_dropped)),
        *_typed_parts(source, dialect),
        ("_modelled", modelled),
        ("_judged", _dialect(_judged(stage, rules, with_dropped), dialect)),
    ]
    return ",\n".join(f"{name} as (\n{text}\n)" for name, text in parts)


def columns_of(stage: Stage) -> tuple[StoredColumn, ...]:
    """Return the columns of the landing table: the model's, then a row's origin and reason for quarantine."""
    return (*stage.columns, *HIDDEN)


@lru_cache(256)
def _dialect(text: str, dialect: Dialect) -> str:
    return text if dialect == "spark" else sql.expression(sqlglot.parse_one(text, read=DIALECT), dialect)


def _parsed(source: Source, dialect: Dialect, with_blank: bool = False) -> str:
    """Return SQL that parses each line to a JSON object whose leaves are text.

    Lines of blanks are left out, or kept `with_blank`. `_json` is NULL if the line isn't an object or has another
    shape. `_twice` is true if a key occurs twice. A line of the usual form needs no further test; `line_grammar`
    prepares any other line.
    """
    form = line_pattern.usual(source, dialect)
    usual = "false" if form is None else line_grammar.matches("value", form, dialect)
    short = line_grammar.short("value", dialect)
    read = _read_by_spark if dialect == "spark" else _read_by_duckdb
    return read(source, short, usual, with_blank)


def _read_by_spark(source: Source, short: str, usual: str, with_blank: bool) -> str:
    fields = ", ".join(f"{sql.identifier(c.name, 'spark')} {_as_text(types.parse(c.type))}" for c in source.columns)
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_corrupt', 'allowSingleQuotes', 'false')"
    schema = sql.string(f"{fields}, _corrupt string", "spark")
    # from_json stops after the first object of a line and would drop what follows it. Every text of a line begins with
    # a mark, so none is exactly `z`: if `z` is the second value of the list, the line is one object.
    alone = "get_json_object(concat('[', _text, ',\"z\"]'), '$[1]') = 'z'"
    twice = undeclared_fields.twice(source, "spark")
    well_formed, readable = (line_grammar.well_formed("_raw", "spark"), line_grammar.readable("_raw", "spark"))
    rescued, absent = undeclared_fields.rescued(source, "spark"), undeclared_fields.absent(source, "spark")
    where = "" if with_blank else f"\n        where {line_grammar.stripped('value', 'spark')} <> ''"
    return (
        f"select _raw, _file{_fault(source)}, _long, _usual,\n"
        "    case when _object._corrupt is null and _alone then _object end as _json,\n"
        f"    case when _usual or not coalesce(_alone, false) then false else {twice} end as _twice,\n"
        f"    case when not _usual and _text is not null then {rescued} end as {RESCUED},\n"
        f"    case when not _usual and _text is not null then {absent} end as {ABSENT}\n"
        f"from (select *, from_json(_text, {schema}, {options}) as _object, _usual or {alone} as _alone from (\n"
        f"    select *, case when _usual then _raw when _well_formed then {readable} end as _text from (\n"
        f"    select *, case when _usual or _long then false else {well_formed} end as _well_formed from (\n"
        f"    select value as _raw, file as _file{_fault(source, 'fault as ')}, not {short} as _long, "
        f"{short} and {usual} as _usual from lines{where}))))"
    )


def _read_by_duckdb(source: Source, short: str, usual: str, with_blank: bool) -> str:
    shape = "{" + ", ".join(f'"{c.name}": {_as_json(types.parse(c.type))}' for c in source.columns) + "}"
    read = f"from_json(_line, {sql.string(shape, 'duckdb')})"
    tests = ["json_type(_line) = 'OBJECT'"]
    tests += [test for c in source.columns for test in _shaped(f'$."{c.name}"', types.parse(c.type))]
    well_formed = line_grammar.well_formed("value", "duckdb")
    # Trimming scans the whole text: most lines skip it.
    filled = f"starts_with(value, '{{') or {line_grammar.stripped('value', 'duckdb')} <> ''"
    where = "" if with_blank else f"\n        where {filled}"
    return (
        f"select value as _raw, file as _file{_fault(source)}, _long,\n"
        f"    case when _usual then {read} when {' and '.join(tests)} then try({read}) end as _json,\n"
        f"    case when _plain then false else {undeclared_fields.twice(source, 'duckdb')} end as _twice,\n"
        f"    case when not _usual then {landing_fields.nested(source)} end as _nested,\n"
        f"    case when not _plain then {undeclared_fields.rescued(source, 'duckdb')} end as {RESCUED},\n"
        f"    case when not _plain then {undeclared_fields.absent(source, 'duckdb')} end as {ABSENT}\n"
        f"from (select value, file{_fault(source)}, _long, _usual, _line,\n"
        f"    case when _usual then true else {undeclared_fields.plain(source)} end as _plain from (\n"
        f"    select value, file{_fault(source)}, _long, _usual,\n"
        "        case when _usual then value when json_valid(_text) then _text end as _line\n"
        f"    from (select value, file{_fault(source)}, _long, _usual, case when not _usual and not _long and "
        f"{well_formed} then {line_grammar.readable('value', 'duckdb')} end as _text\n"
        f"    from (select value, file{_fault(source, 'fault as ')}, not {short} as _long, "
        f"{short} and {usual} as _usual from lines{where}))))"
    )


def _fault(source: Source, renamed: str = "") -> str:
    """Return the column of a record's fault as a further item of a SELECT; "" for a source without faults."""
    return f", {renamed}{FAULT}" if source.has_faults else ""


def _shaped(path: str, kind: exp.DataType | None) -> list[str]:
    """Return DuckDB's tests that arrays are arrays and objects are objects: its reader returns NULL for others."""
    assert kind is not None

    def test(expected: str) -> str:
        found = f"json_type(_line, {sql.string(path, 'duckdb')})"
        if "[*]" in path:
            return f"coalesce(list_has_all(['{expected}', 'NULL'], {found}), true)"
        return f"coalesce({found} in ('{expected}', 'NULL'), true)"

    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return [test("ARRAY"), *_shaped(f"{path}[*]", kind.expressions[0])]
        case exp.DataType.Type.STRUCT:
            fields = [t for f in kind.expressions for t in _shaped(f'{path}."{f.name}"', f.args["kind"])]
            return [test("OBJECT"), *fields]
        case _:
            return []


def _as_text(kind: exp.DataType | None) -> str:
    """Return a type with all its leaves as string, in Spark SQL."""
    assert kind is not None
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return f"array<{_as_text(kind.expressions[0])}>"
        case exp.DataType.Type.STRUCT:
            fields = (f"{sql.identifier(f.name, 'spark')}: {_as_text(f.args['kind'])}" for f in kind.expressions)
            return f"struct<{', '.join(fields)}>"
        case _:
            return "string"


def _as_json(kind: exp.DataType | None) -> str:
    """Return a type with all its leaves as text, as DuckDB's JSON structure."""
    assert kind is not None
    match kind.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return f"[{_as_json(kind.expressions[0])}]"
        case exp.DataType.Type.STRUCT:
            return "{" + ", ".join(f'"{f.name}": {_as_json(f.args["kind"])}' for f in kind.expressions) + "}"
        case _:
            return '"VARCHAR"'


def _typed_parts(source: Source, dialect: Dialect) -> list[tuple[str, str]]:
    """Return the CTEs that cast the text fields and give the reason of the first invalid one.

    DuckDB evaluates the reasons only for lines with a missing value, since each reason scans all lists.
    """
    items = [(c.name, landing_fields.value(c, dialect)) for c in source.columns]
    items += [(name, f"case when _json is not null and not _twice then {name} end") for name in (RESCUED, ABSENT)]
    values = ", ".join(f"{value} as {sql.identifier(name, 'spark')}" for name, value in items)
    if dialect == "spark":
        return [("_typed", f"select _raw, _file, {_reasons(source, dialect)} as {REASON}, {values} from _parsed")]
    fits = " and ".join(
        ["_json is not null", "not _twice", "_nested is null", *map(landing_fields.fits, source.columns)]
    )
    reason = f"case when not coalesce({fits}, false) then {_reasons(source, dialect)} end"
    return [
        (
            "_valued",
            _dialect(
                f"select _raw, _file{_fault(source)}, _long, _json, _twice, _nested, struct({values}) as _values "
                "from _parsed",
                dialect,
            ),
        ),
        ("_typed", f"select _raw, _file, {reason} as {REASON}, unnest(_values) from _valued"),
    ]


def _reasons(source: Source, dialect: Dialect) -> str:
    """Return SQL for the reason why a line is invalid; NULL for a valid line."""
    reasons = [f"when {FAULT} is not null then {FAULT}"] if source.has_faults else []
    reasons += [
        f"when _long then '{line_grammar.TOO_LONG}'",
        # JSON readers disagree about which of two equal keys counts, and whose shape must be valid.
        f"when _twice then '{TWICE}'",
        f"when _json is null then '{NO_OBJECT}'",
    ]
    for column in source.columns:
        for reason, wrong in landing_fields.faults(column, dialect):
            reasons.append(f"when {wrong} then {sql.string(reason, dialect)}")
    return f"case {' '.join(reasons)} end"


def _modelled(stage: Stage, source: Source, dialect: Dialect) -> str:
    """Return the analyst's query over the typed rows; an expression that fails is NULL, so that the tick goes on.

    A line for which a drop rule is true isn't a row, unless it has a reason for quarantine. A line outside of the
    sample is never a row.
    """
    items, condition = _selected(stage, dialect)
    tests = [sql.attempted(condition, dialect)] if condition is not None else []
    tests += [f"not coalesce({test}, false)" for _, test in drop_tests(source, dialect)]
    both = [f"(({' and '.join(tests)}) or {REASON} is not null)"] if tests else []
    both += _in_sample(stage, source, dialect)
    where = f" where {' and '.join(both)}" if both else ""
    return f"select {REASON}, _raw, _file, {RESCUED}, {ABSENT}, {items} from _typed{where}"


def _modelled_or_dropped(stage: Stage, source: Source, dialect: Dialect) -> str:
    """Return the analyst's query over all typed rows, with the reason why one is left out."""
    items, condition = _selected(stage, dialect)
    blank = f"coalesce({line_grammar.stripped('_raw', dialect)}, '') = ''"
    # A line of blanks is no object; only such lines are trimmed.
    unread = f"{REASON} in ('{NO_OBJECT}', '{line_grammar.TOO_LONG}')"
    cases = [f"when {unread} and {blank} then '{BLANK_LINE}'"]
    cases += [f"when not {test} then '{OUTSIDE_SAMPLE}'" for test in _in_sample(stage, source, dialect)]
    cases.append(f"when {REASON} is not null then null")
    cases += [f"when {test} then {sql.string(reason, dialect)}" for reason, test in drop_tests(source, dialect)]
    if condition is not None:
        cases.append(f"when not coalesce({sql.attempted(condition, dialect)}, false) then '{FILTERED}'")
    dropped = f"case {' '.join(cases)} end as {DROPPED}"
    return f"select {REASON}, _raw, _file, {RESCUED}, {ABSENT}, {dropped}, {items} from _typed"


def _selected(stage: Stage, dialect: Dialect) -> tuple[str, exp.Expr | None]:
    """Return the items of the analyst's query as SQL, and its condition."""
    shape, kinds = _shape(stage), {c.name: c.type for c in stage.columns}
    items = [
        f"{sql.attempted(value, dialect, kinds[name])} as {sql.identifier(name, dialect)}"
        for name, value in shape.items
    ]
    return ", ".join(items), shape.condition


def _shape(stage: Stage) -> Shape:
    assert stage.node is not None
    found = shape_of(stage.node)
    assert found is not None, "the compiler refuses a landing query of another shape"
    return found


def drop_tests(source: Source, dialect: Dialect) -> list[tuple[str, str]]:
    """Return the reason and the test of each drop rule, over the source's typed columns; a test that fails is NULL."""
    return [(reason, sql.attempted(tree, dialect)) for reason, tree in landing_drops.conditions(source)]


def _in_sample(stage: Stage, source: Source, dialect: Dialect) -> list[str]:
    """Return the test that a line's event is in the sample, false for a line without a time; [] without a sample."""
    if source.recent is None:
        return []
    shape, column = dict(_shape(stage).items), source.recent.column
    kinds = {c.name: c.type for c in stage.columns}
    at = sql.attempted(shape[column], dialect, kinds[column])
    return [f"coalesce({at} > {sql.timestamp(datetime.fromisoformat(source.recent.since), dialect)}, false)"]


def _judged(stage: Stage, rules: Sequence[Rule], with_dropped: bool = False) -> str:
    """Return SQL that adds the reasons of the contract and of the quarantining expectations."""
    reasons = [f"when {DROPPED} is not null then null"] if with_dropped else []
    reasons += [f"when {REASON} is not null then {REASON}"]
    required = [column.name for column in stage.columns if not column.nullable]
    reasons += [
        f"when {sql.identifier(name, 'spark')} is null then {sql.string(f'{name}: no value', 'spark')}"
        for name in required
    ]
    for rule in rules:
        reasons.append(f"when not ({rule.passes}) then {sql.string(rule.reason, 'spark')}")
    names = sql.names((c.name for c in stage.columns), "spark")
    hidden = f"_raw, _file, {RESCUED}, {ABSENT}{f', {DROPPED}' if with_dropped else ''}"
    return f"select {names}, case {' '.join(reasons)} end as {REASON}, {hidden} from _modelled"


def breaks(stage: Stage, rules: Sequence[Rule], dialect: Dialect) -> str:
    """Return SQL for whether the contract or the current rules would quarantine a landed row; "" if they can't."""
    tests = [f"{sql.identifier(c.name, 'spark')} is null" for c in stage.columns if not c.nullable]
    tests += [f"not ({rule.passes})" for rule in rules]
    return " or ".join(f"({_dialect(test, dialect)})" for test in tests)


def _final(stage: Stage, dialect: Dialect, landed_at: datetime, with_text: bool, with_dropped: bool) -> str:
    names = sql.names((c.name for c in stage.columns), dialect)
    shown = f"{REASON} is not null{f' or {DROPPED} is not null' if with_dropped else ''}"
    text = "_raw" if with_text else f"case when {shown} then _raw end"
    return (
        f"select {names}, {REASON}, {text} as {RAW}, _file as {ORIGIN}, {sql.timestamp(landed_at, dialect)} "
        f"as {LANDED_AT}, {RESCUED}, {ABSENT}{f', {DROPPED}' if with_dropped else ''} from _judged"
    )
