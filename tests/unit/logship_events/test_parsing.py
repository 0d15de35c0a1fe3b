"""Lines of Kafka's workers and of this project's programs as events."""

import logging
import sys
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.log_redaction import JsonFormatter
from mm2slo_logship.log_events import Line, ParsedEvent, Parser, ParserSettings

TIME = datetime(2026, 11, 22, 17, 14, 1, 837000, UTC).timestamp()
WORKER = {
    "timestamp": "2026-11-22T17:14:01.837000Z",
    "level": "INFO",
    "flow": "",
    "context": "[MirrorSourceConnector|task-0] ",
    "logger": "org.apache.kafka.connect.runtime.WorkerSourceTask",
    "thread": "task-thread-MirrorSourceConnector-0",
    "thread_id": "57",
    "worker_start": "2026-11-22T17:00:00.000Z",
    "message": "started",
    "error.stack_trace": "",
}
LOGGER = "org.apache.kafka.connect.runtime.WorkerTask"
TASK_FAILED = "WorkerSourceTask{id=MirrorSourceConnector-0} Task threw an uncaught and \
unrecoverable exception. Task is being killed and will not recover until manually restarted"
TRACE = """\
org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception
\tat org.apache.kafka.connect.runtime.WorkerSourceTask.maybeThrow(WorkerSourceTask.java:349)
\t... 8 more
Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The request included a message
"""


def lines(text: str | bytes, start: int = 0) -> list[Line]:
    found = []
    for each in (text.encode() if isinstance(text, str) else text).splitlines(keepends=True):
        found.append(Line(start, start + len(each), each.rstrip(b"\r\n")))
        start += len(each)
    return found


def parse(text: str | bytes, settings: ParserSettings | None = None) -> list[ParsedEvent]:
    parser = Parser(settings or ParserSettings())
    return [*parser.feed(lines(text)), *parser.flush()]


def worker_line(**fields: object) -> str:
    return orjson.dumps({**WORKER, **fields}).decode() + "\n"


def only(text: str | bytes, settings: ParserSettings | None = None) -> dict[str, object]:
    (event,) = parse(text, settings)
    return event.fields


def test_worker_json_line_becomes_event_with_identifiers_first_and_trace_last() -> None:
    fields: dict[str, object] = {"logger": LOGGER, "error.stack_trace": TRACE}
    text = worker_line(message=TASK_FAILED, level="ERROR", **fields)

    (event,) = parse(text, ParserSettings(env="prod", flow="us->eu"))

    assert (event.time, event.start, event.end) == (TIME, 0, len(text))
    assert list(event.fields.items()) == [
        ("timestamp", WORKER["timestamp"]),
        ("level", "ERROR"),
        ("service", "mm2-worker"),
        ("env", "prod"),
        ("flow", "us->eu"),
        ("source_cluster", "us"),
        ("target_cluster", "eu"),
        ("connector", "MirrorSourceConnector"),
        ("task", "0"),
        ("scope", "task"),
        ("event_action", "task_failed"),
        ("logger", LOGGER),
        ("thread", WORKER["thread"]),
        ("message", TASK_FAILED),
        ("error.type", "org.apache.kafka.connect.errors.ConnectException"),
        ("error.message", "Unrecoverable exception"),
        ("error.cause.type", "org.apache.kafka.common.errors.RecordTooLargeException"),
        ("error.cause.message", "The request included a message"),
        ("error.stack_trace", TRACE.rstrip()),
    ]


@pytest.fixture(params=["[%d] %p %X{connector.context}%m (%c:%L)%n", "with thread, UTC"])
def classic(request: pytest.FixtureRequest) -> str:
    if request.param == "with thread, UTC":
        return "[2026-11-22T17:14:01.837Z] ERROR <task-thread-MirrorSourceConnector-0> \
[MirrorSourceConnector|task-0] {} (org.apache.kafka.connect.runtime.WorkerTask:233)\n"
    return "[2026-11-22 17:14:01,837] ERROR [MirrorSourceConnector|task-0] {} \
(org.apache.kafka.connect.runtime.WorkerTask:233)\n"


