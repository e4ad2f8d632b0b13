"""Lives of `sqlrun`, forked from one process that has everything imported: a build takes half a second, not three.

`python -m tests.crash.lives` reads a command a line (JSON) and answers with a line. `Lives` is its other end.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.crash import points
from tests.support.projects import ROOT

# None of them starts a thread before it is used: a fork would lose it.
WARM = (
    "sqlrun.cli.main", "sqlrun.commands.build", "sqlrun.run.session", "sqlrun.operations.rollback",
    "sqlrun.operations.maintenance", "sqlrun.commands.ticks", "sqlrun.check.evaluate", "sqlrun.check.check",
    "sqlrun.engines.duckdb.engine", "sqlrun.unit_tests.command", "sqlrun.unit_tests.run.run",
    "sqlrun.report.run_results_file", "duckdb", "deltalake", "pyarrow", "pyarrow.dataset", "pyarrow.parquet",
    "pandas", "great_expectations", "great_expectations.expectations", "rich.console", "numpy",
    "confluent_kafka", "confluent_kafka.admin",
)  # fmt: skip
BUILD = ("build", "--skip-tests", "--as-of")


@dataclass(frozen=True)
class Life:
    """What became of a process: `code` is negative for a signal, None while it is stopped; `said` is all it printed."""

    pid: int
    code: int | None
    said: str


class Lives:
    """The process that others are forked from."""

    def __enter__(self) -> Lives:
        """Start it; the first life waits until it is warm."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.lives"], env=environment, cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and all that it has stopped."""
        self._process.communicate("")

    def live(self, root: Path, *arguments: str, point: str = "", sent: str = "SIGKILL", plain: bool = False) -> Life:
        """Run `sqlrun` with arguments in a folder, until it ends, dies or stops; `plain`: as a user who isn't root."""
        command = {"root": str(root), "arguments": list(arguments), "point": point, "sent": sent, "plain": plain}
        return self._ask(command)

    def begin(self, root: Path, *arguments: str) -> int:
        """Have it run, without waiting; give its pid."""
        return self._ask({"root": str(root), "arguments": list(arguments), "point": "", "sent": "", "leave": True}).pid

    def wait(self, pid: int) -> Life:
        """Wait for one that is running."""
        return self._ask({"wait": pid})

    def wake(self, life: Life) -> Life:
        """Let a stopped one go on to its end."""
        os.kill(life.pid, signal.SIGCONT)
        return self.wait(life.pid)

    def _ask(self, command: dict[str, Any]) -> Life:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return Life(**json.loads(self._process.stdout.readline()))


def build(lives: Lives, root: Path, as_of: str, point: str = "", sent: str = "SIGKILL") -> Life:
    """Run a build of the tick at a time."""
    return lives.live(root, *BUILD, as_of, point=point, sent=sent)


def serve() -> None:
    """Do what the lines say."""
    for module in WARM:
        importlib.import_module(module)
    folders: dict[int, Path] = {}
    for line in sys.stdin:
        command = json.loads(line)
        if "wait" in command:
            pid = command["wait"]
        else:
            log = Path(command["root"]) / f"said-{len(folders)}.txt"
            pid = os.fork()
            if pid == 0:
                _become(command, log)
            folders[pid] = log
        code = None if command.get("leave") else _ended(pid)
        print(json.dumps({"pid": pid, "code": code, "said": folders[pid].read_text() if code is not None else ""}))
        sys.stdout.flush()
        if code is not None:
            del folders[pid]
    for pid in folders:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _ended(pid: int) -> int | None:
    """Wait until a process has ended (its code) or stopped (None)."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    return None if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)


def _obey_permissions() -> None:
    """Give up what lets root write where a folder's mode says that nobody may (CAP_DAC_OVERRIDE and its like)."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def run(arguments: list[str]) -> int:
    """Run the command line as a process of its own does, and give the code that it ends with."""
    from sqlrun.cli.main import main

    code: Any = 70
    try:
        main(arguments, "sqlrun")
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 71


def _become(command: dict[str, Any], log: Path) -> None:
    """Be `sqlrun` from here on."""
    code = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for descriptor in (1, 2):
            os.dup2(out, descriptor)
        os.chdir(command["root"])
        if command.get("plain") and os.geteuid() == 0:
            _obey_permissions()
        if command["point"]:
            points.strike(command["point"], command["sent"])
        code = run(command["arguments"])
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
