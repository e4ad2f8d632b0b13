"""A profile: the engine, the warehouse, the settings. Shell: profile files and the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from sqlrun.errors import Place, Problem, ProjectError
from sqlrun.load import connections
from sqlrun.load.forbidden_names import path_fault
from sqlrun.load.yaml_fast import Mapped
from sqlrun.load.yaml_reader import Reader, did_you_mean
from sqlrun.project import DEFAULTS, Alerts, Profile
from sqlrun.runtime import old_names, packages
from sqlrun.storage import store_options, urls
from sqlrun.storage.factory import register

KEYS = (
    "engine", "warehouse", "storage", "threads", "settings", "vacuum_every", "keep_ticks", "check_timeout", "alerts",
    "landing",
    "statement_timeout", "stop_grace", "delta_writer", "connections", "current_folders", "catalog",
)  # fmt: skip
# Keys of the version before, which still work.
RENAMED = {"maintain_every": "vacuum_every"}
ALERT_KEYS = ("webhook", "command", "timeout")
ENGINES = ("spark", "duckdb", "auto")
LANDS = ("duckdb", "spark")
WRITERS = ("sqlrun", "library")
COPIES: Literal["copies"] = "copies"
SESSION_CATALOG = "spark_catalog"
MOST_THREADS = 256
# Maximum timeout of an alert in seconds: a tick comes every few minutes.
LONGEST_ALERT = 300
LONGEST_CHECK = 86_400
LONGEST_STATEMENT = 604_800
LONGEST_GRACE = 3600
# A century of five-minute ticks.
MOST_TICKS = 10_000_000
# `$${` stands for `${` itself.
VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)\}?")


def load(root: Path, name: str) -> Profile:
    """Return the profile of `profiles/<name>.yml`, with `${NAME}` in values replaced from the environment.

    Values from the environment may be secrets, so problems show the file's own text alone.

    Raises: ProjectError (SR13x) for a missing file, a wrong value, a variable that isn't set.
    """
    reader = _open(root, name)
    _rename_keys(reader)
    top = reader.mapping(reader.root, Place(reader.file), "a profile", KEYS, ("engine", "warehouse"))
    engine = _engine(reader, top)
    warehouse = _warehouse(reader, top, root, engine)
    if not urls.is_url(warehouse):
        _check_path(reader, top, warehouse, engine)
    storage = _storage(reader, top, warehouse)
    threads = _number(reader, top, "threads", DEFAULTS.threads, (1, MOST_THREADS))
    vacuum_every = _number(reader, top, "vacuum_every", DEFAULTS.vacuum_every, (0, MOST_TICKS))
    keep_ticks = _number(reader, top, "keep_ticks", DEFAULTS.keep_ticks, (1, MOST_TICKS))
    settings: dict[str, str] = {}
    raw = top.get("settings")
    if raw is not None and not isinstance(raw, dict):
        hint = "settings: {spark.driver.memory: 4g}"
        reader.problem("SR103", reader.value_place(top, "settings"), "`settings` must be a mapping", hint)
        raw = None
    for key in raw or {}:
        settings[key] = _expanded(reader, raw, key)
    alerts = _alerts(reader, top)
    check_timeout = _number(reader, top, "check_timeout", DEFAULTS.check_timeout, (1, LONGEST_CHECK))
    landing = _landing(reader, top, engine)
    most = (1, LONGEST_STATEMENT)
    statement_timeout = _number(reader, top, "statement_timeout", DEFAULTS.statement_timeout, most)
    stop_grace = _number(reader, top, "stop_grace", DEFAULTS.stop_grace, (0, LONGEST_GRACE))
    delta_writer = _delta_writer(reader, top)
    current_folders = _current_folders(reader, top)
    catalog = _catalog(reader, top, engine, settings)
    known = connections.read(reader, top, partial(_expanded, reader))
    if reader.problems:
        raise ProjectError(reader.problems)
    return Profile(
        name=name,
        engine=engine,
        warehouse=warehouse,
        threads=threads,
        settings=settings,
        vacuum_every=vacuum_every,
        keep_ticks=keep_ticks,
        alerts=alerts,
        check_timeout=check_timeout,
        landing=landing,
        statement_timeout=statement_timeout,
        stop_grace=stop_grace,
        delta_writer=delta_writer,
        connections=known,
        storage=storage,
        # A catalog names the folders.
        current_folders=current_folders or bool(catalog),
        catalog=catalog,
    )


def refusal(root: Path, name: str, refused: Mapping[str, str]) -> ProjectError:
    """Return an error at each setting that the profile's engine rejects; environment values aren't shown."""
    reader = _open(root, name)
    raw = reader.root["settings"]
    for key, why in refused.items():
        written = reader.text(raw, key)
        message = f"DuckDB rejects the setting `{key}: {written}`{'' if VARIABLE.search(written) else f': {why}'}"
        known = (
            "Remove it: settings that begin with `spark.` are for the engines spark and auto."
            if key.startswith("spark.")
            else ""
        )
        hint = known or "Use a setting of DuckDB, for example memory_limit: 4GB"
        reader.problem("SR131", reader.value_place(raw, key), message, hint)
    return ProjectError(reader.problems)


def missing_packages(root: Path, target: Profile) -> tuple[Problem, ...]:
    """Return SR133 at a profile's engine if the packages of Spark aren't installed."""
    if target.engine == "duckdb" or not packages.missing("spark"):
        return ()
    reader = _open(root, target.name)
    message = packages.needs(f"`engine: {target.engine}`", "spark")
    hint = f"{packages.install('spark')}, or use a profile with engine: duckdb"
    reader.problem("SR133", reader.value_place(reader.root, "engine"), message, hint)
    return tuple(reader.problems)


def _open(root: Path, name: str) -> Reader:
    file, where = root / "profiles" / f"{name}.yml", Place(f"profiles/{name}.yml")
    if not re.fullmatch(r"[\w.-]+", name) or not file.is_file():
        there = sorted(f.stem for f in (root / "profiles").glob("*.yml"))
        hint = f"Profiles: {', '.join(there)}." if there else "Write one with engine, warehouse, threads and settings."
        raise ProjectError([Problem("SR130", where, f"unknown profile `{name}`", hint + did_you_mean(name, there))])
    try:
        reader = Reader(where.file, file.read_text(encoding="utf-8-sig"), [])
    except UnicodeDecodeError:
        raise ProjectError([Problem("SR101", where, "the file is not UTF-8 text", "Save the file as UTF-8.")]) from None
    if reader.broken:
        raise ProjectError(reader.problems)
    return reader


def _rename_keys(reader: Reader) -> None:
    """Move the value of an old key to the new one, and warn; a problem where a profile has both."""
    top = reader.root
    for old, new in RENAMED.items():
        if not isinstance(top, Mapped) or old not in top:
            continue
        place = top.keys_at[old]
        if new in top:
            reader.problem(
                "SR131", place, f"`{old}` is the old name of `{new}`, and the profile has both", f"Remove `{old}`."
            )
        else:
            old_names.warn(old, new, f"{place.file}:{place.line}")
            top[new], top.values_at[new] = top[old], top.values_at[old]
            top.keys_at[new] = place
        del top[old]


def _one_of(reader: Reader, top: dict[str, object], key: str, words: tuple[str, ...], message: str, label: str) -> str:
    """Return one of several words; a value that could not be read, or with an unset variable, is no second problem."""
    known = len(reader.problems)
    value = _expanded(reader, top, key)
    if len(reader.problems) == known and value not in words:
        written = reader.text(top, key)
        hint = f"{label}: {', '.join(words)}.{did_you_mean(written, words)}"
        reader.problem("SR131", reader.value_place(top, key), message.format(written), hint)
    return value


def _engine(reader: Reader, top: dict[str, object]) -> str:
    return (
        "" if top.get("engine") is None else _one_of(reader, top, "engine", ENGINES, "unknown engine `{}`", "Engines")
    )


def _delta_writer(reader: Reader, top: dict[str, object]) -> str:
    """Return the writer of small commits."""
    if top.get("delta_writer") is None:
        return DEFAULTS.delta_writer
    return _one_of(reader, top, "delta_writer", WRITERS, "unknown delta_writer `{}`", "Writers")


def _landing(reader: Reader, top: dict[str, object], engine: str) -> str:
    """Return the engine of new landing tables; only `auto` has a choice."""
    if top.get("landing") is None:
        return ""
    known = len(reader.problems)
    landing = _one_of(reader, top, "landing", LANDS, "unknown landing engine `{}`", "Engines")
    if len(reader.problems) == known and engine != "auto":
        message = f"`landing` requires `engine: auto`, but the engine is `{engine}`"
        reader.problem("SR131", reader.value_place(top, "landing"), message, "Remove `landing`, or set `engine: auto`.")
    return landing


def _warehouse(reader: Reader, top: dict[str, object], root: Path, engine: str) -> str:
    before = len(reader.problems)
    text, written = _expanded(reader, top, "warehouse"), reader.text(top, "warehouse")
    if len(reader.problems) > before:
        return ""
    if urls.is_url(text):
        return _url(reader, top, text, engine)
    try:
        folder, project = (root / text).resolve(), root.resolve()
    except ValueError:  # half a surrogate pair, or U+0000: not a path, as `_check_path` reports
        return str(root / text)
    if top.get("warehouse") is not None and (project == folder or folder in project.parents):
        # `sqlrun clean --warehouse` deletes it.
        message, hint = (
            f"the warehouse `{written}` contains the project itself",
            "Name another folder: warehouse: warehouse/local",
        )
        reader.problem("SR131", reader.value_place(top, "warehouse"), message, hint)
    return str(folder)


def _url(reader: Reader, top: dict[str, object], text: str, engine: str) -> str:
    """Return a warehouse's URL, without empty segments; problems show the file's own text alone."""
    written, place = reader.text(top, "warehouse"), reader.value_place(top, "warehouse")
    url = urls.normal(text)
    if not urls.kind_of(url):
        message = f"the warehouse `{written}` is neither a folder nor on a known object store"
        hint = (
            f"Schemes: {', '.join(f'{scheme}://' for scheme in urls.KINDS)}. Or mount the store, and name the folder."
        )
        reader.problem("SR790", place, message, hint)
    elif wrong := urls.fault(text):
        hint = "Write scheme://bucket/prefix. A prefix may have letters, digits, blanks and most punctuation."
        reader.problem("SR790", place, f"the warehouse `{written}` can't be used: {wrong}", hint)
    elif engine in ("spark", "auto") and urls.kind_of(url) != "s3":
        message = f"the warehouse `{written}` is on a store that `engine: {engine}` can't write safely: only S3 is"
        reader.problem("SR790", place, message, "Set `engine: duckdb`, or mount the store, and name the folder.")
    return url


def _storage(reader: Reader, top: dict[str, object], warehouse: str) -> dict[str, str]:
    """Return the options of a warehouse's object store, and register them."""
    if top.get("storage") is None:
        if urls.kind_of(warehouse):
            register(warehouse)
        return {}
    kind, place = urls.kind_of(warehouse), reader.value_place(top, "storage")
    node, found = top["storage"], dict[str, str]()
    if not isinstance(node, dict):
        reader.problem("SR103", place, "`storage` must be a mapping", "storage: {region: eu-central-1}")
        return {}
    if not kind:
        if warehouse and not urls.is_url(warehouse):  # otherwise the warehouse has a problem of its own
            message = "`storage` has options of an object store, but the warehouse is a folder"
            reader.problem("SR790", place, message, "Remove `storage`, or name a URL: warehouse: s3://bucket/prefix")
        return {}
    for key in node:
        wrong, hint = store_options.fault(kind, str(key))
        if wrong:
            reader.problem("SR790", reader.value_place(node, key), f"`storage`: {wrong}", hint)
            continue
        value = node[key]
        found[str(key)] = str(value).lower() if isinstance(value, bool) else _expanded(reader, node, key)
    register(warehouse, found)
    return found


