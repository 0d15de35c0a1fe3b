"""Injects faults on real clusters, and records the true verdicts.

A flow that runs with `dropping(MARK)` loses marked records. Altered and moved records are lost that
way and then written to the target directly.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fault_injection.fault_truth import Found, Truth
from fault_injection.stored_records import Content, Place, Stored, write
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_lab.lab_data import DataAdmin

MARK = "mm2slo-test-drop"
"""Header key of records that the flow drops."""


@dataclass(frozen=True, slots=True)
class _DirectWrite:
    """A record to be written to the target directly."""

    verdict: Verdict
    partition: int
    content: Content
    source: Place | None = None


@dataclass(slots=True)
class Injector:
    """Writes one topic and modifies its copy; *truth* has the verdicts that an audit must find.

    Records are written to the source at once, direct writes to the target only by `write_target`,
    after the flow has passed their originals. End each partition with a `plain` record: the
    position of a flow passes dropped records with the next record that it copies.
    """

    source: Mapping[str, str]
    target: Mapping[str, str]
    topic: str
    copy: str
    truth: Truth = field(default_factory=Truth)
    copied: int = 0
    """Number of records that the flow copies."""
    _pending: list[_DirectWrite] = field(default_factory=list)

    def plain(self, records: Iterable[tuple[int, Content]]) -> list[Stored]:
        """Write records that must arrive."""
        written = write(self.source, self.topic, records)
        self.copied += len(written)
        return written

    def lose(self, records: Iterable[tuple[int, Content]]) -> list[Stored]:
        """Write records that the flow drops."""
        written = self._dropped(records)
        self.truth.add(Verdict.LOST, Side.SOURCE, (each.place for each in written))
        return written

    def alter(self, records: Iterable[tuple[int, Content]], value: bytes | None) -> None:
        """Write records that arrive with another *value*."""
        for each in self._dropped(records):
            changed = replace(each.content, value=value)
            direct = _DirectWrite(Verdict.ALTERED, each.place.partition, changed, each.place)
            self._pending.append(direct)

    def move(self, records: Iterable[tuple[int, Content]], partition: int) -> None:
        """Write records that arrive unchanged in another *partition*."""
        for each in self._dropped(records):
            self._pending.append(_DirectWrite(Verdict.MOVED, partition, each.content, each.place))

    def duplicate(self, record: Stored) -> None:
        """Add another copy of *record*."""
        direct = _DirectWrite(Verdict.DUPLICATE, record.place.partition, record.content)
        self._pending.append(direct)

    def foreign(self, partition: int, content: Content) -> None:
        """Add a record of another writer."""
        self._pending.append(_DirectWrite(Verdict.EXTRA, partition, content))

    def write_target(self) -> list[Stored]:
        """Write the pending records to the target, in order."""
        directs, self._pending = self._pending, []
        written = write(
            self.target, self.copy, ((direct.partition, direct.content) for direct in directs)
        )
        for direct, stored in zip(directs, written, strict=True):
            if direct.source is None:
                self.truth.add(direct.verdict, Side.TARGET, [stored.place])
            else:
                self.truth.add(direct.verdict, Side.SOURCE, [direct.source])
                self.truth.counterparts[Found(Side.SOURCE, *direct.source)] = stored.place
        return written

    def expire(self, admin: DataAdmin, records: Iterable[tuple[int, Content]]) -> None:
        """Write records and delete them from the source; only while the flow is stopped.

        They must be the oldest that the flow has not copied: all below them is deleted as well.
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
