"""`sqlrun deps`: the packages of a dbt project, fetched into `dbt_packages/`. Shell: the project's folder, git.

Everything is fetched and checked in a temporary folder first. So a failure leaves what was there.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlrun.errors import Problem, ProjectError, UsageError
from sqlrun.load.contract import bad_name
from sqlrun.load.yaml_reader import Reader
from sqlrun.packages import declared, git, lock
from sqlrun.packages.declared import ALONG, FILES, INSTALLED, Git, Hub, Local
from sqlrun.packages.lock import Locked
from sqlrun.runtime import atomic_files
from sqlrun.runtime.text_table import counted

SETTINGS = "dbt_project.yml"
# Maximum number of packages: more is an endless chain of packages that name another one.
MOST_PACKAGES = 100


@dataclass
class _Run:
    """What was found so far; `folder` has the fetched packages."""

    root: Path
    folder: Path
    upgrade: bool
    before: tuple[Locked, ...]
    own: dict[tuple[str, str], str] = field(default_factory=dict)
    made: dict[str, Locked] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    hub: list[Hub] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    known: set[Path] = field(default_factory=set)


def fetch_all(root: Path, *, upgrade: bool = False) -> list[str]:
    """Fetch the packages that a project's `packages.yml` names, and the packages of these; return lines to print.

    Raises: ProjectError for entries that can't be fetched as they are written (SR140); UsageError if a fetch fails.
    """
    shown, root = shlex.quote(str(root)), root.resolve()
    project = root / "pyproject.toml"
    if not root.is_dir():
        raise UsageError(f"there is no folder {root}")
    if not any((root / name).is_file() for name in FILES):
        return [f"{root.name} has no packages.yml: there is nothing to fetch."]
    if project.is_file() and b"[tool.sqlrun" in project.read_bytes():
        raise UsageError(
            f"{root.name} is a project of sqlrun, and packages are a part of it. Run `sqlrun deps` and "
            "`sqlrun import-dbt` for the dbt project, or copy the macros that you call into macros/"
        )
    target = root / INSTALLED
    if target.is_symlink():
        raise UsageError(f"{INSTALLED} is a link, and sqlrun writes nothing through one. Replace it by a folder")
    temporary = Path(tempfile.mkdtemp(prefix=".sqlrun-deps-", dir=root))
    try:
        run = _Run(root, temporary / "new", upgrade, _locked(root))
        run.folder.mkdir()
        run.names[_name_of(root)] = "the project itself"
        run.own = {(each.url, each.subdirectory): each.revision for each in entries(root, "") if isinstance(each, Git)}
        _follow(run, root, (), "")
        _without_source(run)
        _put(run, target, temporary / "old")
        run.lines += [f"Next: sqlrun import-dbt {shown} --write FOLDER"] if run.made else []
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return run.lines


def folder_of(root: Path, package: Git, *, is_own: bool) -> str:
    """Return the name of a fetched package's folder, "" if there is none.

    An entry of the project's own files asks for its revision. The one of a package may be at another.
    """
    known = [one for one in _locked(root) if (one.url, one.subdirectory) == (package.url, package.subdirectory)]
    names = [one.name for one in known if one.is_of(package) or not is_own] if known else [package.short]
    return next((name for name in names if (root / INSTALLED / name / SETTINGS).is_file()), "")


def entries(folder: Path, shown: str) -> list[declared.Entry]:
    """Return the packages that a folder's files name. Raises: ProjectError."""
    problems: list[Problem] = []
    found: list[declared.Entry] = []
    for name in FILES:
        if (reader := _reader(folder, name, shown, problems)) is not None:
            found += declared.entries(reader)
    if problems:
        raise ProjectError(problems)
    return found


def _follow(run: _Run, folder: Path, above: tuple[str, ...], shown: str) -> None:
    """Fetch the packages that a folder's files name. `above` are the packages that led here, "" a local one."""
    for entry in entries(folder, shown):
        match entry:
            case Git() if entry.short in ALONG:
                run.lines.append(f"{entry.short}: its macros and tests come with sqlrun")
            case Git():
                _fetched(run, entry, above)
            case Hub() if entry.short in ALONG:
                run.lines.append(f"{entry.short}: its macros and tests come with sqlrun")
            case Hub():
                run.hub.append(entry)
            case Local():
                _local(run, entry, folder, above)


def _fetched(run: _Run, package: Git, above: tuple[str, ...]) -> None:
    if above and above[-1] and on_this_machine(package.url):
        raise UsageError(f"{package.where}: a package that was fetched may name no package on this machine")
    key = (package.url, package.subdirectory)
    wanted = run.own.get(key, package.revision)
    same = [one for one in run.made.values() if (one.url, one.subdirectory) == key]
    if wanted != package.revision:
        run.lines.append(f"{package.where}: {package.url} at {wanted}, as packages.yml says, not {package.revision}")
        return  # the project's own entry is fetched
    if same and same[0].requested == wanted:
        return
    if same:
        raise UsageError(
            f"{package.where}: {package.url} is wanted at {package.revision}, but at {same[0].requested} by another "
            "package. Add it to the project's own packages.yml, whose revision counts"
        )
    locked = next((one.commit for one in run.before if one.is_of(package)), "") if not run.upgrade else ""
    found = git.fetch(package, locked)
    name = _written(run, package, found)
    run.names[name] = package.url
    run.made[name] = Locked(name, package.url, package.subdirectory, package.revision, found.commit)
    was = next((one.commit for one in run.before if one.name == name), "")
    moved = f", before {was[:8]}" if was not in ("", found.commit) else ""
    run.lines.append(f"{name}: {package.revision} at {found.commit[:8]} of {package.url}{moved}")
    if len(run.made) > MOST_PACKAGES:
        raise UsageError(f"{package.where}: there are more than {MOST_PACKAGES} packages of packages")
    _follow(run, run.folder / name, (*above, name), f"{INSTALLED}/{name}/")


