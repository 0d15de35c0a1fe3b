"""Writes blocks with the ranges that Prometheus would choose."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tsdb.block_index import ChunkRange, Chunks, Labels, index, tail
from tsdb.crc32c import crc32c
from tsdb.varints import uvarint
from tsdb.xor_chunks import MAX_SAMPLES, SamplePattern

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
