"""CPU time per event of parsing, classifying and redacting log lines."""

import random
import time
from typing import Final

import orjson

from mm2slo_core.log_redaction import Redactor
from mm2slo_logship.log_events import Line, Parser, ParserSettings

EVENTS: Final = 20_000
BLOCK: Final = 500  # lines
BYTES: Final = 500
ROUNDS: Final = 5
LIMIT_US: Final = 15.0
PACKAGE: Final = "org.apache.kafka.connect."
MESSAGES: Final = (
    (
        "runtime.WorkerSourceTask",
        "WorkerSourceTask{{id=MirrorSourceConnector-{0}}} Committing offsets for {1} acknowledged "
        "messages",
    ),
    ("mirror.Scheduler", "refreshing topics took {1} ms"),
    (
        "runtime.distributed.DistributedHerder",
        "[Worker clientId=us->eu, groupId=us-mm2] Starting task MirrorSourceConnector-{0}",
    ),
    (
        "clients.NetworkClient",
        "[AdminClient clientId=us->eu|MirrorSourceConnector|source-admin] Node {0} disconnected.",
    ),
    ("mirror.MirrorSourceTask", "Polled {1} records from us"),
)
TRACE: Final = "org.apache.kafka.connect.errors.ConnectException: failed\n" + "".join(
    f"\tat org.apache.kafka.connect.runtime.Worker{n}.run(Worker{n}.java:{n})\n" for n in range(60)
)


def corpus(seed: int = 7) -> list[tuple[str, str, str]]:
    """Logger, message and trace: 98 % one-liners, 2 % with a secret's name, 0.1 % traces."""
    rng = random.Random(seed)
    found = []
    for _ in range(EVENTS):
        logger, template = rng.choice(MESSAGES)
        message, trace = template.format(rng.randrange(4), rng.randrange(9_999)), ""
        roll = rng.random()
        if roll < 0.001:
            trace = TRACE
        elif roll < 0.021:
            message += " sasl.password=hunter2"
        found.append((PACKAGE + logger, message, trace))
    return found


def json_line(logger: str, message: str, trace: str) -> bytes:
    fields = {
        "timestamp": "2026-11-22T17:14:01.837123Z", "level": "INFO", "flow": "",
        "context": "[MirrorSourceConnector|task-0] ", "logger": logger,
        "thread": "task-thread-MirrorSourceConnector-0", "thread_id": "57",
        "worker_start": "2026-11-22T17:00:00.000Z", "message": message, "error.stack_trace": trace,
    }  # fmt: skip
    padding = BYTES - len(orjson.dumps(fields))
    return orjson.dumps(fields | {"message": f"{message} {'x' * max(0, padding - 1)}"})


def text_lines(logger: str, message: str, trace: str) -> bytes:
    header = f"[2026-11-22 17:14:01,837] INFO [MirrorSourceConnector|task-0] {message}"
    padding = "x" * max(0, BYTES - len(header) - len(logger) - 4)
    return f"{header} {padding} ({logger})\n{trace}".rstrip().encode()


def blocks(text: bytes) -> list[list[Line]]:
    lines, start = [], 0
    for each in text.split(b"\n"):
        lines.append(Line(start, start + len(each) + 1, each))
        start += len(each) + 1
    return [lines[i : i + BLOCK] for i in range(0, len(lines), BLOCK)]


def microseconds(found: list[list[Line]]) -> float:
    """CPU time per event, the best of the rounds: other load only adds to it."""
    times = []
    for _ in range(ROUNDS):
        parser, events = Parser(ParserSettings()), 0
        start = time.process_time()
        for block in found:
            events += len(parser.feed(block))
        events += len(parser.flush())
        times.append(time.process_time() - start)
        assert events == EVENTS
    return min(times) / EVENTS * 1e6


def main() -> None:
    records = corpus()
    found = blocks(b"\n".join(json_line(*record) for record in records))
    took = microseconds(found)
    print(f"JSON lines of {BYTES} B      {took:6.1f} us per event  (limit {LIMIT_US:.0f})")
    redactor, start = Redactor(), time.process_time()
    for block in found:
        redactor.suspects([line.text for line in block])
    print(f"  of it search for literals {(time.process_time() - start) / EVENTS * 1e6:6.1f} us")
    took = microseconds(blocks(b"\n".join(text_lines(*record) for record in records)))
    print(f"log4j text of {BYTES} B      {took:6.1f} us per event")


if __name__ == "__main__":
    main()
