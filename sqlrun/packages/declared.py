"""The entries of `packages.yml`, each checked before a program sees a word of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlrun.errors import Place, Problem
from sqlrun.load.yaml_reader import Reader, did_you_mean

FILES = ("packages.yml", "dependencies.yml")
# Where `dbt deps` and `sqlrun deps` put packages.
INSTALLED = "dbt_packages"
# Packages whose macros come with sqlrun.
ALONG = ("dbt_utils", "dbt_date", "dbt_expectations")
_KINDS = ("git", "local", "package", "tarball", "private")
# `warn-unpinned` and `name` change nothing here.
_GIT_KEYS = ("git", "revision", "subdirectory", "warn-unpinned", "name")
# Each part begins with a letter or a digit: a program takes a word that begins with `-` for an option.
_HOST = r"[A-Za-z0-9][A-Za-z0-9.-]*"
_USER = r"[A-Za-z0-9_][\w.+-]*"
_PATH = r"[\w.~/%+@,=-]+"
_URLS = (
    re.compile(rf"https://(?P<user>[^/@]*@)?{_HOST}(:\d+)?/{_PATH}", re.ASCII),
    re.compile(rf"ssh://({_USER}@)?{_HOST}(:\d+)?/{_PATH}", re.ASCII),
    re.compile(rf"{_USER}@{_HOST}:(?!/?-)(?!:){_PATH}", re.ASCII),
    re.compile(rf"file:///{_PATH}", re.ASCII),
)
# A name of a tag or a branch, or a commit's hash.
_REVISION = re.compile(r"\w[\w./+@-]*", re.ASCII)
_FORMS = "https://HOST/PATH, ssh://git@HOST/PATH, git@HOST:PATH or file:///PATH"
HASH = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Git:
    """A package from git. `revision` is a tag, a branch or a commit; `where` is the entry's place for messages."""

    url: str
    revision: str
    subdirectory: str
    where: str

    @property
    def short(self) -> str:
        """Return the name that the address suggests; the package's own is in its `dbt_project.yml`."""
        return short_name(self.subdirectory or self.url)


@dataclass(frozen=True, slots=True)
class Local:
    """A package in a folder, relative to that of the file."""

    path: str
    where: str


@dataclass(frozen=True, slots=True)
class Hub:
    """A package by its name on dbt's hub, or by another address that sqlrun doesn't fetch from."""

    address: str
    version: str
    place: Place
    excerpt: str

    @property
    def short(self) -> str:
        """Return the last part of the name."""
        return short_name(self.address)

    @property
    def where(self) -> str:
        """Return the entry's place for messages."""
        return f"{self.place.file}:{self.place.line}"


Entry = Git | Local | Hub


def short_name(address: str) -> str:
    """Return the name of a package by its address.

    >>> short_name("https://github.com/acme/odd-macros.git"), short_name("dbt-labs/dbt_utils")
    ('odd_macros', 'dbt_utils')
    """
    return re.split(r"[/:]", address.rstrip("/"))[-1].removesuffix(".git").replace("-", "_")


def entries(reader: Reader) -> list[Entry]:
    """Return the entries of a file; what can't be fetched as it is written becomes a problem of the reader (SR140)."""
    found: list[Entry] = []
    if isinstance(reader.root, Mapping):
        for node, place in reader.items(reader.root, "packages", "the file"):
            if isinstance(node, Mapping):
                found += _entry(reader, node, place)
            else:
                reader.problem("SR140", place, "a package must be a mapping", f"Write `- git: URL`: {_FORMS}.")
    elif reader.root is not None:
        reader.problem("SR140", Place(reader.file), "the file must be a mapping", "Write `packages:` and a list.")
    return found


def _entry(reader: Reader, node: Mapping[str, Any], place: Place) -> Iterator[Entry]:
    kind = next((key for key in _KINDS if node.get(key)), "")
    address = str(node.get(kind) or "")
    where = f"{reader.file}:{place.line}"
    if "{{" in "".join(map(str, node.values())):
        hint = "Write the text itself. For a private repository use SSH or a credential helper of git."
        reader.problem("SR140", place, "a template in an entry isn't evaluated", hint)
        return
    match kind:
        case "git":
            problem = _wrong(reader, node, place)
            if problem is None:
                folder = str(node.get("subdirectory") or "").strip("/")
                yield Git(address, str(node["revision"]), folder, where)
            else:
                reader.problem("SR140", *problem)
        case "local":
            yield Local(address, where)
        case "":
            hint = f"Write `git:` with `revision:`, or `local:` with a folder. Addresses: {_FORMS}."
            reader.problem("SR140", place, "the entry names no package", hint)
        case _:
            excerpt = reader.lines[place.line - 1]
            version = node.get("version")
            version = (version or [""])[0] if isinstance(version, list) else version
            yield Hub(address, re.sub(r"[^\w.-]", "", str(version or "")), reader.value_place(node, kind), excerpt)


