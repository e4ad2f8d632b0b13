"""Values of messages become one line each, whatever their bytes, and a registry's client fails with a clear end."""

from __future__ import annotations

import base64
import io
import ipaddress
import json
import pickle
import ssl
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import fastavro
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrun.decoding import avro_references, confluent
from sqlrun.decoding.change_events import ChangeEvents
from sqlrun.errors import EngineError, Place
from sqlrun.project import Changes, Column, Connection
from sqlrun.sources import message_values, registry
from sqlrun.sources.message_values import Changed, Delimited, Registered
from sqlrun.sources.registry import Registry
from tests.support import fake_registry
from tests.support.fake_registry import Fake
from tests.support.servers.registry import framed

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}],
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    monkeypatch.setattr(registry, "PAUSES", (0.0, 0.0))
    with fake_registry.running() as made:
        yield made


def client(fake: Fake, **more: str) -> Registry:
    return Registry("kafka", Connection("127.0.0.1:1", **{"registry": fake.url, **more}))


def avro(schema: Any, value: Any) -> bytes:
    found = io.BytesIO()
    fastavro.schemaless_writer(found, schema, value)
    return found.getvalue()


def decoded(
    values: Registered | Delimited | Changed, *messages: bytes | None, member: str = ""
) -> list[tuple[str, str | None]]:
    texts, faults = values.decoder()(messages, [member] * len(messages))
    return list(zip(texts, faults, strict=True))


def test_a_message_is_read_by_the_schema_that_wrote_it(fake: Fake) -> None:
    new = {**ORDER, "fields": [ORDER["fields"][1], ORDER["fields"][0]]}
    fake.schema(1, json.dumps(ORDER))
    fake.schema(2, json.dumps(new))
    values = Registered("AVRO", client(fake))
    old_one, new_one = (framed(n, avro(s, {"id": "a", "n": 7})) for n, s in ((1, ORDER), (2, new)))

    found = decoded(values, old_one, new_one, old_one, None, member='"key":"k"')

    assert found == [
        ('{"key":"k","id":"a","n":7}', None), ('{"key":"k","n":7,"id":"a"}', None),
        ('{"key":"k","id":"a","n":7}', None), ('{"key":"k"}', None),
    ]  # fmt: skip
    assert [path for path, _ in fake.asked] == ["/schemas/ids/1", "/schemas/ids/2"]


def test_change_events_are_read_by_the_schema_that_wrote_them(fake: Fake) -> None:
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", ORDER]},
            {"name": "after", "type": ["null", "Order"]},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
        ],
    }
    fake.schema(1, json.dumps(envelope))
    columns = (
        Column("id", "string", "", Place("x")), Column("n", "bigint", "", Place("x")),
        Column("position", "string", "", Place("x"), comes_from="position"),
    )  # fmt: skip
    values = Changed(ChangeEvents(Changes("debezium", ("id",)), columns), Registered("AVRO", client(fake)))
    event = {"before": None, "after": {"id": "a", "n": 7}, "source": {"lsn": 24}, "op": "c"}
    gone = {"before": {"id": "a", "n": 0}, "after": None, "source": {"lsn": 25}, "op": "d"}
    messages = [framed(1, avro(envelope, one)) for one in (event, gone)]

    found = decoded(values, *messages, framed(9, b""), member='"key":"k"')

    assert found[:2] == [
        ('{"key":"k","id":"a","n":7,"position":"00000000000000000024/2"}', None),
        ('{"key":"k","id":"a","n":null,"position":"00000000000000000025/1"}', None),
    ]
    assert found[2][1] == "unknown schema id 9"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 2**32 - 1))
def test_the_form_of_a_message(payload: bytes, number: int) -> None:
    assert confluent.split(framed_by(number, payload)) == (number, payload)
    assert confluent.json_of(framed_by(number, payload)) in (payload, framed_by(number, b""))


def framed_by(number: int, payload: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + payload


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.sampled_from([b"", b"\0\0\0\0\1", b"\0\0\0\0\2", b"\0"]))
def test_any_bytes_are_one_line_that_has_them(bytes_: bytes, head: bytes) -> None:
    """Neither an error, nor a text that the landing query could take for an object or a blank line."""
    known = registry._KNOWN
    known["fixed", 1] = registry.Schema(1, "AVRO", json.dumps(ORDER))
    known["fixed", 2] = registry.Schema(2, "AVRO", '{"type": "map", "values": ["null", "double", "string"]}')
    values = Registered("AVRO", _Known("kafka", Connection("127.0.0.1:1", registry="fixed")))
    value = head + bytes_

    ((text, fault),) = decoded(values, value, member='"k":1')

    if fault is None:
        assert json.loads(text)["k"] == 1
        return
    assert text.strip() and not (text.strip().startswith("{") and text.strip().endswith("}"))
    kept = message_values.bytes_of(text)
    if kept is None:
        own = value.decode()
        assert not value.startswith(b"\0") and (text == own or json.loads(f"[{text}]") == [own])
    else:
        assert kept == (value, '"k":1')


