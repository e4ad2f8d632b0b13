"""The nouns of a project, as frozen values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlrun.errors import Place
from sqlrun.runtime.limits import STATEMENT_TIMEOUT

# What a YAML or TOML scalar, list or mapping becomes: plain Python values.
Value = object
Row = Mapping[str, Value]
# How bad it is where a check fails; the first is the default.
CRITICAL, WARNING, INFO = SEVERITIES = ("critical", "warning", "info")
# What follows where it fails: the tick isn't published, it is told, or its rows leave at landing.
FAIL, WARN, QUARANTINE = ON_FAIL = ("fail", "warn", "quarantine")
# What parts a model's name from the number of a hidden table that holds one of its inner results.
STATE = "__state_"


def state_table(model: str, number: int) -> str:
    """Return the name of a hidden table of a model.

    >>> state_table("orders", 2), model_of("orders__state_2"), model_of("orders")
    ('orders__state_2', 'orders', 'orders')
    """
    return f"{model}{STATE}{number}"


def is_state_table(table: str) -> bool:
    """Return whether a table holds an inner result, which readers don't see."""
    return STATE in table


def model_of(table: str) -> str:
    """Return the model that a table belongs to, be it its own or a hidden one."""
    return table.partition(STATE)[0]


def follows(severity: str) -> str:
    """Return what follows a failure of some severity where nothing else is declared."""
    return FAIL if severity == CRITICAL else WARN


@dataclass(frozen=True, slots=True)
class Expectation:
    """One declared check: Great Expectations' type and arguments, and what follows when it fails.

    `severity` is one of `SEVERITIES`, `on_fail` one of `ON_FAIL`. `kwargs` holds Great Expectations' own arguments,
    `mostly` included. `name` is that of a check of its own kind, "" for Great Expectations' own.
    """

    type: str
    kwargs: Mapping[str, Value]
    severity: str
    on_fail: str
    description: str
    place: Place
    name: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a contract. `type` is Spark SQL's type text in lower case; `nullable` is the contract's word.

    `promises` are the checks that dbt's `data_tests:` and `constraints:` ask for.
    """

    name: str
    type: str
    description: str
    place: Place
    unit: str = ""
    nullable: bool = True
    tags: tuple[str, ...] = ()
    promises: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """Something that a contract says of a model's rows or of how they are kept: its key, and where it stands."""

    words: str
    place: Place


