"""The record that carries a canary.

Headers (UTF-8 decimal numbers but for the instance):
    mm2slo-instance   exporter that sent it; other exporters ignore it
    mm2slo-flow       flow it measures: every flow from a source replicates all canaries there
    mm2slo-sequence   sequence number, ascending by one
    mm2slo-sent       send time, epoch milliseconds of the sender
    mm2slo-partition  source partition it was sent to
    mm2slo-floor      all lower sequences were settled at send time (absent: not known)
    mm2slo-arrived    newest sequence that had arrived at send time (absent: none, or not known)
    mm2slo-settled    deadlines up to this time, epoch milliseconds, were settled (absent: unknown)

The last three are what was settled in the newest scraped counters: what was not scraped is lost
with its process, and counted by the next one.

On MM2's heartbeats topic, key and value are a valid heartbeat (Kafka's Heartbeat, version 0). Its
key has an alias of mm2slo, so that it never replaces MM2's heartbeats on compaction. On mm2slo's
own topic the key is instance, flow and partition, and the value the sequence, as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.records.decode_errors import DecodeError, DecodeReason
from mm2slo_core.records.heartbeat import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable

_INSTANCE = "mm2slo-instance"
_FLOW = "mm2slo-flow"
_SEQUENCE = "mm2slo-sequence"
_SENT = "mm2slo-sent"
_PARTITION = "mm2slo-partition"
_FLOOR = "mm2slo-floor"
_ARRIVED = "mm2slo-arrived"
_SETTLED = "mm2slo-settled"
ALIAS_PREFIX = "mm2slo-canary/"
"""Prefix of the source alias in a canary's heartbeat key. Kafka topic names have no slash, so no
cluster that replicates topics has such an alias."""

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class CanaryRecord:
    instance: str
    flow: str
    sequence: int
    sent_ms: int
    partition: int
    floor: int | None = None
    newest_arrived: int | None = None
    settled_ms: int | None = None

    @property
    def sent_at(self) -> float:
        return self.sent_ms / 1000

    @property
    def settled_to(self) -> float | None:
        return None if self.settled_ms is None else self.settled_ms / 1000

    def headers(self) -> Headers:
        numbers = {
            _SEQUENCE: self.sequence,
            _SENT: self.sent_ms,
            _PARTITION: self.partition,
            _FLOOR: self.floor,
            _ARRIVED: self.newest_arrived,
            _SETTLED: self.settled_ms,
        }
        known = [(name, b"%d" % number) for name, number in numbers.items() if number is not None]
        return [(_INSTANCE, self.instance.encode()), (_FLOW, self.flow.encode()), *known]

    def heartbeat(self, target_alias: str) -> tuple[bytes, bytes]:
        """Return key and value for the heartbeats topic of the cluster *target_alias*."""
        beat = Heartbeat(ALIAS_PREFIX + self._sender, target_alias, self.sent_ms)
        return beat.encode_key(), beat.encode_value()

    def own(self) -> tuple[bytes, bytes]:
        """Return key and value for the canary topic: one key per instance, flow and partition."""
        return f"{self._sender}/{self.partition}".encode(), b"%d" % self.sequence

    @property
    def _sender(self) -> str:
        """Key prefix: compaction keeps the newest canary of each instance and flow."""
        return f"{self.instance}/{self.flow}"

    @classmethod
    def from_headers(
        cls, headers: Iterable[tuple[str, bytes | None]] | None
    ) -> CanaryRecord | None:
        """Read a record's headers; None if it is no canary.

        Raises DecodeError if a canary's headers are damaged.
        """
        if not headers:
            return None
        found = {name: value for name, value in headers if name.startswith("mm2slo-")}
        instance = found.get(_INSTANCE)
        if instance is None:
            return None
        return cls(
            instance=instance.decode(errors="replace"),
            flow=_text(found, _FLOW),
            sequence=_number(found, _SEQUENCE),
            sent_ms=_number(found, _SENT),
            partition=_number(found, _PARTITION),
            floor=_number(found, _FLOOR) if _FLOOR in found else None,
            newest_arrived=_number(found, _ARRIVED) if _ARRIVED in found else None,
            settled_ms=_number(found, _SETTLED) if _SETTLED in found else None,
        )


def is_canary_heartbeat(heartbeat: Heartbeat) -> bool:
    """Return whether a heartbeat is a canary, written by mm2slo and not by MM2."""
    return heartbeat.source_alias.startswith(ALIAS_PREFIX)


def _text(found: dict[str, bytes | None], header: str) -> str:
    text = found.get(header)
    if text is None:
        raise DecodeError("canary", DecodeReason.UNEXPECTED_SHAPE, f"header {header} is missing")
    return text.decode(errors="replace")


def _number(found: dict[str, bytes | None], header: str) -> int:
    text = found.get(header)
    if text is None or not (text.isdigit() and text.isascii()):
        raise DecodeError(
            "canary",
            DecodeReason.UNEXPECTED_SHAPE,
            f"header {header} is {'missing' if text is None else 'not a number'}, expected digits",
        )
    return int(text)
