"""`sqlrun serve`: reject unsafe settings, read the newest tick, run the server. Shell: the project, the network."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlrun import project_files
from sqlrun.errors import UsageError
from sqlrun.load import profile
from sqlrun.project import Project
from sqlrun.publish import environments
from sqlrun.publish.ledger import Ledger
from sqlrun.report.console import Console
from sqlrun.runtime import packages
from sqlrun.runtime.clock import parse_duration
from sqlrun.runtime.disk_cache import Cache
from sqlrun.runtime.stopping import limit_statements
from sqlrun.runtime.streams import give_up
from sqlrun.serve.offer import offer
from sqlrun.serve.snapshot import Reader

BACKLOG = 2048
# Thresholds of Python's cyclic garbage collector. A collection pauses all answers, so each one is small.
GARBAGE = (1_000, 20, 100)
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def require_libraries() -> None:
    """Check that the libraries of the extra `serve` are installed.

    Raises: UsageError (SR133) with the command that installs them.
    """
    packages.require("`sqlrun serve`", "serve")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def serve_command(root: Path, options: dict[str, Any], clock: Callable[[], datetime]) -> int:
    """Run `sqlrun serve` and return its exit code.

    Raises: UsageError if a library is missing, or `host` isn't loopback and there is no key.
    """
    require_libraries()
    from sqlrun.serve.keys import HOW, Keys

    keys, loopback = Keys(options["keys"]), is_loopback(options["host"])
    if options["ingest"] and not keys.by_id:
        raise UsageError(
            f"--ingest needs a key, because each sender needs a token. Set one: {HOW}; or name a file of keys: "
            "--keys FILE"
        )
    if not keys.by_id and not loopback:
        raise UsageError(
            f"{options['host']} is reached by others, and there is no key to know them by. Set one: {HOW}; "
            "or name a file of keys: --keys FILE; or serve on 127.0.0.1"
        )
    project = project_files.project(root, Cache.of(root))
    target = profile.load(root, options["profile"] or project.profile)
    limit_statements(target.statement_timeout)
    warehouse = target.warehouse
    console = Console()
    if not keys.by_id:
        console.print("There is no key: every user of this machine sees everything, as an operator.", "warning")
    ledger = Ledger(warehouse, project.name, options["env"])
    return _served(root, ledger, project, keys, loopback, options, console, clock)


def _served(
    root: Path,
    ledger: Ledger,
    project: Project,
    keys: Any,
    loopback: bool,
    options: dict[str, Any],
    console: Console,
    clock: Callable[[], datetime],
) -> int:
    from sqlrun.runtime.rate_limits import Limits
    from sqlrun.serve.access import Gatekeeper
    from sqlrun.serve.app import application
    from sqlrun.serve.live import Live, Watcher
    from sqlrun.serve.metrics import Metrics
    from sqlrun.serve.operator import Operations
    from sqlrun.serve.proxies import Proxies
    from sqlrun.serve.site import Site

    if ledger.env and ledger.env not in environments.names(ledger.warehouse):
        raise environments.unknown(ledger)
    offered = offer(project, required=not options["ingest"])
    reader = Reader(ledger.warehouse, offered, ledger.env)
    live = Live(clock, timedelta(minutes=parse_duration(options["stale_after"])))
    watcher = Watcher(ledger, reader, live)
    # A missing table or column fails the start, not each answer.
    watcher.look()
    rate, hosts = options["rate"], frozenset((*LOCAL_NAMES, *(name.lower() for name in options["allow_host"])))
    log = (lambda _: None) if options["no_access_log"] else logged
    limits, metrics = Limits(rate, max(1.0, 5 * rate)), Metrics()
    intake = _intake(root, project, keys, metrics, options, clock) if options["ingest"] else None
    site = Site(
        live=live,
        offered=offered,
        reader=reader,
        keys=keys,
        gatekeeper=Gatekeeper(keys.by_id, offered.claims),
        limits=limits,
        metrics=metrics,
        hosts=hosts if loopback else None,
        log=log,
        operations=Operations(ledger, project),
        intake=intake,
        proxies=Proxies.of(options["trusted_proxy"]),
    )
    shown = str(live.snapshot.published) if live.snapshot else "no tick yet: it waits for the first one"
    shown_host = f"[{options['host']}]" if ":" in options["host"] else options["host"]
    listening = _listening(options["host"], options["port"])
    found = addresses(f"http://{shown_host}:{options['port']}/", [board.api for board in offered.boards])
    if intake is not None:
        found.append(f"   lines for {', '.join(intake.doors)}: POST to /api/v1/ingest/GROUP/NAME")
    console.lines([f"Serving {shown}", *found])
    try:
        _run(application(site, watcher.start), listening)
    finally:
        watcher.stop()
    return 0


def _intake(
    root: Path, project: Project, keys: Any, metrics: Any, options: dict[str, Any], clock: Callable[[], datetime]
) -> Any:
    from sqlrun.serve.ingest.opening import Settings, opened

    settings = Settings(options["ingest_rate"], options["ingest_body"] * 1024 * 1024, options["ingest_every"])
    return opened(root, project, keys.by_id, metrics, clock, settings)


def addresses(root: str, boards: Sequence[str]) -> list[str]:
    """Return the lines that list the addresses of a server's pages; each of several dashboards has its own.

    >>> addresses("http://a/", ["clicks"]), addresses("http://a/", ["clicks", "orders"])[1:]
    (['at http://a/  (Ctrl-C stops it)'], ['   http://a/clicks', '   http://a/orders'])
    """
    return [f"at {root}  (Ctrl-C stops it)", *(f"   {root}{api}" for api in boards if len(boards) > 1)]


def _listening(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises: UsageError if the address is in use, or isn't an address of this machine.
    """
    plain = host.strip("[]")
    try:
        family = socket.AF_INET6 if ":" in plain else socket.AF_INET
        return socket.create_server((plain, port), family=family, backlog=BACKLOG)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"port {port} of {host} can't be listened on: {why}. --port takes another") from error


