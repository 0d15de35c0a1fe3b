"""Reads committed offsets and members of consumer groups in a separate process.

librdkafka (2.16, confluentinc/librdkafka pull request 5397) uses freed memory when the connection
to a group coordinator breaks during a request, and an assertion then ends the process. That
happens when a cluster stops or returns, which the exporter must survive.
"""

from mm2slo_kafka.group_offsets.group_requests import GroupOffsets
from mm2slo_kafka.group_offsets.group_worker import GroupRead, GroupWorker

__all__ = ["GroupOffsets", "GroupRead", "GroupWorker"]
