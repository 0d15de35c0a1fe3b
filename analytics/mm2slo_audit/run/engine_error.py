"""The error of the audit engine."""

from __future__ import annotations

from mm2slo_core.user_errors import UserError


class AuditEngineError(UserError):
    """Records could not be read or judged; the text is one sentence without a stack trace."""
