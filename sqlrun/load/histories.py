"""Check the contract of a history (SR556), and read dbt's snapshots as histories. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlrun.errors import Place, Problem
from sqlrun.load.contract import CHOICES, check_name, configured
from sqlrun.load.exposures import REF, SOURCE
from sqlrun.load.yaml_reader import Reader, did_you_mean, listed
from sqlrun.project import HISTORY, IS_CURRENT, IS_DELETED, VALID_FROM, VALID_TO, Column, Config, Model, Said

# Settings of a history alone.
SETTINGS = ("updated_at", "check_cols", "hard_deletes")
DEFAULTS = Config()
TYPES = {VALID_FROM: "timestamp", VALID_TO: "timestamp", IS_CURRENT: "boolean", IS_DELETED: "boolean"}
SNAPSHOT_KEYS = ("name", "relation", "description", "config")
SNAPSHOT_SETTINGS = (
    "unique_key", "strategy", "updated_at", "check_cols", "hard_deletes", "invalidate_hard_deletes", "tags",
    "snapshot_meta_column_names",
)  # fmt: skip
# dbt's names of the columns of a version, and sqlrun's.
META = {"dbt_valid_from": VALID_FROM, "dbt_valid_to": VALID_TO, "dbt_is_deleted": IS_DELETED}
ABOUT = {
    VALID_FROM: "When the version became valid.",
    VALID_TO: "When it ended; NULL if it didn't.",
    IS_CURRENT: "Whether it is valid now.",
    IS_DELETED: "Whether the row was gone.",
}
# The columns of each table that a snapshot may read, by its text: `ref('x')` or `source('a', 'b')`.
Tables = Mapping[str, tuple[Column, ...]]


def problems(model: Model, config: Config, *, lands: bool) -> Iterator[Problem]:
    """Yield what is wrong with a model's settings of a history, or with the contract of one."""
    if config.materialized != HISTORY:
        for key in SETTINGS:
            if getattr(config, key) != getattr(DEFAULTS, key):
                message = f"`{key}` has no effect: `{model.name}` isn't a history"
                yield _problem(model, key, message, "Set `materialized: history`, or remove it.")
        return
    if lands:
        message = f"the history `{model.name}` reads a source, which only a table can land"
        yield _problem(model, "", message, "Land the source in another model, and read that one here.")
    if not model.columns:
        return  # another problem reports the contract
    yield from _columns(model, config)
    yield from _settings(model, config)


def _columns(model: Model, config: Config) -> Iterator[Problem]:
    for name in config.version_columns:
        column = model.column(name)
        if column is None:
            message = f"the contract of the history `{model.name}` lacks the column `{name}`"
            listed_types = ", ".join(f"{one} {TYPES[one]}" for one in config.version_columns)
            yield _problem(model, "", message, f"Add the columns that sqlrun computes: {listed_types}.")
        elif column.type != TYPES[name]:
            message = f"the column `{name}` of a history must be {TYPES[name]}, not {column.type}"
            yield Problem("SR556", column.place, message, f"Set `data_type: {TYPES[name]}`.")
    end = model.column(VALID_TO)
    if end is not None and not end.nullable:
        message = f"`{VALID_TO}` of the history `{model.name}` must be nullable: it is NULL while a version is valid"
        yield Problem("SR556", end.place, message, "Remove `nulls: false`.")
    if VALID_FROM not in model.grain or not set(model.grain) - set(config.version_columns):
        message = f"the grain of the history `{model.name}` must be the key of a row and `{VALID_FROM}`"
        yield _problem(model, "grain", message, _grain(model, config))


def _grain(model: Model, config: Config) -> str:
    """Return how to write the grain of a history: by the key that it has, or by the query's first column."""
    key = [name for name in model.grain if name not in config.version_columns]
    own = [column.name for column in model.columns if column.name not in config.version_columns]
    written = f"grain: [{', '.join([*(key or own[:1] or ['id']), VALID_FROM])}]"
    return f"Write it as: {written}." if key else f"Name the columns of the key, for example {written}."


def _settings(model: Model, config: Config) -> Iterator[Problem]:
    own = [column.name for column in model.columns if column.name not in config.version_columns]
    for key, names in (("updated_at", (config.updated_at,)), ("check_cols", config.check_cols)):
        for name in names:
            if name and name not in own:
                hint = f"Columns: {', '.join(own)}.{did_you_mean(name, own)}"
                yield _problem(model, key, f"unknown column `{name}` in `{key}` of `{model.name}`", hint)
    updated = model.column(config.updated_at) if config.updated_at else None
    if updated is not None and updated.type != TYPES[VALID_FROM]:
        message = f"`updated_at` of `{model.name}` must be a timestamp, but `{updated.name}` is {updated.type}"
        yield _problem(model, "updated_at", message, "Cast it in the query, or remove `updated_at`.")
    if config.updated_at and config.check_cols:
        message = f"`{model.name}` sets both `updated_at` and `check_cols`"
        yield _problem(model, "check_cols", message, "Remove one: a version begins by a time, or by a changed column.")


