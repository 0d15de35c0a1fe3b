"""Runs an audit, from options to stored result."""

from mm2slo_audit.run.audit_options import AuditOptions
from mm2slo_audit.run.audit_ports import Ports
from mm2slo_audit.run.audit_run import audit
from mm2slo_audit.run.run_report import RunReport, UnitReport
from mm2slo_audit.run.time_span import Span

__all__ = ["AuditOptions", "Ports", "RunReport", "Span", "UnitReport", "audit"]
