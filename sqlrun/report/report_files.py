"""target/report.html, report.md, junit.xml and checks/, each written atomically. Shell: files under target/."""

from __future__ import annotations

from pathlib import Path

from sqlrun.events import TickResult
from sqlrun.report.findings import About
from sqlrun.report.gx_results import documents
from sqlrun.report.html_report import html
from sqlrun.report.summaries import junit, markdown
from sqlrun.runtime import atomic_files

TEMPLATE = Path(__file__).parent / "pages" / "report.html.j2"
SCRIPT = TEMPLATE.with_name("report.js")
PAGE, SUMMARY, JUNIT, CHECKS = "report.html", "report.md", "junit.xml", "checks"


def clear(folder: Path) -> None:
    """Delete the files that programs would take for this build's. The HTML page stays: it names its tick."""
    for file in (folder / SUMMARY, folder / JUNIT, *(folder / CHECKS).glob("*.json")):
        file.unlink(missing_ok=True)


def write(folder: Path, result: TickResult, about: About) -> Path:
    """Write the three files, and one for each model with checks; return the page's path.

    Raises: OSError if a file can't be written.
    """
    texts = {
        PAGE: html(TEMPLATE.read_text(encoding="utf-8"), result, about, SCRIPT.read_text(encoding="utf-8")),
        SUMMARY: markdown(result, about),
        JUNIT: junit(result, about),
        **{f"{CHECKS}/{model}.json": text for model, text in documents(result, about.rules).items()},
    }
    for name, text in texts.items():
        # No fsync: after a power failure run_results.json has the same results.
        atomic_files.put(folder / name, text)
    return folder / PAGE
