"""Socket and messages of a project's daemon and its clients. Shell: a Unix socket in a private folder.

A message is a length of four bytes and JSON; a client's first message passes its three standard streams along.
"""

from __future__ import annotations

import array
import json
import os
import socket
import stat
import struct
from typing import Any

MOST_BYTES = 16 << 20
# Maximum seconds to wait for the next message while a command is handed over.
PATIENCE = 2.0


class WireError(Exception):
    """The peer can't be trusted or sends invalid messages; the text says what is wrong."""


def is_supported() -> bool:
    """Return whether a daemon can run here: it forks, passes open files and asks the kernel for the peer (Linux)."""
    return hasattr(socket, "SO_PEERCRED") and hasattr(os, "fork")


def folder() -> str:
    """Return the name of the user's private folder for sockets, which may not exist."""
    above = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    return f"{above}/sqlrun-{os.geteuid()}"


def address(root: str) -> str:
    """Return the name of a project's socket; it depends on the folder itself, not on its path.

    Raises: OSError if the folder doesn't exist.
    """
    found = os.stat(root)  # noqa: PTH116  pathlib is slow to import
    return f"{folder()}/{found.st_dev:x}-{found.st_ino:x}.socket"


def require_private(path: str, *, kind: int) -> None:
    """Reject a folder (S_IFDIR) or socket (S_IFSOCK) that another user owns or can open. Raises: WireError."""
    found = os.lstat(path)
    if stat.S_IFMT(found.st_mode) != kind:
        raise WireError(f"{path} is not a {'folder' if kind == stat.S_IFDIR else 'socket'}")
    if found.st_uid != os.geteuid():
        raise WireError(f"{path} belongs to another user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise WireError(f"{path} is open to other users")


def require_same_user(connection: socket.socket) -> None:
    """Reject a peer that isn't the same user according to the kernel. Raises: WireError."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if user != os.geteuid():
        raise WireError("the peer is another user")


def connect(path: str) -> socket.socket:
    """Connect to a daemon's socket, if only the user has access to it and its folder.

    Raises: WireError, OSError.
    """
    require_private(os.path.dirname(path), kind=stat.S_IFDIR)  # noqa: PTH120
    require_private(path, kind=stat.S_IFSOCK)
    made = socket.socket(socket.AF_UNIX)
    try:
        made.settimeout(PATIENCE)
        made.connect(path)
        require_same_user(made)
    except BaseException:
        made.close()
        raise
    return made


def send(connection: socket.socket, message: dict[str, Any], files: tuple[int, ...] = ()) -> None:
    """Send a message, with open files if there are any."""
    body = json.dumps(message).encode()
    head = struct.pack(">I", len(body))
    if files:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
        connection.sendmsg([head], rights)
        connection.sendall(body)
    else:
        connection.sendall(head + body)


def receive(connection: socket.socket, files: int = 0) -> tuple[dict[str, Any], list[int]]:
    """Wait for a message and up to `files` open files. Raises: WireError, OSError."""
    head, found, _, _ = socket.recv_fds(connection, 4, files, socket.MSG_CMSG_CLOEXEC)
    try:
        head += _exactly(connection, 4 - len(head))
        (size,) = struct.unpack(">I", head)
        if size > MOST_BYTES:
            raise WireError("a message is too long")
        message = json.loads(_exactly(connection, size))
        if not isinstance(message, dict):
            raise WireError("a message is invalid")
    except (ValueError, WireError, OSError) as error:
        for each in found:
            os.close(each)
        raise error if isinstance(error, OSError) else WireError(str(error)) from None
    return message, found


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 16))
        if not part:
            raise WireError("the peer is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
