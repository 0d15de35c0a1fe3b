"""The metrics of the catalogue with prometheus-client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from mm2slo_core.catalogue import logship_metrics as catalogue

if TYPE_CHECKING:
    from mm2slo_core.catalogue.metric import Metric


class ShipMetrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.events_read = self._counter(catalogue.LOGSHIP_EVENTS_READ_TOTAL)
        self.events_sent = self._counter(catalogue.LOGSHIP_EVENTS_SENT_TOTAL)
        self.dead_letters = self._counter(catalogue.LOGSHIP_DEAD_LETTERS_TOTAL)
        self.dead_letters_dropped = self._counter(catalogue.LOGSHIP_DEAD_LETTERS_DROPPED_TOTAL)
        self.lost_files = self._counter(catalogue.LOGSHIP_LOST_FILES_TOTAL)
        self.lost_bytes = self._counter(catalogue.LOGSHIP_LOST_BYTES_TOTAL)
        self.redactions = self._counter(catalogue.LOGSHIP_REDACTIONS_TOTAL)
        self.requests = self._counter(catalogue.LOGSHIP_REQUESTS_TOTAL)
        duration = catalogue.LOGSHIP_REQUEST_DURATION_SECONDS
        self.request_duration = Histogram(
            duration.name, duration.help, buckets=duration.buckets, registry=self.registry
        )
        self.possible_duplicates = self._counter(catalogue.LOGSHIP_POSSIBLE_DUPLICATES_TOTAL)
        self.unsent_bytes = self._gauge(catalogue.LOGSHIP_UNSENT_BYTES)
        self.send_lag = self._gauge(catalogue.LOGSHIP_SEND_LAG_SECONDS)
        self.pending_acks = self._gauge(catalogue.LOGSHIP_PENDING_ACKS)
        self.hold = self._gauge(catalogue.LOGSHIP_HOLD)
        self.files = self._gauge(catalogue.LOGSHIP_FILES)
        self.unreadable_files = self._gauge(catalogue.LOGSHIP_UNREADABLE_FILES)
        self.last_success = self._gauge(catalogue.LOGSHIP_LAST_SUCCESS_TIMESTAMP_SECONDS)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self.registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.help, metric.labels, registry=self.registry)
