"""Contents of records, as users produce them."""

import time
from collections.abc import Iterator

from fault_injection import Content

LARGE = 1_000_000
"""Bytes; with overhead just below the 1 MiB limit of MirrorMaker 2's producer."""


def now() -> int:
    """Current time, epoch ms."""
    return time.time_ns() // 1_000_000


def keyed(
    partitions: int, count: int, *, first: int = 0, keys: int = 50, text: str = "v"
) -> Iterator[tuple[int, Content]]:
    """Records *first* to *first* + *count*; each key stays in one partition."""
    for number in range(first, first + count):
        key = number % keys
        content = Content(now(), f"k{key}".encode(), f"{text}{number}".encode())
        yield key % partitions, content


def keyless(partitions: int, count: int, *, text: str = "n") -> Iterator[tuple[int, Content]]:
    """Records without a key, round-robin over the partitions."""
    for number in range(count):
        yield number % partitions, Content(now(), None, f"{text}{number}".encode())


def unusual_records(partitions: int) -> Iterator[tuple[int, Content]]:
    """Nulls, empty bytes, headers of every kind, identical and large records."""
    at = now()
    headers = (("a", b"1"), ("a", b"2"), ("b", None), ("", b""), ("\u00e9", b"\xff\x00"))
    contents = [
        Content(at, key, value, chosen)
        for key in (None, b"", b"k")
        for value in (None, b"", b"v")
        for chosen in ((), headers, headers[:1], headers[::-1])
    ]
    # A fingerprint that concatenates key and value would not distinguish these.
    contents += [Content(at, b"ab", b"c"), Content(at, b"a", b"bc")]
    # Identical records from the producer are not duplicates.
    contents += [Content(at, b"same", b"same")] * 5
    contents += [Content(at, b"large", bytes([65 + number]) * LARGE) for number in range(2)]
    for partition in range(partitions):
        for content in contents:
            yield partition, content
