"""What several identities have in common."""

from __future__ import annotations

from mm2slo_core.audit.identity import Identity, shared


def test_what_one_leaves_out_all_of_them_do() -> None:
    one, other = Identity(value=False, ignored_headers=("b",)), Identity(ignored_headers=("a",))
    assert shared([one, other]) == Identity(value=False, ignored_headers=("a", "b"))
    assert shared([one, Identity(timestamp=False, headers=False)]) == Identity(
        value=False, timestamp=False, headers=False
    )
    assert shared([one, Identity(key=False)]).key is False
    assert shared([one]) == one


def test_one_that_is_keyed_keys_all() -> None:
    assert shared([Identity(), Identity(hmac_key=b"k")]).hmac_key == b"k"
    assert shared([Identity(hmac_key=b"k"), Identity(hmac_key=b"l")]).hmac_key == b"k"
