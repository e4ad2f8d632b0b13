"""The server's Prometheus metrics. Pure."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Metrics of one server. Labels are declared routes, never requested paths, so their number is bounded."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("route", "status")
        self._requests = Counter("sqlrun_requests_total", "Requests answered.", labels, registry=self.registry)
        self._seconds = Histogram(
            "sqlrun_request_seconds", "Seconds to an answer.", ("route",), buckets=BUCKETS, registry=self.registry
        )
        self.tick = Gauge("sqlrun_tick", "The tick that is shown.", registry=self.registry)
        self.age = Gauge("sqlrun_tick_age_seconds", "How old the shown tick's as_of is.", registry=self.registry)
        self.stale = Gauge("sqlrun_stale", "1 where the shown tick is older than it should be.", registry=self.registry)
        self.listeners = Gauge("sqlrun_event_streams", "Open streams of events.", registry=self.registry)
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        found = self._children.get((route, status))
        if found is None:
            found = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._children[(route, status)] = found
        found[0].inc()
        found[1].observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
