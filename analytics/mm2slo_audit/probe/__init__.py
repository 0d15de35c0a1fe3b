"""Compares a few records of each side and suggests what an audit has to leave out."""

from mm2slo_audit.probe.probe_report import write
from mm2slo_audit.probe.record_probe import Probe, probe

__all__ = ["Probe", "probe", "write"]
