"""The entities of a project, as frozen values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlrun.dashboards.nouns import Dashboard
from sqlrun.errors import Place
from sqlrun.runtime.limits import STATEMENT_TIMEOUT

# Plain Python values of YAML or TOML scalars, lists and mappings.
Value = object
Row = Mapping[str, Value]
# Severities of a failed check; the first is the default.
CRITICAL, WARNING, INFO = SEVERITIES = ("critical", "warning", "info")
# Actions of a failed check: block the tick, warn, or quarantine the rows at landing.
# The tag of a column with personal values.
PII = "pii"
FAIL, WARN, QUARANTINE = ON_FAIL = ("fail", "warn", "quarantine")
# The value of `materialized` for a table with a row for each version of each row of its query.
HISTORY = "history"
# The columns of a history beside those of its query: when a version is valid, and whether it still is.
VALID_FROM, VALID_TO, IS_CURRENT = VERSION_COLUMNS = ("valid_from", "valid_to", "is_current")
# A further one, if a deletion begins a version.
IS_DELETED = "is_deleted"
NEW_RECORD = "new_record"
# Separates a model's name from the number of a hidden table with one of its inner results.
STATE = "__state_"


def state_table(model: str, number: int) -> str:
    """Return the name of a hidden table of a model.

    >>> state_table("orders", 2), model_of("orders__state_2"), model_of("orders")
    ('orders__state_2', 'orders', 'orders')
    """
    return f"{model}{STATE}{number}"


def is_state_table(table: str) -> bool:
    """Return whether a table is hidden: it stores an inner result, which readers don't see."""
    return STATE in table


def model_of(table: str) -> str:
    """Return the model of a table, its own or a hidden one."""
    return table.partition(STATE)[0]


def follows(severity: str) -> str:
    """Return the default action of a failure by its severity."""
    return FAIL if severity == CRITICAL else WARN


# The place of what no file declares.
NOWHERE = Place("")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One declared check: Great Expectations' type and arguments, and the action if it fails.

    `severity` is one of `SEVERITIES`, `on_fail` one of `ON_FAIL`. `kwargs` has Great Expectations' own arguments,
    `mostly` included. `name` is that of a SQL check, "" for Great Expectations' own types.
    """

    type: str
    kwargs: Mapping[str, Value]
    severity: str
    on_fail: str
    description: str
    place: Place
    name: str = ""

    @property
    def result_type(self) -> str:
        """Return the type that a result of the check has: a SQL check's name, else Great Expectations' type."""
        return self.name or self.type


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a contract. `type` is Spark SQL's type text in lower case; `nullable` is from the contract.

    `promises` are the checks of dbt's `data_tests:` and `constraints:`. `comes_from`: for a column of a source, what
    the value is taken from instead of a field of the line, for example `key` or `header:trace`. `inside`: for a column
    of a source whose fields and elements may be NULL, its type with `not null` behind each field that may not; else "".
    `meta` is a mapping for tools, as JSON.
    """

    name: str
    type: str
    description: str
    place: Place
    unit: str = ""
    nullable: bool = True
    tags: tuple[str, ...] = ()
    promises: tuple[Expectation, ...] = ()
    comes_from: str = ""
    inside: str = ""
    meta: str = ""

    @property
    def is_private(self) -> bool:
        """Return whether its values are personal: they are shown in no sample, message or report."""
        return PII in self.tags


@dataclass(frozen=True, slots=True)
class Said:
    """A part of a contract about a model's rows or their storage: its key, and its place."""

    words: str
    place: Place


@dataclass(frozen=True, slots=True)
class Config:
    """A model's settings: of folders in pyproject.toml, then of its YAML, then of `config()` in its SQL.

    `updated_at`, `check_cols` and `hard_deletes` are those of a history. `updated_at` is the column with the time of a
    row's last change; "": a version begins at the tick that finds it. `check_cols`: a change of one of these columns
    begins a version; () is any column. `hard_deletes`: the version of a row that is gone ends, stays, or is followed by
    one that says so.
    """

    materialized: str = "table"  # table | view | history
    partition_by: tuple[str, ...] = ()
    at_worst: str = "full"  # append | merge | keys | partitions | full
    tags: tuple[str, ...] = ()
    max_read_amplification: float | None = None  # rows read for each row that was inserted, deleted or written
    enforced: bool = False  # the query's types must be the contract's
    anomalies: bool = True  # measures are compared with their history
    checks: str = "auto"  # auto | great_expectations: the evaluator
    # spark | duckdb | polars | pandas | pyarrow | any: a reader that must be able to read the table
    readable_by: str = "spark"
    updated_at: str = ""
    check_cols: tuple[str, ...] = ()
    hard_deletes: str = "invalidate"  # invalidate | ignore | new_record
    enabled: bool = True  # the model is a part of the project
    # Words for people and tools, which change no result. `meta` and `docs` are mappings, as JSON.
    meta: str = ""
    docs: str = ""
    group: str = ""
    access: str = ""  # protected | private | public
    alias: str = ""

    @property
    def version_columns(self) -> tuple[str, ...]:
        """Return the columns that a history adds to those of its query."""
        return (*VERSION_COLUMNS, IS_DELETED) if self.hard_deletes == NEW_RECORD else VERSION_COLUMNS


