"""Rules for the dead letters of a source: no personal values by accident, and no circle. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from sqlrun.errors import Problem
from sqlrun.project import KAFKA, DeadLetters, Model, Source


def problems(sources: Sequence[Source], landings: Iterable[tuple[Model, Source]]) -> tuple[Problem, ...]:
    """Return the problems of all dead letters; `landings` are the models that land a source, each with that source."""
    landed = [(model, source) for model, source in landings if source.dead_letters is not None]
    return tuple(dict.fromkeys((*_private(landed), *_circles(sources))))


def _private(landings: Iterable[tuple[Model, Source]]) -> Iterator[Problem]:
    """Yield a problem for each source whose lines may have personal values."""
    for model, source in landings:
        letters = source.dead_letters
        tagged = sorted({c.name for c in (*source.columns, *model.columns) if c.is_private})
        if letters is None or letters.pii or not tagged:
            continue
        what = f"column `{tagged[0]}`" if len(tagged) == 1 else f"columns {', '.join(f'`{name}`' for name in tagged)}"
        yield Problem(
            "SR753",
            letters.place,
            f"dead letters of `{source.group}.{source.name}` contain whole lines, and its {what} "
            f"{'is' if len(tagged) == 1 else 'are'} tagged pii",
            "Remove `dead_letters`; or add `pii: true` to it, if all readers of the letters may see such values.",
        )


def _circles(sources: Sequence[Source]) -> Iterator[Problem]:
    """Yield a problem for each source whose letters a source would read: each bad line would come back forever."""
    for source in sources:
        if source.dead_letters is None:
            continue
        for other in sources:
            if _reads(other, source.dead_letters):
                where = f"topic `{source.dead_letters.topic}`" if source.dead_letters.topic else "folder"
                yield Problem(
                    "SR754",
                    source.dead_letters.place,
                    f"the dead letters of `{source.group}.{source.name}` would land again: the source "
                    f"`{other.group}.{other.name}` reads this {where}",
                    "Name another place that no source reads.",
                )
                break


def _reads(source: Source, letters: DeadLetters) -> bool:
    """Return whether a source reads the place of letters."""
    if source.format != KAFKA:
        read, written = posixpath.normpath(source.path), posixpath.normpath(letters.path) if letters.path else ""
        return bool(written) and (written == read or written.startswith(f"{read}/") or read in (".", "/"))
    topic = source.topic
    if topic is None or not letters.topic or topic.connection != letters.connection:
        return False
    return topic.topic == letters.topic if topic.topic else bool(re.fullmatch(topic.pattern, letters.topic))
