"""The common parts of several identities."""

from mm2slo_core.audit.fingerprint import Identity, common_identity


def test_common_identity_omits_parts_that_one_omits() -> None:
    one, other = Identity(value=False, ignored_headers=("b",)), Identity(ignored_headers=("a",))
    assert common_identity([one, other]) == Identity(value=False, ignored_headers=("a", "b"))
    assert common_identity([one, Identity(timestamp=False, headers=False)]) == Identity(
        value=False, timestamp=False, headers=False
    )
    assert common_identity([one, Identity(key=False)]).key is False
    assert common_identity([one]) == one


def test_common_identity_is_keyed_if_one_is_keyed() -> None:
    assert common_identity([Identity(), Identity(hmac_key=b"k")]).hmac_key == b"k"
    assert common_identity([Identity(hmac_key=b"k"), Identity(hmac_key=b"l")]).hmac_key == b"k"
