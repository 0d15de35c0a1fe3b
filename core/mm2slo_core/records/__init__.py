"""Records of MirrorMaker 2's internal topics: frozen values with `decode` and `encode`.

Decoders take a record's key and value and return the decoded value, or a Tombstone with the key if
the value is null; they raise DecodeError with a reason from a closed list.
"""

from __future__ import annotations

from mm2slo_core.records.checkpoint import Checkpoint, CheckpointKey
from mm2slo_core.records.connect_config import (
    SAFE_SETTINGS,
    ConfigKey,
    ConnectorConfig,
    TaskAssignment,
    TaskFencing,
    decode_config,
)
from mm2slo_core.records.connect_status import (
    ConnectorStatus,
    ConnectState,
    StatusKey,
    TaskStatus,
    decode_status,
)
from mm2slo_core.records.decode_errors import DecodeError, DecodeReason, Tombstone
from mm2slo_core.records.heartbeat import Heartbeat, HeartbeatKey
from mm2slo_core.records.offset_sync import OffsetSync
from mm2slo_core.records.source_offset import SourceOffset, SourceOffsetKey

__all__ = [
    "SAFE_SETTINGS",
    "Checkpoint",
    "CheckpointKey",
    "ConfigKey",
    "ConnectState",
    "ConnectorConfig",
    "ConnectorStatus",
    "DecodeError",
    "DecodeReason",
    "Heartbeat",
    "HeartbeatKey",
    "OffsetSync",
    "SourceOffset",
    "SourceOffsetKey",
    "StatusKey",
    "TaskAssignment",
    "TaskFencing",
    "TaskStatus",
    "Tombstone",
    "decode_config",
    "decode_status",
]