def _wrong(reader: Reader, node: Mapping[str, Any], place: Place) -> tuple[Place, str, str] | None:
    """Return the place, the message and the hint for an entry that isn't to be fetched; None for a good one."""
    for key in node:
        if key not in _GIT_KEYS:
            hint = f"Known keys: {', '.join(_GIT_KEYS)}.{did_you_mean(key, _GIT_KEYS)}"
            return reader.place(node, key), f"unknown key `{key}` of a package", hint
    url, revision, folder = (node.get(key) for key in ("git", "revision", "subdirectory"))
    if refused := refused_url(str(url)):
        return reader.value_place(node, "git"), *refused
    if revision is None or revision == "":
        hint = "Add `revision:` with a tag, a branch or a commit. A branch is pinned by package-lock.yml."
        return place, "the package has no `revision`", hint
    if refused := refused_revision(revision):
        return reader.value_place(node, "revision"), *refused
    parts = str(folder or "").strip("/").split("/")
    if folder and (not _safe_path(str(folder)) or any(part in ("", ".", "..") for part in parts)):
        hint = "Write a path inside of the repository, such as `packages/money`."
        return reader.value_place(node, "subdirectory"), "`subdirectory` leads out of the repository", hint
    return None


def refused_url(url: str) -> tuple[str, str] | None:
    """Return why an address isn't fetched and what to write; None for one that is.

    >>> refused_url("git@github.com:acme/money.git"), refused_url("https://github.com/acme/money")
    (None, None)
    >>> refused_url("ext::sh -c x")[0]
    'sqlrun fetches no package from this address'
    """
    found = next((match for form in _URLS if (match := form.fullmatch(url))), None)
    if found is None or re.search(r"//-|(^|/)\.\.(/|$)", url.partition("://")[2] or url):
        forms = f"Write it in one of these forms: {_FORMS}."
        if url.startswith((".", "/", "~")):
            forms = f"Write `local: {url}` for a folder, or file:///PATH for a repository."
        return "sqlrun fetches no package from this address", forms
    if "user" in found.groupdict() and found["user"]:
        hint = "Remove it, and let git ask its credential helper, or write git@HOST:PATH for SSH."
        return "the address has a user or a password, which would go into the lock file", hint
    return None


def refused_revision(revision: object) -> tuple[str, str] | None:
    """Return why a revision isn't fetched and what to write; None for one that is.

    >>> refused_revision("v1.2"), refused_revision("--upload-pack=x")[0]
    (None, "the revision isn't a tag, a branch or a commit")
    """
    if not isinstance(revision, str):
        return "the revision isn't text", 'Quote it, as in `revision: "1.0"`.'
    if not _REVISION.fullmatch(revision) or ".." in revision or "@{" in revision or revision.endswith((".lock", "/")):
        return (
            "the revision isn't a tag, a branch or a commit",
            "Write a name such as v1.2 or main, or a commit's hash.",
        )
    return None


def _safe_path(path: str) -> bool:
    return re.fullmatch(r"[\w.][\w./ +@-]*", path) is not None and "\\" not in path


def not_fetched(hub: Hub) -> Problem:
    """Return the problem of a package that sqlrun doesn't fetch, with what to write instead."""
    group, _, name = hub.address.rpartition("/")
    is_name = re.fullmatch(r"[\w.-]+/[\w.-]+", hub.address) is not None
    url = f"https://github.com/{group}/{name}.git" if is_name else "https://HOST/PATH.git"
    looked_up = f" hub.getdbt.com/{hub.address} names the repository." if is_name else ""
    hint = (
        f"Write its repository: `- git: {url}` with `revision: {hub.version or 'TAG'}`.{looked_up} Or run `dbt deps`."
    )
    message = f"sqlrun fetches packages from git alone, not `{hub.address}`"
    return Problem("SR140", hub.place, message, hint, hub.excerpt)
