"""The server's Prometheus metrics. Pure."""

from __future__ import annotations

from collections.abc import Mapping

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
        self._ingest = Counter(
            "sqlrun_ingest_requests_total",
            "Requests whose lines were accepted; `repeated`: again, by their idempotency key.",
            ("source", "outcome"),
            registry=self.registry,
        )
        self._lines = Counter(
            "sqlrun_ingest_lines_total", "Lines written to a source.", ("source",), registry=self.registry
        )
        self._bytes = Counter(
            "sqlrun_ingest_bytes_total", "Bytes written to a source.", ("source",), registry=self.registry
        )
        self._files = Counter(
            "sqlrun_ingest_files_total", "Files written to a source's folder.", ("folder",), registry=self.registry
        )
        self._refused = Counter(
            "sqlrun_ingest_refused_total", "Requests that weren't accepted.", ("reason",), registry=self.registry
        )
        self._source_lines = Counter(
            "sqlrun_source_lines_total",
            "Lines of a source by what became of them, recorded since the server's start.",
            ("source", "state"),
            registry=self.registry,
        )
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        found = self._children.get((route, status))
        if found is None:
            found = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._children[(route, status)] = found
        found[0].inc()
        found[1].observe(seconds)

    def accepted(self, source: str, lines: int, size: int, *, again: bool) -> None:
        """Count an accepted request to a source; `again`: its lines had been written before."""
        self._ingest.labels(source, "repeated" if again else "written").inc()
        if not again:
            self._lines.labels(source).inc(lines)
            self._bytes.labels(source).inc(size)

    def filed(self, folder: str) -> None:
        """Count a file of a source's folder, given by its declared path."""
        self._files.labels(folder).inc()

    def refused(self, reason: str) -> None:
        """Count a request that wasn't accepted, by one of a few reasons."""
        self._refused.labels(reason).inc()

    def accounted(self, lines: Mapping[tuple[str, str], int]) -> None:
        """Count lines by source and state; 0 lines create the counter. Unexplained lines are counted in any direction.

        A tick with too many rows has a negative number of unexplained lines.
        """
        for (source, state), count in lines.items():
            self._source_lines.labels(source, state).inc(abs(count))

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
