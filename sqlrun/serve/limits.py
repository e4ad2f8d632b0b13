"""How many requests a caller may make: a bucket of tokens for each, refilled as time goes. Pure."""

from __future__ import annotations

import math
from collections import OrderedDict

# So many callers are remembered; the one that asked longest ago is forgotten, whose bucket is full again by then.
MOST_CALLERS = 50_000


class Limits:
    """Buckets by caller. `rate` requests a second, and `burst` at once; a rate of 0 is no limit.

    >>> limits = Limits(rate=1, burst=2)
    >>> [limits.wait("a", now) for now in (0.0, 0.0, 0.0, 1.0)]
    [0, 0, 1, 0]
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str, now: float) -> int:
        """Take one request of a caller's; give after how many seconds it may come, 0 for now. `now` is monotonic."""
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
