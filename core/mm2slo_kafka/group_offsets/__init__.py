"""What consumer groups committed, asked for in a process of its own.

librdkafka (2.16, confluentinc/librdkafka pull request 5397) uses freed memory when the connection
to a group's coordinator breaks while it sends: an assertion then ends the process. That happens
when a cluster goes away or comes back, which is when an exporter is needed.
"""

from mm2slo_kafka.group_offsets.asking import Committed, GroupOffsets
from mm2slo_kafka.group_offsets.reader import GroupOffsetsReader

__all__ = ["Committed", "GroupOffsets", "GroupOffsetsReader"]
