"""Encodes samples at a fixed interval as Prometheus's XOR chunks (tsdb/chunkenc/xor.go).

Only a chunk's first timestamp depends on its time, so chunks with equal values are encoded once.
"""

import struct
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

from tsdb.varints import uvarint, varint

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
