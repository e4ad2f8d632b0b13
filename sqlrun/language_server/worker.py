"""The process that reads and checks projects for the server, with a low priority. Shell: pipes, processes.

It ends when the server closes its pipe. Whatever it prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from sqlrun.language_server import frames
from sqlrun.language_server.index import Noun
from sqlrun.language_server.looking import Looker


def main() -> None:
    """Answer each message with the changed nouns of its project, and the findings."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(OSError):
        os.nice(10)
    lookers: dict[str, Looker] = {}
    sent: dict[str, dict[str, Noun]] = {}
    while head := sys.stdin.buffer.read(frames.HEAD):
        message = json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))
        root = message["root"]
        look = lookers.setdefault(root, Looker(Path(root))).look(message["texts"])
        for part in frames.chunks(sent.get(root, {}), look.nouns):
            answers.write(frames.packed(part))
        sent[root] = dict(look.nouns)
        answers.write(frames.packed(frames.told(look.findings, look.templates, look.origins)))
        answers.flush()


if __name__ == "__main__":
    main()
