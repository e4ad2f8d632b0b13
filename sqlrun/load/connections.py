"""A profile's connections: brokers and schema registries of Kafka sources. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlrun.load.yaml_reader import Reader, did_you_mean
from sqlrun.project import Connection

TEXTS = (
    "bootstrap", "username", "password", "ca_file", "certificate_file", "key_file", "key_password", "registry",
    "registry_username", "registry_password",
)  # fmt: skip
# Words of the keys that have few, Kafka's own; the first is the default.
WORDS = {
    "protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
}
# Keys of which a problem may show the value.
KEYS = (*TEXTS[:1], *WORDS, *TEXTS[1:])


def read(reader: Reader, top: Any, expanded: Callable[[Any, str], str]) -> dict[str, Connection]:
    """Return the connections of a profile by name.

    `expanded` returns the text under a key with the environment's values, which may be secrets: problems show the
    file's own text alone.
    """
    if top.get("connections") is None:
        return {}
    place = reader.value_place(top, "connections")
    if not isinstance(top["connections"], dict):
        hint = "connections: {kafka: {bootstrap: 127.0.0.1:9092}}"
        reader.problem("SR103", place, "`connections` must be a mapping", hint)
        return {}
    return {name: _connection(reader, top["connections"], name, expanded) for name in top["connections"]}


def _connection(reader: Reader, every: Any, name: str, expanded: Callable[[Any, str], str]) -> Connection:
    place = reader.value_place(every, name)
    node = reader.mapping(every[name], place, f"the connection `{name}`", KEYS, ("bootstrap",))
    texts = {key: expanded(node, key) for key in TEXTS}
    words = {key: _word(reader, node, key, choices, expanded) for key, choices in WORDS.items()}
    if "SASL" not in words["protocol"]:
        # Without SASL the broker ignores a password, so the connection would be open to all.
        words["mechanism"] = ""
        for key in ("username", "password"):
            if texts[key]:
                message = f"`{key}` has no effect with `protocol: {words['protocol']}`"
                reader.problem("SR131", reader.place(node, key), message, "Set `protocol: SASL_SSL`, or remove it.")
    elif not (texts["username"] and texts["password"]):
        hint = "Read them from the environment: password: ${KAFKA_PASSWORD}"
        message = f"`protocol: {words['protocol']}` requires `username` and `password`"
        reader.problem("SR131", reader.value_place(node, "protocol"), message, hint)
    return Connection(**texts, **words)


def _word(reader: Reader, node: Any, key: str, choices: tuple[str, ...], expanded: Callable[[Any, str], str]) -> str:
    before = len(reader.problems)
    value = expanded(node, key) or choices[0]
    if len(reader.problems) == before and value not in choices:
        written = reader.text(node, key)
        hint = f"Choose one of: {', '.join(choices)}.{did_you_mean(written, choices)}"
        reader.problem("SR131", reader.value_place(node, key), f"unknown {key} `{written}`", hint)
    return value if value in choices else choices[0]
