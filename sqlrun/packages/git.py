"""Files of a commit, read by the system's git without a work tree, a hook or a filter. Shell: git, a temporary folder.

A repository and its address are a stranger's. git gets an argument list and three protocols. sqlrun writes the files
itself, from their objects: so no attribute of the repository makes git run a program, and no link is made.
"""

from __future__ import annotations

import difflib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlrun.errors import UsageError
from sqlrun.load.yaml_reader import listed
from sqlrun.packages.declared import HASH, Git
from sqlrun.runtime.text_lines import text_lines

# Seconds that one call of git may take.
LONGEST = 300
# Maximum number and size of a package's files: a package is text.
MOST_FILES = 5_000
MOST_BYTES = 100_000_000
# Maximum size of the list of files.
MOST_TREE = 5_000_000
# Variables that point git at another repository, as in a hook that runs sqlrun.
_OF_A_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CEILING_DIRECTORIES", "GIT_SHALLOW_FILE",
)  # fmt: skip
_SETTINGS = {
    "GIT_ALLOW_PROTOCOL": "https:ssh:file",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "LC_ALL": "C",
}
_OPTIONS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "fetch.recurseSubmodules=false",
    "-c", "submodule.recurse=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
)  # fmt: skip
_FILE, _PROGRAM, _LINK = "100644", "100755", "120000"


class FetchError(UsageError):
    """A package can't be fetched; what was there stays."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The files of a package by their paths, and the commit that they are of."""

    commit: str
    files: Mapping[str, bytes]


def fetch(package: Git, locked: str) -> Fetched:
    """Return the files of a package at its locked commit, "" for the one that its revision names now.

    Raises: FetchError.
    """
    with _repository() as repository:
        if locked:
            commit = _by_hash(repository, package, locked)
        else:
            commit = _by_hash(repository, package, package.revision) if HASH.fullmatch(package.revision) else ""
            commit = commit or _by_name(repository, package)
        return Fetched(commit, dict(_files(repository, package, commit)))


@contextmanager
def _repository() -> Iterator[Path]:
    """Yield an empty repository, which is deleted afterwards. It has no template, so no hook."""
    with tempfile.TemporaryDirectory(prefix="sqlrun-deps-", ignore_cleanup_errors=True) as folder:
        repository = Path(folder)
        _git(repository, "init", "--quiet", "--bare", "--template=")
        yield repository


def _by_name(repository: Path, package: Git) -> str:
    """Fetch a tag, else a branch, and return its commit."""
    names = _names(repository, package)
    wanted = next((n for n in (f"refs/tags/{package.revision}", f"refs/heads/{package.revision}") if n in names), "")
    if not wanted:
        raise _unknown(package, names)
    _git(repository, *_FETCH, "--depth=1", "--", package.url, wanted, about=package)
    return _commit(repository, package, "FETCH_HEAD")


_FETCH = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-commit-graph")


def _names(repository: Path, package: Git) -> list[str]:
    """Return the names of a repository's tags and branches."""
    text = _git(repository, "ls-remote", "--heads", "--tags", "--refs", "--", package.url, about=package)
    return [line.partition("\t")[2] for line in text_lines(text.decode("utf-8", "replace"))]


def _unknown(package: Git, names: list[str]) -> FetchError:
    short = [name.partition("/")[2].partition("/")[2] for name in names]
    near = difflib.get_close_matches(package.revision, short, 1)
    advice = f"Did you mean {near[0]}? " if near else ""
    if re.fullmatch(r"[0-9a-f]{7,39}", package.revision):
        advice += "A commit needs all 40 digits of its hash. "
    known = f"Tags and branches: {listed(sorted(short, reverse=True))}." if short else "It has no tags and branches."
    return FetchError(f"{package.where}: {package.url} has no tag or branch {package.revision}. {advice}{known}")


def _by_hash(repository: Path, package: Git, commit: str) -> str:
    """Fetch a commit, and return it. A server that gives none by its hash gives its tags and branches."""
    try:
        _git(repository, *_FETCH, "--depth=1", "--", package.url, commit, about=package)
    except FetchError:
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        _git(repository, *_FETCH, "--", package.url, *refs, about=package)
    return _commit(repository, package, commit)


def _commit(repository: Path, package: Git, name: str) -> str:
    try:
        return _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except FetchError:
        advice = "" if name == package.revision else " Move to another one by `sqlrun deps --upgrade`."
        raise FetchError(f"{package.where}: {package.url} has no commit {name}.{advice}") from None


