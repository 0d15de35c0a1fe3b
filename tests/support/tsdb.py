"""Writes a dense history in Prometheus's block format.

A month of a large fleet has hundreds of millions of samples, and promtool converts a few hundred
thousand per second. This package encodes identical chunks once.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

SPAN: Final = 54 * 3600
"""Seconds: the range to which Prometheus compacts at a retention of 35 days."""
_HEAD: Final = struct.pack(">IB3x", 0x85BD40DD, 1)
_XOR: Final = b"\x01"
_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Series(NamedTuple):
    """A series from `since` (epoch seconds); its labels include the metric's name."""

    labels: Labels
    pattern: SamplePattern
    since: int = 0


def write_blocks(folder: Path, series: Iterable[Series], start: int, end: int) -> int:
    """Write blocks of [start, end), epoch seconds, into *folder*; returns the number of samples."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(series, key=lambda each: each.labels)
    return sum(
        _write(folder, ordered, max(edge, start), min(edge + SPAN, end))
        for edge in range(start // SPAN * SPAN, end, SPAN)
    )


def _write(folder: Path, series: Sequence[Series], start: int, end: int) -> int:
    chunks, indexed, samples = bytearray(_HEAD), [], 0
    encoded: dict[tuple[SamplePattern, int], _Encoded] = {}
    for labels, pattern, since in series:
        first = max(start, since)
        if first >= end:
            continue
        found = encoded.get((pattern, first))
        if found is None:
            found = encoded[pattern, first] = _encode(pattern, first, end)
        if found.samples:
            listed = Chunks(found.chunks, found.head, len(chunks), found.tail)
            indexed.append((labels, listed))
            chunks += found.data
            samples += found.samples
    block = folder / _ulid(start)
    (block / "chunks").mkdir(parents=True)
    (block / "chunks" / "000001").write_bytes(chunks)
    (block / "index").write_bytes(index(indexed))
    meta = {
        "ulid": block.name,
        "minTime": start * 1000,
        "maxTime": end * 1000,
        "stats": {"numSamples": samples, "numSeries": len(indexed)},
        "compaction": {"level": 1, "sources": [block.name]},
        "version": 1,
    }
    (block / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    return samples


class _Encoded(NamedTuple):
    samples: int
    chunks: int
    head: ChunkRange
    tail: bytes
    data: bytes


def _encode(pattern: SamplePattern, start: int, end: int) -> _Encoded:
    """Encode the samples in [start, end)."""
    step, data, total = pattern.step, bytearray(), 0
    ranges = []
    for first in range(-(-start // step) * step, end, step * MAX_SAMPLES):
        samples = min(MAX_SAMPLES, -(-(end - first) // step))
        chunk = pattern.chunk(first, samples)
        last = first + (samples - 1) * step
        ranges.append(ChunkRange(first * 1000, last * 1000, len(data)))
        data += uvarint(len(chunk)) + _XOR + chunk + crc32c(_XOR + chunk)
        total += samples
    head = ranges[0] if ranges else ChunkRange(0, 0, 0)
    return _Encoded(total, len(ranges), head, tail(ranges), bytes(data))


def _ulid(moment: int) -> str:
    """A valid, unique block name: 26 digits of Crockford's base 32."""
    digits = [_DIGITS[moment * 1000 >> shift & 31] for shift in range(45, -1, -5)]
    return "".join(digits).rjust(10, "0") + "0" * 16


Labels = tuple[tuple[str, str], ...]
_INDEX_HEAD: Final = struct.pack(">IB", 0xBAAAD700, 2)

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
    found = bytearray(_INDEX_HEAD)
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


_POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli polynomial with reversed bits (RFC 3720, appendix B.4)."""


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE: Final = tuple(_entry(byte) for byte in range(256))


def crc32c(data: bytes) -> bytes:
    """Checksum of *data*: four bytes, big-endian."""
    value, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return (value ^ 0xFFFFFFFF).to_bytes(4, "big")


MAX_SAMPLES: Final = 120
"""Samples per chunk in Prometheus."""
_NO_WINDOW: Final = (0xFF, 0)
_MAX_LEADING: Final = 31


@dataclass(frozen=True, slots=True)
class SamplePattern:
    """A sample every `step` seconds since the epoch, cycling through *values*."""

    step: int
    values: tuple[float, ...]

    def chunk(self, first: int, samples: int) -> bytes:
        """Encode *samples* from *first* (epoch seconds), a multiple of the step."""
        start = first // self.step
        values = tuple(
            self.values[place % len(self.values)] for place in range(start, start + samples)
        )
        return struct.pack(">H", samples) + varint(first * 1000) + _body(values, self.step)


@cache
def _body(values: tuple[float, ...], step: int) -> bytes:
    """The part of a chunk after its first timestamp."""
    found = struct.pack(">d", values[0])
    if len(values) == 1:
        return found
    bits, count, window = _value(_bits(values[0]), _bits(values[1]), _NO_WINDOW)
    for before, now in pairwise(values[1:]):
        more, size, window = _value(_bits(before), _bits(now), window)
        # A preceding 0 bit: the interval is unchanged.
        bits, count = bits << size + 1 | more, count + size + 1
    padding = -count % 8
    return found + uvarint(step * 1000) + (bits << padding).to_bytes((count + padding) // 8, "big")


@cache
def _bits(value: float) -> int:
    return int.from_bytes(struct.pack(">d", value), "big")


def _value(before: int, now: int, window: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
    """Encoded bits of *now* after *before*, their number, and the window of differing bits."""
    differing = before ^ now
    if not differing:
        return 0, 1, window
    leading = min(64 - differing.bit_length(), _MAX_LEADING)
    trailing = (differing & -differing).bit_length() - 1
    kept = window[0] <= leading and window[1] <= trailing
    lead, trail = window if kept else (leading, trailing)
    size = 64 - lead - trail
    shown = differing >> trail
    if kept:
        return 0b10 << size | shown, size + 2, window
    head = 0b11 << 11 | lead << 6 | size & 0x3F
    return head << size | shown, size + 13, (lead, trail)


def uvarint(value: int) -> bytes:
    """Encode seven bits per byte, lowest first."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def varint(value: int) -> bytes:
    """Encode a signed number; the lowest bit is its sign."""
    return uvarint(value << 1 if value >= 0 else ~(value << 1))


def text(value: str) -> bytes:
    """Encode a string after its length."""
    data = value.encode()
    return uvarint(len(data)) + data
