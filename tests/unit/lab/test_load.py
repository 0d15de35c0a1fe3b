"""Keys and values of produced records."""

from mm2slo_lab.lab_data import Load


def test_keys_are_numbered_or_repeat_in_turn() -> None:
    assert [Load(3).key(number) for number in range(3)] == [b"k0", b"k1", b"k2"]
    assert [Load(3, keys=("a", "b")).key(number) for number in range(3)] == [b"a", b"b", b"a"]


def test_value_contains_number_and_has_configured_size() -> None:
    assert Load(1, value_size=8).value(42) == b"v42-...."
