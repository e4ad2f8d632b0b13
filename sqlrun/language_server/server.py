"""The protocol's side of the language server, over pygls. Shell: the editor's pipes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

import sqlrun
from sqlrun.errors import Place
from sqlrun.language_server import answers
from sqlrun.language_server.analyst import Analyst
from sqlrun.language_server.findings import Finding
from sqlrun.language_server.index import Index
from sqlrun.language_server.positions import offset_of, position_of, span
from sqlrun.language_server.roots import root_of
from sqlrun.version import __version__

LEVELS = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
}
KINDS = {
    "model": types.CompletionItemKind.Class,
    "view": types.CompletionItemKind.Interface,
    "seed": types.CompletionItemKind.File,
    "source": types.CompletionItemKind.Module,
    "group": types.CompletionItemKind.Folder,
    "column": types.CompletionItemKind.Field,
    "macro": types.CompletionItemKind.Function,
    "alias": types.CompletionItemKind.Variable,
}

PACKAGE = Path(sqlrun.__file__).parent
ERRORS = PACKAGE / "errors.md"


class RefusedRename(JsonRpcException):
    """Why a column can't be renamed. Editors show it; it is no error of the server."""

    CODE = types.LSPErrorCodes.RequestFailed


class Documents:
    """The open texts of an editor by project, and what was published about each file."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.analyst = Analyst(self.publish, self.log)
        self.homes: dict[str, tuple[str, str] | None] = {}
        self._published: dict[str, set[str]] = {}
        # pygls' own keys are normalized, and so differ from what an editor calls a document.
        self.opened: set[str] = set()
        self._lines: dict[str, int] = {}

    def log(self, text: str) -> None:
        """Write a line to the editor's log."""
        self.server.window_log_message(types.LogMessageParams(types.MessageType.Info, text))

    def home(self, uri: str) -> tuple[str, str] | None:
        """Return the project's folder of a document, and its name in it; None outside of projects."""
        if uri not in self.homes:
            path = to_fs_path(uri) if uri.startswith("file:") else None
            root = root_of(Path(path)) if path else None
            self.homes[uri] = (str(root), Path(path).resolve().relative_to(root).as_posix()) if path and root else None
            if self.homes[uri] is None:
                self.log(f"{uri} isn't in a project: no pyproject.toml above it has [tool.sqlrun]")
        return self.homes[uri]

    def texts(self, root: str) -> Mapping[str, str]:
        """Return the open texts of a project."""
        get = self.server.workspace.get_text_document
        homes = {uri: self.homes.get(uri) for uri in self.opened}
        return {home[1]: get(uri).source for uri, home in homes.items() if home is not None and home[0] == root}

    def changed(self, uri: str) -> None:
        """Look at the project of a document again."""
        home = self.home(uri)
        if home is not None:
            root = home[0]
            self.analyst.want(root, lambda: self.texts(root))

    def at(self, uri: str, position: types.Position) -> tuple[str, int, Index, str] | None:
        """Return a document's text, an index in it, its project's index, and its name."""
        home = self.home(uri)
        if home is None:
            return None
        text = self.server.workspace.get_text_document(uri).source
        offset = offset_of(text, (position.line, position.character))
        return text, offset, self.analyst.indexes.get(home[0], Index()), home[1]

    async def renamed(self, uri: str, position: types.Position, name: str) -> types.WorkspaceEdit:
        """Return the edits of all files that rename the column at a position.

        Raises: RefusedRename.
        """
        home = self.home(uri)
        if home is None:
            raise RefusedRename("the file isn't in a project")
        (root, file), versions = home, self.versions()
        cursor = (file, position.line, position.character)
        edits, why = await self.analyst.rename(root, self.texts(root), cursor, name)
        if why:
            raise RefusedRename(why)
        if versions != self.versions():
            raise RefusedRename("a text was edited meanwhile. Rename again")
        opened = {self.homes[uri]: uri for uri in self.opened if self.homes.get(uri)}
        changes: list[tuple[types.OptionalVersionedTextDocumentIdentifier, list[types.TextEdit]]] = []
        for changed, listed in edits.items():
            target = opened.get((root, changed)) or from_fs_path(str(Path(root) / changed)) or ""
            of = types.OptionalVersionedTextDocumentIdentifier(uri=target, version=versions.get(target))
            texts = [types.TextEdit(_range(line, at, at + length), text) for line, at, length, text in listed]
            changes.append((of, texts))
        able = self.server.client_capabilities.workspace
        if able and able.workspace_edit and able.workspace_edit.document_changes:
            return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(*change) for change in changes])
        return types.WorkspaceEdit(changes={of.uri: texts for of, texts in changes})

    def versions(self) -> dict[str, int | None]:
        """Return the versions of the open texts."""
        return {uri: self.server.workspace.get_text_document(uri).version for uri in self.opened}

    def publish(self, root: str, findings: tuple[Finding, ...]) -> None:
        """Send the findings of a project, and an empty list for each file that has none any more."""
        by_file: dict[str, list[types.Diagnostic]] = {}
        for finding in findings:
            by_file.setdefault(finding.file, []).append(self._diagnostic(finding))
        opened = {self.homes[uri]: uri for uri in self.opened if self.homes.get(uri)}
        for file in {*by_file, *self.texts(root), *self._published.get(root, ())}:
            uri = opened.get((root, file)) or from_fs_path(str(Path(root) / file)) or ""
            params = types.PublishDiagnosticsParams(uri, by_file.get(file, []))
            self.server.text_document_publish_diagnostics(params)
        self._published[root] = set(by_file)

    def _diagnostic(self, found: Finding) -> types.Diagnostic:
        if not self._lines:
            lines = ERRORS.read_text(encoding="utf-8").split("\n")
            self._lines = {line[3:8]: n for n, line in enumerate(lines, 1) if line.startswith("| [SR")}
        href = f"{ERRORS.as_uri()}#L{self._lines[found.code]}" if found.code in self._lines else ""
        return types.Diagnostic(
            range=_range(found.line, found.start, found.end),
            message=found.message,
            severity=LEVELS[found.level],
            source="sqlrun",
            code=found.code or None,
            code_description=types.CodeDescription(href) if href else None,
        )


