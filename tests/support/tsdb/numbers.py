"""Whole numbers in few bytes, as Go's encoding/binary writes them."""

from __future__ import annotations


def uvarint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def varint(value: int) -> bytes:
    """The same of a number that may be negative: its sign is the lowest bit."""
    return uvarint(value << 1 if value >= 0 else ~(value << 1))


def text(value: str) -> bytes:
    """A string behind its length."""
    data = value.encode()
    return uvarint(len(data)) + data
