"""What can go wrong while Spark works."""

from __future__ import annotations

from mm2slo_core.user_errors import UserError


class AuditEngineError(UserError):
    """Records could not be read or judged; the text is one sentence without a stack."""