def _range(line: int, start: int, end: int) -> types.Range:
    return types.Range(types.Position(line, start), types.Position(line, end))


def _location(root: str, place: Place) -> types.Location:
    """Return a place of a project, or of a macro that comes with sqlrun."""
    file = PACKAGE.parent / place.file if place.file.startswith("sqlrun/load/macros/") else Path(root) / place.file
    start = end = 0
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
        start, end = span(lines[place.line - 1], place.column, exact=place.exact)
    except (OSError, IndexError):
        pass
    return types.Location(from_fs_path(str(file)) or "", _range(place.line - 1, start, end))


def made() -> LanguageServer:
    """Return the server with all that it answers."""
    server = LanguageServer("sqlrun", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
    documents = Documents(server)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        documents.opened.add(params.text_document.uri)
        documents.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        documents.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        documents.homes.clear()  # pyproject.toml may be new
        for uri in documents.opened:
            documents.home(uri)
        documents.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        documents.opened.discard(params.text_document.uri)
        documents.changed(params.text_document.uri)

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["'", '"', ".", "{", " "])
    )
    def complete(params: types.CompletionParams) -> types.CompletionList | None:
        found = documents.at(params.text_document.uri, params.position)
        return None if found is None else _completions(*found)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def define(params: types.DefinitionParams) -> types.Location | None:
        found, home = documents.at(params.text_document.uri, params.position), documents.home(params.text_document.uri)
        place = answers.place(answers.found(*found)) if found else None
        return _location(home[0], place) if home and place else None

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        found = documents.at(params.text_document.uri, params.position)
        text = answers.hover(answers.found(*found), found[2]) if found else ""
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    _rename(server, documents)

    @server.feature(types.SHUTDOWN)
    def stopped(_: Any) -> None:
        documents.analyst.stop()

    return server


def _rename(server: LanguageServer, documents: Documents) -> None:
    """Let a server answer what can be renamed, and how."""

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        found = documents.at(params.text_document.uri, params.position)
        here, why = answers.to_rename(*found) if found else (None, "")
        if why:
            raise RefusedRename(why)
        if found is None or here is None:
            return None
        start, end = (types.Position(*position_of(found[0], offset)) for offset in (here.start, here.end))
        return types.PrepareRenamePlaceholder(types.Range(start, end), here.word)

    @server.feature(types.TEXT_DOCUMENT_RENAME)
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit:
        return await documents.renamed(params.text_document.uri, params.position, params.new_name)


def _completions(text: str, offset: int, index: Index, file: str) -> types.CompletionList:
    here, offered, is_part = answers.offers(text, offset, index, is_sql=file.endswith(".sql"))
    replaced = types.Range(types.Position(*position_of(text, here.start)), types.Position(*position_of(text, here.end)))
    items = [
        types.CompletionItem(
            label=offer.label,
            kind=KINDS[offer.kind],
            detail=offer.detail or None,
            documentation=offer.text or None,
            text_edit=types.TextEdit(replaced, offer.label),
        )
        for offer in offered
    ]
    return types.CompletionList(is_incomplete=is_part, items=items)


def run() -> int:
    """Answer an editor on standard input and output until it leaves."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR)
    refused = logging.getLogger("pygls.protocol.json_rpc")
    refused.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], RefusedRename)))
    made().start_io()
    return 0
