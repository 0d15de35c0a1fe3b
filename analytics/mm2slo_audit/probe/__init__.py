"""Compares a few records of each side and suggests what an audit has to leave out."""

from mm2slo_audit.probe.probing import Probe, probe
from mm2slo_audit.probe.wording import write

__all__ = ["Probe", "probe", "write"]
