"""Web manifests, with which a phone installs a dashboard's page as an app. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sqlrun.dashboards.names import in_english
from sqlrun.dashboards.nouns import Dashboard

ICONS = (
    {"src": "/static/icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
    {"src": "/static/icon-192.png", "sizes": "192x192", "type": "image/png", "purpose": "any"},
    {"src": "/static/icon-512.png", "sizes": "512x512", "type": "image/png", "purpose": "any maskable"},
)


def manifests(boards: Iterable[Dashboard]) -> Mapping[str, bytes]:
    """Return the manifest of each dashboard as JSON, by its name under /static/."""
    return {f"{board.api}.webmanifest": json.dumps(_manifest(board), ensure_ascii=False).encode() for board in boards}


def _manifest(board: Dashboard) -> Mapping[str, object]:
    name = in_english(board.title) or board.api
    return {
        "name": name,
        "short_name": name[:24],
        "id": f"/{board.api}",
        "start_url": f"/{board.api}",
        "scope": "/",
        "display": "standalone",
        "background_color": "#f4f6f8",
        "theme_color": "#2459a8",
        "icons": ICONS,
    }
