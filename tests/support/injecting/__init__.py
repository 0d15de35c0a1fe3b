"""Faults with a known truth, and an independent reader that needs none."""

from injecting.full_read import FullRead, compare, replays
from injecting.injector import MARK, Injector
from injecting.raw import Content, Place, Stored, read_all, write
from injecting.truth import Found, Score, Truth, counterparts, named, scores

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
