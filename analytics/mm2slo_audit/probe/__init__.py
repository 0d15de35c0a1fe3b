"""Compares some records of each side and suggests which fields an audit should ignore."""

from mm2slo_audit.probe.probe_report import write_probe_report
from mm2slo_audit.probe.record_probe import Probe, probe

__all__ = ["Probe", "probe", "write_probe_report"]