@dataclass(frozen=True, slots=True)
class Config:
    """How a model is kept: folder settings from pyproject.toml, then its YAML, then `config()` in its SQL."""

    materialized: str = "table"  # table | view
    partition_by: tuple[str, ...] = ()
    at_worst: str = "full"  # append | merge | keys | partitions | full
    tags: tuple[str, ...] = ()
    max_read_amplification: float | None = None  # rows read for each row that came, left or was written
    enforced: bool = False  # the contract's types must be those that the query gives
    anomalies: bool = True  # what is measured is compared with the past
    checks: str = "auto"  # auto | great_expectations: who evaluates
    readable_by: str = "spark"  # spark | duckdb | polars | pandas | pyarrow | any: who must be able to read the table


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old a model's newest event may be, in seconds: then it is told, then the tick isn't published."""

    place: Place
    warn_after: float | None = None
    error_after: float | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What one input of a unit test holds: `input` is the text `ref('x')` or `source('a', 'b')`; rows are partial.

    `sql` is a SELECT that gives the rows instead; `lines` are a source's raw lines, as a file of it would hold them.
    """

    input: str
    rows: tuple[Row, ...]
    place: Place
    sql: str = ""
    lines: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one input in one step of a unit test: partial rows that came, left and were updated.

    A row that left is found by the columns that it names; an updated one by the input's grain, and keeps the columns
    that it doesn't name. `lines` are raw lines that came.
    """

    input: str
    place: Place
    came: tuple[Row, ...] = ()
    left: tuple[Row, ...] = ()
    updated: tuple[Row, ...] = ()
    lines: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What a unit test expects: the model's whole table as partial rows, or None where it says nothing of them.

    `sql` is a SELECT that gives the rows instead. `came` and `left` are the step's change of the table, `quarantined`
    the lines that a landing sets aside; None where nothing is said. `columns` are types by name, where the test says
    them: of a CTE or a macro, that have no contract.
    """

    rows: tuple[Row, ...] | None = None
    sql: str = ""
    came: tuple[Row, ...] | None = None
    left: tuple[Row, ...] | None = None
    quarantined: tuple[Row, ...] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One tick that a unit test plays after its first: its time (UTC text, "" for the one before's), what changed."""

    place: Place
    as_of: str = ""
    changes: tuple[Change, ...] = ()
    expect: Expected = field(default_factory=Expected)


@dataclass(frozen=True, slots=True)
class UnitTest:
    """dbt's unit test: rows given, rows expected; `as_of` is the tick's time (UTC text), if the query asks for it.

    `steps` are ticks played after it. `cte` names the CTE that is looked at instead of the whole query; of a macro's
    test `macro` (and `model`, too) names it and `sql` is the SELECT that calls it, over the inputs given. `macros`
    override macros of the project by a value each, which every call gives.
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
    """One SELECT and its contract. `sql` is the analyst's text; `grain` names the columns that are unique together.

    `repeats` says that rows equal in the grain are exact copies of each other (a source that sends twice).
    `event_time` names the column that says when a row's event happened; "" for none. `said` lists what the contract
    says that means something of a table alone.
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

    @classmethod
    def of_text(cls, name: str, file: str, sql: str) -> Model:
        """Make a model of its text alone, without a contract. What is no model is rendered and parsed as one so."""
        return cls(
            name=name,
            file=file,
            sql=sql,
            contract_file="",
            description="",
            grain=(),
            repeats=False,
            columns=(),
            config=Config(),
            unit_tests=(),
        )

    def column(self, name: str) -> Column | None:
        """Find a column by name; None where there is none."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Source:
    """A stream of files that others write: `source(group, name)`. `path` is a folder relative to the project."""

    group: str
    name: str
    format: str  # json: one JSON object a line
    path: str
    columns: tuple[Column, ...]
    description: str
    place: Place
    on_schema_change: str = "ignore"  # ignore | append_new_columns | fail | sync

    @property
    def table(self) -> str:
        """The one-word name of the source in compiled SQL."""
        return f"{self.group}__{self.name}"


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


@dataclass(frozen=True, slots=True)
class Serve:
    """What `sqlrun serve` may give of an exposure's tables.

    `owned_by` names the column that says whose a row is: a token's owner sees rows of their own alone, and nothing of a
    table that lacks it. "" : operators alone see anything. `keys` are the columns that callers may ask by.
    """

    owned_by: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exposure:
    """A use of tables outside of the project, as in dbt: what it is, whose it is, which models and seeds it reads.

    `serve` None: it reads them by itself.
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


@dataclass(frozen=True, slots=True)
class Macro:
    """One Jinja macro in a file of its own name."""

    name: str
    file: str
    text: str
    unit_tests: tuple[UnitTest, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """How many lines a tick may set aside: a share, as in `1%`, or a count of lines."""

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
class Project:
    """Everything that the analyst wrote, read once. Names are unique over models and seeds together."""

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

    @property
    def unit_tests(self) -> tuple[UnitTest, ...]:
        """Every unit test, those of macros first."""
        tested: tuple[Macro | Model, ...] = (*self.macros, *self.models)
        return tuple(test for noun in tested for test in noun.unit_tests)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A model's SQL after Jinja. Refs stand as `ref`.`name`, sources as `source`.`group__name` (backticks included).

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
    """Who is told when ticks stop being published and when they are again; neither `webhook` nor `command`: nobody.

    The webhook's address and the command's words may be secrets: they show in no text. `timeout` is in seconds, for
    all tries of one of them together.
    """

    webhook: str = field(default="", repr=False)
    command: tuple[str, ...] = field(default=(), repr=False)
    timeout: int = 20


@dataclass(frozen=True, slots=True)
class Profile:
    """Where and with what a project runs. `settings` go to the engine as they are.

    A build vacuums the tables after every `vacuum_every` ticks (0: never) and retains the newest `keep_ticks` ticks.
    A check that takes longer than `check_timeout` seconds is an error, and so is a statement after `statement_timeout`.
    A build that is to stop finishes its tick if that takes no longer than `stop_grace` seconds.
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
    landing: str = ""  # spark | duckdb: what new landing tables begin with, for `auto`
    statement_timeout: int = STATEMENT_TIMEOUT
    stop_grace: int = 1
    delta_writer: str = "sqlrun"  # sqlrun | library: who writes the small commits of Delta tables


# What holds where a profile says nothing.
DEFAULTS = Profile("", "", "")
