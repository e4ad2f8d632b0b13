"""Connections with deadlines, for a request to arrive and for the peer to read an answer. Shell: sockets."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Time limits for a request to arrive, and for the peer to read an answer.
REQUEST_SECONDS = 15.0
ANSWER_SECONDS = 60.0
# Maximum bytes before the end of a request's headers: twice the gate's limit, which answers with an error.
MOST_HEAD = 65_536
HEAD_ENDS = b"\r\n\r\n"
MOST_CONNECTIONS = 5000
# File descriptors reserved for anything but connections.
OTHER_FILES = 200


def most_connections() -> int:
    """Raise the process's limit of open files as far as needed, and return the maximum number of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(16, min(MOST_CONNECTIONS, soft - OTHER_FILES))


@dataclass(slots=True)
class Room:
    """The maximum number of a server's connections, and its idle ones, the longest idle first.

    `seconds` is the time limit for a request to arrive.
    """

    most: int
    seconds: float
    idle: dict[Any, None] = field(default_factory=dict)


class Connection(HttpToolsProtocol):
    """One connection. It has a deadline whenever the server isn't answering a complete request."""

    room: Room
    _deadline: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None
    _head = 0
    _tail = b""
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; if there are too many connections, abort the one that has been idle longest."""
        super().connection_made(transport)
        _notice_the_dead(transport)
        self.room.idle[self] = None
        self._await()
        if len(self.connections) > self.room.most:
            next(iter(self.room.idle)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self.room.idle.pop(self, None)
        self._cancel()
        if self._writing is not None:
            self._writing.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; reject a head that is too long."""
        if self._in_head:
            self._head += self._of_head(data)
            if self._head > MOST_HEAD:
                # The deadline continues: it ends a connection whose peer doesn't read this either.
                self.transport.write(TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)
        waits = self.cycle is None or self.cycle.response_complete
        if waits and self._deadline is None and self.timeout_keep_alive_task is None:
            self._await()

    def _of_head(self, data: bytes) -> int:
        """Return the number of received bytes that may belong to a head; its body may follow in the same piece."""
        end = (self._tail + data).find(HEAD_ENDS)
        size = len(data) if end < 0 else max(0, end + len(HEAD_ENDS) - len(self._tail))
        self._tail = b"" if end >= 0 else (self._tail + data)[1 - len(HEAD_ENDS) :]
        return size

    def on_message_begin(self) -> None:
        """Start the deadline for the end of a request."""
        self._in_head = True
        self._await()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Reset the size of the head for the next request."""
        self._head, self._in_head = 0, False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Cancel the deadline: the request is complete, and its answer may take any time."""
        self._cancel()
        self._in_head = True
        self.room.idle.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Count the connection as idle until its next request."""
        self.room.idle[self] = None
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Abort an idle connection."""
        # A plain close would wait for a peer that doesn't read.
        self._end()

    def pause_writing(self) -> None:
        """Start the deadline for the peer to read."""
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(ANSWER_SECONDS, self._end)

    def resume_writing(self) -> None:
        """Cancel the deadline: the peer reads again."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _await(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.room.seconds, self._end)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        self.transport.abort()


def protocol(most: int, seconds: float = REQUEST_SECONDS) -> type[Connection]:
    """Return the protocol of one server with at most `most` connections.

    A connection beyond that closes the one that has been idle longest, so idle peers can't lock out a new caller.
    """
    return type("Connection", (Connection,), {"room": Room(most, seconds)})


TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def _notice_the_dead(transport: asyncio.Transport) -> None:
    """Let the system probe a silent peer, and close the connection of one that acknowledges nothing."""
    found = cast(Any, transport.get_extra_info("socket"))
    options: tuple[tuple[int, str, int], ...] = (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 30),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", int(ANSWER_SECONDS * 1000)),
    )
    for level, name, value in options:
        option: Callable[..., Any] | int | None = getattr(socket, name, None)
        if found is not None and isinstance(option, int):
            try:
                found.setsockopt(level, option, value)
            except OSError:
                return  # the peer has disconnected, or the socket isn't TCP
