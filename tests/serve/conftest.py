"""Fixtures of the tests of pages: a browser, servers, and pages that load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support import chromium as chromium_here
from tests.support.shown import Pages, Server, server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with chromium_here.launched() as found:
        yield found


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Yield a function that starts servers; they stop after the test and its pages."""
    with ExitStack() as running:
        yield lambda warehouse, **options: running.enter_context(server(warehouse, **options))


@pytest.fixture
def pages(chromium: Any, serve: Any) -> Iterator[Pages]:
    made = Pages(chromium)
    yield made
    for context in chromium.contexts:
        context.close()
    assert made.complaints == []
    assert [url for url in made.asked if not url.startswith("http://127.0.0.1:")] == []
    assert [url for url in made.asked if "token" in url.partition("#")[0]] == []
