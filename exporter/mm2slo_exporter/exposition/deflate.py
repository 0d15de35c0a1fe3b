"""One gzip member (RFC 1952) put together from pieces that were deflated apart.

Each piece is a raw deflate stream of its own, ended on a byte boundary by a sync flush and
referring to nothing before it (RFC 1951), so pieces may follow one another in any order: the two
formats share the compressed samples of a family.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LEVEL = 1
"""Level 6 takes three times as long for a tenth less (tests/benchmarks/bench_exposition.py)."""

HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Deflate, no name, no time (the same series give the same bytes), no operating system."""

_FINAL_BLOCK = b"\x03\x00"


def deflated(piece: bytes, level: int = LEVEL) -> bytes:
    """*piece* as deflate blocks, none of them final. Empty stays empty."""
    if not piece:
        return b""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)


def trailer(pieces: Iterable[bytes]) -> bytes:
    """The end of the member whose uncompressed content is *pieces* in order."""
    crc = size = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
        size += len(piece)
    return _FINAL_BLOCK + struct.pack("<II", crc, size & 0xFFFFFFFF)
