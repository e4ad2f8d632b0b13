"""The history of ticks as one self-contained HTML page: pictures that need no script, and charts. Pure.

The page's content security policy allows its two scripts by hash and nothing else. No unescaped value of a row
and nothing from the network can run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlrun.expectations.catalogue import CATALOGUE
from sqlrun.outcome import RANKED, Level, Outcome
from sqlrun.report.findings import LONGEST_SAMPLE, clean
from sqlrun.report.html_report import compiled, digest
from sqlrun.report.measure_labels import band
from sqlrun.report.sparklines import BARS, TALL, bars, strip
from sqlrun.report.trends import CheckPast, Grid, Line, Moment, amount
from sqlrun.runtime.text_table import counted
from sqlrun.version import __version__

# How many entries are open, are folded, and are listed as unusual.
OPEN, FOLDED, UNUSUAL = 20, 200, 12
OPEN_MODELS = 6
# Maximum number of charts: more would make a page slow to open.
MOST_LINES = 240
CLASSES = tuple(outcome.css for outcome in RANKED)


@dataclass(frozen=True, slots=True)
class Parts:
    """The page's template and the files bundled into it: the chart library, its style, and the page's script."""

    template: str
    library: str
    style: str
    script: str


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of the page. `names` are the selected models, () for all.

    `complete` says until which transaction of each database the current tick is complete.

    `described` maps the id of each check in the project to its description; None if the project wasn't read.
    """

    project: str
    profile: str
    env: str
    at: datetime
    names: tuple[str, ...] = ()
    described: Mapping[str, str] | None = None
    complete: tuple[str, ...] = ()

    def gone(self, check: CheckPast) -> bool:
        """Return whether the check was removed from the project or edited since.

        A comparison of a measure with its past is not declared anywhere, so it is never gone.
        """
        written = check.expectation in CATALOGUE
        return written and self.described is not None and check.check_id not in self.described


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check and its pictures: boxes of outcomes, bars of the share of unexpected rows."""

    where: str
    rule: str
    severity: str
    css: str
    summary: str
    description: str
    gone: bool
    strip: tuple[tuple[str, str], ...]
    bars: str
    search: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A line as a chart; `number` is its index in the page's data."""

    number: int
    what: str
    summary: str
    bars: str


@dataclass(frozen=True, slots=True)
class Group:
    """The figures of one table or source; `quiet` names the measures that were always 0."""

    name: str
    figures: tuple[Figure, ...]
    quiet: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unusual:
    """One value outside its expected band."""

    when: str
    where: str
    what: str
    value: str
    band: str
    detail: str
    number: int


def html(
    parts: Parts,
    grid: Grid,
    checks: Sequence[CheckPast],
    checks_left: int,
    measures: Sequence[Line],
    costs: Sequence[Line],
    quarantined: Sequence[Line],
    about: Subject,
) -> str:
    """Return the page. The template escapes every text for HTML; the script's data is escaped here."""
    lines = [*measures, *costs, *quarantined][:MOST_LINES]
    numbers = {id(line): number for number, line in enumerate(lines)}
    bad = [row for row in checks if row.bad]
    now = [row for row in bad if row.last is not Outcome.PASS and not about.gone(row)]
    text: str = compiled(parts.template).render(
        headline=headline(grid, now),
        status=_status(grid, now),
        facts=facts(grid, about),
        grid=grid,
        tall=TALL,
        bar=BARS,
        legend=legend(),
        ticks=tuple(zip(CLASSES, strip(grid.ranks()), strict=True)),
        ends=(grid.label(0), grid.label(len(grid.columns) - 1)) if grid.columns else ("", ""),
        unpublished=unpublished(grid.moments),
        unusual=unusual(grid, measures, numbers),
        more_unusual=max(0, sum(len(line.places) for line in measures) - UNUSUAL),
        open=[_check_row(row, about) for row in bad[:OPEN]],
        folded=[_check_row(row, about) for row in bad[OPEN:]],
        passed=[_check_row(row, about) for row in checks if not row.bad],
        checks_left=checks_left,
        measures=_groups(grid, measures, numbers),
        costs=_groups(grid, costs, numbers),
        quarantined=_groups(grid, quarantined, numbers),
        open_models=OPEN_MODELS,
        folded_most=FOLDED,
        policy=policy(parts),
        parts=parts,
        data=embedded(data(grid, lines)),
        version=__version__,
    )
    return text


