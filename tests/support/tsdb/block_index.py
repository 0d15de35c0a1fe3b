"""Writes a block's index, version 2 (Prometheus: tsdb/docs/format/index.md)."""

import struct
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tsdb.crc32c import crc32c
from tsdb.varints import text, uvarint, varint

Labels = tuple[tuple[str, str], ...]
_HEAD: Final = struct.pack(">IB", 0xBAAAD700, 2)
_ALIGNED: Final = 16
"""Series start at multiples of this; postings refer to the multiple."""


class ChunkRange(NamedTuple):
    """A chunk: its first and last time (epoch ms), and its offset from the first chunk."""

    first: int
    last: int
    place: int


class Chunks(NamedTuple):
    """Consecutive chunks of a series, from `place`.

    `tail` encodes all but the first; it is equal for series with the same pattern.
    """

    number: int
    head: ChunkRange
    place: int
    tail: bytes


def tail(ranges: Sequence[ChunkRange]) -> bytes:
    """Encode all *ranges* but the first."""
    return b"".join(
        uvarint(each.first - before.last)
        + uvarint(each.last - each.first)
        + varint(each.place - before.place)
        for before, each in pairwise(ranges)
    )


def index(series: Sequence[tuple[Labels, Chunks]]) -> bytes:
    """Encode the index of *series*, which are ordered by labels; labels are ordered by name."""
    symbols = sorted({symbol for labels, _ in series for pair in labels for symbol in pair})
    numbers = {symbol: uvarint(place) for place, symbol in enumerate(symbols)}
    found = bytearray(_HEAD)
    symbols_at = len(found)
    found += _framed(len(symbols), b"".join(map(text, symbols)))
    start = len(found)
    postings: dict[tuple[str, str], list[int]] = defaultdict(list)
    for labels, chunks in series:
        found += bytes(-len(found) % _ALIGNED)
        number = len(found) // _ALIGNED
        postings["", ""].append(number)
        for pair in labels:
            postings[pair].append(number)
        named = b"".join(numbers[name] + numbers[value] for name, value in labels)
        content = uvarint(len(labels)) + named + _listed(chunks)
        found += uvarint(len(content)) + content + crc32c(content)
    offsets, places = bytearray(), len(found)
    for pair, those in sorted(postings.items()):
        found += bytes(-len(found) % 4)
        offsets += uvarint(2) + text(pair[0]) + text(pair[1]) + uvarint(len(found))
        found += _framed(len(those), struct.pack(f">{len(those)}I", *those))
    table = len(found)
    found += _framed(len(postings), bytes(offsets))
    # Two obsolete sections are omitted.
    contents = struct.pack(">6Q", symbols_at, start, 0, 0, places, table)
    return bytes(found) + contents + crc32c(contents)


def _listed(chunks: Chunks) -> bytes:
    head = chunks.head
    parts = (
        uvarint(chunks.number),
        varint(head.first),
        uvarint(head.last - head.first),
        uvarint(chunks.place),
        chunks.tail,
    )
    return b"".join(parts)


def _framed(entries: int, data: bytes) -> bytes:
    content = struct.pack(">I", entries) + data
    return struct.pack(">I", len(content)) + content + crc32c(content)
