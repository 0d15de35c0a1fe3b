"""State records: what is written is read back, each below 100 KB."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.certain_loss import SavedLoss
from mm2slo_core.indicators.group_readiness import Blocked, BlockReason, GroupReadiness
from mm2slo_core.records.mirror_records import DecodeError
from mm2slo_core.state_record import (
    GroupVerdict,
    RecoveryPoint,
    State,
    StateKey,
    StateKind,
    TopicLosses,
    decode_state,
    encode_state,
)
from mm2slo_core.topology import TopicPartition

OFFSET = st.integers(0, 2**63 - 1)
MAYBE = st.none() | OFFSET
TIME = st.floats(0, 2e9)
BLOCKED = st.builds(
    Blocked,
    st.sampled_from(BlockReason),
    st.none() | st.builds(TopicPartition, st.text(min_size=1), st.integers(0, 99)),
    MAYBE,
)
READINESS = st.lists(BLOCKED, max_size=5).flatmap(
    lambda blocked: st.builds(
        GroupReadiness,
        group=st.just("shop/é"),
        ready=st.just(not blocked),
        blocked=st.just(tuple(blocked)),
        checkpoint_lag=MAYBE,
        redelivery_lower=MAYBE,
        redelivery_upper=MAYBE,
        partitions=st.just(()),
    )
)
STATES = st.one_of(
    st.builds(
        TopicLosses,
        st.none() | st.text(),
        st.dictionaries(st.integers(0, 99), st.builds(SavedLoss, OFFSET, OFFSET)),
    ),
    st.builds(GroupVerdict, READINESS, st.none() | TIME, st.none() | TIME,
              st.tuples(MAYBE, st.none() | TIME)),
    st.builds(RecoveryPoint, MAYBE, st.none() | TIME, TIME),
)  # fmt: skip


def key_of(state: State) -> StateKey:
    kinds = {
        TopicLosses: StateKind.LOSSES,
        GroupVerdict: StateKind.GROUP,
        RecoveryPoint: StateKind.RECOVERY,
    }
    return StateKey("us-to-eu", kinds[type(state)], "shop/é")


@given(STATES)
def test_state_record_is_read_as_it_was_written(state: State) -> None:
    key = key_of(state)
    assert StateKey.decode(key.encode()) == key
    assert decode_state(key, encode_state(state)) == state


def test_losses_of_many_partitions_are_split_into_records_below_100_kb() -> None:
    largest = SavedLoss(2**63 - 1, 2**63 - 1)
    losses = TopicLosses("i" * 22, dict.fromkeys(range(4_000), largest))
    records = list(losses.split("us-to-eu", "orders"))
    assert [key.name for key, _ in records] == ["orders", "orders/1", "orders/2"]
    assert max(len(encode_state(part)) for _, part in records) < 100_000
    assert sum(len(part.partitions) for _, part in records) == 4_000


def test_largest_verdict_is_below_100_kb() -> None:
    blocked = tuple(Blocked(r, TopicPartition("t" * 249, 9_999), 2**63 - 1) for r in BlockReason)
    readiness = GroupReadiness("g", False, blocked, 2**63 - 1, 2**63 - 1, 2**63 - 1, ())
    assert len(encode_state(GroupVerdict(readiness, 1e9, 1e9, (2**63 - 1, 1e9)))) < 100_000


@pytest.mark.parametrize(
    "key", [None, b"", b"us-to-eu/losses", b"us-to-eu/other/x", b"\xff/losses/x"]
)
def test_another_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(DecodeError):
        StateKey.decode(key)


@pytest.mark.parametrize("kind", StateKind)
@pytest.mark.parametrize(
    "value", [b"", b"[]", b'{"v":2}', b'{"v":1}', b'{"v":1,"i":null,"p":{"x":1}}',
              b'{"v":1,"b":[["new_reason",null,null,null]],"c":0,"r":[0,0],"t":[0,0],"u":[0,0]}'],
)  # fmt: skip
def test_damaged_record_is_refused(kind: StateKind, value: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_state(StateKey("us-to-eu", kind, "x"), value)