class _Known(Registry):
    """A registry whose schemas are known, and which has no others."""

    def _ask(self, path: str) -> None:
        return None


def test_values_that_can_t_be_decoded_have_a_reason(fake: Fake) -> None:
    fake.schema(1, json.dumps(ORDER))
    fake.schema(3, 'syntax = "proto3"; message A {}', schemaType="PROTOBUF")
    fake.schema(4, '{"type": "nothing"}')
    fake.schema(5, '"string"', references=[{"name": "x", "subject": "gone", "version": 1}])
    whole = framed(1, avro(ORDER, {"id": "abc", "n": 7}))
    values = Registered("AVRO", client(fake))

    found = decoded(
        values, b'{"id":"json"}', b"", b"\0\0\0", whole[:-2], whole + b"x", framed(77, b"x"), framed(3, b""),
        framed(4, b""), framed(5, b""), framed(77, b"y"),
    )  # fmt: skip

    reasons = [fault or "" for _, fault in found]
    assert reasons[:3] == [confluent.NO_ID] * 3
    assert "truncated" in reasons[3] and "(schema id 1)" in reasons[3]
    assert "ends after" in reasons[4] and reasons[5] == reasons[9] == "unknown schema id 77"
    assert reasons[6] == "the schema id 3 is of PROTOBUF, not of AVRO"
    assert "doesn't define (schema id 4)" in reasons[7]
    assert reasons[8] == "the schema id 5 lacks a part: the registry lacks version 1 of the subject `gone`"
    assert found[0][0] == '"{\\"id\\":\\"json\\"}"'
    assert found[5][0] == f"undecoded:{base64.b64encode(framed(77, b'x')).decode()}"
    assert [path for path, _ in fake.asked].count("/schemas/ids/77") == 1


def test_an_unknown_id_is_asked_for_again_by_the_next_reading(fake: Fake) -> None:
    values = Registered("AVRO", client(fake))
    message = framed(9, avro(ORDER, {"id": "a", "n": 1}))
    assert decoded(values, message)[0][1] == "unknown schema id 9"
    fake.schema(9, json.dumps(ORDER))

    assert decoded(values, message) == [('{"id":"a","n":1}', None)]


def test_types_of_other_schemas(fake: Fake) -> None:
    money = {"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}
    price = {"name": "Price", "type": "record", "namespace": "a", "fields": [{"name": "now", "type": "shop.Money"}]}
    order = {
        "type": "record", "name": "Order", "namespace": "a",
        "fields": [
            {"name": "id", "type": "string"}, {"name": "prices", "type": {"type": "array", "items": "Price"}},
            {"name": "tip", "type": ["null", "shop.Money"]},
        ],
    }  # fmt: skip
    to_money = {"name": "shop.Money", "subject": "money", "version": 2}
    to_price = {"name": "a.Price", "subject": "price/1", "version": 1}
    fake.schema(1, json.dumps(order), references=[to_price, to_money])
    fake.answers["/subjects/money/versions/2"] = 200, {"schema": json.dumps(money)}
    fake.answers["/subjects/price%2F1/versions/1"] = 200, {"schema": json.dumps(price), "references": [to_money]}
    whole = avro_references.schema_of(json.dumps(order), (json.dumps(money), json.dumps(price)))
    value = {"id": "x", "prices": [{"now": {"cents": 5}}], "tip": {"cents": 1}}

    found = decoded(Registered("AVRO", client(fake)), framed(1, avro(whole, value)))

    assert [(json.loads(text), fault) for text, fault in found] == [(value, None)]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, {"message": "who?"}), "refuses the user or the password: 401 who?"),
        ((403, b"no"), "refuses the user or the password: 403"),
        ((404, b"<html>"), "/apis/ccompat/v7"),
        ((404, {"error_code": 404, "message": "HTTP 404 Not Found"}), "/apis/ccompat/v7"),
        ((500, {"message": "ill"}), "500 ill"),
        ((200, b"<html>log in</html>"), "isn't a schema registry"),
        ((418, {"message": "tea"}), "418 tea"),
    ],
)
def test_a_registry_that_refuses_is_an_error(fake: Fake, answer: Any, message: str) -> None:
    fake.answers["/schemas/ids/1"] = answer
    with pytest.raises(EngineError) as raised:
        decoded(
            Registered("AVRO", client(fake, registry_username="reader", registry_password="hidden")), framed(1, b"")
        )

    assert "SR751" in str(raised.value) and message in str(raised.value) and "hidden" not in str(raised.value)


