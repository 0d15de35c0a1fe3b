"""What a request meets instead of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fake_hec.answer_facts import FACTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`indexes`: the events are indexed, although the answer does not say so."""

    status: int = 0  # 0: the connection is closed without an answer
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    indexes: bool = False
    is_cut: bool = False  # half of the answer, then the connection is closed
    delay: float = 0.0

    @classmethod
    def code(cls, code: int, **headers: str) -> Fault:
        """An answer of HEC; header names with underscores for hyphens."""
        fact = FACTS[code]
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        body = f'{{"text":"{fact.text}","code":{code}}}'.encode()
        return cls(status=fact.status, body=body, headers=named, indexes=fact.status == 200)

    @classmethod
    def html(cls, status: int, **headers: str) -> Fault:
        """An answer of a proxy or of Splunk Web."""
        return cls(status=status, body=b"<html>error</html>", headers=headers)
