"""Faults on real clusters, and the truth about them.

A flow that runs with `dropping(MARK)` loses what is marked. What should look altered or moved is
lost that way and then written on the target by hand, as only a faulty flow would.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fault_injection.fault_truth import Found, Truth
from fault_injection.stored_records import Content, Place, Stored, write
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_kafka.data_admin import DataAdmin

MARK = "mm2slo-test-drop"
"""Header key of what the flow must drop."""


@dataclass(frozen=True, slots=True)
class _ByHand:
    """A record still to be written on the target."""

    verdict: Verdict
    partition: int
    content: Content
    source: Place | None = None


@dataclass(slots=True)
class Injector:
    """Writes one topic and tampers with its copy; *truth* says what an audit must find.

    Records go to the source at once; what goes to the target by hand waits for `strike`, since
    the flow must have passed its originals. End each partition with a `plain` record: the
    position of a flow passes what it dropped with the next record that it copies.
    """

    source: Mapping[str, str]
    target: Mapping[str, str]
    topic: str
    copy: str
    truth: Truth = field(default_factory=Truth)
    copied: int = 0
    """Records that the flow has to copy."""
    _waiting: list[_ByHand] = field(default_factory=list)

    def plain(self, records: Iterable[tuple[int, Content]]) -> list[Stored]:
        """Records that must arrive."""
        written = write(self.source, self.topic, records)
        self.copied += len(written)
        return written

    def lose(self, records: Iterable[tuple[int, Content]]) -> list[Stored]:
        """Records that the flow goes past."""
        written = self._dropped(records)
        self.truth.add(Verdict.LOST, Side.SOURCE, (each.place for each in written))
        return written

    def alter(self, records: Iterable[tuple[int, Content]], value: bytes | None) -> None:
        """Records that arrive with another *value*."""
        for each in self._dropped(records):
            changed = replace(each.content, value=value)
            hand = _ByHand(Verdict.ALTERED, each.place.partition, changed, each.place)
            self._waiting.append(hand)

    def move(self, records: Iterable[tuple[int, Content]], partition: int) -> None:
        """Records that arrive in another *partition*, unchanged."""
        for each in self._dropped(records):
            self._waiting.append(_ByHand(Verdict.MOVED, partition, each.content, each.place))

    def duplicate(self, record: Stored) -> None:
        """A further copy of a *record* that arrives."""
        hand = _ByHand(Verdict.DUPLICATE, record.place.partition, record.content)
        self._waiting.append(hand)

    def foreign(self, partition: int, content: Content) -> None:
        """A record of another writer."""
        self._waiting.append(_ByHand(Verdict.EXTRA, partition, content))

    def strike(self) -> list[Stored]:
        """Write on the target what waits, in the order it was asked for."""
        hands, self._waiting = self._waiting, []
        written = write(self.target, self.copy, ((hand.partition, hand.content) for hand in hands))
        for hand, stored in zip(hands, written, strict=True):
            if hand.source is None:
                self.truth.add(hand.verdict, Side.TARGET, [stored.place])
            else:
                self.truth.add(hand.verdict, Side.SOURCE, [hand.source])
                self.truth.counterparts[Found(Side.SOURCE, *hand.source)] = stored.place
        return written

    def expire(self, admin: DataAdmin, records: Iterable[tuple[int, Content]]) -> None:
        """Records that leave the source at once; only while the flow stands still.

        They must be the oldest that the flow has not copied: everything below them goes too.
        """
        written = write(self.source, self.topic, records)
        before: dict[int, int] = {}
        for each in written:
            partition, offset = each.place
            before[partition] = max(before.get(partition, 0), offset + 1)
        starts = admin.delete_records(self.topic, before)
        assert starts == before
        self.truth.add(Verdict.EXPIRED, Side.SOURCE, (each.place for each in written))

    def _dropped(self, records: Iterable[tuple[int, Content]]) -> list[Stored]:
        marked = (
            (partition, replace(content, headers=(*content.headers, (MARK, b"1"))))
            for partition, content in records
        )
        return write(self.source, self.topic, marked)