def _run(app: Any, listening: socket.socket) -> None:
    # While another thread reads a tick, an answer waits at most this long for the interpreter (default: 5 ms).
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    # Ctrl-C isn't a failure; uvicorn raises it again after the shutdown.
    with contextlib.suppress(KeyboardInterrupt):
        server_of(app).run(sockets=[listening])


def server_of(app: Any, most: int = 0, seconds: float = 0) -> Any:
    """Return the HTTP server.

    `most` is the maximum number of connections, `seconds` the time limit for a request to arrive; 0 is the default.
    """
    import uvicorn

    from sqlrun.serve.connections import REQUEST_SECONDS, most_connections, protocol

    most = most or most_connections()

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Streams of events never end unless the application stops them, so it does that first.
            app.stop()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=protocol(most, seconds or REQUEST_SECONDS),
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    return Server(config)


def logged(entry: Mapping[str, Any]) -> None:
    """Write an entry of the access log to standard output, as one line of JSON."""
    try:
        sys.stdout.write(json.dumps(entry, ensure_ascii=True) + "\n")
    except OSError as error:
        give_up(sys.stdout, error)  # the log's reader may exit; the server continues


def print_token(
    root: Path, owners: Sequence[str], operator: bool, sources: Sequence[str], hours: float, file: Path | None
) -> int:
    """Run `sqlrun serve token`: print a token. `owners` are its words `--ENTITY KEY`, `sources` those of `--ingest`.

    Raises: UsageError if there is neither an owner nor `operator` nor a source, or sources and one of the others; if
        the project lacks an entity or a source; if no key can sign.
    """
    require_libraries()
    from sqlrun.serve.access import ingest_token, token
    from sqlrun.serve.keys import Keys

    if sources:
        from sqlrun.serve.ingest.opening import require_sources

        if owners or operator:
            raise UsageError("a token for --ingest reads nothing. Make a second token to read")
        require_sources(project_files.project(root, Cache.of(root)), sources)
        Console().raw(ingest_token(Keys(file).signing(), sources, time.time(), hours * 3600))
        return 0
    owns: dict[str, list[str]] = {}
    if owners or not operator:
        nouns = offer(project_files.project(root, Cache.of(root))).nouns
        for noun, key in _pairs(owners, sorted(nouns)):
            owns.setdefault(nouns[noun], []).append(key)
    if not owns and not operator:
        options = ", ".join(f"--{noun} KEY" for noun in sorted(nouns)) or "--ENTITY KEY"
        raise UsageError(f"name at least one key ({options}; repeatable), or --operator, or --ingest SOURCE")
    Console().raw(token(Keys(file).signing(), owns, operator, time.time(), hours * 3600))
    return 0


def _pairs(words: Sequence[str], nouns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the noun and the key of each `--noun KEY` and `--noun=KEY`.

    Raises: UsageError for another word.
    """
    left = list(words)
    while left:
        noun, equals, key = left.pop(0).partition("=")
        if noun.removeprefix("--") not in nouns or not noun.startswith("--"):
            known = ", ".join(f"--{one}" for one in nouns) or "none"
            raise UsageError(f"there is no option `{noun}`. This project's entities: {known}")
        if not equals and not left:
            raise UsageError(f"`{noun}` needs a KEY")
        yield noun.removeprefix("--"), key if equals else left.pop(0)
