"""Runs a call that may wait for a cluster in a thread of its own."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def call_in_background(work: Callable[[], T], purpose: str) -> Future[T]:
    """Run *work* in a daemon thread, which ends with it; *purpose* is part of its name."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except KafkaOperationError as error:
            # Its frames would keep clients open for as long as the future is kept.
            done.set_exception(error.with_traceback(None))
        except Exception as error:  # noqa: BLE001 - raised again by `result`
            done.set_exception(error)

    name = f"{threading.current_thread().name}-{purpose}"
    threading.Thread(target=run, name=name, daemon=True).start()
    return done
