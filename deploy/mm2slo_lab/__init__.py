"""The lab: real Kafka clusters and MirrorMaker 2 as processes of one machine, without containers.

>>> with Lab.start(LabTopology()) as lab:
...     lab.cluster("us").admin.create_topic("orders", 4)
"""

from mm2slo_core.topology import Flow
from mm2slo_lab.errors import LabError
from mm2slo_lab.lab import Lab
from mm2slo_lab.topology import ADMIN, APP, Engine, LabTopology, Security, User

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
