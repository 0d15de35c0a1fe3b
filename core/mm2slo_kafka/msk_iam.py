"""Tokens for Amazon MSK with IAM: SASL OAUTHBEARER with a signed request as token.

Needs the extra `msk`. Unit-tested with a replaced signer, not against MSK.
"""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING

from mm2slo_core.cluster_security import Mechanism
from mm2slo_core.user_errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SIGNER = "aws_msk_iam_sasl_signer.MSKAuthTokenProvider"


def token_callback(properties: Mapping[str, str]) -> Callable[[str], tuple[str, float]] | None:
    """The `oauth_cb` of a client with the mechanism AWS_MSK_IAM; None for other mechanisms."""
    config = properties.get("sasl.oauthbearer.config", "")
    if Mechanism.AWS_MSK_IAM not in config:
        return None
    aws = json.loads(config)["aws"]
    try:
        signer = importlib.import_module(_SIGNER)
    except ModuleNotFoundError as missing:
        module = missing.name or _SIGNER
        raise MissingExtraError(module=module, install="pip install 'mm2slo[msk]'") from None

    def token(_config: str) -> tuple[str, float]:
        if aws["role_arn"] is None:
            text, expiry_ms = signer.generate_auth_token(aws["region"])
        else:
            text, expiry_ms = signer.generate_auth_token_from_role_arn(**aws)
        return text, expiry_ms / 1000

    return token