def test_log4j_text_with_stack_trace_becomes_one_event(classic: str) -> None:
    header = classic.format(TASK_FAILED)
    text = header + TRACE + header.replace("ERROR", "INFO")

    first, second = parse(text)

    assert (first.time, first.start, first.end) == (TIME, 0, len(header + TRACE))
    assert (second.start, second.end) == (first.end, len(text))
    assert first.fields["event_action"] == "task_failed"
    assert first.fields["connector"] == "MirrorSourceConnector"
    assert first.fields["task"] == "0"
    assert first.fields["message"] == TASK_FAILED
    assert first.fields["logger"] == "org.apache.kafka.connect.runtime.WorkerTask"
    assert first.fields["error.stack_trace"] == TRACE.rstrip()
    assert str(first.fields["error.cause.type"]).endswith("RecordTooLargeException")
    assert second.fields["level"] == "INFO"
    assert "error.type" not in second.fields


def test_log4j_text_without_zone_has_the_configured_one() -> None:
    settings = ParserSettings(time_zone=timezone(timedelta(hours=5, minutes=30)))

    (event,) = parse("[2026-11-22 22:44:01,837] INFO started (kafka.x.Y)\n", settings)

    assert event.time == TIME
    assert event.fields["timestamp"] == "2026-11-22T22:44:01.837000+05:30"


def test_log4j_text_of_several_lines_keeps_them_in_the_message() -> None:
    dump = "[2026-11-22 17:14:01,837] INFO ConsumerConfig values: \n\tallow = true\n\
\tssl.key.password = [hidden]\n\tsasl.jaas.config = x\n \
(org.apache.kafka.common.config.AbstractConfig)\n"

    fields = only(dump)

    assert str(fields["message"]).splitlines()[1:] == [
        "\tallow = true",
        "\tssl.key.password = [hidden]",
        "\tsasl.jaas.config =  [redacted];",
    ]
    assert fields["logger"] == "org.apache.kafka.common.config.AbstractConfig"
    assert "error.stack_trace" not in fields


def test_events_of_text_wait_for_the_next_header_or_a_flush() -> None:
    parser = Parser(ParserSettings())
    text = "[2026-11-22 17:14:01,837] INFO a (k.x.Y)\n"
    first, frame = lines(text + "\tat x.y(Z.java:1)\n")

    assert parser.feed([first]) == []
    assert parser.feed([frame]) == []
    (event,) = parser.flush()
    assert event.end == frame.end
    assert parser.flush() == []


def test_line_of_own_program_becomes_event_with_the_same_fields() -> None:
    record = logging.LogRecord("mm2slo.x", logging.WARNING, "f.py", 1, "failing", (), None)
    record.created, record.flow, record.stage = TIME, "us->eu", "groups"
    try:
        raise ValueError("bad token: a1b2")
    except ValueError:
        record.exc_info = sys.exc_info()

    (event,) = parse(JsonFormatter("repl-exporter").format(record) + "\n")
    trace = str(event.fields.pop("error.stack_trace"))

    assert event.time == TIME
    assert event.fields == {
        "timestamp": "2026-11-22T17:14:01.837000Z",
        "level": "WARNING",
        "service": "repl-exporter",
        "flow": "us->eu",
        "source_cluster": "us",
        "target_cluster": "eu",
        "logger": "mm2slo.x",
        "stage": "groups",
        "message": "failing",
        "error.type": "ValueError",
        "error.message": "bad token: [redacted]",
    }
    assert trace.startswith("Traceback (most recent call last):\n")
    assert trace.endswith("ValueError: bad token: [redacted]")


def test_line_of_another_program_is_read_by_its_usual_names() -> None:
    fields = only(
        '{"@timestamp": "2026-11-22T17:14:01Z", "level": "warning", "message": "m", \
"exception": "java.lang.Error: x"}\n'
    )

    assert fields == {
        "timestamp": "2026-11-22T17:14:01Z",
        "level": "WARNING",
        "service": "mm2-worker",
        "message": "m",
        "error.type": "java.lang.Error",
        "error.message": "x",
        "error.stack_trace": "java.lang.Error: x",
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"message": "cut\n', '{"message": "cut'),
        (b'{"a": NaN}\n', '{"a": NaN}'),
        (b'{"password": "hunter2", "b"\n', '{"password": [redacted], "b"'),
        (b"{\x00\xff\n", "{�"),
    ],
)
def test_invalid_json_is_wrapped_and_redacted(line: bytes, message: str) -> None:
    assert only(line) == {"service": "mm2-worker", "message": message, "parse_error": True}