def _check_path(reader: Reader, top: dict[str, object], warehouse: str, engine: str) -> None:
    """Record a path that an engine would reject, or read as another (SR737); the path itself may be a secret."""
    fault = path_fault(warehouse, engine)
    if fault:
        message = f"the path of the warehouse contains `{fault}`, which {engine or 'the engine'} can't handle"
        hint = "Move the project, or name another folder. Letters, digits, spaces and most punctuation are allowed."
        reader.problem("SR737", reader.value_place(top, "warehouse"), message, hint)


def _alerts(reader: Reader, top: dict[str, object]) -> Alerts:
    """Return where alerts go; problems show the file's own text alone, because an address contains a secret."""
    if top.get("alerts") is None:
        return Alerts()
    node = reader.mapping(top["alerts"], reader.value_place(top, "alerts"), "alerts", ALERT_KEYS)
    webhook = _expanded(reader, node, "webhook")
    place = reader.value_place(node, "command")
    command = tuple(_filled(reader, word, place) for word in reader.texts(node, "command"))
    if webhook and not _is_address(webhook):
        message = f"the webhook `{reader.text(node, 'webhook')}` isn't an http(s) address, or contains a user name"
        reader.problem(
            "SR131",
            reader.value_place(node, "webhook"),
            message,
            "Write the address, or read it from the environment: webhook: ${ALERT_URL}",
        )
    if command and not command[0]:
        reader.problem(
            "SR131", place, "the command of `alerts` is empty", "Name the program: command: [notify, --quiet]"
        )
    return Alerts(webhook, command, _number(reader, node, "timeout", 20, (1, LONGEST_ALERT)))


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  an invalid port raises
    except ValueError:
        return False
    sound = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    return sound and text.isascii() and text.isprintable() and " " not in text


