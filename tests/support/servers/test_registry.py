"""The schema registry does what the tests that use it rely on."""

from __future__ import annotations

import io
import json
import struct

import fastavro
import pytest

from tests.support.servers import topics
from tests.support.servers.registry import RefusedError, framed
from tests.support.servers.topics import Message

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
PLAIN = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'
PROTO = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  int64 id = 1;\n}\n'


def with_field(**field):
    return json.dumps(ORDER | {"fields": [*ORDER["fields"], field]})


def test_a_schema_is_found_by_its_id(registry):
    subject = topics.unique("subject")
    first = registry.register(subject, json.dumps(ORDER))
    second = registry.register(subject, with_field(name="note", type="string", default=""))
    proto = registry.register(topics.unique("subject"), PROTO, "PROTOBUF")
    plain = registry.register(topics.unique("subject"), PLAIN, "JSON")

    assert len({first, second, proto, plain}) == 4
    assert registry.register(subject, json.dumps(ORDER)) == first
    assert json.loads(registry.schema(first)) == ORDER
    assert json.loads(registry.schema(second))["fields"][1]["name"] == "note"
    assert "message Order" in registry.schema(proto)
    assert json.loads(registry.schema(plain)) == json.loads(PLAIN)
    assert registry.versions(subject) == [1, 2]


def test_an_unknown_id_is_refused(registry):
    with pytest.raises(RefusedError) as refused:
        registry.schema(999_999)

    assert (refused.value.status, refused.value.answer["error_code"]) == (404, 40403)


def test_an_incompatible_version_is_refused(registry):
    subject = topics.unique("subject")
    registry.register(subject, json.dumps(ORDER))
    registry.require(subject, "BACKWARD")

    with pytest.raises(RefusedError) as refused:
        registry.register(subject, with_field(name="must", type="string"))

    assert refused.value.status == 409
    assert registry.versions(subject) == [1]


def test_a_schema_may_name_another_one(registry):
    money, order = topics.unique("money"), topics.unique("order")
    registry.register(money, '{"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}')
    reference = {"name": "Money", "subject": money, "version": 1}

    number = registry.register(order, with_field(name="price", type="Money"), references=[reference])

    assert json.loads(registry.schema(number))["fields"][1] == {"name": "price", "type": "Money"}


@pytest.mark.long
def test_schemas_outlast_a_kill(own_registry):
    number = own_registry.register("orders-value", json.dumps(ORDER))
    url = own_registry.url

    own_registry.kill()
    with pytest.raises(OSError):
        own_registry.schema(number)
    own_registry.start()

    assert own_registry.url == url
    assert json.loads(own_registry.schema(number)) == ORDER


def test_a_message_names_its_schema(broker, registry):
    topic = topics.create(broker, topics.unique())
    number = registry.register(f"{topic}-value", json.dumps(ORDER))
    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, ORDER, {"id": 7})
    topics.produce(broker, topic, [Message(framed(number, payload.getvalue()))])

    (read,) = topics.messages(broker, topic)

    magic, found = struct.unpack(">bI", read.message.value[:5])
    schema = json.loads(registry.schema(found))
    assert (magic, fastavro.schemaless_reader(io.BytesIO(read.message.value[5:]), schema)) == (0, {"id": 7})
