"""The servers themselves: they do what the tests that use them rely on."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic


def test_a_killed_broker_starts_again_with_its_data(own_broker):
    own_broker.admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(10)
    producer = Producer({"bootstrap.servers": own_broker.address})
    producer.produce("kept", b"value")
    assert producer.flush(10) == 0
    pid = own_broker.pid

    own_broker.kill()
    own_broker.start()

    assert own_broker.pid != pid
    consumer = Consumer({"bootstrap.servers": own_broker.address, "group.id": "none"})
    assert consumer.get_watermark_offsets(TopicPartition("kept", 0), timeout=10) == (0, 1)
    consumer.close()