def _number(reader: Reader, top: dict[str, object], key: str, default: int, limits: tuple[int, int]) -> int:
    text = _expanded(reader, top, key) or str(default)
    least, most = limits
    if re.fullmatch("[0-9]{1,8}", text) and least <= int(text) <= most:
        return int(text)
    message = f"`{key}` must be a whole number between {least} and {most}, not `{reader.text(top, key)}`"
    reader.problem("SR131", reader.value_place(top, key), message, f"{key}: {default}")
    return default


def _catalog(reader: Reader, top: dict[str, object], engine: str, settings: Mapping[str, str]) -> str:
    """Return the name of Spark's catalog; "" for none. It must be one that outlives the session."""
    if top.get("catalog") is None:
        return ""
    known = len(reader.problems)
    name, place = _expanded(reader, top, "catalog"), reader.value_place(top, "catalog")
    if len(reader.problems) > known:
        return ""
    if engine != "spark":
        message = f"`catalog` requires `engine: spark`, but the engine is `{engine}`"
        hint = "Set `current_folders: true`, and run the statements of `sqlrun views --dialect spark-tables` in Spark."
    elif not re.fullmatch(r"[A-Za-z_]\w*", name):
        message, hint = f"`{reader.text(top, 'catalog')}` isn't the name of a catalog", f"catalog: {SESSION_CATALOG}"
    elif "spark.remote" in settings:
        return name  # the server has settings of its own
    elif name == SESSION_CATALOG:
        if settings.get("spark.sql.catalogImplementation") == "hive":
            return name
        message = f"the catalog `{name}` ends with the session of Spark, because it has no metastore"
        hint = "settings: {spark.sql.catalogImplementation: hive, spark.hadoop.hive.metastore.uris: thrift://HOST:9083}"
    elif f"spark.sql.catalog.{name}" in settings:
        return name
    else:
        message = f"Spark doesn't know the catalog `{name}`"
        hint = f"Add its class to the settings: spark.sql.catalog.{name}: CLASS"
    reader.problem("SR131", place, message, hint)
    return ""


def _current_folders(reader: Reader, top: dict[str, object]) -> bool | Literal["copies"]:
    """Return a key that is true, false or `copies`; false by default."""
    text = (_expanded(reader, top, "current_folders") or "false").lower()
    if text == COPIES:
        return COPIES
    if text not in ("true", "false"):
        message = f"`current_folders` must be true, false or {COPIES}, not `{reader.text(top, 'current_folders')}`"
        reader.problem("SR131", reader.value_place(top, "current_folders"), message, "current_folders: true")
    return text == "true"


def _expanded(reader: Reader, node: object, key: str) -> str:
    """Return a text with the environment's values."""
    return _filled(reader, reader.text(node, key), reader.value_place(node, key))


def _filled(reader: Reader, text: str, place: Place) -> str:
    def value(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        name = found[1]
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) or not found[0].endswith("}"):
            hint = "Write ${NAME}. For the characters ${, write $${."
            reader.problem("SR132", place, f"`{found[0]}` isn't the name of an environment variable", hint)
            return ""
        if name not in os.environ:
            hint = f"Set it before the run: export {name}=..."
            reader.problem("SR132", place, f"the environment variable `{name}` is not set", hint)
            return ""
        return os.environ[name]

    return VARIABLE.sub(value, text)
