"""Renaming a column by a real client: edits of open and closed files, refusals, and texts that aren't saved."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from sqlrun.language_server.analyst import Analyst
from tests.language_server.project import DAYS, FILES, ORDERS, written
from tests.language_server.test_client import Editor, session

pytestmark = pytest.mark.slow
ABLE = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
    )
)


def applied(text: str, edits: list[types.TextEdit]) -> str:
    """Return a text with an editor's edits: positions count UTF-16 units."""
    lines = [line.encode("utf-16-le") for line in text.split("\n")]
    for edit in sorted(edits, key=lambda one: (one.range.start.line, one.range.start.character), reverse=True):
        assert edit.range.start.line == edit.range.end.line
        line = lines[edit.range.start.line]
        start, end = 2 * edit.range.start.character, 2 * edit.range.end.character
        lines[edit.range.start.line] = line[:start] + edit.new_text.encode("utf-16-le") + line[end:]
    return "\n".join(line.decode("utf-16-le") for line in lines)


async def asked(editor: Editor, file: Path, line: int, character: int, name: str) -> types.WorkspaceEdit | None:
    of = types.TextDocumentIdentifier(file.as_uri())
    position = types.Position(line, character)
    params = types.RenameParams(text_document=of, position=position, new_name=name)
    return await editor.client.text_document_rename_async(params)


# Neither text is saved. Letters of two units are before the column.
MADE = ORDERS.replace("select id, ", "select id, '😀' as face, ")
READ = DAYS.replace("count(*) as n", "'😀' as face, sum(o.total) as n")
CONTRACT = FILES["models/orders.yml"].replace(
    "      - {name: total", "      - {name: face, data_type: string, description: 😀}\n      - {name: total"
)


def test_a_rename_changes_open_and_closed_files(tmp_path: Path) -> None:
    root = written(tmp_path / "a b – ü")
    orders, days, contract = (root / "models" / name for name in ("orders.sql", "days.sql", "orders.yml"))
    contract.write_text(CONTRACT)
    line = READ.split("\n")[4]
    at = len(line[: line.index("o.total")].encode("utf-16-le")) // 2 + 3

    async def play(editor: Editor) -> None:
        editor.open(orders, ORDERS)
        editor.open(days, DAYS)
        editor.change(orders, MADE, 2)
        editor.change(days, READ, 7)
        await editor.until(lambda: editor.codes(days) == [])
        of, place = types.TextDocumentIdentifier(days.as_uri()), types.Position(4, at)
        ready = await editor.client.text_document_prepare_rename_async(types.PrepareRenameParams(of, place))
        assert isinstance(ready, types.PrepareRenamePlaceholder)
        assert (ready.placeholder, ready.range.start.character) == ("total", at - 1)
        edit = await asked(editor, days, 4, at, "amount")
        assert edit is not None and edit.document_changes is not None
        found = {one.text_document.uri: one for one in edit.document_changes if isinstance(one, types.TextDocumentEdit)}
        versions = {uri.rpartition("/")[2]: one.text_document.version for uri, one in found.items()}
        assert versions == {"orders.sql": 2, "days.sql": 7, "orders.yml": None}
        texts = []
        for file, text in ((orders, MADE), (days, READ), (contract, CONTRACT)):
            edits = [one for one in found[file.as_uri()].edits if isinstance(one, types.TextEdit)]
            texts.append(applied(text, edits))
        assert texts == [
            MADE.replace("as total", "as amount"),
            READ.replace("o.total", "o.amount"),
            CONTRACT.replace("name: total", "name: amount"),
        ]

    session(play, ABLE)


def test_a_cancelled_rename_leaves_no_answer_behind(tmp_path: Path) -> None:
    root, log = written(tmp_path), list[str]()
    found: list[str] = []

    async def play() -> None:
        analyst = Analyst(lambda root, _: found.append(root), log.append)
        cursor = ("models/orders.sql", 0, ORDERS.index("as total") + 4)
        first = asyncio.ensure_future(analyst.rename(str(root), {}, cursor, "first"))
        await asyncio.sleep(0.1)
        first.cancel()
        analyst.want(str(root), dict)
        edits, why = await analyst.rename(str(root), {}, cursor, "second")
        assert (why, [edit[3] for listed in edits.values() for edit in listed]) == ("", ["second", "second"])
        while not found:
            await asyncio.sleep(0.05)
        # A worker that is gone is started again.
        analyst.stop()
        assert (await analyst.rename(str(root), {}, cursor, "id"))[1] == "`orders` has a column `id` already"
        analyst.stop()
        await asyncio.sleep(0.2)  # the pipes close

    asyncio.run(asyncio.wait_for(play(), 100))
    assert log == []


def test_a_refusal_is_one_sentence(tmp_path: Path) -> None:
    root = written(tmp_path)
    file = root / "models" / "orders.sql"

    async def play(editor: Editor) -> None:
        editor.open(file, ORDERS)
        await editor.until(lambda: editor.codes(file) == [])
        with pytest.raises(JsonRpcException, match="`orders` has a column `id` already") as refused:
            await asked(editor, file, 0, ORDERS.index("as total") + 4, "id")
        assert refused.value.code == types.LSPErrorCodes.RequestFailed
        # The seed's column can't be renamed, nor is it the model's own.
        of, at = types.TextDocumentIdentifier(file.as_uri()), types.Position(0, ORDERS.index("from"))
        assert await editor.client.text_document_prepare_rename_async(types.PrepareRenameParams(of, at)) is None
        edit = await asked(editor, file, 0, ORDERS.index("as total") + 4, "amount")
        # A client that knows no versions gets plain edits.
        assert edit is not None and edit.document_changes is None and len(edit.changes or {}) == 2
        assert not [line for line in editor.log if "Traceback" in line]

    session(play)
