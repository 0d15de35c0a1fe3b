"""Faults that the demo can play by itself."""

from enum import StrEnum


class Scenario(StrEnum):
    """What is played."""

    STOP_MIRROR = "stop-mirror"
