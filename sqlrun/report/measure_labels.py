"""What was measured in a tick, in words: how measures are called, their units, what was unusual. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlrun.events import Measure
from sqlrun.report.findings import LONGEST_SAMPLE, clean
from sqlrun.report.trends import Unit, amount

NULLS = "null_share:"
# What the measures are called in reports, and their units; those of sources, in the order in which they are shown.
MEASURES: dict[str, tuple[str, Unit]] = {
    "rows": ("rows", "rows"),
    "quarantined": ("quarantined lines", "rows"),
    "lateness_p95_seconds": ("lateness, 95th percentile", "seconds"),
    "freshness_seconds": ("freshness: age of the newest row", "seconds"),
}
# A report shows so many, the unusual ones first.
MOST = 50


@dataclass(frozen=True, slots=True)
class Measured:
    """One number of a tick as a report shows it. `band`: what was expected, "" where the past says nothing yet."""

    where: str
    source: str
    what: str
    value: str
    band: str
    unusual: bool
    detail: str


def named(measure: str) -> tuple[str, Unit]:
    """Return what a measure is called, and its unit.

    >>> named("null_share:note")
    ('share of NULL in note', 'share')
    """
    if measure.startswith(NULLS):
        return f"share of NULL in {measure.removeprefix(NULLS)}", "share"
    return MEASURES.get(measure, (measure.replace("_", " "), "rows"))


def order(measure: str) -> tuple[int, str]:
    """Put the measures of sources first, as they stand above."""
    return (list(MEASURES).index(measure) if measure in MEASURES else len(MEASURES), measure)


def band(low: float | None, high: float | None, unit: Unit) -> str:
    """Write the band in which a number was expected; "" where there was none."""
    if low is None and high is None:
        return ""
    if low is None or high is None:
        word, end = ("at most", high) if low is None else ("at least", low)
        assert end is not None
        return f"{word} {amount(end, unit)}"
    return f"{amount(low, unit)} to {amount(high, unit)}"


def of_tick(measures: Iterable[Measure]) -> tuple[tuple[Measured, ...], int]:
    """List a tick's numbers: what is unusual, then those of sources; of tables nothing that is as usual.

    Gives how many more there are that are not listed.
    """
    chosen = [each for each in measures if each.unusual or (each.source and each.measure in MEASURES)]
    chosen.sort(key=lambda each: (not each.unusual, each.subject, order(each.measure)))
    shown = []
    for each in chosen[:MOST]:
        what, unit = named(each.measure)
        value = "–" if each.value is None else amount(each.value, unit)
        shown.append(
            Measured(
                clean(each.subject), clean(each.source or ""), clean(what), value, band(each.low, each.high, unit),
                each.unusual, clean(each.detail or "", LONGEST_SAMPLE) if each.unusual else "",
            )
        )  # fmt: skip
    return tuple(shown), len(chosen) - len(shown)
