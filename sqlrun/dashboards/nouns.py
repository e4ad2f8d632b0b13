"""The parts of a dashboard that an exposure declares, as frozen values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

# Words by language, such as (("en", "Orders"), ("de", "Bestellungen")); "" is the language of a plain text.
Words = tuple[tuple[str, str], ...]
# Formats of a measure. The default is the first for whole numbers, the second for others.
COUNT, NUMBER, MONEY, PERCENT, SECONDS = FORMATS = ("count", "number", "money", "percent", "seconds")
# The comparisons of a window: with the window of the same length before it, and with the same hours a week earlier.
BEFORE, LAST_WEEK = COMPARISONS = ("before", "last_week")
# Widths of the windows in hours, unless the dashboard or a var of the column's name sets them.
DEFAULT_WIDTHS = (1, 24, 168)


@dataclass(frozen=True, slots=True)
class Entity:
    """The owner of a dashboard's numbers, such as a site. If `table` is "", the table of windows has its columns.

    `name` is part of the API's paths and of `sqlrun serve token --NAME`. `plural` is the token claim that lists keys.
    `label`, `place`, `currency` and `time_zone` are columns of `table`; "" where there is none.
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
    """A quotient of two measures, shown next to a measure. `value` and `per` are names of measures."""

    value: str
    per: str
    label: Words


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a window, in the column `column` of `table`; "" is the table of windows.

    `in_trend`: the tables of the trend have the column too. `whole`: the column's type is an integer.
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
        """Return whether an entity without a row in a window has the value 0; other measures are null there."""
        return self.format in (COUNT, MONEY)


@dataclass(frozen=True, slots=True)
class Timed:
    """A table with a time in each row: the start of the row's hour, or the end of its slot."""

    table: str
    at: str


@dataclass(frozen=True, slots=True)
class Everything:
    """The tables that all items of a ranked list come from, on demand: slots of items, and labels of items."""

    slots: Timed
    money: str = ""
    names: str = ""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranked items of a window: an array of structs in the table of windows, or rows of another `table`.

    `item`, `label`, `value` and `money` are fields of the struct or columns of the table. The list has no label or
    money where that is "".
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

    `api` is its name in addresses. `hours` is the column with the window's width; `widths` are the widths in hours.
    `windows_label` is a column of `windows` with the label of an entity that the entity's table lacks. `by_hour` and
    `by_slot` are the tables of the trend.
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
        """Return the measures with an hourly trend."""
        return tuple(measure for measure in self.measures if measure.in_trend)

    @property
    def shown(self) -> tuple[Measure, ...]:
        """Return the measures in the table of windows."""
        return tuple(measure for measure in self.measures if not measure.table)

    @property
    def beside(self) -> tuple[Measure, ...]:
        """Return the measures in other tables."""
        return tuple(measure for measure in self.measures if measure.table)

    @property
    def default_width(self) -> int:
        """Return the width of the initial window: a day if there is one, else the first."""
        return 24 if 24 in self.widths else self.widths[0]
