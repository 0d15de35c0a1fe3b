"""CRC-32C, the checksum of Prometheus's files."""

from typing import Final

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