def test_invalid_utf8_in_json_is_replaced() -> None:
    assert only(b'{"message": "a\xffb"}\n')["message"] == "a�b"


def test_other_text_becomes_one_event_per_line_with_its_frames() -> None:
    thread = 'Exception in thread "main" java.lang.Error: x'
    text = f"OpenJDK warning\n{thread}\n\tat a.b(C.java:1)\n\nlast\n"

    events = parse(text)

    assert [event.fields["message"] for event in events] == [
        "OpenJDK warning",
        'Exception in thread "main" java.lang.Error: x',
        "last",
    ]
    assert events[1].fields["error.stack_trace"] == "\tat a.b(C.java:1)"


def test_json_object_inside_a_message_does_not_end_the_event() -> None:
    text = '[2026-11-22 17:14:01,837] INFO config\n{"a": 1}\n (k.x.Y)\n' + worker_line()

    first, second = parse(text)

    assert first.fields["message"] == 'config\n{"a": 1}\n'
    assert second.fields["thread"] == WORKER["thread"]


def test_long_texts_are_cut_after_redaction() -> None:
    secret = "password=" + "x" * 9_000
    trace: dict[str, object] = {"error.stack_trace": "t" * 40_000}

    fields = only(worker_line(message="m" * 8_180 + secret, **trace))

    assert fields["message"] == "m" * 8_180 + "password=[re"
    assert len(str(fields["error.stack_trace"])) == 32_768
    assert fields["truncated"] is True


def test_text_event_is_split_before_it_fills_memory() -> None:
    header = "[2026-11-22 17:14:01,837] INFO a (k.x.Y)\n"
    text = header + "no header\n" * 2_500 + header

    events = parse(text)

    assert [event.start for event in events[1:]] == [event.end for event in events[:-1]]
    assert events[0].end == len(header) + 999 * len("no header\n")
    assert events[-1].end == len(text)


def test_trace_message_of_kafka_is_not_shipped() -> None:
    fields = only(worker_line(level="TRACE", message="Appending record with key card, value 4111"))

    assert fields["message"] == "[trace message not shipped]"
    assert fields["level"] == "TRACE"


@pytest.mark.parametrize("levels", [33, 1_000])
def test_json_nested_too_deep_to_encode_is_wrapped_and_redacted(levels: int) -> None:
    line = '{"message": ' + '{"a": ' * levels + '"password=x"' + "}" * (levels + 1) + "\n"

    fields = only(line)

    assert fields["parse_error"] is True
    assert fields["message"] == line.strip().replace("=x", "=[redacted]")
    orjson.dumps(fields)


def test_nested_json_is_kept_and_redacted() -> None:
    fields = only('{"message": "m", "a": [{"b": "password=x"}' + ", [1]" * 40 + "]}\n")

    assert fields["a"] == [{"b": "password=[redacted]"}, *([[1]] * 40)]


def test_values_that_are_no_texts_become_texts() -> None:
    fields = only('{"timestamp": 5, "level": null, "message": {"a": [1]}, "logger": 7, "n": 1}\n')

    assert fields == {
        "timestamp": "5",
        "service": "mm2-worker",
        "logger": "7",
        "n": 1,
        "message": "{'a': [1]}",
    }


PIECES = st.sampled_from(
    [
        worker_line(),
        worker_line(message="password=x"),
        "[2026-11-22 17:14:01,837] INFO a (k.x.Y)\n",
        "\tat a.b(C.java:1)\n",
        "Caused by: a.B: c\n",
        "{\n",
        "\n",
        "text\n",
    ]
)


@given(pieces=st.lists(PIECES, max_size=12), cuts=st.lists(st.integers(0, 12), max_size=4))
def test_events_do_not_depend_on_blocks_and_cover_all_lines(
    pieces: list[str], cuts: list[int]
) -> None:
    found = lines("".join(pieces))
    edges = sorted({0, len(found), *(min(cut, len(found)) for cut in cuts)})
    parser = Parser(ParserSettings())
    events = [e for start, end in pairwise(edges) for e in parser.feed(found[start:end])]
    events += parser.flush()

    assert events == parse("".join(pieces))
    covered = {line.start for e in events for line in found if e.start <= line.start < e.end}
    assert covered >= {line.start for line in found if line.text}
    assert all(first.end <= second.start for first, second in pairwise(events))
