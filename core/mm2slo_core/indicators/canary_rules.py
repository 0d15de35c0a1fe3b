"""Rules for canaries, their record, those pending and those of earlier runs."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum, auto
from itertools import pairwise
from typing import NamedTuple

from mm2slo_core.indicators.sli_counters import Sli, SliKey, latency_tier
from mm2slo_core.records.mirror_records import DecodeError, DecodeReason, Heartbeat

AVAILABILITY = SliKey(Sli.AVAILABILITY)
COMPLETENESS = SliKey(Sli.COMPLETENESS)
UNIQUENESS = SliKey(Sli.UNIQUENESS)
ORDER = SliKey(Sli.ORDER)
AFFINITY = SliKey(Sli.AFFINITY)


@dataclass(frozen=True, slots=True)
class CanaryRules:
    """How the canaries of one flow are settled. Times in seconds."""

    deadline: float = 60.0
    interval: float = 1.0
    """Between two canaries; those that were not sent while no process ran are unknown."""
    latency_tiers: tuple[float, ...] = (10.0, 60.0)
    own_topic: bool = False
    """The carrier is the canary topic, so uniqueness, order and affinity can be measured."""
    confirm_losses: bool = False
    """The carrier is compacted: a canary is lost only if the source still holds its record."""
    pending_limit: int = 1_000_000
    """Canaries kept after their deadline; beyond this the oldest become unknown."""

    def __post_init__(self) -> None:
        if self.deadline <= 0:
            raise ValueError(
                f"deadline is {self.deadline!r}; expected a positive number of seconds"
            )
        late = [tier for tier in self.latency_tiers if not 0 < tier <= self.deadline]
        if late:
            raise ValueError(
                f"latency_tiers has {late!r}; expected values between 0 and the deadline,"
                f" {self.deadline!r} s"
            )

    @property
    def time_limits(self) -> tuple[tuple[SliKey, float], ...]:
        """Availability and each latency tier, with the allowed seconds until arrival."""
        tiers = ((SliKey(Sli.LATENCY, latency_tier(tier)), tier) for tier in self.latency_tiers)
        return ((AVAILABILITY, self.deadline), *tiers)

    @property
    def indicators(self) -> tuple[SliKey, ...]:
        """The SLIs that canaries of this carrier settle."""
        timed = (key for key, _ in self.time_limits)
        own = (UNIQUENESS, ORDER, AFFINITY) if self.own_topic else ()
        return (*timed, COMPLETENESS, *own)


@dataclass(slots=True)
class CanaryTotals:
    """Canaries by outcome; a canary may count in several."""

    sent: int = 0
    """Acknowledged by the source."""
    received: int = 0
    """First arrivals."""
    late: int = 0
    lost: int = 0
    expired: int = 0
    duplicates: int = 0
    reordered: int = 0
    moved: int = 0
    unknown: int = 0


class SentCanary(NamedTuple):
    """A canary of this instance found on the source after a restart."""

    sequence: int
    partition: int
    source_offset: int
    sent_at: float

    def as_pending(self, punctuality: Punctuality) -> PendingCanary:
        return PendingCanary(self.sequence, self.source_offset, self.sent_at, punctuality)


class CanaryArrival(NamedTuple):
    """A canary of this instance found on the target; it arrived within [not_before, at]."""

    sequence: int
    target_partition: int
    at: float
    not_before: float


class Suspect(NamedTuple):
    """A canary that did not arrive; lost if the source still holds it, else expired."""

    sequence: int
    partition: int
    source_offset: int


_INSTANCE = "mm2slo-instance"
_FLOW = "mm2slo-flow"
_NUMBERS = {
    "sequence": "mm2slo-sequence",
    "sent_ms": "mm2slo-sent",
    "partition": "mm2slo-partition",
    "floor": "mm2slo-floor",
    "newest_arrived": "mm2slo-arrived",
    "settled_ms": "mm2slo-settled",
}
_OPTIONAL = frozenset({"floor", "newest_arrived", "settled_ms"})

ALIAS_PREFIX = "mm2slo-canary/"
"""Prefix of the source alias in a canary's heartbeat key. Kafka topic names have no slash, so no
cluster that replicates topics has such an alias."""
Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class CanaryRecord:
    """A canary as a Kafka record.

    Headers (UTF-8 decimal numbers but for the instance and the flow):

        mm2slo-instance   exporter that sent it; other exporters ignore it
        mm2slo-flow       flow it measures: every flow from a source replicates all canaries there
        mm2slo-sequence   sequence number, ascending by one
        mm2slo-sent       send time, epoch milliseconds of the sender
        mm2slo-partition  source partition it was sent to
        mm2slo-floor      all lower sequences were settled at send time (absent: not known)
        mm2slo-arrived    newest sequence that had arrived at send time (absent: none, or not known)
        mm2slo-settled    deadlines up to this time, epoch milliseconds, were settled (absent:
                          unknown)

    The last three are what was settled in the newest scraped counters: what was not scraped is lost
    with its process, and counted by the next one.

    On MM2's heartbeats topic, key and value are a valid heartbeat (Kafka's Heartbeat, version 0).
    Its key has an alias of mm2slo, so that it never replaces MM2's heartbeats on compaction. On
    mm2slo's own topic the key is instance, flow and partition, and the value the sequence, as text.
    """

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
        numbers = ((header, getattr(self, name)) for name, header in _NUMBERS.items())
        known = [(header, b"%d" % number) for header, number in numbers if number is not None]
        return [(_INSTANCE, self.instance.encode()), (_FLOW, self.flow.encode()), *known]

    def heartbeat(self, target_alias: str) -> tuple[bytes, bytes]:
        """Return key and value for the heartbeats topic of the cluster *target_alias*."""
        # Valid for all readers of the topic, which decode every record there.
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
        values = {name: value for name, value in headers if name.startswith("mm2slo-")}
        instance = values.get(_INSTANCE)
        if instance is None:
            return None
        flow = _text(values, _FLOW)
        numbers = {
            name: _number(values, header)
            for name, header in _NUMBERS.items()
            if header in values or name not in _OPTIONAL
        }
        return cls(instance=instance.decode(errors="replace"), flow=flow, **numbers)


def is_canary_heartbeat(heartbeat: Heartbeat) -> bool:
    """Return whether a heartbeat is a canary, written by mm2slo and not by MM2."""
    return heartbeat.source_alias.startswith(ALIAS_PREFIX)


def _text(values: dict[str, bytes | None], header: str) -> str:
    text = values.get(header)
    if text is None:
        raise DecodeError("canary", DecodeReason.UNEXPECTED_SHAPE, f"header {header} is missing")
    return text.decode(errors="replace")


def _number(values: dict[str, bytes | None], header: str) -> int:
    text = values.get(header)
    if text is None or not (text.isdigit() and text.isascii()):
        raise DecodeError(
            "canary",
            DecodeReason.UNEXPECTED_SHAPE,
            f"header {header} is {'missing' if text is None else 'not a number'}, expected digits",
        )
    return int(text)


_MAX_UNOBSERVED_SHARE = 0.5
"""A cluster may have been away while no process ran: a missing arrival is evidence against the flow
only if one ran for the greater part of the time until the deadline."""


class PreviousState(Enum):
    """How far the previous runs had settled a canary."""

    SETTLED = auto()
    BEFORE_DEADLINE = auto()
    LATE = auto()
    """Counted as bad for availability by a previous run; its arrival is pending."""
    MISSED = auto()
    """Its deadline passed, which no scraped run has counted, and it has not arrived."""
    UNSEEN = auto()
    """Its deadline passed, and whether it arrived by then is not known."""


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """What the newest canary that knows it carries, and when this run started.

    `floor`, `newest_arrived` and `settled_to` are its headers. Without `newest_arrived`, each
    canary found on the target counts as settled: some may be counted in neither run, none in both.
    """

    floor: int | None
    newest_arrived: int | None
    settled_to: float | None
    started_at: float
    resumed_at: float
    """When the target had been read to its end."""
    sending_since: float
    """When the first canary of this run was due."""

    def inherit(
        self, sent: Iterable[SentCanary], arrivals: Iterable[CanaryArrival], deadline: float
    ) -> Iterator[tuple[SentCanary, PreviousState, CanaryArrival | None]]:
        """Yield the canaries on the source, in sequence order, with their state and arrival."""
        first_arrivals: dict[int, CanaryArrival] = {}
        for arrival in arrivals:
            first_arrivals.setdefault(arrival.sequence, arrival)
        floor = self.floor or 0
        seen_to = float("inf") if self.newest_arrived is None else self.newest_arrived
        canaries = sorted(sent)
        gaps = list(self._gaps(canaries))
        for canary in canaries:
            arrived, due = first_arrivals.get(canary.sequence), canary.sent_at + deadline
            # Ordered by what is certain: settled and scraped, still awaited, counted as late by a
            # run that was scraped. MirrorMaker 2 gives a copy the timestamp of its original
            # (`MirrorSourceTask.convertRecord`), so a copy does not show when it arrived.
            if canary.sequence < floor or (arrived and canary.sequence <= seen_to):
                state = PreviousState.SETTLED
            elif due > self.resumed_at:
                state = PreviousState.BEFORE_DEADLINE
            elif self.settled_to is not None and due <= self.settled_to:
                state = PreviousState.LATE
            elif arrived:
                state = PreviousState.UNSEEN
            else:
                unobserved = sum(
                    max(0.0, min(gap.started, due) - max(gap.ended, canary.sent_at)) for gap in gaps
                )
                is_evidence = unobserved <= _MAX_UNOBSERVED_SHARE * deadline
                state = PreviousState.MISSED if is_evidence else PreviousState.UNSEEN
            yield canary, state, arrived

    def unsent(self, sent: Iterable[SentCanary], interval: float, counted_to: float) -> int:
        """How many canaries were due after *counted_to* while no run sent any."""
        count = 0
        for gap in self._gaps(sorted(sent)):
            due = round((gap.sent - gap.ended) / interval) - 1
            count += max(0, due - max(0, int((counted_to - gap.ended) / interval)))
        return count

    def _gaps(self, sent: Sequence[SentCanary]) -> Iterator[_Gap]:
        """The gaps between runs: sequences start at the milliseconds of the start of a run."""
        for before, after in pairwise(sent):
            # Within a run, sequences ascend by one and fall behind the time; only a new run starts
            # at its time in milliseconds.
            if after.sequence / 1000 > before.sent_at:
                yield _Gap(before.sent_at, after.sequence / 1000, after.sent_at)
        if sent and self.started_at > sent[-1].sent_at:
            yield _Gap(sent[-1].sent_at, self.started_at, self.sending_since)


class _Gap(NamedTuple):
    """Between two runs: the last canary of one, the start of the next one and its first canary."""

    ended: float
    started: float
    sent: float


_COMPACT_ABOVE = 1024


class Punctuality(IntEnum):
    """What is settled about availability and latency of a pending canary."""

    SETTLED = 0
    """Bad: it did not arrive by the deadline."""
    OPEN = 1
    """Unknown because the exporter restarted; the arrival time settles it."""
    UNKNOWN = 2
    """Finally unknown: a cluster was unreachable, so the delay is no evidence against MM2."""
    GONE = 3
    """No longer pending."""


class PendingCanary(NamedTuple):
    sequence: int
    source_offset: int
    sent_at: float
    punctuality: Punctuality


class PendingInPartition:
    """The pending canaries of one source partition, in send order.

    While MM2 is stopped for hours, tens of canaries per second accumulate here, at 25 bytes each.
    """

    __slots__ = ("_head", "_live", "_offset", "_punctuality", "_sent", "_sequence")

    def __init__(self) -> None:
        self._sequence = array("q")
        self._offset = array("q")
        self._sent = array("d")
        self._punctuality = bytearray()
        self._head = 0
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def append(self, canary: PendingCanary) -> None:
        """Add *canary*; sequences ascend except after late acknowledgements."""
        self._sequence.append(canary.sequence)
        self._offset.append(canary.source_offset)
        self._sent.append(canary.sent_at)
        self._punctuality.append(canary.punctuality)
        self._live += 1

    def first(self) -> PendingCanary | None:
        return self._at(self._head) if self._live else None

    def take(self, sequence: int) -> PendingCanary | None:
        """Remove and return the canary with this *sequence*; None if it is not pending here."""
        if not self._live:
            return None
        k = bisect_left(self._sequence, sequence, self._head)
        if k == len(self._sequence) or self._sequence[k] != sequence:
            try:
                k = self._sequence.index(sequence, self._head)  # appended out of order
            except ValueError:
                return None
        if self._punctuality[k] == Punctuality.GONE:
            return None
        canary = self._at(k)
        self._remove(k)
        return canary

    def take_first(self) -> PendingCanary | None:
        canary = self.first()
        if canary is not None:
            self._remove(self._head)
        return canary

    def take_below(self, offset: int, settle: Callable[[PendingCanary], bool]) -> None:
        """Call *settle* for each canary below source *offset*; remove it if that returns True."""
        k = self._head
        while k < len(self._sequence) and self._offset[k] < offset:
            if self._punctuality[k] != Punctuality.GONE and settle(self._at(k)):
                self._punctuality[k] = Punctuality.GONE
                self._live -= 1
            k += 1
        self._compact()

    def _at(self, k: int) -> PendingCanary:
        return PendingCanary(
            self._sequence[k], self._offset[k], self._sent[k], Punctuality(self._punctuality[k])
        )

    def _remove(self, k: int) -> None:
        self._punctuality[k] = Punctuality.GONE
        self._live -= 1
        self._compact()

    def _compact(self) -> None:
        """Move the head past removed canaries, and free memory occasionally."""
        size = len(self._sequence)
        while self._head < size and self._punctuality[self._head] == Punctuality.GONE:
            self._head += 1
        if self._head == size or self._head > max(_COMPACT_ABOVE, size // 2):
            del self._sequence[: self._head]
            del self._offset[: self._head]
            del self._sent[: self._head]
            del self._punctuality[: self._head]
            self._head = 0


class UnobservableCause(StrEnum):
    EXPORTER = "exporter"
    """The exporter was not running."""
    SOURCE = "source"
    TARGET = "target"


class UnobservablePeriods:
    """Unobservable periods with their causes."""

    __slots__ = ("_ended", "_since")

    def __init__(self) -> None:
        self._since: dict[UnobservableCause, float] = {}
        self._ended: list[tuple[float, float, UnobservableCause]] = []

    def start(self, cause: UnobservableCause, at: float) -> None:
        """Start a period; repeated calls keep the first start."""
        self._since.setdefault(cause, at)

    def end(self, cause: UnobservableCause, at: float) -> None:
        """End a period; no effect without a start."""
        since = self._since.pop(cause, None)
        if since is not None:
            self._ended.append((since, at, cause))

    def within(self, start: float, end: float) -> frozenset[UnobservableCause]:
        """Return the causes of all periods that overlap [start, end]."""
        if not self._since and not self._ended:  # the usual case; called for each canary
            return frozenset()
        now = {cause for cause, since in self._since.items() if since <= end}
        past = {cause for since, until, cause in self._ended if since <= end and until >= start}
        return frozenset(now | past)

    def explains_absence(self, sent_at: float, deadline: float) -> bool:
        """Return whether a missing arrival is no evidence against the flow.

        An unreachable cluster explains it at any time between sending and deadline. A stopped
        exporter explains it only at the deadline: it reads earlier arrivals after its restart.
        """
        causes = self.within(sent_at, deadline)
        if causes == {UnobservableCause.EXPORTER}:
            return UnobservableCause.EXPORTER in self.within(deadline, deadline)
        return bool(causes)

    def ended_at(self) -> float | None:
        """Return the end of the newest ended period; None without one."""
        return max((until for _, until, _ in self._ended), default=None)

    def forget_before(self, moment: float) -> None:
        if self._ended and self._ended[0][1] < moment:
            self._ended = [period for period in self._ended if period[1] >= moment]
