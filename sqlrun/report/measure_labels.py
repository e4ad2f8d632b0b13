"""Labels and units of the measures of a tick, and the list that a report shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlrun.events import Measure
from sqlrun.report.findings import LONGEST_SAMPLE, clean
from sqlrun.report.trends import Unit, amount

NULLS = "null_share:"
# Labels and units of measures in reports. Measures of sources are shown in this order.
MEASURES: dict[str, tuple[str, Unit]] = {
    "rows": ("rows", "rows"),
    "quarantined": ("quarantined lines", "rows"),
    "lateness_p95_seconds": ("lateness, 95th percentile", "seconds"),
    "freshness_seconds": ("freshness: age of the newest row", "seconds"),
}
# Maximum number of measures in a report; unusual ones come first.
MOST = 50


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure of a tick in a report. `band` is the expected range, "" without enough past."""

    where: str
    source: str
    what: str
    value: str
    band: str
    unusual: bool
    detail: str


def named(measure: str) -> tuple[str, Unit]:
    """Return the label and the unit of a measure.

    >>> named("null_share:note")
    ('share of NULL in note', 'share')
    """
    if measure.startswith(NULLS):
        return f"share of NULL in {measure.removeprefix(NULLS)}", "share"
    return MEASURES.get(measure, (measure.replace("_", " "), "rows"))


def order(measure: str) -> tuple[int, str]:
    """Return the sort key: measures of sources first, in the order of `MEASURES`."""
    return (list(MEASURES).index(measure) if measure in MEASURES else len(MEASURES), measure)


def band(low: float | None, high: float | None, unit: Unit) -> str:
    """Return the expected range as text; "" if there is none."""
    if low is None and high is None:
        return ""
    if low is None or high is None:
        word, end = ("at most", high) if low is None else ("at least", low)
        assert end is not None
        return f"{word} {amount(end, unit)}"
    return f"{amount(low, unit)} to {amount(high, unit)}"


def of_tick(measures: Iterable[Measure]) -> tuple[tuple[Measured, ...], int]:
    """Return a tick's measures and how many were left out.

    Unusual ones come first, then the other measures of sources. Usual measures of tables are not listed.
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