@dataclass(frozen=True, slots=True)
class Freshness:
    """Maximum ages of a model's latest event, in seconds: after one a warning, after the other no publishing."""

    place: Place
    warn_after: float | None = None
    error_after: float | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """The content of one input of a unit test: `input` is the text `ref('x')` or `source('a', 'b')`; rows are partial.

    `sql` is a SELECT that returns the rows instead; `lines` are a source's raw lines, as in one of its files.
    """

    input: str
    rows: tuple[Row, ...]
    place: Place
    sql: str = ""
    lines: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one input in one step of a unit test: partial rows that are inserted, deleted and updated.

    A deleted row is found by the columns that it names; an updated one by the input's grain, and it retains the columns
    that it doesn't name. `lines` are raw lines that land.
    """

    input: str
    place: Place
    came: tuple[Row, ...] = ()
    left: tuple[Row, ...] = ()
    updated: tuple[Row, ...] = ()
    lines: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """The expectation of a unit test: the model's whole table as partial rows, or None if it isn't checked.

    `sql` is a SELECT that returns the rows instead. `came` and `left` are the step's change of the table, `quarantined`
    the lines that a landing quarantines; None if it isn't checked. `columns` are types by name, for a CTE or a macro,
    which have no contract.
    """

    rows: tuple[Row, ...] | None = None
    sql: str = ""
    came: tuple[Row, ...] | None = None
    left: tuple[Row, ...] | None = None
    quarantined: tuple[Row, ...] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One tick of a unit test after its first: its time (UTC text, "" for the previous one's) and its changes."""

    place: Place
    as_of: str = ""
    changes: tuple[Change, ...] = ()
    expect: Expected = field(default_factory=Expected)


@dataclass(frozen=True, slots=True)
class UnitTest:
    """dbt's unit test: given rows, expected rows; `as_of` is the tick's time (UTC text), if the query reads it.

    `steps` are ticks after it. `cte` names the CTE that is tested instead of the whole query. In a macro's test `macro`
    (and `model`) names the macro, and `sql` is the SELECT that calls it, over the given inputs. `macros` override
    macros of the project by a value each, which every call returns.
    """

    name: str
    model: str
    given: tuple[Given, ...]
    expect: Expected
    place: Place
    description: str = ""
    as_of: str = ""
    vars: Row = field(default_factory=dict)
    macros: Row = field(default_factory=dict)
    cte: str = ""
    macro: str = ""
    sql: str = ""
    tags: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """One SELECT and its contract. `sql` is the analyst's text; `grain` are the columns that are unique together.

    `repeats`: rows equal in the grain are exact copies (a source that sends twice). `event_time` is the column with the
    time of a row's event; "" for none. `said` are the parts of the contract that apply to tables alone. `is_open`: the
    contract doesn't list all columns with their types; the rest is inferred from the query. `place` is the contract's.
    """

    name: str
    file: str
    sql: str
    contract_file: str
    description: str
    grain: tuple[str, ...]
    repeats: bool
    columns: tuple[Column, ...]
    config: Config
    unit_tests: tuple[UnitTest, ...]
    event_time: str = ""
    freshness: Freshness | None = None
    said: tuple[Said, ...] = ()
    is_open: bool = False
    place: Place = NOWHERE

    @classmethod
    def of_text(cls, name: str, file: str, sql: str) -> Model:
        """Return a model of a text, without a contract, so that other texts can be rendered and parsed."""
        return cls(name, file, sql, "", "", (), False, (), Config(), ())

    @property
    def version_key(self) -> tuple[str, ...]:
        """Return the columns that identify a row of a history's query: its grain without the time of a version."""
        return tuple(name for name in self.grain if name != VALID_FROM)

    def column(self, name: str) -> Column | None:
        """Return a column by name; None if there is none."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Topic:
    """What a Kafka source reads: one topic, or all topics whose whole name matches `pattern`.

    `connection` names the broker's entry under `connections` of the profile. `value_format` is one of `VALUE_FORMATS`.
    `tombstones`: a message without a value is a row, or is dropped. A first landing begins at `start`, the earliest or
    the latest offset. A tick reads at most `max_offsets_per_tick` offsets of all partitions together; 0: no limit.
    """

    topic: str = ""
    pattern: str = ""
    connection: str = "kafka"
    value_format: str = "json"
    tombstones: str = "rows"  # rows | drop
    start: str = "earliest"  # earliest | latest
    max_offsets_per_tick: int = 0


@dataclass(frozen=True, slots=True)
class CsvText:
    """How a CSV file is written, as in `decoding.formats.Csv`; "" for no quote, and for no comments."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    null: str = ""
    comment: str = ""
    encoding: str = "utf-8"  # utf-8 | latin-1 | windows-1252


