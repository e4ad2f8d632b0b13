"""The text of a `.proto` file to its descriptor, as far as messages are read by it. Pure.

Options, services, extensions and reserved names don't change how a message is read, and are skipped. The descriptors'
pool finds the types that fields name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from sqlrun.decoding.undecodable import Undecodable

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*(?s:.*?)\*/|(?P<token>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[.\w]+|[-+={}\[\]()<>;:,]|/(?![*/]))"""
)
SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
}  # fmt: skip
MESSAGE, OPTIONAL, REQUIRED, REPEATED = 11, 1, 2, 3
LABELS = {"optional": OPTIONAL, "required": REQUIRED, "repeated": REPEATED}
OPENING, CLOSING = "{[(<", "}])>"
DEEPEST = 64


def parse(name: str, text: str) -> Any:
    """Return the `FileDescriptorProto` of a file's text.

    Raises: Undecodable with the line that can't be read.
    """
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto2")
    parser = _Parser(name, _tokens(name, text))
    while parser.left():
        parser.in_file(file)
    return file


def _tokens(name: str, text: str) -> list[tuple[str, int]]:
    """Return a file's tokens with their lines."""
    found: list[tuple[str, int]] = []
    at, line = 0, 1
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise Undecodable(f"{name}:{line}: the schema isn't valid: unexpected `{text[at]}`")
        if token["token"]:
            found.append((token["token"], line))
        line += token[0].count("\n")
        at = token.end()
    return found


