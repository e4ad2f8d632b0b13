"""`sqlrun maintain`: small files put together, old ones deleted, the tick published anew. Shell: Delta files.

Nothing that a kept tick needs is touched. A crash on the way leaves tables ahead of the published tick, with the same
rows; the next build takes them back to it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sqlrun import lock, retention
from sqlrun.engines import delta_files
from sqlrun.errors import UsageError
from sqlrun.ledger import Ledger
from sqlrun.readers import nothing_published
from sqlrun.receipts import path_of
from sqlrun.ticks import Published, TableState

# A reader that opened a table before its tick was replaced may still be at work.
READERS = timedelta(hours=1)


@dataclass(slots=True)
class Done:
    """What was done: files put together and those they became, files and tables deleted. `tick`: published anew."""

    merged: int = 0
    made: int = 0
    files: int = 0
    tables: tuple[str, ...] = ()
    tick: int | None = None


def maintain(ledger: Ledger, keep: int, clock: datetime, tell: Callable[[str], None]) -> Done:
    """Look after every published table; `keep` is how many ticks can still be shown, compared and gone back to.

    Raises: UsageError before the first tick, or where a build died and left tables ahead of the published tick.
    """
    with lock.hold(ledger.warehouse, clock) as holder:
        kept = ledger.newest(keep)
        if not kept:
            raise nothing_published(ledger)
        newest, wanted, done = kept[0], retention.needed(kept), Done()
        _require_whole(ledger.warehouse, newest)
        states: dict[str, TableState] = {}
        for name, state in newest.tables.items():
            path = f"{ledger.warehouse}/{state.path}"
            told = _look_after(path, wanted[state.path], clock, done)
            states[name] = replace(state, version=told)
            tell(name)
        for path in (ledger.path, path_of(ledger.warehouse)):
            if delta_files.head(path) is not None:
                _count(delta_files.compact(path), done)
                done.files += delta_files.vacuum(path, READERS)
        done.tables = tuple(_drop(ledger.warehouse, path) for path in _unused(ledger.warehouse, wanted))
        if states != newest.tables:
            done.tick = ledger.read().last_tick + 1
            ledger.pin(done.tick, newest.as_of, states, clock, holder)
            ledger.publish(done.tick, newest.as_of, states, clock, holder)
    return done


def _require_whole(warehouse: str, newest: Published) -> None:
    for name, state in newest.tables.items():
        head = delta_files.head(f"{warehouse}/{state.path}")
        if head != state.version:
            raise UsageError(
                f"{name} is at version {head}, tick {newest.tick} shows {state.version}: a build has died or failed "
                "since. Run `sqlrun build` first; it takes back what was written."
            )


def _look_after(path: str, versions: set[int], clock: datetime, done: Done) -> int:
    """Put a table's small files together and delete what no version needs; give the version that it is at then."""
    _count(delta_files.compact(path), done)
    oldest = min(versions)
    since = delta_files.committed_at(path, oldest)
    if since is not None:
        age = max(clock.astimezone(timezone.utc) - since, timedelta(0))
        done.files += delta_files.vacuum(path, max(age, READERS))
        done.files += delta_files.drop_change_files(path, oldest)
    head = delta_files.head(path)
    assert head is not None
    return head


def _count(metrics: tuple[int, int], done: Done) -> None:
    done.merged += metrics[0]
    done.made += metrics[1]


def _unused(warehouse: str, wanted: dict[str, set[int]]) -> list[str]:
    folders = (path.relative_to(warehouse).as_posix() for path in Path(warehouse).glob("*/*") if path.is_dir())
    return retention.unused(folders, wanted)


def _drop(warehouse: str, path: str) -> str:
    """Delete a table and its landing's checkpoint: with one of them alone, landing again would be refused."""
    shutil.rmtree(f"{warehouse}/{path}")
    shutil.rmtree(f"{warehouse}/_sqlrun/checkpoints/{path}", ignore_errors=True)
    parent = Path(warehouse) / Path(path).parent
    if not any(parent.iterdir()):
        parent.rmdir()
    return path