@dataclass(frozen=True, slots=True)
class Files:
    """What a source of files reads in planned batches.

    `pattern` is a glob relative to the source's path; "" for the endings of the format. `document`: `array` or `auto`
    if a JSON file may be one document, of at most `max_document` bytes; "" for JSON lines.
    """

    pattern: str = ""
    document: str = ""  # "" | array | auto
    max_document: int = 64 * 1024 * 1024
    csv: CsvText = CsvText()


# What a column may say about a change event, by `from:`, with its types.
DESCRIPTIONS: Mapping[str, tuple[str, ...]] = {
    "op": ("string",), "position": ("string",), "committed_at": ("timestamp",), "transaction": ("string",),
    "snapshot": ("string",), "table": ("string",), "unavailable": ("array<string>",),
}  # fmt: skip
# What begins `from:` of a column that has a part of the key that a row had before a change.
OLD = "old:"
# Formats of change events.
DEBEZIUM, MAXWELL = "debezium", "maxwell"
# Units of a number that is a time.
TIME_UNITS = ("milliseconds", "microseconds", "nanoseconds")


@dataclass(frozen=True, slots=True)
class Changes:
    """How the lines of a source are a database's change events. `key` are the columns of the table's primary key.

    `table`: events of any other table don't land; "" if it isn't checked. `decimals`: `text`, or `bytes` for the
    unscaled value in base64, for events without schemas. `times`: units of times that are numbers, for the same.
    `transactions`: the topic of the marks by which a tick takes whole transactions; "" for ticks that may cut one.
    """

    format: str  # debezium | maxwell
    key: tuple[str, ...]
    table: str = ""
    decimals: str = "text"  # text | bytes
    times: tuple[tuple[str, str], ...] = ()
    transactions: str = ""

    def unit(self, column: str) -> str:
        """Return the declared unit of a column's numbers; "" if none is declared."""
        return next((unit for name, unit in self.times if name == column), "")


# Reasons of lines that are left out without a drop rule: by the WHERE of the model, by the sample of an environment,
# or because they are empty.
FILTERED, OUTSIDE_SAMPLE, BLANK_LINE = "filtered by the model", "outside of the sample", "blank line"


@dataclass(frozen=True, slots=True)
class RecentEvents:
    """The events that a sample has: those after `since` (ISO), by a column of the model that lands them."""

    column: str
    since: str