def headline(grid: Grid, failing: Sequence[CheckPast]) -> str:
    """Return one sentence: the tick that readers see, how many ticks were not published, what fails now."""
    if not grid.moments:
        return "There has been no tick yet."
    shown = next((moment for moment in reversed(grid.moments) if moment.published), None)
    readers = f"Readers see tick {shown.tick}" if shown else "Readers see nothing yet"
    if shown and shown is not grid.moments[-1]:
        readers += f", tick {grid.moments[-1].tick} is not published"
    held = sum(1 for moment in grid.moments if not moment.published)
    ticks = "the one tick was" if len(grid.moments) == 1 else f"all {len(grid.moments):,} ticks were"
    past = f"{held:,} of {counted(len(grid.moments), 'tick')} not published" if held else f"{ticks} published"
    return f"{readers}; {past}; {_now(failing)}."


def _now(failing: Sequence[CheckPast]) -> str:
    critical = [row for row in failing if row.last.blocks]
    if critical:
        names = ", ".join(clean(row.subject, 60) for row in critical[:2])
        more = f" and {len(critical) - 2:,} more" if len(critical) > 2 else ""
        return f"{counted(len(critical), 'check')} failed when last run: {names}{more}"
    warned = [row for row in failing if row.last.level is Level.WARNING]
    if warned:
        return f"{counted(len(warned), 'check')} warned when last run"
    if failing:
        return f"{counted(len(failing), 'check')} had something to note when last run"
    return "every check passed when last run"


def _status(grid: Grid, failing: Sequence[CheckPast]) -> str:
    if not grid.moments or not grid.moments[-1].published or any(row.last.blocks for row in failing):
        return Level.BLOCKS.css
    return (Level.WARNING if any(row.last.level is Level.WARNING for row in failing) else Level.GOOD).css


def legend() -> list[tuple[str, str, str]]:
    """Return the legend of the boxes: CSS class, path and text."""
    return [(one.css, f"M0 {TALL - one.height}h12v{one.height}h-12z", _means(one)) for one in RANKED]


def _means(outcome: Outcome) -> str:
    match outcome.level:
        case Level.GOOD:
            return f"published, or {outcome.words.verb}"
        case Level.NOTE | Level.WARNING:
            return f"a {outcome.level.noun}"
        case Level.BLOCKS:
            return f"not published, or {outcome.words.verb}" if outcome.evaluated else outcome.words.verb


def facts(grid: Grid, about: Subject) -> list[tuple[str, str]]:
    """Return the facts of the page: project, environment, profile, ticks."""
    found = [("Project", clean(about.project)), ("Environment", clean(about.env) or "production")]
    found.append(("Profile", clean(about.profile)))
    if about.names:
        shown = ", ".join(clean(name) for name in about.names[:8])
        found.append(("Models", shown + (f" and {len(about.names) - 8:,} more" if len(about.names) > 8 else "")))
    if grid.moments:
        first, last = grid.moments[0], grid.moments[-1]
        found.append(("Ticks", f"{first.tick} to {last.tick}"))
        found.append(("From", f"{first.as_of:%Y-%m-%d %H:%M} UTC"))
        found.append(("To", f"{last.as_of:%Y-%m-%d %H:%M} UTC"))
        most = max(last - first + 1 for first, last in grid.columns)
        found.append(("One column is", "one tick" if most == 1 else f"up to {most} ticks, the worst is shown"))
    found += [("Complete to", clean(text)) for text in about.complete]
    found.append(("Written", f"{about.at:%Y-%m-%d %H:%M} UTC"))
    return found


