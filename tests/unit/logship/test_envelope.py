import json

import pytest

from mm2slo_logship.hec_protocol import envelope, envelope_start

_START = envelope_start(host="h", source="/log", sourcetype="s", index=None)


def test_envelope_has_metadata_time_and_event() -> None:
    start = envelope_start(host="h", source='/a "b"', sourcetype="s", index="i")

    assert json.loads(envelope(start, 1795366239.123456, {"flow": "us->eu"})) == {
        "host": "h", "source": '/a "b"', "sourcetype": "s", "index": "i",
        "time": 1795366239.123456, "event": {"flow": "us->eu"},
    }  # fmt: skip


@pytest.mark.parametrize("time", [None, float("nan"), float("inf"), -1.0, 1e300])
def test_envelope_impossible_time_is_left_to_splunk(time: float | None) -> None:
    assert b"time" not in envelope(_START, time, {"a": 1})


@pytest.mark.parametrize("time", [0.0, 1e-7, 1.79e9, 9.9e10])
def test_envelope_time_has_no_exponent(time: float) -> None:
    text = envelope(_START, time, {}).split(b'"time":')[1].split(b",")[0]

    assert b"e" not in text.lower()
    assert float(text) == pytest.approx(time, abs=1e-6)


def test_envelope_lone_surrogates_and_large_numbers_are_written() -> None:
    body = envelope(_START, None, {"a": "\ud800", "b": 2**70, "c": float("nan")})

    assert json.loads(body)["event"]["b"] == 2**70
    body.decode("ascii")
