"""The suite's report, from figures: as Markdown, and as one HTML page that needs no network. Pure.

Both consist of the same blocks, so that they agree. The report shows targets that were missed as clearly as others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from benchmarks import bench_aims, plots
from benchmarks.figures import BASES, Figures, ratio

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light dark; --line: #8884; --note: #666; --bad: #b3261e }}
@media (prefers-color-scheme: dark) {{ :root {{ --note: #aaa; --bad: #ff8a80 }} }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem }}
div.wide {{ overflow-x: auto }} table {{ border-collapse: collapse; font-variant-numeric: tabular-nums }}
th, td {{ padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right }}
th:first-child, td:first-child {{ text-align: left }} th {{ vertical-align: bottom }}
td.bad {{ color: var(--bad); font-weight: 600 }} svg {{ max-width: 100%; height: auto }} p.note {{ color: var(--note) }}
pre {{ overflow-x: auto; border-left: 3px solid var(--bad); padding-left: .7rem }}
</style></head><body>
{body}
</body></html>
"""
TITLE = "sqlrun and its rivals"
MARK, END = "<!-- bench -->", "<!-- /bench -->"
READING = (
    "Each contender ran alone, in its own environment. A tick reads a file of new orders and updates the dashboard to "
    "the tick's time; s a tick is the median of the measured ticks. A warm process has ticked before; a command is a "
    "new process for each tick. The first is the first tick of a fresh process after the history was loaded. MB are "
    "bytes asked of the system and given to it, including its cache and a program's own files. Memory is the maximum of "
    "all processes together. Right means that every row of the mart equals what plain Python computes from the raw lines."
)


@dataclass(frozen=True, slots=True)
class About:
    """Facts on the machine and the contenders."""

    machine: str
    whats: dict[str, str]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; `level` above 0 makes it a heading, `is_code` shows it as it is."""

    text: str
    level: int = 0
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below a header; the first column is text."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, in the HTML page only."""

    svg: str


Block = Text | Table | Chart


def blocks(figures: Sequence[Figures], about: About) -> list[Block]:
    """Return the report's blocks."""
    dates = sorted({one.at[:10] for one in figures})
    when = f"{dates[0]} to {dates[-1]}" if len(dates) > 1 else "".join(dates)
    found: list[Block] = [Text(TITLE, 1), Text(f"{about.machine}. {when}."), Text(READING)]
    found += _aims(figures)
    found += _history(figures)
    for size in dict.fromkeys(one.size for one in figures):
        found += _size([one for one in figures if one.size == size])
    found += _failed(figures)
    found.append(Text("Contenders", 2))
    names = dict.fromkeys(one.contender for one in figures)
    found.append(Table(("contender", "what it is", "versions"), tuple(_who(name, figures, about) for name in names)))
    return found


def _who(name: str, figures: Sequence[Figures], about: About) -> tuple[str, ...]:
    mine = [one for one in figures if one.contender == name]
    versions = dict.fromkeys(f"{key} {value}" for one in mine for key, value in one.versions.items())
    return mine[-1].title, about.whats.get(name, ""), ", ".join(versions)


def _aims(figures: Sequence[Figures]) -> list[Block]:
    rows = tuple(
        (aim.text, aim.wanted, "-" if aim.found is None else f"{aim.found:.2f}", aim.verdict)
        for aim in bench_aims.aims(figures)
    )
    return [Text("Targets", 2), Table(("target", "wanted", "found", ""), rows)] if rows else []


def _history(figures: Sequence[Figures]) -> list[Block]:
    """Return each contender's tick by length of history, as a chart and as a table."""
    grown = [one for one in figures if one.ticks and "+" not in one.size]
    sizes = dict(sorted({one.orders: one.size for one in grown}.items()))
    if not sizes:
        return []
    found: list[Block] = [Text("As history grows", 2)]
    for title, name in (("Seconds of a tick", "seconds"), ("Processor seconds of a tick", "cpu")):
        lines = []
        for contender in dict.fromkeys(one.contender for one in grown):
            mine = sorted((one for one in grown if one.contender == contender), key=lambda one: one.orders)
            points = tuple((float(one.orders), value) for one in mine if (value := one.median(name)))
            lines.append(plots.Line(mine[0].title + ("" if mine[-1].is_right else " (wrong)"), points))
        found.append(Chart(plots.chart(title, "orders of history", title.lower(), lines)))
    head = ("s a tick", *sizes.values(), "last : first", "processor: last : first")
    rows = []
    for contender in dict.fromkeys(one.contender for one in grown):
        by_orders = {one.orders: one for one in grown if one.contender == contender}
        cells = [_number(by_orders[n].median("seconds")) if n in by_orders else "-" for n in sizes]
        first, last = by_orders[min(by_orders)], by_orders[max(by_orders)]
        grew = [ratio(last.median(f), first.median(f)) if last is not first else None for f in ("seconds", "cpu")]
        rows.append((first.title, *cells, *(_number(one) for one in grew)))
    return [*found, Table(head, tuple(rows))]


