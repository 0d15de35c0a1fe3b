"""The lab: Kafka clusters and MirrorMaker 2 as processes on one machine, without containers.

>>> with Lab.start(LabTopology()) as lab:
...     lab.cluster("us").admin.create_topic("orders", 4)
"""

from mm2slo_core.topology import Flow
from mm2slo_lab.lab import Lab
from mm2slo_lab.lab_errors import LabError
from mm2slo_lab.lab_topology import ADMIN, APP, Engine, LabTopology, Security, User

__all__ = [
    "ADMIN",
    "APP",
    "Engine",
    "Flow",
    "Lab",
    "LabError",
    "LabTopology",
    "Security",
    "User",
]