def test_a_registry_that_is_busy_is_asked_again(fake: Fake) -> None:
    fake.answers["/schemas/ids/1"] = [(503, b""), (429, b""), (200, {"schema": '"string"'})]

    assert client(fake).schema(1) == registry.Schema(1, "AVRO", '"string"')


def test_the_password_goes_to_its_own_server_alone(fake: Fake) -> None:
    with fake_registry.running() as other:
        fake.answers["/schemas/ids/1"] = 302, b""
        fake.headers = {"Location": f"{other.url}/schemas/ids/1"}
        with pytest.raises(EngineError, match="redirects to another server"):
            client(fake, registry_username="reader", registry_password="hidden").schema(1)
        assert other.asked == []
    assert [login for _, login in fake.asked] == [f"Basic {base64.b64encode(b'reader:hidden').decode()}"]

    fake.headers = {"Location": f"{fake.url}/moved"}
    fake.answers["/moved"] = 200, {"schema": '"long"'}
    found = client(fake, registry=fake.url.replace("//", "//us%40er:pass@")).schema(1)
    assert found is not None and found.text == '"long"'
    assert fake.asked[-1] == ("/moved", f"Basic {base64.b64encode(b'us@er:pass').decode()}")


def test_a_registry_that_is_gone_is_an_error_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PAUSES", (0.0, 0.0))
    with pytest.raises(EngineError) as raised:
        Registry("kafka", Connection("x", registry="http://user:hidden@127.0.0.1:9")).schema(1)

    assert "SR751" in str(raised.value) and "refused" in str(raised.value) and "hidden" not in str(raised.value)


def test_the_second_address_answers_for_the_first(fake: Fake) -> None:
    fake.schema(1, '"int"')

    assert client(fake, registry=f"http://127.0.0.1:9, {fake.url}/").schema(1) is not None


def self_signed(folder: Path) -> Path:
    """Write a key and a certificate for 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "registry")])
    now = datetime.now(timezone.utc)
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, now - timedelta(1), now + timedelta(1))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = made.add_extension(names, False).add_extension(x509.BasicConstraints(True, None), True)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = folder / "registry.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, plain)
        + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    return file


def test_a_certificate_of_the_own_authority(tmp_path: Path) -> None:
    authority = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    with fake_registry.running(context) as secure:
        secure.schema(1, '"int"')
        assert client(secure, ca_file=str(authority)).schema(1) is not None
        registry._KNOWN.clear()
        with pytest.raises(EngineError, match="isn't trusted"):
            client(secure).schema(1)
        with pytest.raises(EngineError, match="can't be read"):
            client(secure, ca_file=str(tmp_path / "none.pem")).schema(1)


def test_another_process_has_a_copy_without_a_cache(fake: Fake) -> None:
    values = Registered("AVRO", client(fake, registry_password="hidden"))

    assert pickle.loads(pickle.dumps(values)) == values and "hidden" not in repr(values)


def test_values_of_csv() -> None:
    columns = [Column(name, kind, "", Place("x")) for name, kind in (("id", "string"), ("n", "int"))]
    found = decoded(
        Delimited(tuple(columns)), b"a,1", b'"b,\nc",2\r\n', b"", b"x", b"\xef\xbb\xbfc,3", b"d,4\ne,5", b"\n", None,
        "é,".encode() + b"\xff", b'"', b"{},1", member='"k":1',
    )  # fmt: skip

    assert found == [
        ('{"k":1,"id":"a","n":1}', None),
        ('{"k":1,"id":"b,\\nc","n":2}', None),
        ("", None),
        ("x", "CSV: 1 field instead of 2"),
        ('{"k":1,"id":"c","n":3}', None),
        ("d,4\ne,5", "CSV: 2 records in one message"),
        ("\n", "CSV: 0 records in one message"),
        ('{"k":1}', None),
        ('{"k":1,"id":"é","n":"�"}', None),
        ('"', "CSV: a quote isn't closed, so the rest of the file is one record"),
        ('{"k":1,"id":"{}","n":1}', None),
    ]
