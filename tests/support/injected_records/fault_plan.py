"""Plans: which fault happens to which record."""

import random
from dataclasses import dataclass
from enum import StrEnum

from hypothesis import strategies as st

from mm2slo_core.audit.audit_scope import Comparison

START, END = 1_000_000, 2_000_000
"""The window, epoch ms; plans may reach beyond it on both sides."""
MAX_PENDING = 300_000
KEYS = 5
_FEW = (0, 0, 0, 1, 2)


class Fault(StrEnum):
    NONE = "none"
    DROP = "drop"
    DUPLICATE = "duplicate"
    REPLAY = "replay"
    """After this record, the last records of its partition are replayed."""
    MOVE = "move"
    REORDER = "reorder"
    """The copy is swapped with that of the next record of its partition."""
    ALTER = "alter"
    EXTRA = "extra"
    """A foreign record follows on the target."""


@dataclass(frozen=True, slots=True)
class Step:
    """One source record, or several identical ones in a row."""

    flow: int
    partition: int
    key: int | None
    """A key determines the partition; without one `partition` does."""
    fault: Fault = Fault.NONE
    multiplicity: int = 1
    """The fault applies to the last record, if it allows more than one."""
    pause: int = 1
    """Milliseconds since the previous step; 0: equal timestamps."""
    hole: int = 0
    """Skipped source offsets, as from transaction markers."""
    block: int = 3
    """Maximum records of a replay."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Outcomes of the first and last steps of each partition of a flow, in this order."""

    expired: int = 0
    """Removed from the source before they were copied."""
    outlived: int = 0
    """Copied, then removed from the source: the copies are unauditable."""
    unknown: int = 0
    """Before the oldest sync and never copied: unauditable."""
    tail: int = 0
    """At the end: not copied yet."""
    position_known: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...]
    ends: Ends = Ends()
    flows: int = 1
    source_partitions: int = 3
    target_partitions: int = 3
    """Fewer than on the source: `KEYS`."""
    start: int = START
    """Timestamp of the first step."""
    cooling: int = 1_000
    """Milliseconds from the last step to the snapshot."""

    @property
    def comparison(self) -> Comparison:
        same = self.source_partitions == self.target_partitions
        return Comparison.RECORDS if same else Comparison.KEYS


def random_plan(seed: int, steps: int = 60) -> Plan:
    """A random plan, deterministic by *seed*."""
    draw = random.Random(seed)
    flows = draw.choice((1, 1, 2))
    fault_rate = draw.choice((0.0, 0.1, 0.25, 0.5))
    long_pause = draw.choice((500, 5_000, 20_000))
    # A reordering needs a faultless next record, so most have no effect.
    faults = [fault for fault in Fault if fault is not Fault.NONE] + [Fault.REORDER] * 2

    def step() -> Step:
        return Step(
            flow=draw.randrange(flows),
            partition=draw.randrange(4),
            key=draw.choice((None, *range(KEYS))),
            fault=draw.choice(faults) if draw.random() < fault_rate else Fault.NONE,
            multiplicity=draw.choice((1, 1, 1, 2, 3)),
            pause=draw.choice((0, 1, 1, 50, long_pause, 5 * long_pause)),
            hole=draw.choice((0, 0, 0, 1, 5)),
            block=draw.randrange(1, 8),
        )

    return Plan(
        steps=tuple(step() for _ in range(steps)),
        ends=Ends(
            expired=draw.choice(_FEW),
            outlived=draw.choice(_FEW),
            unknown=draw.choice(_FEW),
            tail=draw.choice(_FEW),
            position_known=draw.random() < 0.8,
        ),
        flows=flows,
        source_partitions=draw.choice((3, 4)),
        target_partitions=draw.choice((3, 4)),
        start=START - draw.choice((0, 0, 100_000, 500_000)),
        cooling=draw.choice((0, 1_000, 400_000)),
    )


_few = st.sampled_from(_FEW)
_ends = st.builds(
    Ends, expired=_few, outlived=_few, unknown=_few, tail=_few, position_known=st.booleans()
)


@st.composite
def plans(draw: st.DrawFn, max_steps: int = 40) -> Plan:
    flows = draw(st.sampled_from((1, 1, 2)))
    step = st.builds(
        Step,
        flow=st.integers(0, flows - 1),
        partition=st.integers(0, 3),
        key=st.none() | st.integers(0, KEYS - 1),
        fault=st.just(Fault.NONE) | st.sampled_from(Fault),
        multiplicity=st.sampled_from((1, 1, 1, 2, 3)),
        pause=st.sampled_from((1, 0, 50, 20_000, 100_000)),
        hole=st.sampled_from((0, 0, 1, 5)),
        block=st.integers(1, 7),
    )
    return Plan(
        steps=tuple(draw(st.lists(step, max_size=max_steps))),
        ends=draw(_ends),
        flows=flows,
        source_partitions=draw(st.sampled_from((3, 4))),
        target_partitions=draw(st.sampled_from((3, 4))),
        start=START - draw(st.sampled_from((0, 100_000, 500_000))),
        cooling=draw(st.sampled_from((1_000, 0, 400_000))),
    )
