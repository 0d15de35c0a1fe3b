"""Java properties files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.file_syntax import dump_properties

TEXT = st.text(st.characters(codec="utf-16-le", exclude_characters="\x00"), min_size=1)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"us->eu.enabled": "true"}, "us->eu.enabled=true\n"),
        ({"topics": r"mm2.*\.internal"}, "topics=mm2.*\\\\.internal\n"),
        ({"a b": "c d"}, "a\\ b=c d\n"),
        ({"k": " padded"}, "k=\\ padded\n"),
        ({"k": "a=b:c#d"}, "k=a=b:c#d\n"),
        ({"k": "né"}, "k=n\\u00e9\n"),
        ({"k": "\U0001f40d"}, "k=\\ud83d\\udc0d\n"),
    ],
)
def test_dump_properties_escapes_special_characters(properties: dict[str, str], text: str) -> None:
    assert dump_properties(properties) == text


@given(st.dictionaries(TEXT, st.text(st.characters(codec="utf-16-le", exclude_characters="\x00"))))
def test_dump_properties_output_loads_as_the_same_properties(properties: dict[str, str]) -> None:
    assert load(dump_properties(properties)) == properties


def load(text: str) -> dict[str, str]:
    """Parse like java.util.Properties.load, without continuation lines."""
    found = {}
    for line in text.split("\n")[:-1]:
        assert line.isascii()
        units, sign = [], None
        index = 0
        while index < len(line):
            character = line[index]
            if character == "\\":
                index += 1
                if line[index] == "u":
                    units.append(int(line[index + 1 : index + 5], 16))
                    index += 4
                else:
                    units.append(
                        ord(
                            {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}.get(
                                line[index], line[index]
                            )
                        )
                    )
            elif sign is None and character in "=: \f\t":
                assert character == "=", f"an unescaped {character!r} would end the key"
                sign = len(units)
            else:
                assert sign is None or len(units) > sign or character not in " \t\f", "skipped"
                assert units or character not in "#!", "an unescaped comment sign"
                units.append(ord(character))
            index += 1
        assert sign is not None
        found[_text(units[:sign])] = _text(units[sign:])
    return found


def _text(units: list[int]) -> str:
    return b"".join(unit.to_bytes(2, "little") for unit in units).decode("utf-16-le")