def _problem(model: Model, key: str, message: str, hint: str) -> Problem:
    """Return a problem at a key of the contract, or at the contract if the key is elsewhere."""
    said = next((one.place for one in model.said if one.words == f"`{key}`"), None)
    return Problem("SR556", said or Place(model.contract_file or model.file), message, hint)


def snapshots(reader: Reader, tables: Tables) -> Iterator[Model]:
    """Yield the models of a file's `snapshots:`, which dbt's YAML declares: histories of tables with a contract."""
    top = reader.mapping(reader.root, Place(reader.file), "the file", ("version", "snapshots"), ("snapshots",))
    for item, place in reader.items(top, "snapshots", "the file"):
        node = reader.mapping(item, place, "a snapshot", SNAPSHOT_KEYS, ("name", "relation", "config"))
        inner, needed = node.get("config"), ("unique_key", "strategy")
        if node.get("relation") is None or inner is None:
            continue
        check_name(reader, node, "a snapshot")
        text = _relation(reader, node, tables)
        config = reader.mapping(inner, reader.value_place(node, "config"), "`config`", SNAPSHOT_SETTINGS, needed)
        if text is None or not config:
            continue
        columns = tuple(replace(column, name=column.name.lower()) for column in tables[text])
        known = [column.name for column in columns]
        items = ", ".join("`" + name.replace("`", "``") + "`" for name in known)
        made = _config(reader, config)
        described = tuple(Column(name, TYPES[name], ABOUT[name], place) for name in made.version_columns)
        said = tuple(Said(f"`{key}`", reader.place(config, key)) for key in SETTINGS if key in config)
        yield Model(
            name=reader.text(node, "name"),
            file=reader.file,
            sql=f"select {items} from {{{{ {text} }}}}",
            contract_file=reader.file,
            description=reader.words(node) or f"Each version of a row of {text}.",
            grain=(*_unique_key(reader, config, known), VALID_FROM),
            repeats=False,
            columns=(*columns, *described),
            config=made,
            unit_tests=(),
            said=said,
        )


def _relation(reader: Reader, node: Any, tables: Tables) -> str | None:
    """Return the text of the table that a snapshot reads; None if there is no such table, which is recorded."""
    written, place = reader.text(node, "relation"), reader.value_place(node, "relation")
    ref, source = REF.fullmatch(written), SOURCE.fullmatch(written)
    if ref is None and source is None:
        hint = "Use ref('model') or source('group', 'name')."
        reader.problem("SR110", place, f"invalid `relation`: `{written}`", hint)
        return None
    text = f"ref('{ref[2]}')" if ref else f"source('{source[2]}', '{source[4]}')" if source else ""
    if text in tables:
        return text
    code, what = ("SR202", "model") if ref is not None else ("SR203", "source")
    hint = f"Tables with a contract: {listed(tables)}.{did_you_mean(text, tables)}"
    reader.problem(code, place, f"unknown {what} in `relation`: {text}", hint)
    return None


def _unique_key(reader: Reader, config: Any, known: list[str]) -> tuple[str, ...]:
    names = tuple(name.lower() for name in reader.texts(config, "unique_key"))
    for name in names:
        if name not in known:
            hint = f"Columns: {', '.join(known)}.{did_you_mean(name, known)}"
            place = reader.value_place(config, "unique_key")
            reader.problem("SR108", place, f"unknown column `{name}` in `unique_key`", hint)
    return names


def _config(reader: Reader, config: Any) -> Config:
    """Return a snapshot's settings, with dbt's defaults: a row that is gone stays valid."""
    strategy = reader.choice(config, "strategy", ("timestamp", "check"), "check")
    needed = "updated_at" if strategy == "timestamp" else "check_cols"
    if needed not in config:
        place = reader.value_place(config, "strategy")
        reader.problem("SR104", place, f"a snapshot with `strategy: {strategy}` needs `{needed}`", f"Add `{needed}:`.")
    gone = "invalidate" if reader.flag(config, "invalidate_hard_deletes", False) else "ignore"
    if "hard_deletes" in config:
        gone = reader.choice(config, "hard_deletes", CHOICES["hard_deletes"], gone)
    names = config.get("snapshot_meta_column_names")
    if names is not None and not (isinstance(names, Mapping) and all(META.get(k) == v for k, v in names.items())):
        place = reader.value_place(config, "snapshot_meta_column_names")
        hint = "Write: snapshot_meta_column_names: {dbt_valid_from: valid_from, dbt_valid_to: valid_to}."
        message = "a snapshot's columns are named valid_from, valid_to, is_current and is_deleted"
        reader.problem("SR110", place, message, hint)
    begins = {needed: reader.text(config, needed) if needed == "updated_at" else reader.texts(config, needed)}
    tags = reader.texts(config, "tags")
    return configured({"materialized": HISTORY, "hard_deletes": gone, "tags": tags, **begins})
