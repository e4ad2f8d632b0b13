"""The name of a Kafka partition in a checkpoint. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A partition of a topic; `id` is the topic's, "" if the broker has none."""

    topic: str
    number: int
    id: str

    @property
    def name(self) -> str:
        """Return the part's name in a checkpoint."""
        return f"{self.shown}@{self.id}" if self.id else self.shown

    @property
    def shown(self) -> str:
        """Return the part's name in a message."""
        return f"{self.topic}/{self.number}"

    @property
    def key(self) -> tuple[str, int]:
        """Return the partition as the broker knows it."""
        return self.topic, self.number


def part_of(name: str) -> Part:
    """Return the part with a name.

    >>> part_of("orders/3@Z/x+9"), part_of("orders/3").id
    (Part(topic='orders', number=3, id='Z/x+9'), '')
    """
    place, _, topic_id = name.partition("@")
    topic, _, number = place.rpartition("/")
    return Part(topic, int(number), topic_id)
