"""The project of docs/howto/build-a-dashboard.md beside the reference project: two dashboards, and rows of both."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlrun.project import Project
from tests.support import pages, served

PAGE = served.ROOT / "docs" / "howto" / "build-a-dashboard.md"
SITES = ("docs", "shop")
# A seed that gives sites names, places and clocks, as the page says at its end.
NAMED = """entity: {key: site_id, table: sites, label: site_name, place: country, time_zone: zone}"""
SEED = {
    "seeds/sites.csv": "site_id,site_name,country,zone\ndocs,Docs,Chile,America/Santiago\n",
    "seeds/sites.yml": """seeds:
  - name: sites
    description: Our sites.
    grain: [site_id]
    columns:
      - {name: site_id, data_type: string, description: It.}
      - {name: site_name, data_type: string, description: It.}
      - {name: country, data_type: string, description: It.}
      - {name: zone, data_type: string, description: It.}
""",
}


def project(folder: Path, **changed: str) -> Project:
    """Read both projects as one; `changed` replaces lines of the dashboard: old=new."""
    written = pages.files(PAGE)
    exposures = "models/clicks/_exposures.yml"
    for old, new in changed.items():
        key = next(line for line in written[exposures].split("\n") if line.strip().startswith(f"{old}:"))
        written[exposures] = written[exposures].replace(key, " " * 8 + new)
    return served.project(folder, **written, **(SEED if "entity" in changed else {}))


def rows(tick: int, sites: tuple[str, ...] = SITES) -> dict[str, list[dict[str, Any]]]:
    """Rows of both dashboards: a site's number s has (s + 1) * 100 + tick clicks in each window, and 3 in each slot."""
    held: dict[str, list[dict[str, Any]]] = {
        **served.rows(tick), "site_windows": [], "site_pages": [], "site_slots": [],
    }  # fmt: skip
    as_of = served.as_of_tick(tick)
    for number, site in enumerate(sites):
        clicks = (number + 1) * 100 + tick
        for hours in (1, 24, 168):
            held["site_windows"].append(
                {"window_hours": hours, "site_id": site, "clicks": clicks, "revenue": Decimal(clicks) / 100}
            )
            held["site_pages"] += [
                {"window_hours": hours, "site_id": site, "page": f"/{n}", "clicks": 10 - n} for n in range(7)
            ]
        for back in range(20 * 24):
            at = as_of.replace(minute=30) - timedelta(hours=back)
            held["site_slots"].append({"site_id": site, "slot_at": at, "clicks": 3, "revenue": Decimal("0.03")})
    return held