def _files(repository: Path, package: Git, commit: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of each file. A submodule is left out."""
    tree = f"{commit}:{package.subdirectory}" if package.subdirectory else commit
    try:
        text = _tree(repository, tree)
    except FetchError:
        message = f"{package.url} has no folder {package.subdirectory} at {package.revision}"
        raise FetchError(f"{package.where}: {message}. Correct `subdirectory`.") from None
    found: list[tuple[str, str]] = []
    size = 0
    if len(text) > MOST_TREE:
        raise _refused(package, "it has too many files. Write `subdirectory:` with the package's folder")
    for entry in filter(None, text.split(b"\0")):
        head, _, raw = entry.partition(b"\t")
        mode, kind, name, length = head.decode().split()
        if kind != "blob":
            continue
        path = raw.decode("utf-8", "surrogateescape")
        if mode == _LINK:
            raise _refused(package, f"{path!r} is a link, which may lead anywhere")
        if mode not in (_FILE, _PROGRAM) or not is_safe(path):
            raise _refused(package, f"{path!r} isn't a file that belongs into a package")
        size += int(length)
        found.append((path, name))
        if len(found) > MOST_FILES or size > MOST_BYTES:
            most = f"{MOST_FILES:,} files or {MOST_BYTES // 1_000_000} MB"
            raise _refused(package, f"it has more than {most}. Write `subdirectory:` with the package's folder")
    yield from zip([path for path, _ in found], _contents(repository, [name for _, name in found]), strict=True)


def _refused(package: Git, why: str) -> FetchError:
    return FetchError(f"{package.where}: {package.url} was not fetched: {why}")


def is_safe(path: str) -> bool:
    r"""Return whether a path stays in its folder on any system, and is no file of git.

    >>> is_safe("macros/a.sql"), is_safe("../a.sql"), is_safe(".git/config"), is_safe("a\\b.sql")
    (True, False, False, False)
    """
    parts = path.split("/")
    return path.isprintable() and not any(
        part in ("", ".", "..") or part.lower() == ".git" or "\\" in part or ":" in part for part in parts
    )


def _contents(repository: Path, names: list[str]) -> Iterator[bytes]:
    """Yield the bytes of objects."""
    out = _git(repository, "cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode())
    at = 0
    for _ in names:
        end = out.index(b"\n", at)
        length = int(out[at:end].split()[2])
        yield out[end + 1 : end + 1 + length]
        at = end + 2 + length


def _git(repository: Path, *words: str, given: bytes = b"", about: Git | None = None) -> bytes:
    """Return what git prints. Raises: FetchError with what it says."""
    with _started(repository, words) as process:
        try:
            out, said = process.communicate(given, LONGEST)
        except subprocess.TimeoutExpired:
            raise FetchError(_about(about, f"git took more than {LONGEST} seconds")) from None
    if process.returncode:
        raise FetchError(_about(about, _said(said)))
    return out


def _tree(repository: Path, tree: str) -> bytes:
    """Return the entries of a tree, cut behind `MOST_TREE`: a small repository can name a folder billions of times."""
    with _started(repository, ("ls-tree", "-r", "-z", "-l", "--full-tree", tree)) as process:
        assert process.stdout is not None
        text = process.stdout.read(MOST_TREE + 1)
        if len(text) <= MOST_TREE and process.wait(LONGEST):
            raise FetchError(f"there is no {tree}")
    return text


@contextmanager
def _started(repository: Path, words: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield git as it runs; it is killed afterwards with all that it has started."""
    environment = {key: value for key, value in os.environ.items() if key not in _OF_A_REPOSITORY} | _SETTINGS
    try:
        # A session of its own has no terminal that ssh could ask for a password.
        process = subprocess.Popen(
            ["git", *_OPTIONS, "--git-dir", str(repository), *words], cwd=repository, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        raise FetchError("git isn't installed. Install it, or put the package into the project by hand.") from None
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _about(package: Git | None, what: str) -> str:
    return what if package is None else f"{package.where}: {package.url} can't be fetched: {what}"


def _said(text: bytes) -> str:
    """Return git's error as one line, without what is only advice."""
    lines = [line.strip() for line in text_lines(text.decode("utf-8", "replace"))]
    chosen = [line.partition(": ")[2] for line in lines if line.startswith(("fatal: ", "error: "))]
    return ". ".join(dict.fromkeys(line.rstrip(".") for line in (chosen or lines[-1:])))[:500] or "git failed"
