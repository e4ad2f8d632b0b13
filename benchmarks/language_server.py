"""How fast `sqlrun lsp` answers at 1,000 models, asked by a real client over pipes. Shell: processes, files.

python -m benchmarks.language_server --models 1000
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from benchmarks import many_models, written_projects

ROOT = Path(__file__).parent.parent
TYPED = "\nunion all select o.n from {{ ref('fct_"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--models", type=int, default=1000)
    options.add_argument("--letters", type=int, default=200)
    options.add_argument("--folder", type=Path, default=ROOT / "target" / "benchmarks" / "language_server")
    chosen = options.parse_args()
    world = many_models.describe(chosen.models)
    shutil.rmtree(chosen.folder, ignore_errors=True)
    written_projects.sqlrun(world, chosen.folder)
    print(f"{len(world.models)} models, {os.cpu_count()} cores")
    asyncio.run(measured(chosen.folder.resolve(), chosen.letters))


async def measured(root: Path, letters: int) -> None:
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
    answers, looks = [], []
    for number in range(letters):
        # Each letter changes the text, so that the worker is always busy beside the answers.
        typed = text + TYPED[: 1 + number % len(TYPED)]
        change = types.TextDocumentContentChangeWholeDocument(typed)
        of = types.VersionedTextDocumentIdentifier(version=number + 2, uri=uri)
        client.text_document_did_change(types.DidChangeTextDocumentParams(of, [change]))
        lines = typed.split("\n")
        at = types.Position(len(lines) - 1, len(lines[-1]))
        begun = time.perf_counter()
        await client.text_document_completion_async(types.CompletionParams(types.TextDocumentIdentifier(uri), at))
        answers.append(1000 * (time.perf_counter() - begun))
        await asyncio.sleep(0.05)
    for number in range(5):
        while not news.empty():
            news.get_nowait()
        await asyncio.sleep(3)
        change = types.TextDocumentContentChangeWholeDocument(f"{text}\nselec t{number} x")
        of = types.VersionedTextDocumentIdentifier(version=letters + number + 2, uri=uri)
        while not news.empty():
            news.get_nowait()
        begun = time.perf_counter()
        client.text_document_did_change(types.DidChangeTextDocumentParams(of, [change]))
        looks.append(await news.get() - begun)
    print(f"completion, ms: median {statistics.median(answers):.1f}, p95 {sorted(answers)[int(0.95 * letters)]:.1f}, "
          f"most {max(answers):.1f}")  # fmt: skip
    print(f"problems after an edit, s: median {statistics.median(looks):.2f}, most {max(looks):.2f}")
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


if __name__ == "__main__":
    main()
