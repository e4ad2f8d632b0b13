"""A folder of simulated order files, which is continued from its newest file. Shell: files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from sqlrun.errors import UsageError
from sqlrun.simulate.settings import Settings, differing
from sqlrun.simulate.simulate import Written

# Spark and DuckDB ignore names that start with a dot.
SETTINGS_FILE = ".simulate.json"
_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"orders-([0-9]{8}T[0-9]{6}Z)\.jsonl")


@dataclass(frozen=True, slots=True)
class OrdersFolder:
    """A folder as a `simulate.Place`: a piece is a file, named after the end of its arrivals."""

    folder: Path

    @property
    def name(self) -> str:
        """Return the folder's path."""
        return str(self.folder)

    @property
    def has_fine_pieces(self) -> bool:
        """Return yes: a build may read the last day's files tick by tick."""
        return True

    def claim(self, settings: Settings) -> None:
        """Write the settings to the folder, and reject a folder with other settings.

        Other settings would produce other content for the same event ids.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        note = self.folder / SETTINGS_FILE
        if not note.exists() or self.end() is None:
            note.write_text(json.dumps(asdict(settings)) + "\n", encoding="utf-8")
            return
        other = differing(json.loads(note.read_text(encoding="utf-8")), settings)
        if other:
            raise UsageError(
                f"{self.folder} has other settings: {other}. Continue with those, or choose an empty folder with --out."
            )

    def end(self) -> datetime | None:
        """Return the end of the arrivals, from the newest file's name; None without such a file."""
        names = (_NAME.fullmatch(path.name) for path in self.folder.glob("orders-*.jsonl"))
        stamps = [name[1] for name in names if name]
        return datetime.strptime(max(stamps), _STAMP).replace(tzinfo=timezone.utc) if stamps else None

    def write(self, end: datetime, minutes: Iterable[tuple[int, list[str]]]) -> Written:
        """Write a file; it gets its name only when it is complete."""
        path = self.folder / f"orders-{end.strftime(_STAMP)}.jsonl"
        unfinished = self.folder / f".{path.name}.tmp"
        count = 0
        try:
            with unfinished.open("w", encoding="utf-8", newline="\n") as file:
                for _, lines in minutes:
                    file.writelines(lines)
                    count += len(lines)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return Written(end, count, path)
