"""Breaks the rules on purpose, one mutation at a time, and tells whether a `.case` notices: `make mutants`.

`tests/mutants/*.toml` lists them, a file a module: the text that stands there once, and what to write instead. Each is
tried in a copy of the package, in a process of its own, so that no working tree is touched and no module is left over.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tests" / "mutants"
# How long the cases may take with one mutation; one that makes them run on and on is noticed too.
SECONDS = 300
CAUGHT, SURVIVED = 3, 0


@dataclass(frozen=True)
class Mutant:
    """One text of a module replaced by another; `cases` names the files that are tried first."""

    file: str
    name: str
    old: str
    new: str
    cases: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{Path(self.file).stem}: {self.name}"

    def mutated(self, text: str) -> str:
        """Apply it; a text that does not stand there exactly once is an error."""
        times = text.count(self.old)
        if times != 1:
            raise ValueError(f"{self.title}: no longer applies, {self.old!r} stands in {self.file} {times} times")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: `caught`, `survived` or `error`, and the case or the message."""

    mutant: Mutant
    word: str
    by: str


def mutants() -> list[Mutant]:
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        content = tomllib.loads(path.read_text())
        for one in content["mutant"]:
            first = tuple(one.get("cases", content["cases"]))
            found.append(Mutant(content["file"], one["name"], one["old"], one["new"], first))
    return found


def copy_to(folder: Path) -> None:
    """Copy what the cases need: the package, and the tests' own modules and cases."""
    shutil.copytree(ROOT / "sqlrun", folder / "sqlrun")
    (folder / "tests" / "cases").mkdir(parents=True)
    for path in (ROOT / "tests").iterdir():
        if path.suffix == ".py":
            shutil.copy2(path, folder / "tests")
        elif path.is_dir() and (path / "__init__.py").exists():
            shutil.copytree(path, folder / "tests" / path.name)
    shutil.copytree(ROOT / "tests" / "cases" / "incremental", folder / "tests" / "cases" / "incremental")


def tried(mutant: Mutant | None) -> tuple[int, str]:
    """Play the cases against a copy with one mutation (None: without); the exit code and the last line printed."""
    with tempfile.TemporaryDirectory(prefix="sqlrun_mutant_") as name:
        folder = Path(name)
        copy_to(folder)
        if mutant is not None:
            path = folder / mutant.file
            path.write_text(mutant.mutated(path.read_text()))
        first = mutant.cases if mutant is not None else ()
        command = [sys.executable, "-B", "-m", "tests.mutate", "--play", *first]
        environment = os.environ | {"PYTHONPATH": name}
        try:
            done = subprocess.run(
                command, cwd=name, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return CAUGHT, f"no end within {SECONDS} s"
        lines = (done.stdout if done.returncode in (CAUGHT, SURVIVED) else done.stderr).strip().splitlines()
        return done.returncode, lines[-1] if lines else ""


def judged(mutant: Mutant) -> Outcome:
    try:
        code, line = tried(mutant)
    except ValueError as error:
        return Outcome(mutant, "error", str(error))
    word = {CAUGHT: "caught", SURVIVED: "survived"}.get(code, "error")
    return Outcome(mutant, word, line)


def play(first: list[str]) -> int:
    """Play the cases of this copy, those of some files first, up to the first that fails."""
    import sqlrun
    import sqlrun.incremental.operators.registry  # what can't be imported is an error, not a case that noticed
    from tests.incremental import test_incremental

    here = Path.cwd().resolve()
    assert Path(sqlrun.__file__).resolve().is_relative_to(here), f"sqlrun comes from {sqlrun.__file__}, not from {here}"

    def rank(name: str) -> int:
        return first.index(name) if name in first else len(first)

    cases = sorted(test_incremental.CASES, key=lambda one: rank(str(one.id).split(":")[0]))
    for one in cases:
        try:
            test_incremental.test_case(*one.values)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # pytest's own failures are no Exceptions
            print(one.id)
            return CAUGHT
    return SURVIVED


def outcomes(chosen: list[Mutant], processes: int) -> Iterator[Outcome]:
    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(judged, chosen)


def main(words: list[str], processes: int) -> int:
    """Try the mutants whose titles hold one of the words, all without words; 1 if one is not caught."""
    chosen = [m for m in mutants() if not words or any(word in m.title for word in words)]
    code, line = tried(None)
    if code != SURVIVED:
        print(f"the cases fail without any mutation: {line}")
        return 1
    counts = {"caught": 0, "survived": 0, "error": 0}
    for outcome in outcomes(chosen, processes):
        counts[outcome.word] += 1
        by = f"  <- {outcome.by}" if outcome.by else ""
        print(f"{outcome.word:8}  {outcome.mutant.title}{by}", flush=True)
    print(f"{len(chosen)} mutants: " + ", ".join(f"{n} {word}" for word, n in counts.items()))
    return 0 if counts["caught"] == len(chosen) > 0 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Break the rules on purpose and see which cases notice.")
    parser.add_argument("words", nargs="*", help="parts of titles, such as `join:`; all without")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--play", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sys.exit(play(arguments.words) if arguments.play else main(arguments.words, arguments.processes))
