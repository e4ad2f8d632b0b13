"""A folder with a `sqlrun` that starts at once: forked from a process with all imports done.

It is for tests of commands, not of their start: the documentation's shell blocks run seventy commands, and each would
import for two seconds. `python -m tests.support.warm SOCKET` is the server; `commands` is the client.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.lives import WARM, run
from tests.support.projects import ROOT

# Replacement of `sqlrun`: it sends its arguments, folder, environment and descriptors, and exits as the fork does.
CLIENT = """#!{python} -IS
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect({address!r})
words = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(asked, [len(words).to_bytes(8, "big")], [0, 1, 2])
asked.sendall(words)
code = asked.recv(8)
sys.exit(int(code) if code else "sqlrun died")
"""


@contextmanager
def commands(folder: Path) -> Iterator[Path]:
    """Yield a folder for the PATH; the server behind it ends with the block."""
    address = folder / "socket"
    client = folder / "bin" / "sqlrun"
    client.parent.mkdir(parents=True)
    client.write_text(CLIENT.format(python=sys.executable, address=str(address)))
    client.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm", str(address)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout and process.stdout.readline() == "warm\n"
        yield client.parent
    finally:
        process.terminate()
        process.communicate()


def serve(address: str) -> None:
    """Fork for each client, until SIGTERM."""
    for module in WARM:
        importlib.import_module(module)
    # The children are not waited for: each reports its own end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        print("warm", flush=True)
        while True:
            asked, _ = door.accept()
            if os.fork() == 0:
                door.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _become(asked)
            asked.close()


def _become(asked: socket.socket) -> None:
    """Run `sqlrun` in this fork."""
    try:
        size, descriptors, _, _ = socket.recv_fds(asked, 8, 3)
        with asked.makefile("rb") as words:
            arguments, folder, environment = json.loads(words.read(int.from_bytes(size, "big")))
        for own, given in enumerate(descriptors):
            os.dup2(given, own)
            os.close(given)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        threading.Thread(target=_end_with, args=(asked,), daemon=True).start()
        asked.sendall(str(run(arguments)).encode())
    finally:
        os._exit(0)


def _end_with(asked: socket.socket) -> None:
    """Stop this fork when its client is killed, as a server in the background is."""
    if not asked.recv(1):
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    serve(sys.argv[1])
