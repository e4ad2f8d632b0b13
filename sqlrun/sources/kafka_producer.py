"""Messages to a Kafka topic, each delivered before they count as sent. Shell: the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlrun.sources.kafka_client import Client, kafka_library

# Seconds until a broker that doesn't answer is given up, and until a message is.
AWAY, DELIVERY = 5.0, 30.0
# Maximum number of messages under way, and seconds to wait for one to arrive if there are as many.
MOST_UNDER_WAY, MOMENT = 100_000, 0.1


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send; `headers` are texts by name."""

    key: str
    value: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Arrivals:
    """What became of messages: the number of delivered ones, those refused for their size, the first other failure."""

    delivered: int = 0
    refused: list[Outgoing] = field(default_factory=list)
    failure: Any = None


def send(client: Client, topic: str, messages: Iterable[Outgoing]) -> tuple[int, list[str]]:
    """Send messages, and return after all of them are delivered: their number, and the keys of those left out.

    A message that is too large for the broker is left out: it would be refused forever. The producer is idempotent: a
    request that it repeats writes nothing twice. A call that is repeated does.

    Raises: EngineError (SR748) if one can't be delivered; others may have been.
    """
    library = kafka_library()
    found, too_large = _Arrivals(), list[str]()
    with client.explained(f"send messages to the topic {topic}"):
        producer = library.Producer(
            client.settings()
            | {
                "enable.idempotence": True,
                "acks": "all",
                "message.timeout.ms": int(DELIVERY * 1000),
                "message.max.bytes": 1_000_000_000,
                "queue.buffering.max.messages": MOST_UNDER_WAY,
                "linger.ms": 5,
                # As Java's producer: equal keys are in the partition where another program would put them.
                "partitioner": "murmur2_random",
            }
        )
        producer.list_topics(timeout=AWAY)
        for message in messages:
            _produce(library, producer, topic, message, found)
            if found.failure is not None:
                break
            if found.refused:
                too_large += _one_by_one(library, producer, topic, found)
        _flush(library, producer, found)
        too_large += _one_by_one(library, producer, topic, found)
    return found.delivered, too_large


def _one_by_one(library: Any, producer: Any, topic: str, found: _Arrivals) -> list[str]:
    """Send refused messages again, each alone; return the keys of the messages that are too large by themselves.

    The broker refuses a whole batch because of its size, with the small messages in it.
    """
    _flush(library, producer, found)
    again, found.refused = found.refused, []
    for message in again:
        _produce(library, producer, topic, message, found)
        _flush(library, producer, found)
    too_large, found.refused = [message.key for message in found.refused], []
    return too_large


def _flush(library: Any, producer: Any, found: _Arrivals) -> None:
    """Wait until all messages have arrived or failed."""
    left = producer.flush(DELIVERY + AWAY)
    if left and found.failure is None:
        raise library.KafkaException(library.KafkaError(library.KafkaError._TIMED_OUT))
    if found.failure is not None:
        raise library.KafkaException(found.failure)


def _produce(library: Any, producer: Any, topic: str, message: Outgoing, found: _Arrivals) -> None:
    """Hand a message to the library; wait while too many are under way."""
    too_large = library.KafkaError.MSG_SIZE_TOO_LARGE

    def arrived(error: Any, _: Any) -> None:
        if error is None:
            found.delivered += 1
        elif error.code() == too_large:
            found.refused.append(message)
        else:
            found.failure = found.failure or error

    headers = [(name, text.encode()) for name, text in message.headers.items()]
    while found.failure is None:
        try:
            producer.produce(topic, message.value.encode(), message.key.encode(), headers=headers, on_delivery=arrived)
        except BufferError:
            producer.poll(MOMENT)
            continue
        except library.KafkaException as error:
            if error.args[0].code() != too_large:
                raise
            found.refused.append(message)
        producer.poll(0)
        return
