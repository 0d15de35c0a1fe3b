"""The audit scenario, shared by all tests of the audit."""

import os

import pytest
from audit_scenario.scenario_run import AuditScenario, play_scenario

from mm2slo_lab.running_lab import Lab


@pytest.fixture(scope="session")
def scenario(lab: Lab) -> AuditScenario:
    """The scenario, run once; MirrorMaker 2's configuration is restored afterwards."""
    return play_scenario(lab, f"audited-{os.getpid()}")