def _size(figures: Sequence[Figures]) -> list[Block]:
    one = figures[0]
    base = next((f for name in BASES for f in figures if f.contender == name), None)
    new = "in one tick, a backfill" if "+" in one.size else "new a tick"
    found: list[Block] = [Text(f"{one.orders:,} orders of history, {one.new:,} {new}", 2)]
    done = sorted((f for f in figures if f.ticks), key=lambda f: f.median("seconds") or 0.0)
    name = base.title if base else "sqlrun"
    head = ("contender", "run as", "s a tick", f"times {name}", "processor s", f"times {name}", "first, s")
    head = (*head, "MB read", "MB written", "memory, MB", "rows")
    rows = tuple(_row(figure, base) for figure in done)
    found.append(Table(head, rows))
    if base is not None and base.ticks:
        seconds = base.median("seconds") or 0.0
        ahead = [f.title for f in done if (f.median("seconds") or 0.0) < seconds and f.is_right and f is not base]
        found.append(Text(f"Ahead of {name}: {', '.join(ahead) or 'no other contender'}."))
    engines = {f.title: f.engines for f in done if f.engines and "+" in f.size}
    for title, by_table in engines.items():
        found.append(Text(f"{title} wrote {', '.join(f'{t} by {e}' for t, e in by_table.items())}."))
    return found


def _row(figures: Figures, base: Figures | None) -> tuple[str, ...]:
    times = [ratio(figures.median(f), base.median(f) if base else None) for f in ("seconds", "cpu")]
    state = "right" if figures.wrong == 0 else f"{figures.wrong} OF {figures.rows} WRONG"
    megabytes = [(figures.median(f) or 0.0) / 1e6 for f in ("read", "written")]
    return (
        figures.title,
        "warm process" if figures.way == "warm" else "command",
        _number(figures.median("seconds")),
        _number(times[0]),
        _number(figures.median("cpu")),
        _number(times[1]),
        _number(figures.cold.seconds if figures.cold else None),
        *(f"{number:,.0f}" for number in megabytes),
        f"{figures.memory / 1e6:,.0f}",
        "FAILED" if figures.error else state,
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _failed(figures: Sequence[Figures]) -> list[Block]:
    failed = [one for one in figures if one.error]
    if not failed:
        return []
    found: list[Block] = [Text("Failed", 2)]
    for one in failed:
        found += [Text(f"{one.title} at {one.size}:"), Text("\n".join(one.error.splitlines()[-10:]), is_code=True)]
    return found


def markdown(figures: Sequence[Figures], about: About) -> str:
    """Return the report as Markdown, without charts."""
    parts = []
    for block in blocks(figures, about):
        match block:
            case Text(text, level, is_code):
                parts.append(f"```text\n{text}\n```" if is_code else f"{'#' * level} {text}" if level else text)
            case Table(head, rows):
                lines = [_cells(head), "|---" * len(head) + "|", *(_cells(row) for row in rows)]
                parts.append("\n".join(lines))
            case Chart():
                continue
    return "\n\n".join(parts) + "\n"


def pasted(page: str, report: str) -> str:
    """Return a page with the report between its marks; headings go one level down, the title is left out.

    >>> pasted("a\\n<!-- bench -->\\nold\\n<!-- /bench -->\\n", "# title\\n\\n## new\\n")
    'a\\n<!-- bench -->\\n\\n### new\\n\\n<!-- /bench -->\\n'
    """
    before, _, rest = page.partition(MARK)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page has no {MARK} ... {END}")
    lines = report.strip().splitlines()[1:]
    body = "\n".join(f"#{line}" if line.startswith("#") else line for line in lines).strip()
    return f"{before}{MARK}\n\n{body}\n\n{END}{after}"


def _cells(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def html(figures: Sequence[Figures], about: About) -> str:
    """Return the report as an HTML page."""
    return PAGE.format(title=TITLE, body="\n".join(_html(block) for block in blocks(figures, about)))


def _html(block: Block) -> str:
    match block:
        case Text(text, level, is_code):
            tag = "pre" if is_code else f"h{level}" if level else "p"
            return f"<{tag}>{escape(text)}</{tag}>"
        case Chart(svg):
            return svg
        case Table(head, rows):
            top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
            body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
            return f'<div class="wide"><table><tr>{top}</tr>{body}</table></div>'


def _cell(text: str) -> str:
    bad = text.endswith("WRONG") or text in ("FAILED", "not met")
    return f'<td class="bad">{escape(text)}</td>' if bad else f"<td>{escape(text)}</td>"