@dataclass(slots=True)
class _Parser:
    name: str
    tokens: list[tuple[str, int]]
    at: int = 0
    depth: int = field(default=0)
    is_proto3: bool = False

    def left(self) -> bool:
        """Return whether there are more tokens."""
        return self.at < len(self.tokens)

    def peek(self) -> str:
        """Return the next token; "" at the end."""
        return self.tokens[self.at][0] if self.left() else ""

    def take(self, *expected: str) -> str:
        """Return the next token, which has to be one of the expected ones, and go on."""
        token = self.peek()
        if not token or (expected and token not in expected):
            raise self.error(f"{' or '.join(map(repr, expected)) or 'more text'} expected, not {token!r}")
        self.at += 1
        return token

    def error(self, what: str) -> Undecodable:
        """Return an error at the next token."""
        line = self.tokens[min(self.at, len(self.tokens) - 1)][1] if self.tokens else 1
        return Undecodable(f"{self.name}:{line}: the schema isn't valid: {what}")

    def text(self) -> str:
        """Return the next token, a text, without its quotes."""
        token = self.take()
        if token[0] not in "\"'":
            raise self.error(f"a text expected, not {token!r}")
        return token[1:-1]

    def number(self) -> int:
        """Return the next token, a whole number."""
        sign = -1 if self.peek() == "-" and self.take() else 1
        token = self.take()
        try:
            return sign * int(token, 8 if re.fullmatch("0[0-7]+", token) else 0)
        except ValueError:
            raise self.error(f"a whole number expected, not {token!r}") from None

    def skip(self) -> None:
        """Skip a statement, up to its semicolon or closing brace."""
        while True:
            token = self.take()
            if token == ";":
                return
            if token in OPENING:
                self.skip_brackets()
                if token == "{" and self.peek() not in (";", "]", ","):
                    return

    def skip_brackets(self) -> None:
        """Skip what an opening bracket, already taken, encloses."""
        depth = 1
        while depth:
            token = self.take()
            depth += (token in OPENING) - (token in CLOSING)

    def in_file(self, file: Any) -> None:
        """Read one statement of a file."""
        match self.peek():
            case "syntax":
                self.take()
                self.take("=")
                file.syntax = self.text()
                self.is_proto3 = file.syntax == "proto3"
                self.take(";")
            case "edition":
                raise self.error("sqlrun reads proto2 and proto3, no editions")
            case "package":
                self.take()
                file.package = self.take()
                self.take(";")
            case "import":
                self.take()
                kind = self.take() if self.peek() in ("public", "weak") else ""
                if kind == "public":
                    file.public_dependency.append(len(file.dependency))
                file.dependency.append(self.text())
                self.take(";")
            case "message":
                self.message(file.message_type.add())
            case "enum":
                self.enum(file.enum_type.add())
            case "option" | "extend" | "service":
                self.skip()
            case ";":
                self.take()
            case token:
                raise self.error(f"unexpected {token!r}")

    def message(self, message: Any) -> None:
        """Read a message."""
        self.take("message")
        message.name = self.take()
        self.take("{")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"messages are nested in more than {DEEPEST}")
        while self.peek() != "}":
            self.in_message(message)
        self.take("}")
        self.depth -= 1
        # An optional field of proto3 is alone in a choice; these follow the declared ones.
        for one in message.field:
            if one.proto3_optional:
                one.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{one.name}")

    def in_message(self, message: Any) -> None:
        """Read one statement of a message."""
        following = self.tokens[self.at + 1][0] if self.at + 1 < len(self.tokens) else ""
        match self.peek():
            case "message" if self.is_block(following):
                self.message(message.nested_type.add())
            case "enum" if self.is_block(following):
                self.enum(message.enum_type.add())
            case "oneof" if self.is_block(following):
                self.take()
                index = len(message.oneof_decl)
                message.oneof_decl.add(name=self.take())
                self.take("{")
                while self.peek() != "}":
                    if self.peek() == "option":
                        self.skip()
                    else:
                        self.field(message, index)
                self.take("}")
            case "option" | "reserved" | "extensions" | "extend" if following != "=" and not self.is_field():
                self.skip()
            case ";":
                self.take()
            case _:
                self.field(message, None)

    def is_block(self, name: str) -> bool:
        """Return whether a keyword's name is followed by an opening brace."""
        return (
            bool(re.fullmatch(r"\w+", name))
            and self.tokens[self.at + 2 : self.at + 3] != []
            and (self.tokens[self.at + 2][0] == "{")
        )

    def is_field(self) -> bool:
        """Return whether the next tokens are a type, a name, `=` and a number: a type may be named like a keyword."""
        words = [token for token, _ in self.tokens[self.at : self.at + 4]]
        return len(words) == 4 and words[2] == "=" and words[3].isdigit()

    def field(self, message: Any, choice: int | None) -> None:
        """Read a field; `choice`: the index of the choice that it is in."""
        label = LABELS[self.take()] if self.peek() in LABELS and not self.is_field() else None
        kind = self.take()
        if kind == "group":
            raise self.error("sqlrun doesn't read groups: use a message")
        if kind == "map" and self.peek() == "<":
            one = self.map(message)
        else:
            one = message.field.add(name=self.take(), label=label or OPTIONAL)
            _set_type(one, kind)
        self.take("=")
        one.number = self.number()
        if self.peek() == "[":
            self.take()
            self.skip_brackets()
        self.take(";")
        if choice is not None:
            one.oneof_index = choice
        elif label == OPTIONAL and self.is_proto3:
            one.proto3_optional = True

    def map(self, message: Any) -> Any:
        """Read a map's types and name; return its field, which is a list of entries."""
        self.take("<")
        key = self.take()
        self.take(",")
        value = self.take()
        self.take(">")
        name = self.take()
        entry = message.nested_type.add(name=f"{''.join(part.capitalize() for part in name.split('_'))}Entry")
        entry.options.map_entry = True
        for number, (part, kind) in enumerate((("key", key), ("value", value)), 1):
            _set_type(entry.field.add(name=part, number=number, label=OPTIONAL), kind)
        one = message.field.add(name=name, label=REPEATED, type=MESSAGE)
        one.type_name = entry.name
        return one

    def enum(self, enum: Any) -> None:
        """Read an enum."""
        self.take("enum")
        enum.name = self.take()
        self.take("{")
        while self.peek() != "}":
            following = self.tokens[self.at + 1][0] if self.at + 1 < len(self.tokens) else ""
            if self.peek() == "option" and following == "allow_alias":
                enum.options.allow_alias = True
            if self.peek() in ("option", "reserved", ";") and following != "=":
                self.skip()
                continue
            name = self.take()
            self.take("=")
            enum.value.add(name=name, number=self.number())
            if self.peek() == "[":
                self.take()
                self.skip_brackets()
            self.take(";")
        self.take("}")


def _set_type(one: Any, kind: str) -> None:
    """Set a field's type; the pool finds out whether a name is that of a message or an enum."""
    if kind in SCALARS:
        one.type = SCALARS[kind]
    else:
        one.type_name = kind
