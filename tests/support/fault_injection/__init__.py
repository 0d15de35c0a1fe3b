"""Injects faults with known verdicts, and compares topics with an independent reader."""

from fault_injection.fault_truth import Found, Score, Truth, counterparts, named, scores
from fault_injection.full_read import FullRead, compare, replays
from fault_injection.injector import MARK, Injector
from fault_injection.stored_records import Content, Place, Stored, read_all, write

__all__ = [
    "MARK",
    "Content",
    "Found",
    "FullRead",
    "Injector",
    "Place",
    "Score",
    "Stored",
    "Truth",
    "compare",
    "counterparts",
    "named",
    "read_all",
    "replays",
    "scores",
    "write",
]
