import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.canary_rules import CanaryRecord, is_canary_heartbeat
from mm2slo_core.records.mirror_records import DecodeError, Heartbeat

CANARY = CanaryRecord(
    instance="eu-1/exporter",
    flow="us->eu",
    sequence=42,
    sent_ms=1_700_000_000_123,
    partition=3,
    floor=40,
    newest_arrived=41,
)


def test_canary_headers_are_text() -> None:
    assert CANARY.headers() == [
        ("mm2slo-instance", b"eu-1/exporter"),
        ("mm2slo-flow", b"us->eu"),
        ("mm2slo-sequence", b"42"),
        ("mm2slo-sent", b"1700000000123"),
        ("mm2slo-partition", b"3"),
        ("mm2slo-floor", b"40"),
        ("mm2slo-arrived", b"41"),
    ]
    assert CANARY.sent_at == 1_700_000_000.123


def test_canary_headers_omit_unknown_values() -> None:
    first = CanaryRecord(instance="i", flow="A->B", sequence=0, sent_ms=1, partition=0)
    assert [name for name, _ in first.headers()] == [
        "mm2slo-instance",
        "mm2slo-flow",
        "mm2slo-sequence",
        "mm2slo-sent",
        "mm2slo-partition",
    ]
    assert CanaryRecord.from_headers(first.headers()) == first


MARK: list[tuple[str, bytes | None]] = [("mm2slo-instance", b"i"), ("mm2slo-flow", b"A->B")]
NUMBERS = st.integers(0, 2**63 - 1)


@given(
    canary=st.builds(
        CanaryRecord,
        instance=st.text(min_size=1, max_size=50),
        flow=st.text(min_size=1, max_size=50),
        sequence=NUMBERS,
        sent_ms=NUMBERS,
        partition=st.integers(0, 10_000),
        floor=st.none() | NUMBERS,
        newest_arrived=st.none() | NUMBERS,
        settled_ms=st.none() | NUMBERS,
    )
)
def test_canary_headers_round_trip_among_other_headers(canary: CanaryRecord) -> None:
    others: list[tuple[str, bytes | None]] = [("traceparent", b"00-1"), ("empty", None)]
    assert CanaryRecord.from_headers([*others, *canary.headers()]) == canary


@pytest.mark.parametrize("headers", [None, [], [("traceparent", b"1")]])
def test_from_headers_without_instance_is_none(
    headers: list[tuple[str, bytes | None]] | None,
) -> None:
    assert CanaryRecord.from_headers(headers) is None


@pytest.mark.parametrize(
    ("case", "headers", "message"),
    [
        ("no flow", [("mm2slo-instance", b"i")], "mm2slo-flow is missing"),
        ("no sequence", MARK, "mm2slo-sequence is missing"),
        (
            "no number",
            [*MARK, ("mm2slo-sequence", b"-4")],
            "mm2slo-sequence is not a number",
        ),
        (
            "null",
            [*MARK, ("mm2slo-sequence", None)],
            "mm2slo-sequence is missing",
        ),
    ],
)
def test_from_headers_with_damaged_value_raises_decode_error(
    case: str, headers: list[tuple[str, bytes | None]], message: str
) -> None:
    with pytest.raises(DecodeError, match=message):
        CanaryRecord.from_headers(headers)
    assert case


def test_canary_heartbeat_is_valid_and_has_own_alias() -> None:
    key, value = CANARY.heartbeat("us")
    heartbeat = Heartbeat.decode(key, value)
    assert heartbeat == Heartbeat("mm2slo-canary/eu-1/exporter/us->eu", "us", 1_700_000_000_123)
    assert is_canary_heartbeat(heartbeat)
    assert not is_canary_heartbeat(Heartbeat("eu", "us", 1))
    # Golden: INT16 length and text, twice; then version 0 and the time.
    short = CanaryRecord(
        instance="i", flow="A->B", sequence=0, sent_ms=1_700_000_000_123, partition=0
    )
    assert short.heartbeat("B") == (
        b"\x00\x14mm2slo-canary/i/A->B\x00\x01B",
        bytes.fromhex("00000000018bcfe5687b"),
    )


def test_canary_on_own_topic_has_key_per_partition() -> None:
    assert CANARY.own() == (b"eu-1/exporter/us->eu/3", b"42")
