"""The process that reads and checks projects for the server, with a low priority. Shell: pipes, processes.

It ends when the server closes its pipe. Whatever it prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlrun.errors import SqlrunError, first_line
from sqlrun.language_server import frames
from sqlrun.language_server.index import Noun
from sqlrun.language_server.looking import Looker
from sqlrun.language_server.refusal import RefusedError
from sqlrun.language_server.rename_changes import Cursor


def main() -> None:
    """Answer each look with the changed nouns of its project and the findings, and each rename with its edits."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(OSError):
        os.nice(10)
    lookers: dict[str, Looker] = {}
    sent: dict[str, dict[str, Noun]] = {}
    while head := sys.stdin.buffer.read(frames.HEAD):
        message = json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))
        root = message["root"]
        looker = lookers.setdefault(root, Looker(Path(root)))
        if message["do"] == "rename":
            answers.write(frames.packed(_renamed(looker, message)))
            answers.flush()
            continue
        look = looker.look(message["texts"])
        for part in frames.chunks(sent.get(root, {}), look.nouns):
            answers.write(frames.packed(part))
        sent[root] = dict(look.nouns)
        answers.write(frames.packed(frames.done_message(look.findings, look.templates, look.origins)))
        answers.flush()


def _renamed(looker: Looker, message: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"edits": looker.rename(message["texts"], Cursor(*message["cursor"]), message["name"]), "why": ""}
    except (RefusedError, SqlrunError, OSError, RecursionError) as error:
        return {"edits": {}, "why": first_line(error)}


if __name__ == "__main__":
    main()
