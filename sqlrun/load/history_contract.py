"""Check the contract of a history (SR556). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sqlrun.errors import Place, Problem
from sqlrun.load.yaml_reader import did_you_mean
from sqlrun.project import HISTORY, IS_CURRENT, VALID_FROM, VALID_TO, VERSION_COLUMNS, Column, Config, Model

# Settings of a history alone, with their defaults.
SETTINGS = {"updated_at": "", "check_cols": (), "hard_deletes": "invalidate"}
TYPES = {VALID_FROM: "timestamp", VALID_TO: "timestamp", IS_CURRENT: "boolean"}
COLUMNS = "valid_from timestamp, valid_to timestamp, is_current boolean"


def problems(model: Model, config: Config, *, lands: bool) -> Iterator[Problem]:
    """Yield what is wrong with a model's settings of a history, or with the contract of one."""
    if config.materialized != HISTORY:
        for key, default in SETTINGS.items():
            if getattr(config, key) != default:
                message = f"`{key}` has no effect: `{model.name}` isn't a history"
                yield _problem(model, key, message, "Set `materialized: history`, or remove it.")
        return
    if lands:
        message = f"the history `{model.name}` reads a source, which only a table can land"
        yield _problem(model, "", message, "Land the source in another model, and read that one here.")
    if not model.columns:
        return  # another problem reports the contract
    yield from _columns(model)
    yield from _settings(model, config)


def _columns(model: Model) -> Iterator[Problem]:
    for name in VERSION_COLUMNS:
        column = model.column(name)
        if column is None:
            message = f"the contract of the history `{model.name}` lacks the column `{name}`"
            yield _problem(model, "", message, f"Add the columns that sqlrun computes: {COLUMNS}.")
        elif column.type != TYPES[name]:
            message = f"the column `{name}` of a history must be {TYPES[name]}, not {column.type}"
            yield Problem("SR556", column.place, message, f"Set `data_type: {TYPES[name]}`.")
    end = model.column(VALID_TO)
    if end is not None and not end.nullable:
        message = f"`{VALID_TO}` of the history `{model.name}` must be nullable: it is NULL while a version is valid"
        yield Problem("SR556", end.place, message, "Remove `nulls: false`.")
    if VALID_FROM not in model.grain or not set(model.grain) - set(VERSION_COLUMNS):
        message = f"the grain of the history `{model.name}` must be the key of a row and `{VALID_FROM}`"
        yield _problem(model, "grain", message, f"Write it as: grain: [id, {VALID_FROM}].")


def _settings(model: Model, config: Config) -> Iterator[Problem]:
    own = [column.name for column in model.columns if column.name not in VERSION_COLUMNS]
    for key, names in (("updated_at", (config.updated_at,)), ("check_cols", config.check_cols)):
        for name in names:
            if name and name not in own:
                hint = f"Columns: {', '.join(own)}.{did_you_mean(name, own)}"
                yield _problem(model, key, f"unknown column `{name}` in `{key}` of `{model.name}`", hint)
    updated = model.column(config.updated_at) if config.updated_at else None
    if updated is not None and not _is_time(updated):
        message = f"`updated_at` of `{model.name}` must be a timestamp, but `{updated.name}` is {updated.type}"
        yield _problem(model, "updated_at", message, "Cast it in the query, or remove `updated_at`.")
    if config.updated_at and config.check_cols:
        message = f"`{model.name}` sets both `updated_at` and `check_cols`"
        yield _problem(model, "check_cols", message, "Remove one: a version begins by a time, or by a changed column.")


def _is_time(column: Column) -> bool:
    return column.type == "timestamp"


def _problem(model: Model, key: str, message: str, hint: str) -> Problem:
    """Return a problem at a key of the contract, or at the contract if the key is elsewhere."""
    said = next((one.place for one in model.said if one.words == f"`{key}`"), None)
    return Problem("SR556", said or Place(model.contract_file or model.file), message, hint)
