"""`sqlrun new contract`: write what follows from models' queries into their contracts. Shell: the project's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlrun import pipeline
from sqlrun.errors import UsageError
from sqlrun.incremental.compile import Compiled
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.pipeline import Prepared
from sqlrun.project import Model
from sqlrun.runtime import atomic_files
from sqlrun.runtime.disk_cache import Cache
from sqlrun.scaffold import contract_text


def write_contracts(root: Path, names: tuple[str, ...], every: bool, write: bool) -> list[str]:
    """Print or write the complete contracts of models whose contracts are open; return the lines to print.

    Raises: UsageError for an unknown model, or a contract that can't be edited; then nothing is written.
    """
    prepared = pipeline.prepare(root, Cache.of(root))
    models = _models(prepared, names, every)
    texts: dict[str, str] = {}
    lines = []
    for model in models:
        if not model.is_open:
            if not every:
                lines.append(f"{model.name}: its contract in {model.contract_file} is complete.")
            continue
        file = model.contract_file or model.file.removesuffix(".sql") + ".yml"
        grain = _grain(prepared, model)
        if model.contract_file:
            before = texts.get(file) or (root / file).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
            texts[file] = contract_text.completed(before, model, grain)
        else:
            texts[file] = contract_text.of_model(model, grain)
        if write:
            lines.append(f"Wrote {len(model.columns)} columns of {model.name} to {file}.")
    if not write:
        return [*lines, *_shown(texts)]
    _write(root, texts)
    return lines or ["Every contract is complete."]


def _models(prepared: Prepared, names: tuple[str, ...], every: bool) -> list[Model]:
    known = {model.name: model for model in prepared.project.models}
    if every == bool(names):
        raise UsageError("name a model, or write --all")
    for name in names:
        if name not in known:
            raise UsageError(f"unknown model `{name}`.{did_you_mean(name, known)}")
    return list(known.values()) if every else [known[name] for name in dict.fromkeys(names)]


def _grain(prepared: Prepared, model: Model) -> tuple[str, ...]:
    """Return the grain that follows from a query: the columns that it groups by, for example."""
    if model.grain or model.config.materialized != "table":
        return ()
    compiled: Compiled = next(one for one in prepared.workspace.models if one.name == model.name)
    node = compiled.own.node
    grain = node.grain() if node is not None and compiled.source is None and not node.has_copies() else None
    return grain if grain and {*grain} <= {column.name for column in model.columns} else ()


def _shown(texts: dict[str, str]) -> Iterator[str]:
    for file, text in texts.items():
        yield f"# {file}"
        yield from text.rstrip("\n").split("\n")


def _write(root: Path, texts: dict[str, str]) -> None:
    """Write the files, and read the project again; restore them if it isn't valid any more."""
    before = {file: (root / file).read_bytes() if (root / file).exists() else None for file in texts}
    try:
        for file, text in texts.items():
            if before[file] is None and not atomic_files.write_new(root / file, text):
                raise UsageError(f"{file} was written in the meantime. Run the command again")
            if before[file] is not None:
                atomic_files.put(root / file, text)
        pipeline.prepare(root)
    except BaseException:
        for file, data in before.items():
            if data is None:
                (root / file).unlink(missing_ok=True)
            else:
                atomic_files.put(root / file, data)
        raise
