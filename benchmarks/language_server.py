"""How fast `sqlrun lsp` answers at 1,000 models, asked by a real client over pipes. Shell: processes, files.

python -m benchmarks.language_server --models 1000
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import statistics
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from benchmarks import many_models, written_projects

ROOT = Path(__file__).parent.parent
TYPED = "\nunion all select o.n from {{ ref('fct_"
COLUMN = re.compile(r"- (?:\{name: |name: )(\w+)")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--models", type=int, default=1000)
    options.add_argument("--letters", type=int, default=200)
    options.add_argument("--renames", type=int, default=12)
    options.add_argument("--folder", type=Path, default=ROOT / "target" / "benchmarks" / "language_server")
    chosen = options.parse_args()
    world = many_models.describe(chosen.models)
    shutil.rmtree(chosen.folder, ignore_errors=True)
    written_projects.sqlrun(world, chosen.folder)
    print(f"{len(world.models)} models, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    asyncio.run(measured(chosen.folder.resolve(), chosen.letters, chosen.renames))


def print_times(what: str, times: list[float]) -> None:
    """Print the median and the 95th percentile of some times in milliseconds."""
    p95 = sorted(times)[int(0.95 * len(times))]
    print(f"{what}, ms: median {statistics.median(times):.1f}, p95 {p95:.1f}, most {max(times):.1f}")


async def measured(root: Path, letters: int, renames: int) -> None:
    client, news = LanguageClient("benchmark", "1"), asyncio.Queue[float]()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def found(_: types.PublishDiagnosticsParams) -> None:
        news.put_nowait(time.perf_counter())

    await client.start_io(sys.executable, "-m", "sqlrun", "lsp")
    await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    file = next(iter(sorted(root.glob("models/*/*/fct*.sql"))))
    text, uri = file.read_text(), file.as_uri()
    started = time.perf_counter()
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "sql", 1, text)))
    print(f"first look, without a cache: {await news.get() - started:.1f} s")
    times: dict[str, list[float]] = {"completion": [], "hover": [], "definition": [], "rename": []}
    looks = []
    of = types.TextDocumentIdentifier(uri)
    model, column = place_of(text, "ref('", 6), place_of(text, "sum(", 6)

    async def timed(what: str, asked: Awaitable[Any]) -> Any:
        begun = time.perf_counter()
        found = await asked
        times[what].append(1000 * (time.perf_counter() - begun))
        return found

    for number in range(letters):
        # Each letter changes the text, so that the worker is always busy beside the answers.
        typed = text + TYPED[: 1 + number % len(TYPED)]
        change = types.TextDocumentContentChangeWholeDocument(typed)
        version = types.VersionedTextDocumentIdentifier(version=number + 2, uri=uri)
        client.text_document_did_change(types.DidChangeTextDocumentParams(version, [change]))
        lines = typed.split("\n")
        at = types.Position(len(lines) - 1, len(lines[-1]))
        await timed("completion", client.text_document_completion_async(types.CompletionParams(of, at)))
        shown = await timed("hover", client.text_document_hover_async(types.HoverParams(of, column)))
        place = await timed("definition", client.text_document_definition_async(types.DefinitionParams(of, model)))
        assert shown is not None and place is not None
        await asyncio.sleep(0.05)
    for number in range(5):
        while not news.empty():
            news.get_nowait()
        await asyncio.sleep(3)
        change = types.TextDocumentContentChangeWholeDocument(f"{text}\nselec t{number} x")
        version = types.VersionedTextDocumentIdentifier(version=letters + number + 2, uri=uri)
        while not news.empty():
            news.get_nowait()
        begun = time.perf_counter()
        client.text_document_did_change(types.DidChangeTextDocumentParams(version, [change]))
        looks.append(await news.get() - begun)
    version = types.VersionedTextDocumentIdentifier(version=letters + 10, uri=uri)
    whole = types.TextDocumentContentChangeWholeDocument(text)
    client.text_document_did_change(types.DidChangeTextDocumentParams(version, [whole]))
    edited, refused = [], []
    for contract, place in named(root)[:renames]:
        await asyncio.sleep(3)
        params = types.RenameParams(
            text_document=types.TextDocumentIdentifier(contract.as_uri()), position=place, new_name="renamed_column"
        )
        try:
            edit = await timed("rename", client.text_document_rename_async(params))
            edited.append(len(edit.changes))
        except JsonRpcException as error:
            refused.append(error.message)
    for what, listed in times.items():
        print_times(what, listed)
    print(f"files of a rename: median {statistics.median(edited)}, most {max(edited)}; refused: {refused or 'none'}")
    print(f"problems after an edit, s: median {statistics.median(looks):.2f}, most {max(looks):.2f}")
    print(f"load at the end: {os.getloadavg()[0]:.1f}")
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


def place_of(text: str, before: str, length: int) -> types.Position:
    """Return the position behind a text."""
    lines = text[: text.index(before) + length].split("\n")
    return types.Position(len(lines) - 1, len(lines[-1]))


def named(root: Path) -> list[tuple[Path, types.Position]]:
    """Return columns of contracts, one of each model: the files, and the positions of the columns."""
    found = []
    for number, file in enumerate(sorted(root.glob("models/*/*/*.yml"))):
        text = file.read_text()
        columns = list(COLUMN.finditer(text, max(text.find("columns:"), 0)))
        if file.name != "_sources.yml" and columns and number % 7 == 0:
            column = columns[number % len(columns)]
            line = text.count("\n", 0, column.start(1))
            found.append((file, types.Position(line, column.start(1) - text.rfind("\n", 0, column.start(1)) - 1)))
    return found


if __name__ == "__main__":
    main()
