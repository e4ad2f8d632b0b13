"""Tables of a catalog over the folders whose paths stay, in a schema for each environment. Shell: the catalog.

A table names its folder, whose log shows what is published. So a tick changes nothing in the catalog, unless it
publishes a table for the first time or no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlrun.engine_api import Catalog
from sqlrun.engines.spark import jars
from sqlrun.errors import EngineError, UsageError
from sqlrun.publish import current_folders
from sqlrun.publish.ledger import Ledger
from sqlrun.storage.factory import storage_of
from sqlrun.storage.urls import is_url
from sqlrun.transpile.writer import identifier, string

# The catalog in `java/spark`, and its name in the sessions of readers.
CLASS, CATALOG = "org.sqlrun.spark.PublishedCatalog", "sqlrun"


class CatalogTables:
    """The tables of a catalog that one process has seen: each is looked up once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: set[tuple[str, str]] = set()

    def follow(self, ledger: Ledger, say: Callable[[str], None]) -> None:
        """Give each folder its table, and drop tables whose folder is gone.

        A table of another folder stays. A failure is a warning: the tick is published already.
        """
        base, place = current_folders.place(ledger), current_folders.schema_of(ledger)
        if not base:
            return
        try:
            folders = set(storage_of(ledger.warehouse).names(base))
            registered = self._catalog.tables(place)
            for name in sorted(folders - registered):
                self._catalog.create(place, name, f"{base}/{name}")
                self._known.add((place, name))
            for name in sorted(registered):
                if (place, name) in self._known and name in folders:
                    continue
                self._follow(place, name, f"{base}/{name}", name in folders, say)
        except EngineError as error:
            say(f"The tables of the catalog don't follow this tick yet: {error}. The next tick tries again.")

    def drop(self, ledger: Ledger) -> None:
        """Drop the tables of an environment's folders; the schema stays."""
        base, place = current_folders.place(ledger), current_folders.schema_of(ledger)
        for name in sorted(self._catalog.tables(place)):
            if same_place(self._catalog.location(place, name), f"{base}/{name}"):
                self._catalog.drop(place, name)
                self._known.discard((place, name))

    def _follow(self, place: str, name: str, folder: str, exists: bool, say: Callable[[str], None]) -> None:
        location = self._catalog.location(place, name)
        match same_place(location, folder), exists:
            case True, True:
                self._known.add((place, name))
            case True, False:
                self._catalog.drop(place, name)
                self._known.discard((place, name))
            case False, True:
                say(
                    f"The catalog has a table {place}.{name} that isn't this project's: {location or 'a view'}. "
                    "It stays. Drop or rename it, and the next build adds the published one."
                )
            case False, False:
                pass  # another owner has a table in the same schema


def statements(warehouse: str, env: str) -> Iterator[str]:
    """Yield the statements that create the tables in any catalog of Spark. `warehouse` is absolute.

    Raises: UsageError if the warehouse has no folders.
    """
    ledger = Ledger(warehouse, "", env)
    base, place = current_folders.place(ledger), identifier(current_folders.schema_of(ledger), "spark")
    names = _require_folders(warehouse, base)
    yield f"create schema if not exists {place}"
    for name in names:
        yield (
            f"create table if not exists {place}.{identifier(name, 'spark')} "
            f"using delta location {string(f'{base}/{name}', 'spark')}"
        )


def of_whole_ticks(warehouse: str, env: str) -> Iterator[str]:
    """Yield the statements that add the catalog `sqlrun` to a session of Spark. `warehouse` is absolute.

    Each query over it reads one tick. Raises: UsageError if the warehouse has no folders; EngineError (SR810).
    """
    _require_folders(warehouse, current_folders.place(Ledger(warehouse, "", env)))
    jar = jars.require_own(jars.OWN, "Spark can't read the catalog of published tables")
    yield f"add jar {string(str(jar), 'spark')}"
    yield f"set spark.sql.catalog.{CATALOG} = {CLASS}"
    yield f"set spark.sql.catalog.{CATALOG}.warehouse = {identifier(warehouse, 'spark')}"


def _require_folders(warehouse: str, base: str) -> list[str]:
    names = sorted(storage_of(warehouse).names(base)) if base else []
    if not names:
        raise UsageError(
            "the warehouse has no folders whose paths stay. Add `current_folders: true` to the profile, and build"
        )
    return names


def same_place(uri: str, folder: str) -> bool:
    """Return whether a catalog's URI is that of a folder.

    >>> same_place("file:/w/a%20b", "/w/a b"), same_place("s3a://bucket/w", "s3://bucket/w"), same_place("", "/w")
    (True, True, False)
    """
    return bool(uri) and _plain(uri) == _plain(folder)


def _plain(uri: str) -> str:
    """Return a bucket and a path, without the scheme and its escapes."""
    if not is_url(uri) and not uri.startswith("file:"):
        return str(Path(uri))
    parts = urlsplit(uri)
    return f"{parts.netloc}{unquote(parts.path)}".rstrip("/")
