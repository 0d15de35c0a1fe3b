"""One gzip member (RFC 1952) concatenated from separately deflated pieces.

Each piece is a raw deflate stream without back-references to other pieces, ended on a byte
boundary by a sync flush (RFC 1951). Pieces can thus be combined in any order, and the two formats
share the compressed samples of a family.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LEVEL = 1
"""Level 6 takes three times as long to save 10 % (tests/benchmarks/bench_exposition.py)."""

HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Deflate, without name, time and operating system: the same series give the same bytes."""

_FINAL_BLOCK = b"\x03\x00"


def deflate(piece: bytes, level: int = LEVEL) -> bytes:
    """*piece* as non-final deflate blocks; empty for an empty piece."""
    if not piece:
        return b""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)


def gzip_trailer(pieces: Iterable[bytes]) -> bytes:
    """The end of a member whose uncompressed content is *pieces* in order."""
    crc = size = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
        size += len(piece)
    return _FINAL_BLOCK + struct.pack("<II", crc, size & 0xFFFFFFFF)
