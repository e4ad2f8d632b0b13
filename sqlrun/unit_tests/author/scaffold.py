"""Starting points for new models and new unit tests. Shell: the project's files, DuckDB in memory."""

from __future__ import annotations

from pathlib import Path

from sqlrun import pipeline
from sqlrun.errors import Problem, ProjectError, UsageError
from sqlrun.graph.selectors import select as select_nodes
from sqlrun.load.yaml_reader import Reader
from sqlrun.pipeline import Prepared
from sqlrun.project import Model, Source, UnitTest
from sqlrun.runtime import atomic_files
from sqlrun.runtime.disk_cache import Cache
from sqlrun.test_definitions import declared
from sqlrun.test_definitions.files import inputs
from sqlrun.test_definitions.names import Known
from sqlrun.unit_tests.author import skeletons
from sqlrun.unit_tests.author.examples import NOON, row_of
from sqlrun.unit_tests.author.yaml_writer import KEY, Written, appended, free_name
from sqlrun.unit_tests.run.answers import Answers, asks_for_time
from sqlrun.unit_tests.run.run import run


def new_model(root: Path, text: str, read: tuple[str, ...]) -> list[str]:
    """Write a model's query, its contract and a unit test; return the lines to print.

    Raises: UsageError for a path that exists or is outside of models/; ProjectError if the project is invalid.
    """
    spot = skeletons.place_of(text)
    files = [root / f"{spot.stem}{suffix}" for suffix in (".sql", ".yml")]
    _require_inside(root, files)
    project = pipeline.prepare(root, Cache.of(root)).project
    skeletons.require_free(project, spot.name)
    nouns_read = [skeletons.noun(project, name) for name in dict.fromkeys(read)]
    written: list[Path] = []
    texts = (skeletons.sql(nouns_read), skeletons.contract(spot.name, nouns_read))
    try:
        for file, content in zip(files, texts, strict=True):
            if not atomic_files.write_new(file, content):
                raise UsageError(f"{file.relative_to(root)} was written in the meantime. Nothing was overwritten")
            written.append(file)
        lines = new_test(root, spot.name, None) if nouns_read else []
    except BaseException:
        for file in written:
            file.unlink(missing_ok=True)
        raise
    names = [f"Wrote {file.relative_to(root)}." for file in files]
    return [*names, *lines[:-1], f"Next: edit them, then `sqlrun test --select {spot.name}`."]


def _require_inside(root: Path, files: list[Path]) -> None:
    for file in files:
        if file.exists() or file.is_symlink():
            raise UsageError(f"{file.relative_to(root)} already exists. Nothing was overwritten")
    folder = files[0].parent
    while folder != root:
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise UsageError(
                f"{folder.relative_to(root)} isn't a folder of the project. Models must be in real folders"
            )
        folder = folder.parent


def new_test(root: Path, name: str, called: str | None) -> list[str]:
    """Append a unit test to those of a model: one row for each input, and the query's result over them.

    Raises: UsageError for an unknown model, a name in use, or a query that DuckDB can't run.
    """
    prepared = pipeline.prepare(root, Cache.of(root))
    model = model_of(prepared, name)
    query = next(query for query in prepared.queries if query.name == name)
    project = prepared.project
    tables = {_table(noun): noun for noun in skeletons.all_of(project)}
    as_of = NOON.isoformat(" ") if asks_for_time(query) else ""
    queries = {query.name: query for query in prepared.queries}
    given = []
    with Answers(project, queries, name, as_of) as answers:
        for table in answers.inputs:
            rows = (row_of(project, tables[table]),)
            answers.type_in(table, rows)
            given.append((skeletons.call(tables[table]), rows))
        expect = tuple(answers.rows())
    test = Written(test_name(prepared, called, f"{name}_example"), name, tuple(given), expect, as_of=as_of)
    file = add(root, prepared, model, test)
    what = "1 row" if len(expect) == 1 else f"{len(expect)} rows"
    return [f"Wrote the unit test {test.name} to {file}: a row for each input, {what} expected.",
            f"Next: edit it, then `sqlrun test --select {name}`."]  # fmt: skip


def _table(noun: skeletons.Noun) -> str:
    return noun.table if isinstance(noun, Source) else noun.name


def model_of(prepared: Prepared, name: str) -> Model:
    """Return a model by name. Raises: UsageError or ProjectError with the nearest names."""
    found = next((model for model in prepared.project.models if model.name == name), None)
    if found is None:
        select_nodes(prepared.graph, (name,))  # raises with the nearest names
        raise UsageError(f"{name} is not a model. Only models have unit tests")
    return found


def test_name(prepared: Prepared, called: str | None, otherwise: str) -> str:
    """Return the name of a new test: the requested one, or `otherwise` with a number if that is in use.

    Raises: UsageError for an invalid name or one that another test has.
    """
    taken = {test.name: model for model in prepared.project.models for test in model.unit_tests}
    if called is None:
        return free_name(otherwise, taken)
    if called in taken:
        raise UsageError(f"{taken[called].contract_file} already has a unit test `{called}`. Choose another name")
    if not called.isidentifier() or not called.isascii():
        raise UsageError(
            f"invalid name `{called}` for a unit test. Use letters, digits and `_` only, and begin with a letter."
        )
    return called


def add(root: Path, prepared: Prepared, model: Model, test: Written) -> str:
    """Append a test to its model's file if it passes; return the file's name.

    Raises: UsageError if the test fails or the file can't be extended; then nothing is written.
    """
    name = model.contract_file or model.file.removesuffix(".sql") + ".yml"
    file = (root / name).resolve()
    try:
        before = file.read_bytes().decode("utf-8") if model.contract_file else f"models:\n  - name: {model.name}\n"
        text = appended(name, before, test)
        made = _read(prepared, model, test)
    except ValueError as error:
        raise UsageError(f"{error}. Nothing was written") from None
    _require_same(name, before, text)
    query = next(query for query in prepared.queries if query.name == model.name)
    queries = {query.name: query for query in prepared.queries}
    for result in run(prepared.project, queries, [(made, query)]):
        if result.status != "pass":
            why = result.message or f"missing {result.missing[:2]}, unexpected {result.unexpected[:2]}"
            raise UsageError(f"the new test of {model.name} fails on DuckDB: {why}. Nothing was written")
    if model.contract_file:
        atomic_files.put(file, text)
    elif not atomic_files.write_new(file, text):
        raise UsageError(f"{name} was written in the meantime. Nothing was overwritten")
    return name


def _read(prepared: Prepared, model: Model, test: Written) -> UnitTest:
    """Return the new test, read as from a project's file. Raises: ProjectError."""
    problems: list[Problem] = []
    project = prepared.project
    alone = "\n".join([f"{KEY}:", *test.lines()])
    known = Known(dict(inputs(project)), functions=project.functions)
    (made,) = declared.unit_tests(Reader(model.contract_file or model.file, alone, problems), known)
    if problems:
        raise ProjectError(problems)
    return made


def _require_same(file: str, before: str, after: str) -> None:
    """Require that a file's content differs by one new test only. Raises: UsageError."""
    problems: list[Problem] = []
    old, new = (Reader(file, text.removeprefix("\ufeff"), problems).root for text in (before, after))
    if problems or {**new, KEY: None} != {**old, KEY: None} or new[KEY][:-1] != (old.get(KEY) or []):
        raise UsageError(f"sqlrun can't insert a test into {file}. Nothing was written")
