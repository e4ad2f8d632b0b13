"""The scheduler's own work grows with the number of steps, not with its square."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from sqlrun.events import Event, NodeResult
from sqlrun.pipeline import prepare
from sqlrun.run import scheduler
from tests.support.broken import write

SEED = "seeds:\n  - {name: raw, columns: [{name: id, data_type: int}]}\n"


def played(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run steps of `count` models in five chains; return the number of the scheduler's calls in the tick's thread."""
    names = [f"m{number:03}" for number in range(count)]
    inputs = {name: names[number - 5] if number >= 5 else "raw" for number, name in enumerate(names)}
    files = {f"models/{name}.sql": f"select id from {{{{ ref('{above}') }}}}" for name, above in inputs.items()}
    prepared = prepare(write(folder, files | {"seeds/raw.csv": "id\n1\n", "seeds/raw.yml": SEED}))
    context: Any = SimpleNamespace(plan=SimpleNamespace(seeds=(), models=prepared.workspace.tables))
    monkeypatch.setattr(scheduler, "maintain", lambda *_: ())
    monkeypatch.setattr(scheduler, "_checked", lambda _, model, kept, __: (
        NodeResult(0, 0, model.name, kept.kind, "no-op", 0.0), scheduler.NOTHING,
    ))  # fmt: skip
    reports, calls = list[str](), 0

    def emit(event: Event) -> None:
        if isinstance(event, NodeResult):
            reports.append(event.name)

    def counted(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename == scheduler.__file__

    with scheduler.Steps(context, emit, threads=2) as steps:
        steps.add_models()
        sys.setprofile(counted)
        try:
            steps.run_all()
        finally:
            sys.setprofile(None)
    assert sorted(reports) == names
    assert all(inputs[name] == "raw" or reports.index(inputs[name]) < reports.index(name) for name in names)
    return calls


def test_twice_as_many_models_take_twice_as_many_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = played(tmp_path / "few", 50, monkeypatch)
    many = played(tmp_path / "many", 200, monkeypatch)

    assert many < 6 * few
