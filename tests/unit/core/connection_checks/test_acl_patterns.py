"""Regular expressions of topics and groups as names of ACLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.kafka_permissions import AclPattern, acl_patterns

ALL = AclPattern("*")


def prefix(name: str) -> AclPattern:
    return AclPattern(name, prefixed=True)


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        (("orders",), (AclPattern("orders"),)),
        (("orders, payments",), (AclPattern("orders"), AclPattern("payments"))),
        (("orders|payments",), (AclPattern("orders"), AclPattern("payments"))),
        (("orders.*", "orders.*"), (prefix("orders"),)),
        ((r"orders\..*",), (prefix("orders."),)),
        (("orders.v1",), (AclPattern("orders.v1"),)),
        ((r"orders\.v[12]",), (prefix("orders.v"),)),
        (("orders-?x",), (prefix("orders"),)),
        ((r"orders\.?x",), (prefix("orders"),)),
        (("ab+c",), (prefix("a"),)),
        (("orders(-eu|-us)",), (prefix("orders"),)),
        ((".*",), (ALL,)),
        ((r".*\.orders",), (ALL,)),
        (("(?i)orders",), (ALL,)),
        (("a|b.*|.*c",), (AclPattern("a"), prefix("b"), ALL)),
        ((), ()),
    ],
)
def test_acl_patterns_are_the_narrowest(
    expressions: tuple[str, ...], expected: tuple[AclPattern, ...]
) -> None:
    assert acl_patterns(expressions) == expected


@pytest.mark.parametrize(
    ("wide", "narrow", "covers"),
    [
        (ALL, prefix("a"), True),
        (ALL, ALL, True),
        (prefix("a"), AclPattern("ab"), True),
        (prefix("a"), prefix("ab"), True),
        (prefix("ab"), prefix("a"), False),
        (AclPattern("a"), AclPattern("a"), True),
        (AclPattern("a"), prefix("a"), False),
        (prefix("*"), ALL, False),
    ],
)
def test_pattern_covers_only_patterns_within_it(
    wide: AclPattern, narrow: AclPattern, covers: bool
) -> None:
    assert wide.covers(narrow) is covers


@pytest.mark.property
@given(
    st.lists(st.sampled_from(["orders", "pay-1", r"\.", ".*", "x?", "y+", "[ab]"]), min_size=1),
    st.data(),
)
def test_every_name_that_matches_is_covered(parts: list[str], data: st.DataObject) -> None:
    expression = "".join(parts)
    name = data.draw(st.from_regex(expression, fullmatch=True, alphabet="orders-pay1.xb"))
    assert any(found.covers(AclPattern(name)) for found in acl_patterns([expression]))
