"""Tokens for Amazon MSK with IAM, by the extra `msk`. Tested with a replaced signer, not on MSK."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING

from mm2slo_core.user_errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNER = "aws_msk_iam_sasl_signer.MSKAuthTokenProvider"


def token_callback(config: str) -> Callable[[str], tuple[str, float]]:
    """The `oauth_cb` of a client; *config* as rendered by `client_security`."""
    aws = json.loads(config)
    try:
        signer = importlib.import_module(_SIGNER)
    except ModuleNotFoundError as missing:
        module = missing.name or _SIGNER
        raise MissingExtraError(module=module, extra="msk") from None
    name = "generate_auth_token_from_role_arn" if "role_arn" in aws else "generate_auth_token"

    def new_token(_config: str) -> tuple[str, float]:
        token, expiry_ms = getattr(signer, name)(**aws)
        return token, expiry_ms / 1000

    return new_token
