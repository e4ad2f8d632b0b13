"""Rate limits: a token bucket for each caller. Pure."""

from __future__ import annotations

import math
from collections import OrderedDict

# Maximum number of buckets. The least recently used one is evicted first; it is full again by then.
MOST_CALLERS = 50_000


class Limits:
    """Buckets by caller: `rate` requests per second, and `burst` at once. A rate of 0 means no limit.

    >>> limits = Limits(rate=1, burst=2)
    >>> [limits.wait("a", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [0, 0, 1, 0]
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str, now: float) -> int:
        """Count a request of a caller; return the seconds to wait before it, 0 if it may pass. `now` is monotonic."""
        if not self.rate:
            return 0
        left, since = self._buckets.get(caller, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        allowed = left >= 1
        self._buckets[caller] = (left - 1 if allowed else left, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1 - left) / self.rate))