def unpublished(moments: Sequence[Moment]) -> list[tuple[str, str, str]]:
    """Return the unpublished ticks, newest first; adjacent ticks with the same reason are one entry."""
    found = []
    for (published, why), run in groupby(moments, key=lambda moment: (moment.published, moment.why)):
        mine = list(run)
        if not published:
            first, last = mine[0], mine[-1]
            ticks = f"tick {first.tick}" if first is last else f"ticks {first.tick}–{last.tick}"
            at = f"{first.as_of:%Y-%m-%d %H:%M}" + ("" if first is last else f" to {last.as_of:%Y-%m-%d %H:%M}")
            found.append((ticks, at, clean(why, LONGEST_SAMPLE)))
    return found[::-1]


def unusual(grid: Grid, lines: Sequence[Line], numbers: dict[int, int]) -> list[Unusual]:
    """Return the newest values outside their expected bands."""
    found = []
    for line in lines:
        for place, detail in line.places:
            value = line.values[place]
            found.append((place, line, "–" if value is None else amount(value, line.unit), detail))
    found.sort(key=lambda item: -item[0])
    return [
        Unusual(
            grid.label(place), clean(line.subject), clean(line.what), value, _band(line, place),
            clean(detail, LONGEST_SAMPLE), numbers.get(id(line), -1),
        )
        for place, line, value, detail in found[:UNUSUAL]
    ]  # fmt: skip


def _band(line: Line, place: int) -> str:
    low, high = line.low[place] if line.low else None, line.high[place] if line.high else None
    return band(low, high, line.unit) or "–"


def _check_row(row: CheckPast, about: Subject) -> CheckRow:
    where, rule = clean(row.subject), clean(row.expectation)
    drawn = tuple((name, path) for name, path in zip(CLASSES, strip(row.ranks), strict=True) if path)
    description = clean((about.described or {}).get(row.check_id, "").strip(), LONGEST_SAMPLE)
    return CheckRow(
        where=where,
        rule=rule,
        severity=clean(row.severity),
        css=row.last.level.css,
        summary=row.summary(),
        description=description,
        gone=about.gone(row),
        strip=drawn,
        bars=bars(row.shares),
        search=f"{where} {rule}".lower(),
    )


def _groups(grid: Grid, lines: Sequence[Line], numbers: dict[int, int]) -> list[Group]:
    """Return lines grouped by subject; the ones that were always 0 are only named."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        if id(line) in numbers:
            found.setdefault(line.subject, []).append(line)
    groups = []
    for name, mine in found.items():
        loud = [line for line in mine if line.loud]
        quiet = tuple(clean(line.what) for line in mine if not line.loud)
        figures = tuple(
            Figure(numbers[id(line)], clean(line.what), line.summary(grid), bars(line.values)) for line in loud
        )
        groups.append(Group(clean(name), figures, quiet))
    return groups


def data(grid: Grid, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the data of the charts: column labels, and each line's values rounded to five digits."""
    columns = range(len(grid.columns))
    ends = [grid.moments[last].as_of for _, last in grid.columns]
    return {
        "labels": [grid.label(column) for column in columns],
        "axis": [f"{at:%m-%d %H:%M}" for at in ends],
        "lines": [
            {
                "unit": line.unit,
                "value": [_short(value) for value in line.values],
                "low": [_short(value) for value in line.low] if any(v is not None for v in line.low) else [],
                "high": [_short(value) for value in line.high] if any(v is not None for v in line.high) else [],
                "unusual": [place for place, _ in line.places],
            }
            for line in lines
        ],
    }


def _short(value: float | None) -> float | None:
    if value is None:
        return None
    short = float(f"{value:.5g}")
    return int(short) if short == int(short) else short


def embedded(value: Any) -> str:
    r"""Return JSON for a script element: nothing in it ends the element or starts a comment.

    >>> embedded(["</script>", "<!--"])
    '["\\u003c/script>","\\u003c!--"]'
    """
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def policy(parts: Parts) -> str:
    """Return the content security policy: the page's two scripts by hash, its style, no network."""
    hashes = " ".join(f"'{digest(text)}'" for text in (parts.library, parts.script))
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
