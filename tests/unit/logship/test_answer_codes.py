from datetime import UTC, datetime

import pytest
from fake_hec import FACTS

from mm2slo_logship.hec.answer import read_answer
from mm2slo_logship.hec.answer_codes import CODES, Action, action_of

_NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def test_action_every_documented_code_has_one() -> None:
    assert CODES.keys() == FACTS.keys()


@pytest.mark.parametrize("code", sorted(FACTS))
def test_action_success_is_accepted_and_an_error_never_is(code: int) -> None:
    accepted = action_of(FACTS[code].status, code) in {Action.ACCEPTED, Action.SLOW_DOWN}

    assert accepted == (FACTS[code].status == 200)


@pytest.mark.parametrize(
    ("status", "action"),
    [
        (200, Action.RETRY), (302, Action.HOLD), (303, Action.HOLD), (400, Action.HOLD),
        (401, Action.HOLD), (404, Action.HOLD), (405, Action.HOLD), (408, Action.RETRY),
        (413, Action.TOO_LARGE), (415, Action.HOLD), (429, Action.RETRY), (500, Action.RETRY),
        (502, Action.RETRY), (504, Action.RETRY),
    ],
)  # fmt: skip
def test_action_answer_without_code_follows_its_status(status: int, action: Action) -> None:
    assert action_of(status, None) is action


def test_answer_has_what_hec_wrote() -> None:
    body = b'{"text":"Invalid data format","code":6,"invalid-event-number":3,"ackId":7}'

    answer = read_answer(400, {}, body, _NOW)

    assert (answer.action, answer.invalid_event, answer.ack_id) == (Action.SPLIT, 3, 7)
    assert str(answer) == "HTTP 400, code 6: Invalid data format"


def test_answer_success_in_html_may_be_a_duplicate() -> None:
    answer = read_answer(200, {}, b"<html>\nlogin</html>", _NOW)

    assert answer.action is Action.RETRY
    assert answer.is_ambiguous
    assert "not an answer of HEC: '<html> login</html>'" in str(answer)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0), ("0.5", 0.5), ("9999", 300.0), ("-3", 0.0), ("soon", None),
        ("Sun, 22 Nov 2026 12:01:30 GMT", 90.0), ("Sun, 22 Nov 2026 11:00:00 GMT", 0.0),
    ],
)  # fmt: skip
def test_answer_retry_after_is_a_number_or_a_date(value: str, seconds: float | None) -> None:
    assert read_answer(503, {"Retry-After": value}, b"", _NOW).retry_after == seconds