def on_this_machine(url: str) -> bool:
    """Return whether an address is a folder of this machine."""
    return url.startswith("file:")


def _written(run: _Run, package: Git, found: git.Fetched) -> str:
    """Write a package's files to the temporary folder, and return its name."""
    if SETTINGS not in found.files:
        inside = sorted(path.rpartition("/")[0] for path in found.files if path.endswith(f"/{SETTINGS}"))
        advice = f" Write `subdirectory: {inside[0]}`." if inside else ""
        raise UsageError(f"{package.where}: {package.url} has no {SETTINGS} at {package.revision}.{advice}")
    beside = run.folder / f".{len(run.made)}"
    for path, data in found.files.items():
        file = beside / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    name = _name_of(beside)
    if wrong := bad_name(name):
        raise UsageError(f"{package.where}: the package has the invalid name {name!r}. {wrong}")
    if name in ALONG or name == "dbt":
        raise UsageError(f"{package.where}: the macros of {name} come with sqlrun. Remove the entry")
    if name in run.names:
        other = run.names[name]
        raise UsageError(f"{package.where}: {package.url} and {other} are both called {name}. Remove one of them")
    beside.rename(run.folder / name)
    return name


def _local(run: _Run, entry: Local, above_it: Path, above: tuple[str, ...]) -> None:
    """Follow a local package, whose own packages may be from git."""
    folder = (above_it / entry.path).resolve()
    # As `import-dbt` reads it: in the project or beside it. A package that was fetched stays in its own folder.
    limit = above_it if above and above[-1] else run.root.parent
    if not folder.is_relative_to(limit):
        raise UsageError(f"{entry.where}: the local package {entry.path} leads out of its folder")
    if not (folder / SETTINGS).is_file():
        raise UsageError(f"{entry.where}: the package {entry.path} has no {SETTINGS}")
    if folder in run.known:
        return
    run.known.add(folder)
    if not (above and above[-1]):
        name = _name_of(folder) or folder.name
        if name in run.names:
            raise UsageError(f"{entry.where}: {entry.path} and {run.names[name]} are both called {name}. Remove one")
        run.names[name] = entry.path
        run.lines.append(f"{name}: the folder {entry.path}")
    _follow(run, folder, above if above else ("",), f"{entry.path}/")


def _without_source(run: _Run) -> None:
    """Keep packages of the hub that dbt has installed, or another entry has. Raises: ProjectError for others."""
    problems = []
    for entry in run.hub:
        if entry.short in run.names:
            continue
        if (run.root / INSTALLED / entry.short / SETTINGS).is_file():
            run.lines.append(f"{entry.short}: {INSTALLED}/{entry.short} stays as it is")
        else:
            problems.append(declared.not_fetched(entry))
    if problems:
        raise ProjectError(problems)


def _put(run: _Run, target: Path, old: Path) -> None:
    """Move the packages to their place, then write the lock file; a failure moves back what was there."""
    target.mkdir(exist_ok=True)
    old.mkdir()
    gone = {one.name for one in run.before} - run.names.keys()
    done: list[str] = []
    try:
        for name in (*run.made, *gone):
            if (target / name).exists() or (target / name).is_symlink():
                (target / name).rename(old / name)
            done.append(name)
            if name in run.made:
                (run.folder / name).rename(target / name)
        if run.made:
            atomic_files.write(run.root / lock.FILE, lock.text(run.made.values()))
        elif run.before:
            (run.root / lock.FILE).unlink(missing_ok=True)
    except BaseException:
        for name in done:
            shutil.rmtree(target / name, ignore_errors=True)
            with suppress(OSError):
                (old / name).rename(target / name)
        raise
    run.lines += [f"{name}: removed, because no entry names it" for name in sorted(gone)]
    if run.made:
        run.lines.append(f"Fetched {counted(len(run.made), 'package')} into {INSTALLED}/, pinned by {lock.FILE}.")


def _locked(root: Path) -> tuple[Locked, ...]:
    problems: list[Problem] = []
    reader = _reader(root, lock.FILE, "", problems)
    if problems:
        raise ProjectError(problems)
    return () if reader is None else lock.read(reader)


def _name_of(folder: Path) -> str:
    reader = _reader(folder, SETTINGS, "", [])
    root = {} if reader is None else reader.root
    return str(root.get("name") or "") if isinstance(root, Mapping) else ""


def _reader(folder: Path, name: str, shown: str, problems: list[Problem]) -> Reader | None:
    file = folder / name
    if not file.is_file() or file.stat().st_size > 1_000_000:
        return None
    return Reader(f"{shown}{name}", file.read_bytes().decode("utf-8-sig", "replace"), problems)
