"""The versions of Kafka that the long suite runs the live checks on."""

from typing import Final

from mm2slo_lab.lab_topology import DEFAULT_VERSION

MATRIX: Final = ("3.9.x", "4.1.x", "4.3.x", DEFAULT_VERSION)
