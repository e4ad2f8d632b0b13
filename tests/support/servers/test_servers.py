"""The servers themselves: they do what the tests that use them rely on."""

from __future__ import annotations

import contextlib
import socket
import time
from contextlib import closing

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.servers import archive, jars, kafka, process, topics
from tests.support.servers.certificate import Certificate
from tests.support.servers.topics import Message
from tests.support.waiting import HUNG, wait_until

pytestmark = pytest.mark.long


@pytest.fixture
def topic(broker):
    return topics.create(broker, topics.unique())


def values(broker, topic, partition=0, committed=True):
    """Return offsets and values."""
    return [(each.offset, each.message.value) for each in topics.messages(broker, topic, partition, committed)]


def test_a_killed_broker_starts_again_with_its_data(own_broker):
    topic = topics.create(own_broker, topics.unique())
    topics.produce(own_broker, topic, [Message(b"kept")])
    pid, address = own_broker.pid, own_broker.address

    own_broker.kill()
    own_broker.start()

    assert own_broker.pid != pid and own_broker.address == address
    assert values(own_broker, topic) == [(0, b"kept")]


def test_a_stopped_broker_leaves_its_classes_to_the_next(own_broker):
    own_broker.stop()

    assert archive.file().is_file()
    own_broker.start()
    assert f"-XX:SharedArchiveFile={archive.file()}" in own_broker._process.command
    assert own_broker.admin.list_topics(timeout=10).brokers


def test_a_paused_broker_answers_after_it_goes_on(own_broker):
    own_broker.pause()
    with pytest.raises(KafkaException):
        own_broker.admin.list_topics(timeout=1)

    own_broker.resume()

    topics.create(own_broker, topics.unique())


@pytest.mark.servers
def test_a_port_that_another_process_takes_first_is_changed(tmp_path, monkeypatch):
    jars.needed(jars.KAFKA)
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = iter([taken.getsockname()[1]])
        monkeypatch.setattr(kafka, "free_port", lambda: next(ports, None) or process.free_port())
        broker = kafka.Broker(tmp_path / "broker")
        try:
            broker.start()
            assert not broker.address.endswith(f":{taken.getsockname()[1]}")
            topics.create(broker, "here")
        finally:
            broker.stop()


def test_a_message_is_read_as_it_was_produced(broker):
    topic = topics.create(broker, topics.unique(), partitions=2)
    made = [
        Message(b"value", b"key", (("a", b"1"), ("a", None)), 1_700_000_000_123, 1),
        Message(None, b"gone", (), 1_700_000_000_124, 1),
        Message(b"", None, (("b", b""),), 1_700_000_000_125, 1),
    ]

    assert topics.produce(broker, topic, made) == 3

    assert [each.message for each in topics.messages(broker, topic, 1)] == made
    assert topics.messages(broker, topic, 0) == []


def test_many_messages_are_all_there(broker, topic):
    made = [Message(b"x" * 100, str(n).encode()) for n in range(20_000)]

    assert topics.produce(broker, topic, iter(made)) == 20_000

    assert topics.watermarks(broker, topic) == (0, 20_000)
    assert [each.message.key for each in topics.messages(broker, topic)] == [each.key for each in made]


def test_an_aborted_transaction_leaves_a_gap(broker, topic):
    topics.abort(broker, topic, [Message(b"lost"), Message(b"lost too")])
    topics.commit(broker, topic, [Message(b"kept")])

    # The markers have the offsets 2 and 4.
    assert topics.watermarks(broker, topic) == (0, 5)
    assert values(broker, topic) == [(3, b"kept")]
    assert values(broker, topic, committed=False) == [(0, b"lost"), (1, b"lost too"), (3, b"kept")]


def test_an_open_transaction_hides_all_that_follows(broker, topic):
    opened = topics.begin(broker, topic, [Message(b"first")])
    topics.produce(broker, topic, [Message(b"second")])
    assert values(broker, topic) == []

    opened.commit_transaction(20)

    # The commit is acknowledged before its marker ends the transaction for readers.
    wait_until(lambda: values(broker, topic), "the transaction never ends")
    assert values(broker, topic) == [(0, b"first"), (1, b"second")]


