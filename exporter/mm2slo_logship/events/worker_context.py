"""Which connector, task and flow a line of a Connect worker belongs to (pure)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mm2slo_logship.events.parser_settings import ParserSettings

_CACHED: Final = 400
"""Longest text in a cache; what identifies a line is at its start."""
UNRESOLVED: Final = "unresolved"
"""The flow of a worker's line that does not show it; never guessed from other lines."""

# LoggingContext.java; the value ends with a blank.
CONTEXT: Final = re.compile(
    r"\[(?P<connector>[^\]|]+)\|(?:(?P<worker>worker|validate)|task-(?P<task>\d+)"
    r"(?:\|(?P<offsets>offsets))?)\]"
)
_NAMED_TASK: Final = re.compile(
    r"(?:Worker(?:Source|Sink)Task\{id=|task-thread-|connector-producer-|\b[Tt]ask )"
    r"(?P<connector>[\w.-]+)-(?P<task>\d+)\b"
    r"|^Scheduler for (?P<scheduler>[\w.-]+): "
    r"|->[\w.-]+\|(?P<client>[^|\s]+?)(?:-(?P<client_task>\d+))?\|"
)
_ALIAS: Final = r"[\w.-]+"
# Clients of tasks and herders, clients of Connect's internal topics, threads, starting tasks.
_FLOW: Final = re.compile(
    rf"clientId=(?P<group>{_ALIAS})-mm2-(?P<internal>(?P=group)->{_ALIAS}?)"
    r"-(?:configs|offsets|statuses|shared-admin)\b"
    rf"|(?:^|[\s=|])(?P<client>{_ALIAS}->{_ALIAS})(?=\||, groupId=)"
    rf"|^(?:(?:Distributed|Mirror)Herder|(?:StartAndStop|ForwardRequest)Executor)-(?P<herder>{_ALIAS}?->{_ALIAS})-\d+$"
    rf"|(?:topic-partitions|consumer groups(?: for)?) (?P<start>{_ALIAS}->{_ALIAS}?)(?=: |\. )"
)


class WorkerContext(NamedTuple):
    """Connector, task number and scope (worker, task, offsets, validate); empty if unknown."""

    connector: str = ""
    task: str = ""
    scope: str = ""


NO_CONTEXT: Final = WorkerContext()


def read_context(context: str, thread: str, message: str) -> WorkerContext:
    """Read the context from Connect's MDC, or from the thread's name or the message."""
    if context:
        return _read_mdc(context[:_CACHED])
    named = _NAMED_TASK.search(thread) or _NAMED_TASK.search(message)
    if named is None:
        return NO_CONTEXT
    connector = named["connector"] or named["scheduler"] or named["client"]
    task = named["task"] or named["client_task"]
    return WorkerContext(connector, task or "", "task" if task else "worker")


@lru_cache(maxsize=1024)
def _read_mdc(context: str) -> WorkerContext:
    found = CONTEXT.match(context)
    if found is None:
        return NO_CONTEXT
    scope = found["worker"] or found["offsets"] or "task"
    return WorkerContext(found["connector"], found["task"] or "", scope)


def shown_flow(thread: str, message: str, settings: ParserSettings) -> str:
    """Return the flow that the line itself shows, or an empty string."""
    for text in (message, thread):
        if "->" in text:
            # Clients put their id in brackets first, the same in all their messages.
            flow = _find_flow(text[: text.find("]") + 1 if text[0] == "[" else _CACHED])
            if flow and (not settings.flows or flow in settings.flows):
                return flow
    return ""


@lru_cache(maxsize=4096)
def _find_flow(text: str) -> str:
    found = _FLOW.search(text)
    return "" if found is None else found[found.lastgroup or 0]
