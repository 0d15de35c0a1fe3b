"""One gzip member (RFC 1952) concatenated from separately deflated pieces.

Each piece is a raw deflate stream without back-references to other pieces, ended on a byte
boundary by a sync flush (RFC 1951). Pieces can thus be combined in any order, and the two formats
share the compressed samples of a family.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

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


class Piece(NamedTuple):
    """A piece of a member, with the checksum of its plain content."""

    plain: bytes
    deflated: bytes
    crc: int
    shift: int
    """What appending it does to the checksum of the pieces before it."""

    @classmethod
    def of(cls, plain: bytes, level: int = LEVEL) -> Piece:
        return cls(plain, deflate(plain, level), zlib.crc32(plain), _power_of_x(8 * len(plain)))


def gzip_trailer(pieces: Iterable[Piece]) -> bytes:
    """The end of a member that consists of *pieces* in order."""
    crc = size = 0
    for piece in pieces:
        crc = _product(piece.shift, crc) ^ piece.crc
        size += len(piece.plain)
    return _FINAL_BLOCK + struct.pack("<II", crc, size & 0xFFFFFFFF)


# Checksums of pieces are combined as zlib's crc32_combine does, which Python does not have: the
# checksum of tens of megabytes is not computed again when one piece has changed. Numbers are
# polynomials over GF(2) modulo _POLYNOMIAL, with the coefficient of x^0 in the highest bit.

_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31


def _product(a: int, b: int) -> int:
    product, bit = 0, _ONE
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = b >> 1 ^ _POLYNOMIAL if b & 1 else b >> 1
    return product


_SQUARES = [_ONE >> 1]
"""x^1, x^2, x^4, ...: enough for the longest piece that memory can hold."""
for _ in range(47):
    _SQUARES.append(_product(_SQUARES[-1], _SQUARES[-1]))


def _power_of_x(exponent: int) -> int:
    power = _ONE
    for bit, square in enumerate(_SQUARES):
        if exponent >> bit & 1:
            power = _product(power, square)
    return power
