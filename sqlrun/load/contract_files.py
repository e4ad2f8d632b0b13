"""Files of contracts: each describes models or seeds, which are found by name. Shell: the analyst's folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path

from sqlrun.errors import Place, Problem
from sqlrun.load.contract import Contract, bad_name, contract, unchecked
from sqlrun.load.folder import Folder
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed
from sqlrun.project import Column, Project
from sqlrun.runtime import fork
from sqlrun.runtime.disk_cache import digest

PLAIN = frozenset({str, int, bool, float, type(None)})
SEEDS = "seeds"


@dataclass(frozen=True, slots=True)
class Entry:
    """A contract; `facts` is the hash of what others can depend on."""

    made: Contract
    facts: str


@dataclass(frozen=True, slots=True)
class Written:
    """A file of contracts with its text; `tested`: it has unit tests."""

    file: str
    text: str
    entries: tuple[Entry, ...]
    tested: bool


def read(
    folder: Folder, files: Sequence[Path], key: str, known: Iterable[str], also: tuple[str, ...] = ()
) -> list[Written]:
    """Return the contracts of all files. A file may have the keys `also`, too."""
    if folder.cache.is_empty:
        # The loop below reports problems of a contract, in order.
        silent = replace(folder, problems=[])
        fork.done([partial(_written, silent, file, key, known, also) for file in files], folder.cache)
    found = [_written(folder, file, key, known, also) for file in files]
    return [one for one in found if one is not None]


def by_name(folder: Folder, files: Sequence[Written], names: Sequence[str], what: str) -> dict[str, Written]:
    """Return the file of each model's or seed's contract.

    A contract of an unknown name is a problem (SR105), and so is a second one of a name (SR107).
    """
    found: dict[str, Written] = {}
    suffix = ".csv" if what == "seed" else ".sql"
    for written in files:
        for entry in written.entries:
            name, place = entry.made.name, entry.made.place
            excerpt = written.text.split("\n")[place.line - 1]
            if name in found and names.count(name) > 1:
                continue  # two models of one name are a problem themselves
            if name in found:
                message = f"duplicate contract of `{name}`, also in {found[name].file}"
                folder.problem_at("SR107", place, message, "Remove one of them.", excerpt)
            elif name not in names and not bad_name(name) and _is_link(folder, written, f"{name}{suffix}"):
                continue  # it leads out of the project, which is a problem itself
            elif name not in names:
                near = did_you_mean(name, names) or (f" {what.capitalize()}s: {listed(names)}." if names else "")
                hint = f"Add {name}{suffix}, or correct the name.{near}"
                folder.problem_at(
                    "SR105", place, f"the contract is for `{name}`, but there is no {what} of this name", hint, excerpt
                )
            else:
                found[name] = written
                folder.facts[name] = entry.facts
    return found


def _is_link(folder: Folder, written: Written, name: str) -> bool:
    """Return whether the file of this name beside a contract is a link."""
    return (folder.root / written.file).with_name(name).is_symlink()


def contract_of(written: Written, name: str) -> Contract:
    """Return the contract of a model or a seed in its file."""
    return next(entry.made for entry in written.entries if entry.made.name == name)


def _written(folder: Folder, file: Path, key: str, known: Iterable[str], also: tuple[str, ...]) -> Written | None:
    """Return a file's contracts; None if it can't be read, which is recorded."""
    text, name = folder.text(file), folder.name(file)
    if text is None:
        return None

    def make() -> Written:
        reader = folder.yaml(file, text)
        made = _entries(reader, key, known, also) if reader else ()
        tested = reader is not None and isinstance(reader.root, Mapping) and "unit_tests" in reader.root
        return Written(name, text, tuple(Entry(one, digest(facts(one))) for one in made), tested)

    written: Written = folder.cached("contracts", [key, name, text], Written, make)
    return written


def _entries(reader: Reader, key: str, known: Iterable[str], also: tuple[str, ...]) -> tuple[Contract, ...]:
    """Return the entries of a file of contracts that can be read."""
    root = reader.root
    required = () if isinstance(root, Mapping) and any(other in root for other in also) else (key,)
    top = reader.mapping(root, Place(reader.file), "the file", ("version", key, *also), required)
    listed_entries = reader.items(top, key, "the file")
    if not listed_entries and isinstance(top.get(key), list):
        reader.problem("SR104", reader.place(top, key), f"`{key}` is empty", "Write: - name: the_name")
    is_seed = key == SEEDS
    needed = ("name", "columns") if is_seed else ("name",)
    found = []
    for item, place in listed_entries:
        node = reader.mapping(item, place, f"an entry of `{key}`", known, needed)
        if not node:
            continue
        made = contract(reader, node, place, is_seed=is_seed)
        if is_seed:
            unchecked(reader, made.columns, "a seed")
            if node.get("columns") == []:
                reader.problem(
                    "SR104", reader.place(node, "columns"), f"`{made.name}` has no columns", "List all columns."
                )
        if made.name:
            found.append(made)
    return tuple(found)


def require_descriptions(folder: Folder, project: Project) -> None:
    """Record each model, source, seed and column without a description (SR104)."""
    nouns: list[tuple[str, Place, str, tuple[Column, ...]]] = [
        *((f"model `{m.name}`", m.place, m.description, m.columns) for m in project.models),
        *((f"source `{s.group}.{s.name}`", s.place, s.description, s.columns) for s in project.sources),
        *((f"seed `{s.name}`", Place(s.contract_file or s.file), s.description, s.columns) for s in project.seeds),
    ]
    for what, place, description, columns in nouns:
        missing = [] if description else [(what, place)]
        missing += [(f"column `{c.name}` of {what}", c.place) for c in columns if not c.description]
        for named, at in missing:
            hint = "Add `description:`, or remove `require_descriptions` in pyproject.toml."
            folder.problems.append(Problem("SR104", at, f"{named} lacks a description", hint))


def facts(value: object) -> object:
    """Return what others can depend on as plain values: everything but descriptions and places."""
    if type(value) in PLAIN:
        return value
    kind: type = type(value)
    kept = _kept(kind)
    if kept is not None:
        return [facts(getattr(value, name)) for name in kept]
    if isinstance(value, Mapping):
        return {str(key): facts(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [facts(inner) for inner in value]
    return value


@cache
def _kept(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a dataclass that others can depend on; None for another type."""
    if not is_dataclass(kind):
        return None
    return tuple(field.name for field in fields(kind) if field.name not in ("description", "place"))
