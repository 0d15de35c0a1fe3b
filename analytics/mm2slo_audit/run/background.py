"""Starts something slow in the background and ends it at the end."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

T = TypeVar("T")


class Background(Generic[T]):
    """A context that is entered by a thread, while the caller goes on.

    Leaving waits for it to be entered, and leaves it; its errors are raised by `get` alone.
    """

    def __init__(self, opening: Callable[[], AbstractContextManager[T]]) -> None:
        self._opening = opening
        self._context: AbstractContextManager[T] | None = None
        self._future: Future[T] | None = None
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="background")

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Enter it, if that is not under way yet; returns at once."""
        if self._future is None:
            self._future = self._threads.submit(self._enter)

    def get(self) -> T:
        """What it gives, once it is there. Raises what entering raised."""
        self.begin()
        assert self._future is not None  # noqa: S101 - for the type checker
        return self._future.result()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(Exception):
            if self._future is not None:
                self._future.result()
        self._threads.shutdown()
        if self._context is not None:
            self._context.__exit__(None, None, None)

    def _enter(self) -> T:
        context = self._opening()
        value = context.__enter__()
        self._context = context
        return value
