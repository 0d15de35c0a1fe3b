"""The record that carries a canary.

Headers (UTF-8 decimal numbers but for the instance):
    mm2slo-instance   which exporter sent it; others leave it alone
    mm2slo-flow       which flow it watches: every flow from a source copies all canaries there
    mm2slo-sequence   number of the canary, ascending by one
    mm2slo-sent       send time, epoch milliseconds of the sender
    mm2slo-partition  source partition it was sent to
    mm2slo-floor      every lower sequence was settled when it was sent (absent: not told)
    mm2slo-arrived    newest sequence that had arrived by then (absent: none, or not told)

On MM2's heartbeats topic key and value are a valid heartbeat (Kafka's Heartbeat, version 0), whose
key names an alias of our own, so that it never replaces MM2's own heartbeats on compaction. On an
own topic the key is the instance, flow and partition, and the value the sequence, in text.
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
ALIAS_PREFIX = "mm2slo-canary/"
"""Begins the source alias in the heartbeat key of a canary; no Kafka topic may hold a slash, so
no cluster that replicates topics has such an alias."""

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class CanaryRecord:
    """One canary as it travels."""

    instance: str
    flow: str
    sequence: int
    sent_ms: int
    partition: int
    floor: int | None = None
    newest_arrived: int | None = None

    @property
    def sent_at(self) -> float:
        """Send time in epoch seconds."""
        return self.sent_ms / 1000

    def headers(self) -> Headers:
        """The headers to send."""
        numbers = {
            _SEQUENCE: self.sequence,
            _SENT: self.sent_ms,
            _PARTITION: self.partition,
            _FLOOR: self.floor,
            _ARRIVED: self.newest_arrived,
        }
        told = [(name, b"%d" % number) for name, number in numbers.items() if number is not None]
        return [(_INSTANCE, self.instance.encode()), (_FLOW, self.flow.encode()), *told]

    def heartbeat(self, target_alias: str) -> tuple[bytes, bytes]:
        """Key and value on the heartbeats topic of the cluster *target_alias*."""
        beat = Heartbeat(ALIAS_PREFIX + self._sender, target_alias, self.sent_ms)
        return beat.encode_key(), beat.encode_value()

    def own(self) -> tuple[bytes, bytes]:
        """Key and value on the canary topic: one key per instance, flow and partition."""
        return f"{self._sender}/{self.partition}".encode(), b"%d" % self.sequence

    @property
    def _sender(self) -> str:
        """What a key starts with: compaction keeps the newest canary of each instance and flow."""
        return f"{self.instance}/{self.flow}"

    @classmethod
    def from_headers(
        cls, headers: Iterable[tuple[str, bytes | None]] | None
    ) -> CanaryRecord | None:
        """Read a record's headers; None when they are not those of a canary.

        Raises DecodeError when they bear the mark but are damaged.
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
        )


def is_canary_heartbeat(heartbeat: Heartbeat) -> bool:
    """True for a heartbeat that carries a canary: it says nothing of MM2's heartbeat connector."""
    return heartbeat.source_alias.startswith(ALIAS_PREFIX)


def _text(found: dict[str, bytes | None], header: str) -> str:
    text = found.get(header)
    if text is None:
        raise DecodeError("canary", DecodeReason.UNEXPECTED_SHAPE, f"header {header} is absent")
    return text.decode(errors="replace")


def _number(found: dict[str, bytes | None], header: str) -> int:
    text = found.get(header)
    if text is None or not (text.isdigit() and text.isascii()):
        raise DecodeError(
            "canary",
            DecodeReason.UNEXPECTED_SHAPE,
            f"header {header} is {'absent' if text is None else 'no number'}, expected digits",
        )
    return int(text)