@dataclass(frozen=True, slots=True)
class Drop:
    """A rule of a source: lines for which `where` (Spark SQL over the source's columns) is true are dropped.

    `place` is that of the condition's text; not `exact` if the text spans lines or is escaped in the file.
    """

    where: str
    reason: str
    place: Place


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Where a source's quarantined lines are sent after a tick: a topic of a connection, or the folder `path`.

    Exactly one of `topic` and `path` isn't "". `pii`: they are sent even if columns are tagged pii.
    """

    place: Place
    topic: str = ""
    connection: str = "kafka"
    path: str = ""
    pii: bool = False


# Formats of a message's value, and of a source.
VALUE_FORMATS = ("json", "avro", "protobuf", "csv", "text")
# Formats of values that may not be readable.
DECODED = ("avro", "protobuf", "csv")
JSON, KAFKA, CSV, PARQUET, AVRO, DELTA = "json", "kafka", "csv", "parquet", "avro", "delta"


@dataclass(frozen=True, slots=True)
class Source:
    """Lines or rows that other programs write: `source(group, name)`.

    `format: kafka` reads `topic`, `format: delta` a Delta table in the folder `path`: its rows don't land, models read
    the table itself. All others read files below `path`, which is relative to the project. `files` is None for a folder
    of JSON lines, which Spark reads by Structured Streaming.
    """

    group: str
    name: str
    format: str  # json | csv | parquet | avro | kafka | delta
    path: str
    columns: tuple[Column, ...]
    description: str
    place: Place
    on_schema_change: str = "ignore"  # ignore | append_new_columns | fail | sync
    if_unreadable: str = "fail"  # fail | skip: a tick without new lines, if the source can't be read
    topic: Topic | None = None
    drop_where: tuple[Drop, ...] = ()
    files: Files | None = None
    dead_letters: DeadLetters | None = None
    changes: Changes | None = None
    recent: RecentEvents | None = None  # in a sample: all other lines are left out

    @property
    def node(self) -> str:
        """Return the source's name in the graph."""
        return f"source:{self.group}.{self.name}"

    @property
    def is_plain_folder(self) -> bool:
        """Return whether the source is a folder of JSON lines, which other programs may also write to by `serve`."""
        return self.format == JSON and self.files is None

    @property
    def has_faults(self) -> bool:
        """Return whether a record may be one that can't be read, so that `lines` has a column `fault`."""
        if self.changes is not None:
            return True
        if self.topic is not None:
            return self.topic.value_format in DECODED
        return self.files is not None and (self.format == CSV or bool(self.files.document))

    @property
    def table(self) -> str:
        """Return the one-word name of the source in compiled SQL."""
        return f"{self.group}__{self.name}"

    @property
    def lands(self) -> bool:
        """Return whether its lines land in the table of a model; else models read it as a table of the graph."""
        return self.format != DELTA

    @property
    def transactions(self) -> tuple[str, str] | None:
        """Return the connection and the topic by which a tick takes whole transactions; None if it may cut one."""
        if self.topic is None or self.changes is None or not self.changes.transactions:
            return None
        return self.topic.connection, self.changes.transactions

    @property
    def attached(self) -> tuple[Column, ...]:
        """Return the columns whose values come with a line instead of from its text."""
        own = self.changes is not None
        return tuple(
            column
            for column in self.columns
            if column.comes_from
            and not (own and (column.comes_from in DESCRIPTIONS or column.comes_from.startswith(OLD)))
        )


@dataclass(frozen=True, slots=True)
class Seed:
    """A small lookup table from a CSV file: rows of text in the order of `columns`, None for an empty field."""

    name: str
    file: str
    contract_file: str
    description: str
    grain: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | None, ...], ...]
    meta: str = ""  # a mapping for tools, as JSON


@dataclass(frozen=True, slots=True)
class Serve:
    """What `sqlrun serve` may publish of an exposure's tables.

    `owned_by` is the column with a row's owner: a token's owner sees own rows alone, and nothing of a table without the
    column. "": only operators see anything. `keys` are the columns that callers may filter by.
    """

    owned_by: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exposure:
    """A use of tables outside the project, as in dbt: its type, its owner, the models and seeds that it reads.

    `serve` None: it reads them itself. `dashboard` None: sqlrun makes no page of it.
    """

    name: str
    type: str  # dashboard | notebook | analysis | ml | application
    description: str
    owner: str
    depends_on: tuple[str, ...]
    place: Place
    serve: Serve | None = None
    email: str = ""
    label: str = ""
    url: str = ""
    maturity: str = ""  # low | medium | high
    dashboard: Dashboard | None = None


