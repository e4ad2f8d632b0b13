"""The nouns of a dashboard that an exposure declares, as frozen values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

# Words by language, such as (("en", "Orders"), ("de", "Bestellungen")); "" is the language of a plain text.
Words = tuple[tuple[str, str], ...]
# How a measure is written; the first is the default for whole numbers, the second for others.
COUNT, NUMBER, MONEY, PERCENT, SECONDS = FORMATS = ("count", "number", "money", "percent", "seconds")
# What a window is compared with: the window of the same length before it, and the same hours a week earlier.
BEFORE, LAST_WEEK = COMPARISONS = ("before", "last_week")
# Hours of the windows where neither the dashboard nor a var of the column's name has them.
DEFAULT_WIDTHS = (1, 24, 168)


@dataclass(frozen=True, slots=True)
class Entity:
    """Whose numbers a dashboard shows, such as a site. `table` "" : the windows' own table names the entities.

    `name` is a part of the API's paths and of `sqlrun serve token --NAME`; `plural` is the claim of tokens that lists
    keys. `label`, `place`, `currency` and `time_zone` are columns of `table`, "" where there is none.
    """

    name: str
    plural: str
    key: str
    table: str = ""
    label: str = ""
    place: str = ""
    currency: str = ""
    time_zone: str = ""
    noun: Words = ()


@dataclass(frozen=True, slots=True)
class Ratio:
    """A measure divided by another one, shown beside a measure. Both are names of measures."""

    value: str
    per: str
    label: Words


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a window. `table` "" : the windows' table. `in_trend`: the trend's tables have the column too.

    `whole`: the column's type holds whole numbers.
    """

    name: str
    column: str
    label: Words
    format: str
    one: Words = ()
    many: Words = ()
    table: str = ""
    in_trend: bool = False
    whole: bool = False
    ratios: tuple[Ratio, ...] = ()

    @property
    def adds_up(self) -> bool:
        """Return whether an entity without a row in a window has 0 there; other measures have nothing."""
        return self.format in (COUNT, MONEY)


@dataclass(frozen=True, slots=True)
class Timed:
    """A table with a time in each row: the start of its hour, or the end of its slot."""

    table: str
    at: str


@dataclass(frozen=True, slots=True)
class Everything:
    """Where all items of a ranked list are added up on demand: slots of items, and a table with the items' labels."""

    slots: Timed
    money: str = ""
    names: str = ""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranked items of a window: an array of structs in the windows' table, or rows of another `table`.

    `item`, `label`, `value` and `money` are fields of the struct or columns of the table. Without a label or money: "".
    """

    name: str
    title: Words
    item: str
    value: str
    label: str = ""
    money: str = ""
    column: str = ""
    table: str = ""
    empty: Words = ()
    everything: Everything | None = None


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page and its API, over one table of windows: a row for each entity and window.

    `api` names it in addresses. `hours` is the window column, `widths` are its windows in hours. `windows_label` is a
    column of `windows` that names an entity that its own table lacks. `by_hour` and `by_slot` are the trend.
    """

    api: str
    title: Words
    entity: Entity
    windows: str
    hours: str
    widths: tuple[int, ...]
    measures: tuple[Measure, ...]
    windows_label: str = ""
    lists: tuple[Ranked, ...] = ()
    by_hour: Timed | None = None
    by_slot: Timed | None = None
    compare: tuple[str, ...] = ()

    @property
    def trend(self) -> tuple[Measure, ...]:
        """Return the measures that are shown hour by hour."""
        return tuple(measure for measure in self.measures if measure.in_trend)

    @property
    def shown(self) -> tuple[Measure, ...]:
        """Return the measures of the windows' own table."""
        return tuple(measure for measure in self.measures if not measure.table)

    @property
    def beside(self) -> tuple[Measure, ...]:
        """Return the measures of other tables."""
        return tuple(measure for measure in self.measures if measure.table)

    @property
    def default_width(self) -> int:
        """Return the window that is shown first: a day, where there is one."""
        return 24 if 24 in self.widths else self.widths[0]
