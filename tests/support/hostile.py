"""Prepare hostile projects in a process with little memory and time, and report what it opened, ran and printed.

`python -m tests.support.hostile` reads cases as JSON from stdin and writes a line of JSON for each. It prints the name
of a case before it starts it: if the child is killed, the last name shows the case.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.support.broken import contract, write

ROOT = Path(__file__).parents[2]
CANARY = "canary-5d0c1f"
MEMORY = 1536 << 20
# Maximum seconds of CPU time for a case; `LONGEST` limits the whole run, also cases that wait without computing.
SECONDS = 60
LONGEST = 900
SOURCES = """\
sources:
  - name: shop
    tables:
      - name: orders
        description: It.
        format: json
        path: data
        columns:
          - {name: id, data_type: int, description: It.}
          - {name: a, data_type: int, description: It.}
          - {name: b, data_type: string, description: It.}
"""
# The project into which each case's files are written.
PROJECT = {
    "pyproject.toml": '[tool.sqlrun]\nname = "small"\n[tool.sqlrun.vars]\nnumbers = [1, 2, 3]\n',
    "models/_sources.yml": SOURCES,
    "models/t.sql": "select id, a, b from {{ source('shop', 'orders') }}\n",
    "models/t.yml": contract("t", "id", "a", "b string"),
    "models/m.sql": "select id from {{ ref('t') }}\n",
    "models/m.yml": contract("m"),
    "macros/double.sql": "{% macro double(x) %}{{ x }} * 2{% endmacro %}\n",
}
WATCHED = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.putenv", "ctypes.dlopen")


@dataclass(frozen=True)
class Verdict:
    """Outcome of a case: problems as `SR301 file:line:col`, the printed text, and actions outside of the project."""

    name: str
    seconds: float
    problems: tuple[str, ...]
    text: str
    outside: tuple[str, ...]


def run(cases: Mapping[str, Mapping[str, str]]) -> dict[str, Verdict]:
    """Prepare each project in one child.

    A text of `-> FILE` creates a link; the child opens a "file" named `opens`, to prove that this is reported.
    """
    environment = {**os.environ, "CANARY": CANARY, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile"],
        input=json.dumps(cases), capture_output=True, text=True, check=False,
        env=environment, cwd=ROOT, timeout=LONGEST,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{done.returncode} in {lines[-1] if lines else '?'}\n{done.stderr[-2000:]}"
    answered = [line for line in lines if "seconds" in line]
    return {
        line["name"]: Verdict(
            **{key: tuple(value) if isinstance(value, list) else value for key, value in line.items()}
        )
        for line in answered
    }


def prepared(root: Path) -> str:
    """Prepare a project; return the SQL for both engines."""
    from sqlrun.explain import explain
    from sqlrun.pipeline import prepare
    from sqlrun.project import Profile

    workspace = prepare(root).workspace
    now = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
    texts = []
    for engine in ("spark", "duckdb"):
        target = Profile("local", engine, str(root / "warehouse"), 1, {})
        texts += [explain.compiled(workspace, model, target, engine, now) for model in workspace.models]  # type: ignore[arg-type]
    return "\n".join(texts)


def answers(cases: Mapping[str, Mapping[str, str]]) -> Iterator[dict[str, Any]]:
    from sqlrun.errors import ProjectError
    from sqlrun.report.console import _problem_text

    outside: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sqlrun-hostile-") as place:
        known = (place, str(ROOT), sys.prefix, sys.base_prefix, "/proc/self", "/usr/share/zoneinfo")

        def watch(event: str, args: tuple[Any, ...]) -> None:
            # A descriptor's file was reported when it was opened: an import writes compiled code through one.
            if event == "open" and not (isinstance(args[0], int) or str(args[0]).startswith(known)):
                outside.append(f"open {args[0]}")
            elif event.startswith(WATCHED):
                outside.append(f"{event} {args!r}")

        for number, (name, files) in enumerate(cases.items()):
            print(json.dumps({"begins": name}), flush=True)
            root = write(Path(place) / str(number), {**PROJECT, **files})
            for part, text in files.items():
                if text.startswith("-> "):
                    (root / part).unlink()
                    (root / part).symlink_to(text.removeprefix("-> "))
            if number == 0:
                prepared(write(Path(place) / "first", PROJECT))  # do late imports now
                sys.addaudithook(watch)
            outside.clear()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            began, problems = time.process_time(), []
            if "opens" in files:
                Path(files["opens"]).read_bytes()
            try:
                text = prepared(root)
            except ProjectError as error:
                problems = [f"{problem.code} {problem.place}" for problem in error.problems]
                text = _problem_text(error)
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = time.process_time() - began
            yield {"name": name, "seconds": seconds, "problems": problems, "text": text, "outside": list(outside)}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for answer in answers(json.load(sys.stdin)):
        print(json.dumps(answer), flush=True)


@dataclass
class Case:
    """A case of a file: its project's files, and its expected rejection (if any)."""

    name: str
    line: int
    files: dict[str, str]
    refused: list[str]


def read(file: Path) -> list[Case]:
    """Return the cases of a file: `case NAME`, its files with indented text, `refused CODE PLACE` or `harmless`."""
    cases: list[Case] = []
    name = ""
    for number, line in enumerate(file.read_text("utf-8").split("\n"), 1):
        word, _, rest = line.partition(" ")
        if line.startswith("    "):
            cases[-1].files[name] += line[4:] + "\n"
        elif word == "case":
            cases.append(Case(rest, number, {}, []))
        elif word == "refused":
            cases[-1].refused.append(rest)
        elif line and word not in ("#", "harmless"):
            name = line
            cases[-1].files[name] = ""
    return cases


def rewritten(file: Path, verdicts: Mapping[str, Verdict]) -> str:
    """Return the file's text with the outcome of each case."""
    kept: list[str] = []
    name = ""

    def close() -> Iterable[str]:
        problems = verdicts[name].problems if name else ()
        return [f"refused {problem}" for problem in dict.fromkeys(problems)] or (["harmless"] if name else [])

    for line in file.read_text("utf-8").split("\n"):
        if line.startswith("case "):
            while kept and not kept[-1]:
                kept.pop()
            kept += [*close(), ""]
            name = line.removeprefix("case ")
        if not line.startswith(("refused", "harmless")):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return "\n".join([*kept, *close(), ""])


if __name__ == "__main__":
    main()
