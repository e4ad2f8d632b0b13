"""target/report.html, report.md and junit.xml, each whole or as it was. Shell: files under target/."""

from __future__ import annotations

from pathlib import Path

from sqlrun import durable
from sqlrun.events import TickResult
from sqlrun.findings import About
from sqlrun.page import html
from sqlrun.summaries import junit, markdown

TEMPLATE = Path(__file__).parent / "pages" / "report.html.j2"
PAGE, SUMMARY, JUNIT = "report.html", "report.md", "junit.xml"


def clear(folder: Path) -> None:
    """Take away what programs would read as this build's. People may go on reading the page: it names its tick."""
    for name in (SUMMARY, JUNIT):
        (folder / name).unlink(missing_ok=True)


def write(folder: Path, result: TickResult, about: About) -> Path:
    """Write the three files; give the page's.

    Raises: OSError where that can't be.
    """
    texts = {
        PAGE: html(TEMPLATE.read_text(encoding="utf-8"), result, about),
        SUMMARY: markdown(result, about),
        JUNIT: junit(result, about),
    }
    for name, text in texts.items():
        # No sync: after a power cut run_results.json still says the same.
        durable.put(folder / name, text)
    return folder / PAGE
