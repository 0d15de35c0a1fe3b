"""Tokens for Amazon MSK with IAM, from a replaced signer."""

import sys
from types import ModuleType

import pytest

from mm2slo_core.config.client_security import Security, librdkafka_properties
from mm2slo_core.user_errors import MissingExtraError
from mm2slo_kafka.client_handles import HandleFactory, msk_token_callback

ROLE = "arn:aws:iam::1:role/mm2slo"


def properties(**aws: str) -> dict[str, str]:
    sasl = {"mechanism": "AWS_MSK_IAM", "aws_region": "eu-west-1", **aws}
    security = Security.model_validate({"protocol": "SASL_SSL", "sasl": sasl})
    return librdkafka_properties(security)


class Signer(ModuleType):
    """`aws_msk_iam_sasl_signer.MSKAuthTokenProvider` of version 1.0.2."""

    def __init__(self) -> None:
        super().__init__("signer")
        self.calls: list[tuple[str, ...]] = []

    def generate_auth_token(self, region: str) -> tuple[str, int]:
        self.calls.append((region,))
        return "default-token", 4_000_000_000_500

    def generate_auth_token_from_role_arn(self, region: str, role_arn: str) -> tuple[str, int]:
        self.calls.append((region, role_arn))
        return "role-token", 4_000_000_001_000


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> Signer:
    replaced = Signer()
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", ModuleType("package"))
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", replaced)
    return replaced


@pytest.mark.parametrize(
    ("aws", "token", "call"),
    [
        ({}, ("default-token", 4_000_000_000.5), ("eu-west-1",)),
        ({"aws_role_arn": ROLE}, ("role-token", 4_000_000_001.0), ("eu-west-1", ROLE)),
    ],
)
def test_token_callback_returns_token_and_expiry_in_seconds(
    signer: Signer, aws: dict[str, str], token: tuple[str, float], call: tuple[str, ...]
) -> None:
    assert msk_token_callback(properties(**aws)["sasl.oauthbearer.config"])("unused") == token
    assert signer.calls == [call]


def test_librdkafka_asks_for_a_token(signer: Signer) -> None:
    handles = HandleFactory("us", {**properties(), "bootstrap.servers": "127.0.0.1:1"})
    # The constructor waits for the first token.
    handles.producer({})
    handles.admin()
    assert signer.calls == [("eu-west-1",)] * 2


def test_token_callback_without_extra_raises_error() -> None:
    with pytest.raises(MissingExtraError, match=r"aws_msk_iam_sasl_signer.*\[msk\]"):
        HandleFactory("us", properties()).admin()
