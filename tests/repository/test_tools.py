"""The tools behind `make`, which draw for minutes: each of them runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import HUNG

ROOT = Path(__file__).parents[2]
TOOLS = {
    "fuzz": ("tests.fuzz", "--minutes", "0.05", "--seed", "1"),
    "lines": ("tests.line_fuzz", "--lines", "200", "--seed", "1"),
    "values": ("tests.values", "--projects", "1", "--ticks", "1", "--lines", "5"),
    "crash": ("tests.crash", "--kills", "1", "--ticks", "2"),
    "soak": ("tests.soak", "--ticks", "9", "--sample", "3", "--keep", "3"),
}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_runs(name: str) -> None:
    """What it finds is another matter: so few draws prove nothing, and so few ticks may look like growth."""
    done = subprocess.run(
        [sys.executable, "-m", *TOOLS[name]], cwd=ROOT, text=True, capture_output=True, timeout=HUNG, check=False
    )

    assert "Traceback" not in done.stderr + done.stdout, done.stderr[-2000:]
    assert done.returncode == 0 or name == "soak", done.stdout[-2000:]
