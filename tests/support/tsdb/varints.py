"""Variable-length integers, as in Go's encoding/binary."""


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
