"""`package-lock.yml`: the commit of each package from git. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlrun.load.contract import bad_name
from sqlrun.load.yaml_reader import Reader
from sqlrun.packages.declared import HASH, Git

FILE = "package-lock.yml"
_HEAD = """\
# The commits of this project's packages. `sqlrun deps` wrote this file and reads it the next time: commit it.
# `sqlrun deps --upgrade` moves each package to the commit that its tag or branch names then.
packages:
"""


@dataclass(frozen=True, slots=True)
class Locked:
    """A package's commit; `requested` is the revision that packages.yml had."""

    name: str
    url: str
    subdirectory: str
    requested: str
    commit: str

    def is_of(self, package: Git) -> bool:
        """Return whether packages.yml still asks for it."""
        return (self.url, self.subdirectory, self.requested) == (package.url, package.subdirectory, package.revision)


def text(locked: Iterable[Locked]) -> str:
    """Return the file's text. JSON quotes a text as YAML does."""
    lines = []
    for one in sorted(locked, key=lambda one: one.name):
        # A hash without quotes may be a number.
        keys = {"name": one.name, "git": one.url, "revision": one.commit}
        lines += [f"  {'-' if key == 'name' else ' '} {key}: {json.dumps(value)}" for key, value in keys.items()]
        lines += [f"    subdirectory: {json.dumps(one.subdirectory)}"] if one.subdirectory else []
        lines += [f"    requested: {json.dumps(one.requested)}"]
    return _HEAD + "\n".join(lines) + "\n"


def read(reader: Reader) -> tuple[Locked, ...]:
    """Return the packages of a lock file. An entry of another form, such as one of dbt's, locks nothing."""
    nodes = reader.root.get("packages") if isinstance(reader.root, Mapping) else None
    found = []
    for node in nodes if isinstance(nodes, list) else ():
        keys = ("name", "git", "revision", "requested")
        if not isinstance(node, Mapping) or not all(isinstance(node.get(key), str) for key in keys):
            continue
        # The name becomes a folder, and git sees the hash.
        if HASH.fullmatch(node["revision"]) and not bad_name(node["name"]):
            folder = str(node.get("subdirectory") or "")
            found.append(Locked(node["name"], node["git"], folder, node["requested"], node["revision"]))
    return tuple(found)