def test_deleted_records_move_the_low_watermark(broker, topic):
    topics.produce(broker, topic, [Message(str(n).encode()) for n in range(5)])

    topics.delete_records(broker, topic, 3)

    assert topics.watermarks(broker, topic) == (3, 5)
    assert values(broker, topic) == [(3, b"3"), (4, b"4")]


def test_expired_messages_leave_their_offsets(broker, topic):
    topics.produce(broker, topic, [Message(b"old")] * 3)

    topics.expire(broker, topic)
    topics.produce(broker, topic, [Message(b"new")])

    assert topics.watermarks(broker, topic) == (3, 4)
    assert values(broker, topic) == [(3, b"new")]


def test_compaction_removes_older_messages_of_a_key(broker):
    topic = topics.create(broker, topics.unique(), settings=topics.COMPACTED)
    made = [Message(b"1", b"a"), Message(b"2", b"b"), Message(b"3", b"a"), Message(b"4", b"c"), Message(None, b"c")]
    topics.produce(broker, topic, made)

    topics.compact(broker, topic)

    assert values(broker, topic) == [(1, b"2"), (2, b"3"), (4, None), (5, b"last")]

    topics.compact_tombstones(broker, topic)

    assert [offset for offset, _ in values(broker, topic)][:2] == [1, 2]
    assert None not in [value for _, value in values(broker, topic)]
    assert topics.watermarks(broker, topic) == (0, 8)


def test_added_partitions_are_empty(broker, topic):
    topics.produce(broker, topic, [Message(b"0")])

    topics.add_partitions(broker, topic, 3)
    topics.produce(broker, topic, [Message(b"2", partition=2)])

    assert [topics.watermarks(broker, topic, n) for n in range(3)] == [(0, 1), (0, 0), (0, 1)]


def test_a_topic_made_again_has_another_id(broker, topic):
    topics.produce(broker, topic, [Message(b"old")])
    old = topics.topic_id(broker, topic)
    assert old == topics.topic_id(broker, topic)

    topics.recreate(broker, topic)

    assert topics.topic_id(broker, topic) != old
    assert topics.watermarks(broker, topic) == (0, 0)


def refused(address, **settings):
    """Return why a client can't list topics, or None if it can."""
    errors: list[KafkaError] = []
    client = AdminClient({"bootstrap.servers": address, "log_level": 0, "error_cb": errors.append, **settings})
    end = time.monotonic() + HUNG
    while time.monotonic() < end:
        with contextlib.suppress(KafkaException):
            client.list_topics(timeout=0.5)
            return None
        client.poll(0.1)
        found = {each.code() for each in errors} - {KafkaError._ALL_BROKERS_DOWN}
        if found:
            return found.pop()
    raise AssertionError("neither an answer nor an error")


@pytest.mark.parametrize(("password", "answer"), [("secret", None), ("wrong", KafkaError._AUTHENTICATION)])
def test_only_the_right_password_is_let_in(secured_broker, password, answer):
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "reader", "sasl.password": password}
    trust = {"ssl.ca.location": str(secured_broker.certificate.authority)}

    assert refused(secured_broker.sasl_address, **login, **{"security.protocol": "SASL_PLAINTEXT"}) == answer
    assert refused(secured_broker.sasl_tls_address, **login, **trust, **{"security.protocol": "SASL_SSL"}) == answer


def test_a_client_must_trust_the_certificate(secured_broker, tmp_path):
    own, strange = secured_broker.certificate, Certificate.made(tmp_path / "strange")
    address = secured_broker.tls_address

    assert refused(address, **{"security.protocol": "SSL", "ssl.ca.location": str(own.authority)}) is None
    assert (
        refused(address, **{"security.protocol": "SSL", "ssl.ca.location": str(strange.authority)}) == KafkaError._SSL
    )


def test_a_client_without_tls_gets_no_answer(secured_broker):
    client = AdminClient({"bootstrap.servers": secured_broker.tls_address, "log_level": 0})

    with pytest.raises(KafkaException):
        client.list_topics(timeout=2)
