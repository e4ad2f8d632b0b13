"""Time from an event's writing to its number on the owner's page: `python -m benchmarks.serve_end_to_end --help`.

A build ticks on the clock, a server shows its ticks, Chromium has the page open. Events of one restaurant are written
one at a time, each dated so that the next tick's window includes it. The output is the time of each, up to a step of
which is the wait for the tick.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATIENCE = 180.0
PORT = 8797


def event(number: int) -> str:
    at = datetime.now(timezone.utc) - timedelta(minutes=10)
    items = [{"dish_id": "d001", "quantity": 1, "unit_price": "10.00"}]
    order = {"event_id": f"e{number}", "order_id": f"o{number}", "version": 1, "restaurant_id": "r0001", "customer_id": "c1",
            "ordered_at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "status": "placed", "items": items}  # fmt: skip
    return json.dumps(order) + "\n"


def write(orders: Path, number: int) -> float:
    part = orders / f".{number}.part"
    part.write_text(event(number))
    part.rename(orders / f"{number}.jsonl")
    return time.monotonic()


def project(folder: Path) -> Path:
    for room in ("models", "macros", "seeds", "expectations", "profiles", "tests/fixtures"):
        if (ROOT / room).is_dir():
            shutil.copytree(ROOT / room, folder / room)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "data" / "orders").mkdir(parents=True)
    return folder


def shown(opened: Any, orders: int) -> None:
    # With the browser's own selectors, because the page's policy forbids evaluating text.
    opened.locator("#m-n_orders", has_text=re.compile(f"^{orders}$")).wait_for(timeout=1000 * PATIENCE)


def measure(opened: Any, orders: Path, events: int, step: float) -> list[float]:
    found = []
    for number in range(1, events + 1):
        written = write(orders, number)
        shown(opened, number + 1)
        found.append(time.monotonic() - written)
        print(f"event {number}: {found[-1]:.1f} s from written to shown", flush=True)
        if number < events:
            time.sleep(random.uniform(0, step))  # not always right after a tick
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5)
    parser.add_argument("--every", type=int, default=1, metavar="MINUTES", help="the step of the build")
    given = parser.parse_args()
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        root = project(Path(made) / "project")
        orders = root / "data" / "orders"
        write(orders, 0)
        sqlrun = [sys.executable, "-m", "sqlrun"]
        quiet: Any = {"cwd": root, "stdout": subprocess.DEVNULL}
        subprocess.run([*sqlrun, "build", "--skip-tests", "--profile", "duckdb"], **quiet, check=True)
        running = [
            subprocess.Popen(
                [*sqlrun, "build", "--skip-tests", "--profile", "duckdb", "--every", f"{given.every}m"], **quiet
            ),
            subprocess.Popen([*sqlrun, "serve", "--profile", "duckdb", "--port", str(PORT)], **quiet),
        ]
        try:
            chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            opened = chromium.new_page()
            for _ in range(100):
                try:
                    opened.goto(f"http://127.0.0.1:{PORT}/#restaurant=r0001&hours=24")
                    break
                except Exception:
                    time.sleep(0.2)
            shown(opened, 1)
            found = sorted(measure(opened, orders, given.events, 60.0 * given.every))
            print(f"written to shown: median {found[len(found) // 2]:.1f} s, longest {found[-1]:.1f} s")
            chromium.close()
        finally:
            for each in running:
                each.terminate()
            for each in running:
                each.wait(30)


if __name__ == "__main__":
    main()
