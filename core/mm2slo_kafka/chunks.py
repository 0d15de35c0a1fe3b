"""Splits iterables into lists of bounded size."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in order, in lists of at most *size* (itertools.batched needs Python 3.12)."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
