from datetime import UTC, datetime

import pytest
from fake_hec import FACTS

from mm2slo_logship.hec_protocol import CODES, AnswerAction, action_of, read_answer

_NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def test_action_every_documented_code_has_one() -> None:
    assert CODES.keys() == FACTS.keys()


@pytest.mark.parametrize("code", sorted(FACTS))
def test_action_success_is_accepted_and_an_error_never_is(code: int) -> None:
    accepted = action_of(FACTS[code].status, code) in {
        AnswerAction.ACCEPTED,
        AnswerAction.SLOW_DOWN,
    }

    assert accepted == (FACTS[code].status == 200)


@pytest.mark.parametrize(
    ("status", "action"),
    [
        (200, AnswerAction.RETRY),
        (302, AnswerAction.HOLD),
        (303, AnswerAction.HOLD),
        (400, AnswerAction.HOLD),
        (401, AnswerAction.HOLD),
        (404, AnswerAction.HOLD),
        (405, AnswerAction.HOLD),
        (408, AnswerAction.RETRY),
        (413, AnswerAction.TOO_LARGE),
        (415, AnswerAction.HOLD),
        (429, AnswerAction.RETRY),
        (500, AnswerAction.RETRY),
        (502, AnswerAction.RETRY),
        (504, AnswerAction.RETRY),
    ],
)
def test_action_answer_without_code_follows_its_status(status: int, action: AnswerAction) -> None:
    assert action_of(status, None) is action


def test_answer_has_what_hec_wrote() -> None:
    body = b'{"text":"Invalid data format","code":6,"invalid-event-number":3,"ackId":7}'

    answer = read_answer(400, {}, body, _NOW)

    assert (answer.action, answer.invalid_event, answer.ack_id) == (AnswerAction.SPLIT, 3, 7)
    assert str(answer) == "HTTP 400, code 6: Invalid data format"


def test_answer_success_in_html_may_be_a_duplicate() -> None:
    answer = read_answer(200, {}, b"<html>\nlogin</html>", _NOW)

    assert answer.action is AnswerAction.RETRY
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
