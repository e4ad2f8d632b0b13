"""`sqlrun simulate`: restaurant orders to try sqlrun on. Shell: the command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sqlrun.errors import UsageError
from sqlrun.runtime.alternative_option import Alternative
from sqlrun.runtime.clock import parse_duration
from sqlrun.simulate.settings import Settings, parse_moment

if TYPE_CHECKING:
    from sqlrun.simulate.simulate import Place, Request

KAFKA = "kafka"

_DEFAULTS = Settings()
_RATE = click.FloatRange(0, 1)
_RATES = {
    "late_rate": "Share of events that arrive late, 10 minutes to 3 days after their order.",
    "repeat_rate": "Share of events whose line comes again, at once or within an hour.",
    "correction_rate": "Share of orders corrected afterwards: another dish or quantity, or a line less.",
    "cancellation_rate": "Share of orders cancelled afterwards.",
    "delivered_rate": "Share of orders that also get a delivered event, 20 to 50 minutes later.",
    "broken_rate": "Share of lines that are broken: bad JSON, missing keys, wrong types, negative quantities, "
    "absurd dates.",
    "future_rate": "Share of orders dated up to 2 hours after they arrive.",
}


def _read(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return an option callback for one of sqlrun's parsers, so that click names the invalid option."""

    def callback(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except UsageError as error:
            raise click.BadParameter(str(error), context, parameter) from error

    return callback


def _place_or_time(text: str) -> datetime | str:
    return text if text == KAFKA else parse_moment(text)


def _each(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[datetime | str, ...]:
    return tuple(_read(_place_or_time)(context, parameter, value) for value in values)


_STEP = _read(parse_duration)
_TIME = _read(parse_moment)


def _rate_options(function: Any) -> Any:
    """Add an option for each rate, with its default from `Settings`."""
    for name, text in reversed(_RATES.items()):
        option = click.option(
            f"--{name.replace('_', '-')}", type=_RATE, default=getattr(_DEFAULTS, name), show_default=True, help=text
        )
        function = option(function)
    return function


@click.command("simulate")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="data/orders",
    show_default=True,
    help="Folder to write to; one that has files is continued where it ends.",
)
@click.option(
    "--hours",
    cls=Alternative,
    excludes=("orders", "start"),
    type=click.FloatRange(0, min_open=True),
    help="Length of the history.  [default: 192, 8 days]",
)
@click.option(
    "--orders",
    cls=Alternative,
    excludes=("hours", "start"),
    type=click.IntRange(1),
    help="Length of the history, as about how many orders it has.",
)
@click.option(
    "--from",
    "start",
    cls=Alternative,
    excludes=("hours", "orders"),
    metavar="TIME",
    callback=_TIME,
    help="Start of the history, UTC, like 2026-11-21 or 2026-11-21T12:05Z.",
)
@click.option(
    "--to",
    "until",
    metavar="TIME|kafka",
    multiple=True,
    callback=_each,
    help="End of the history, UTC [default: now, rounded down to --step]; or `kafka`: write messages instead of files.",
)
@click.option("--topic", default="orders", show_default=True, help="With --to kafka: the topic; made if it is missing.")
@click.option(
    "--partitions",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    help="With --to kafka: number of partitions of a topic that is made.",
)
@click.option(
    "--profile", metavar="NAME", envvar="SQLRUN_PROFILE", help="With --to kafka: the profile that has the connection."
)
@click.option(
    "--connection", default=KAFKA, show_default=True, help="With --to kafka: the profile's connection to the broker."
)
@click.option(
    "--orders-per-day",
    type=click.FloatRange(0, 5_000_000, min_open=True),
    default=_DEFAULTS.orders_per_day,
    show_default=True,
    help="Orders a day; lunch and dinner have the most.",
)
@click.option(
    "--restaurants",
    type=click.IntRange(1, 9_999),
    default=_DEFAULTS.restaurants,
    show_default=True,
    help="Number of restaurants; the seed table names the first 50.",
)
@click.option(
    "--zipf",
    type=click.FloatRange(0, 5),
    default=_DEFAULTS.zipf,
    show_default=True,
    help="How unequal restaurants are: the n-th has 1/n^ZIPF of the first one's orders.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=_DEFAULTS.seed,
    show_default=True,
    help="Equal seeds and settings give equal files.",
)
@click.option(
    "--step", metavar="STEP", callback=_STEP, default="5m", show_default=True, help="Time between files, like 5m."
)
@click.option(
    "--history-step",
    metavar="STEP",
    callback=_STEP,
    default="1h",
    show_default=True,
    help="Time between the files that are older than a day; 1d for a long history.",
)
@_rate_options
@click.option("--live", is_flag=True, help="Go on with a file every --step, until Ctrl-C.")
@click.option(
    "--speed",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="With --live: how much faster than real time; above 1 the orders run ahead of the clock.",
)
@click.pass_context
def command(
    context: click.Context,
    /,
    out: Path,
    hours: float | None,
    orders: int | None,
    start: datetime | None,
    until: tuple[datetime | str, ...],
    topic: str,
    partitions: int,
    profile: str | None,
    connection: str,
    step: int,
    history_step: int,
    live: bool,
    speed: float,
    **world: Any,
) -> None:
    """Write made-up orders as JSON lines, or to a Kafka topic.

    By default: 8 days of 2,000 orders a day, late, repeated, corrected, cancelled and broken ones among them.
    """
    if sum(value is not None for value in (hours, orders, start)) > 1:
        raise click.UsageError("--hours, --orders and --from can't be combined. Use one of them.")
    ends = [one for one in until if isinstance(one, datetime)]
    to_kafka = KAFKA in until
    if len(ends) > 1:
        raise click.UsageError("Use --to with one time only.")
    _check_kafka_options(context, to_kafka)
    end = ends[0] if ends else None
    if live and end is not None:
        sources = [context.get_parameter_source(name) for name in ("live", "until")]
        if sources.count(ParameterSource.COMMANDLINE) != 1:
            raise click.UsageError("--live and --to can't be combined.")
        live = sources[0] is ParameterSource.COMMANDLINE
        end = None if live else end
    if history_step % step:
        raise click.UsageError("--history-step must be a multiple of --step.")
    # This imports numpy, which would slow down other commands.
    from sqlrun.simulate.orders_folder import OrdersFolder
    from sqlrun.simulate.simulate import Request

    root = context.obj or Path.cwd()
    request = Request(
        place=_topic(root, profile, connection, topic, partitions) if to_kafka else OrdersFolder(out),
        settings=Settings(**world),
        start=start,
        end=end,
        orders=orders,
        length=timedelta(hours=hours or 192),
        step=step,
        history_step=history_step,
        live=live,
        speed=speed,
    )
    _run(request)


def write_sample(out: Path) -> None:
    """Write the orders that `sqlrun simulate` writes by default."""
    from sqlrun.simulate.orders_folder import OrdersFolder
    from sqlrun.simulate.simulate import Request

    _run(
        Request(
            place=OrdersFolder(out),
            settings=Settings(),
            start=None,
            end=None,
            orders=None,
            length=timedelta(hours=192),
            step=5,
            history_step=60,
            live=False,
            speed=1.0,
        )
    )


def _check_kafka_options(context: click.Context, to_kafka: bool) -> None:
    """Reject options of the command line that have no effect. A variable counts for all uses of the command."""
    for name in ("out",) if to_kafka else ("topic", "partitions", "profile", "connection"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--{name} can't be combined with --to kafka." if to_kafka else f"--{name} requires --to kafka."
            )


def _topic(root: Path, profile: str | None, connection: str, topic: str, partitions: int) -> Place:
    """Return the topic at a connection of a profile."""
    from sqlrun.load import load
    from sqlrun.load import profile as profiles
    from sqlrun.simulate.orders_topic import OrdersTopic
    from sqlrun.sources.kafka_client import Client

    chosen = profiles.load(root, profile or load.read(root).project.profile)
    if connection not in chosen.connections:
        known = ", ".join(sorted(chosen.connections))
        raise UsageError(
            f"the profile {chosen.name} doesn't have the connection `{connection}`. "
            + (f"It has: {known}." if known else "It has none. Name a profile that has one: --profile kafka.")
        )
    return OrdersTopic(Client(connection, chosen.connections[connection]), topic, partitions)


def _run(request: Request) -> None:
    from sqlrun.simulate.simulate import run

    try:
        run(request, now=lambda: datetime.now(timezone.utc), stop=Event(), say=click.echo)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    except KeyboardInterrupt:
        # Every piece is complete, and a later run can continue.
        click.echo("stopped")
