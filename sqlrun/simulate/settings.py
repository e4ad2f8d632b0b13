"""Settings of a simulated world: its size, its seed and its error rates. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta, timezone

from sqlrun.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings that decide the content of the events: equal settings produce equal bytes.

    Rates are shares between 0 and 1. Corrections, cancellations, deliveries and future dates are drawn for each order;
    late arrivals, repeats and broken lines for each event.
    """

    seed: int = 1
    orders_per_day: float = 2000.0
    restaurants: int = 50
    zipf: float = 1.0
    repeat_rate: float = 0.01
    late_rate: float = 0.02
    correction_rate: float = 0.01
    cancellation_rate: float = 0.005
    broken_rate: float = 0.0005
    future_rate: float = 0.001
    delivered_rate: float = 0.3

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_rate") and not 0 <= value <= 1:
                raise UsageError(f"{field.name} is {value}, but a rate must be between 0 and 1.")
        if not 0 <= self.seed < 2**64:
            raise UsageError(f"The seed is {self.seed}, but must be a whole number from 0 to 2^64 - 1.")
        if not 1 <= self.restaurants <= 9_999:
            raise UsageError(f"{self.restaurants} restaurants: write a number from 1 to 9999.")
        # An order's number has six digits for its rank in its hour; the dinner peak is below a fifth of the day.
        if not 0 < self.orders_per_day <= 5_000_000:
            raise UsageError(f"{self.orders_per_day} orders a day: write a number above 0, up to 5,000,000.")
        if not 0 <= self.zipf <= 5:
            raise UsageError(f"The Zipf exponent is {self.zipf}, but must be from 0 (all alike) to 5.")


def differing(noted: Mapping[str, object], settings: Settings) -> str:
    """Return the settings that differ from noted ones, for a message; "" if all are equal."""
    now = asdict(settings)
    return ", ".join(f"{key} {noted.get(key)} (now {value})" for key, value in now.items() if noted.get(key) != value)


def to_minute(moment: datetime) -> int:
    """Return the whole minutes from 1970 to a time with a zone."""
    return int((moment - _EPOCH) // timedelta(minutes=1))


def from_minute(minute: int) -> datetime:
    """Return the UTC time of a number of minutes since 1970."""
    return _EPOCH + timedelta(minutes=minute)


def parse_moment(text: str) -> datetime:
    """Return the time of an ISO date or timestamp; without a zone it is UTC.

    >>> parse_moment("2026-11-21T12:05Z").isoformat()
    '2026-11-21T12:05:00+00:00'
    """
    try:
        moment = datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text.strip()))
    except ValueError:
        raise UsageError(f"`{text}` isn't a valid time. Write 2026-11-21 or 2026-11-21T12:05:00Z.") from None
    return moment.replace(tzinfo=moment.tzinfo or timezone.utc).astimezone(timezone.utc)
