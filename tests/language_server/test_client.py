"""`sqlrun lsp` as a process, with pygls' own client: a whole session, and what goes wrong in one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.language_server.project import DAYS, written

pytestmark = pytest.mark.slow
SECONDS = 100


class Editor:
    """A client with the newest diagnostics of each file, and the log."""

    def __init__(self) -> None:
        self.client = LanguageClient("test", "1")
        self.found: dict[str, types.PublishDiagnosticsParams] = {}
        self.log: list[str] = []
        self.news = asyncio.Event()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def diagnosed(params: types.PublishDiagnosticsParams) -> None:
            self.found[params.uri] = params
            self.news.set()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def logged(params: types.LogMessageParams) -> None:
            self.log.append(params.message)
            self.news.set()

    async def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), SECONDS)

    def codes(self, file: Path) -> list[object]:
        found = self.found.get(file.as_uri())
        return ["unknown"] if found is None else [one.code for one in found.diagnostics]

    def open(self, file: Path, text: str) -> None:
        item = types.TextDocumentItem(file.as_uri(), "sql", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, file: Path, text: str, version: int) -> None:
        whole = types.TextDocumentContentChangeWholeDocument(text)
        of = types.VersionedTextDocumentIdentifier(version=version, uri=file.as_uri())
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(of, [whole]))


def session(play: Callable[[Editor], Awaitable[None]], able: types.ClientCapabilities | None = None) -> None:
    async def run() -> None:
        editor = Editor()
        await editor.client.start_io(sys.executable, "-m", "sqlrun", "lsp")
        await editor.client.initialize_async(types.InitializeParams(capabilities=able or types.ClientCapabilities()))
        editor.client.initialized(types.InitializedParams())
        await play(editor)
        await asyncio.wait_for(editor.client.shutdown_async(None), SECONDS)
        editor.client.exit(None)
        await editor.client.stop()

    asyncio.run(run())


def test_a_whole_session(tmp_path: Path) -> None:
    root = written(tmp_path / "a b – ü")
    file = root / "models" / "days.sql"

    async def play(editor: Editor) -> None:
        editor.open(file, DAYS)
        await editor.until(lambda: editor.codes(file) == [])
        line = "-- 😀\r\nselect o.tota, '😀' as x from {{ ref('orders') }} as o\r\n"
        editor.change(file, line, 2)
        await editor.until(lambda: editor.codes(file) == ["SR304"])
        (found,) = editor.found[file.as_uri()].diagnostics
        assert (found.range.start, found.range.end) == (types.Position(1, 9), types.Position(1, 13))
        assert found.code_description is not None and "errors.md#L" in found.code_description.href
        of = types.TextDocumentIdentifier(file.as_uri())
        offered = await editor.client.text_document_completion_async(types.CompletionParams(of, types.Position(1, 13)))
        assert isinstance(offered, types.CompletionList)
        assert [item.label for item in offered.items] == ["total"]
        at = types.Position(1, 40)  # in 'orders', behind a letter of two units
        place = await editor.client.text_document_definition_async(types.DefinitionParams(of, at))
        assert isinstance(place, types.Location) and place.uri.endswith("models/orders.sql")
        shown = await editor.client.text_document_hover_async(types.HoverParams(of, at))
        assert shown is not None and "All orders." in str(shown.contents)
        file.write_text(DAYS)
        editor.change(file, DAYS, 3)
        await editor.until(lambda: editor.codes(file) == [])
        shown = await editor.client.text_document_hover_async(types.HoverParams(of, types.Position(4, 25)))
        assert shown is not None and "computed from rows of orders by `count(*)`" in str(shown.contents)

    session(play)


def test_two_projects_and_a_file_outside(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one"), written(tmp_path / "one" / "inside")
    stray = tmp_path / "stray.sql"

    async def play(editor: Editor) -> None:
        editor.open(stray, "selec")
        await editor.until(lambda: len(editor.log) == 1)
        assert "isn't in a project" in editor.log[0]
        editor.open(one / "models/orders.sql", "selec")
        editor.open(other / "models/new.sql", "select id from {{ ref('orders') }}")
        await editor.until(lambda: editor.codes(other / "models/new.sql") == [])
        await editor.until(lambda: editor.codes(one / "models/orders.sql") == ["SR302"])
        assert stray.as_uri() not in editor.found
        assert len(editor.log) == 1

    session(play)


def test_the_server_ends_when_its_editor_is_gone() -> None:
    server = subprocess.Popen([sys.executable, "-m", "sqlrun", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    with server:
        server.stdin.close()
        assert server.wait(SECONDS) == 0


def test_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlrun.errors import UsageError
    from sqlrun.language_server import command
    from sqlrun.runtime import packages

    monkeypatch.setattr(packages, "missing", lambda extra: ("pygls",))
    with pytest.raises(UsageError, match=r"SR133 `sqlrun lsp` needs the package pygls.*pip install 'sqlrun\[lsp\]'"):
        command.serve()