@dataclass(frozen=True, slots=True)
class Macro:
    """One Jinja macro in a file of its own name. `package`: it comes with sqlrun, and is called as `package.name`."""

    name: str
    file: str
    text: str
    unit_tests: tuple[UnitTest, ...] = ()
    package: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """Maximum number of quarantined lines in a tick: a share such as `1%`, or a number of lines."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Suite:
    """The expectations of one materialized table; `max_quarantined` for one that lands a source."""

    model: str
    file: str
    expectations: tuple[Expectation, ...]
    max_quarantined: Limit | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What a named selector means: a selector, or several of them; `without` are subtracted from the result."""

    text: str = ""  # a selector as on the command line, if there are no parts
    parts: tuple[Choice, ...] = ()
    is_union: bool = True  # of the parts; else their intersection
    without: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """A named selector of selectors.yml; the default one applies to commands without any selector."""

    name: str
    choice: Choice
    place: Place
    description: str = ""
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Project:
    """Everything that the analyst wrote, read once. Names are unique among models and seeds together."""

    root: str
    name: str
    profile: str
    vars: Row
    models: tuple[Model, ...]
    seeds: tuple[Seed, ...]
    sources: tuple[Source, ...]
    macros: tuple[Macro, ...]
    suites: tuple[Suite, ...]
    functions: tuple[str, ...] = ()  # names that the settings add to the list of functions
    exposures: tuple[Exposure, ...] = ()
    built_in: tuple[Macro, ...] = ()  # macros that come with sqlrun, without the names of `macros`
    adapter_type: str = "spark"  # spark | databricks: dbt's adapter that the artifacts name
    target: Row = field(default_factory=dict)  # what templates see as `target`, the same in all environments
    environment: Mapping[str, str | None] = field(default_factory=dict)  # declared variables, None if it isn't set
    disabled: tuple[str, ...] = ()  # names of models that aren't enabled, and so are none of `models`
    selectors: tuple[Selector, ...] = ()

    def landed(self, tables: Iterable[str]) -> tuple[Source, ...]:
        """Return those of the sources, given by their names in compiled SQL, whose lines land."""
        names = frozenset(tables)
        return tuple(source for source in self.sources if source.lands and source.table in names)

    @property
    def seen_by_templates(self) -> tuple[object, ...]:
        """Return the values of the project that a template can read, but for names of nouns and macros."""
        return (self.name, self.vars, self.adapter_type, self.target, self.environment)

    @property
    def unit_tests(self) -> tuple[UnitTest, ...]:
        """Return every unit test, those of macros first."""
        tested: tuple[Macro | Model, ...] = (*self.macros, *self.models)
        return tuple(test for noun in tested for test in noun.unit_tests)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A model's SQL after Jinja, with refs as `ref`.`name` and sources as `source`.`group__name` (backticks included).

    `lines[i]` is the line of the analyst's file that line i + 1 of `sql` came from.
    """

    model: Model
    sql: str
    refs: tuple[str, ...]
    sources: tuple[str, ...]
    lines: tuple[int, ...]
    config: Config


@dataclass(frozen=True, slots=True)
class Alerts:
    """Where alerts go when ticks stop being published and when they are again; with neither address there are none.

    The webhook's address and the command's words may be secrets: they show in no text. `timeout` is in seconds, for all
    tries of one of them together.
    """

    webhook: str = field(default="", repr=False)
    command: tuple[str, ...] = field(default=(), repr=False)
    timeout: int = 20


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a broker and its schema registry; a source names it by `connection`.

    `bootstrap` is a list of HOST:PORT with commas. `protocol` and `mechanism` are Kafka's words. Empty texts aren't
    set. The texts may be secrets: they show in no message.
    """

    bootstrap: str = field(repr=False)
    protocol: str = "PLAINTEXT"  # PLAINTEXT | SSL | SASL_PLAINTEXT | SASL_SSL
    mechanism: str = ""  # PLAIN | SCRAM-SHA-256 | SCRAM-SHA-512
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = field(default="", repr=False)
    registry: str = field(default="", repr=False)
    registry_username: str = field(default="", repr=False)
    registry_password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Profile:
    """Where and with what a project runs. `settings` go to the engine as they are.

    A build vacuums the tables after every `vacuum_every` ticks (0: never) and retains the newest `keep_ticks` ticks.
    A check that takes longer than `check_timeout` seconds is an error, and so is a statement after `statement_timeout`.
    A build that is asked to stop finishes its tick if that takes no longer than `stop_grace` seconds.
    """

    name: str
    engine: str  # spark | duckdb | auto
    warehouse: str
    threads: int = 2
    settings: Mapping[str, str] = field(default_factory=dict)
    vacuum_every: int = 288
    keep_ticks: int = 2016
    alerts: Alerts = Alerts()
    check_timeout: int = 60
    landing: str = ""  # spark | duckdb: the engine of new landing tables, for `auto`
    statement_timeout: int = STATEMENT_TIMEOUT
    stop_grace: int = 1
    delta_writer: str = "sqlrun"  # sqlrun | library: the writer of small commits of Delta tables
    connections: Mapping[str, Connection] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict)  # options of a warehouse's object store
    # A folder with a path that stays for each published table; `copies`: a store has copies of the files, too.
    current_folders: bool | Literal["copies"] = False
    catalog: str = ""  # the catalog of Spark that has each published table, by its folder


# Defaults of a profile.
DEFAULTS = Profile("", "", "")
