"""Runs a call that may wait for a cluster in a thread of its own."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def call_in_background(work: Callable[[], T], purpose: str) -> Future[T]:
    """Run *work* in a daemon thread, which ends with it; *purpose* is part of its name."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised again by `result`
            done.set_exception(error)

    name = f"{threading.current_thread().name}-{purpose}"
    threading.Thread(target=run, name=name, daemon=True).start()
    return done
