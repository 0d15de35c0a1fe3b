"""A run of the audit, from the options to the stored result."""

from mm2slo_audit.run.auditing import audit
from mm2slo_audit.run.model import RunReport, UnitReport
from mm2slo_audit.run.options import AuditOptions
from mm2slo_audit.run.ports import Ports
from mm2slo_audit.run.span import Span

__all__ = ["AuditOptions", "Ports", "RunReport", "Span", "UnitReport", "audit"]
