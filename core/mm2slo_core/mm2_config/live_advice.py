"""Advice for a running flow, from what was observed of it for a while (pure).

Three settings limit a partition: a fetch returns at most `max.partition.fetch.bytes` of it per
round trip to the source (KIP-74), a connection to the source carries `receive.buffer.bytes` per
round trip (TCP's window), and the producer of a source task sends one batch of it, `batch.size`,
per round trip to the target (`capacity_plan`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from mm2slo_core.java_values import read_integer
from mm2slo_core.mm2_config.running_settings import find_setting
from mm2slo_core.quantity_text import format_duration
from mm2slo_core.topology import Flow, TopicPartition

CLOSE: Final = 0.7
"""The share of a limit from which a partition is bound by it: any pause lowers a mean."""
_NOISE_SECONDS: Final = 2.0
"""Positions and ends of a round are read up to so far apart: this much traffic is no trend."""
_UNEVEN: Final = 1.5
"""How many times its even share the busiest task replicates before that is worth a change."""

_SETTINGS: Final = (
    ("fetch-bound", "source.consumer.max.partition.fetch.bytes", 1_048_576),
    ("window-bound", "source.consumer.receive.buffer.bytes", 65_536),
    ("batch-bound", "producer.override.batch.size", 16_384),
)
"""What a partition at the limit is, the source connector's setting, and Kafka's default."""


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Records of one source partition in the time observed, and its newest lag; None: unknown."""

    replicated: int | None
    produced: int | None
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFacts:
    """What was observed of a flow; None and empty: unknown."""

    flow: Flow
    seconds: float
    partitions: Mapping[TopicPartition, PartitionFacts]
    """Those of data topics."""
    first_lag: int | None
    lag: int | None
    tasks: Mapping[int, Collection[TopicPartition]] | None
    """All partitions of each task of the source connector."""
    no_tasks: str = ""
    """Why `tasks` is None."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the running source connector."""
    record_size: float | None = None
    """Bytes on the wire; *size_source* names where it is from."""
    size_source: str = ""
    round_trips: tuple[float, float] | None = None
    """Seconds from the workers to the source, and to the target with its acknowledgement."""
    coarse: int = 0
    """Partitions whose positions come from commits and offset syncs, not from the target's end."""


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """What a task did; rates in records per second, *share* of what all tasks replicated."""

    task: int | None
    partitions: int
    """With those that are not data, such as heartbeats: they have no figures."""
    replicated: float | None
    produced: float | None
    lag: int | None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding with the figures it rests on; without a next step nothing is to be done."""

    about: str
    finding: str
    evidence: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class LiveAdvice:
    """All advice on a flow; *tasks* the busiest first, None if they are not known."""

    flow: str
    observed_seconds: float
    total: TaskLoad
    catch_up_seconds: float | None
    tasks: tuple[TaskLoad, ...] | None
    advice: tuple[Advice, ...]


def advise(facts: FlowFacts) -> LiveAdvice:
    """Judge *facts*; what they do not show is reported as not known, with what is missing."""
    every = set(facts.partitions).union(*(facts.tasks or {}).values())
    total = replace(_load(facts, None, every), lag=facts.lag)
    loads = None
    if facts.tasks is not None:
        found = [_load(facts, task, each) for task, each in facts.tasks.items()]
        moved = sum(each.replicated or 0 for each in found)
        found.sort(key=lambda each: -(each.replicated or 0))
        loads = tuple(
            each
            if each.replicated is None or not moved
            else replace(each, share=each.replicated / moved)
            for each in found
        )
    noise = _NOISE_SECONDS * max(total.replicated or 0, total.produced or 0)
    seconds, *lag = _lag(facts, total, noise)
    busiest = [_busiest(facts, loads)] if loads else []
    advice = (_tasks(facts), *busiest, *lag, _limit(facts, noise), *_positions(facts))
    return LiveAdvice(facts.flow.label, facts.seconds, total, seconds, loads, advice)


def _load(facts: FlowFacts, task: int | None, partitions: Collection[TopicPartition]) -> TaskLoad:
    found = [facts.partitions[each] for each in partitions if each in facts.partitions]
    replicated, produced = (
        None if records is None or facts.seconds <= 0 else records / facts.seconds
        for records in (_sum(p.replicated for p in found), _sum(p.produced for p in found))
    )
    return TaskLoad(task, len(partitions), replicated, produced, _sum(p.lag for p in found))


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None if nothing is."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if known or not listed else None


def _tasks(facts: FlowFacts) -> Advice:
    if not facts.tasks:
        return Advice("tasks", "not known", facts.no_tasks)
    counts = [len(each) for each in facts.tasks.values()]
    tasks, partitions, least, most = len(counts), sum(counts), min(counts), max(counts)
    limit = read_integer(facts.settings.get("tasks.max", ""))
    stated = "not known" if limit is None else limit
    figures = f"partitions {partitions}, tasks {tasks}, tasks.max {stated}"
    missing = sorted(facts.partitions.keys() - {p for each in facts.tasks.values() for p in each})
    even = [n for n in range(max(tasks // 2, 2), 2 * tasks + 2) if partitions % n == 0]
    near = [n for n in even if n < tasks][-1:] + [n for n in even if n > tasks][:1]
    step = f"tasks.max {' or '.join(map(str, near)) or partitions} would be even"
    if missing:
        finding = f"{len(missing)} partitions without a task, such as {missing[0]}"
        step = "check the source connector: nothing replicates them"
    elif max(limit or 0, tasks) > partitions:
        finding = f"{max(limit or 0, tasks)} tasks wanted for {partitions} partitions"
        step = f"add partitions, or lower tasks.max to {partitions}: more tasks do nothing"
    elif tasks == 1 < partitions:
        finding = "one task replicates all partitions"
    elif least < most:
        finding = f"uneven: {least} to {most} partitions per task"
    else:
        finding, step = f"even: {most} per task", ""
    return Advice("tasks", finding, figures, step)


def _busiest(facts: FlowFacts, loads: tuple[TaskLoad, ...]) -> Advice:
    busiest, even, step = loads[0], 1 / len(loads), ""
    if not busiest.share or busiest.replicated is None or facts.tasks is None:
        return Advice("busiest task", "not known", "no record was seen to be replicated")
    own = [each for each in facts.tasks[busiest.task or 0] if each in facts.partitions]
    top = max(own, key=lambda each: facts.partitions[each].replicated or 0)
    rate = (facts.partitions[top].replicated or 0) / facts.seconds
    if busiest.share > _UNEVEN * even:
        step = "raise tasks.max, so that it gives up partitions"
        if rate * 2 > busiest.replicated:
            step = f"more tasks do not split {top}: spread its keys over more partitions"
    finding = f"task {busiest.task} replicates {busiest.share:.0%} of the records"
    figures = f"{_number(busiest.replicated)} records/s, {_number(rate)} of them {top}"
    return Advice("busiest task", finding, f"{figures}; an even share is {even:.0%}", step)


def _lag(facts: FlowFacts, total: TaskLoad, noise: float) -> tuple[float | None, Advice, Advice]:
    """Seconds until the backlog is gone, the trend of the lag, and whether catch-up ends."""
    first, lag = facts.first_lag, facts.lag
    if first is None or lag is None or facts.seconds <= 0:
        why = "it takes two readings with a known lag: observe for longer"
        finding = "not known" if lag is None else f"{lag:,} records; its trend is not known"
        return None, Advice("lag", finding, why), Advice("catch-up", "not known", why)
    rates = (
        f"{_number(total.produced)} records/s produced, {_number(total.replicated)} replicated, "
        f"over {_about(facts.seconds)}"
    )
    net, change = (first - lag) / facts.seconds, f"from {first:,} to {lag:,} records"
    figures = f"lag {change}, net {_number(net)} records/s"
    if lag <= noise:
        finding = f"keeps up: {lag:,} records, at most {_NOISE_SECONDS:g} s of traffic"
        return 0.0, Advice("lag", finding, rates), Advice("catch-up", "no backlog", figures)
    if first - lag > noise and total.replicated:
        end = Advice("catch-up", f"ends in about {_about(lag / net)} at this rate", figures)
        return lag / net, Advice("lag", f"shrinks {change}", rates), end
    trend, finding = "grows", "never at this rate"
    step = "act on tasks and limit before retention removes records (retention headroom)"
    if total.replicated is None or (not total.replicated and facts.coarse):
        trend, finding = "is not known to change:", "not known"
        step = "positions move with commits: observe for longer, for example --observe 10m"
    elif not total.replicated:
        trend = "grows" if lag > first else "is not worked off:"
        step = "nothing was seen to be replicated: check the tasks (runbook MM2FlowStopped)"
    elif lag - first <= noise:
        trend, finding = f"changes by less than {_NOISE_SECONDS:g} s of traffic:", "not known"
        step = "observe for longer, for example --observe 10m"
    return (
        None,
        Advice("lag", f"{trend} {change}", rates),
        Advice("catch-up", finding, figures, step),
    )


def _limit(facts: FlowFacts, noise: float) -> Advice:
    behind = {p: each.replicated for p, each in facts.partitions.items() if each.lag}
    moving = {p: each for p, each in behind.items() if each}
    size, trips = facts.record_size, facts.round_trips
    if facts.lag is not None and facts.lag <= noise:
        return Advice("limit", "none is reached", "the flow has no backlog to copy")
    if facts.lag is None or not moving or facts.seconds <= 0:
        return Advice("limit", "not known", "no partition with lag was seen to advance")
    if size is None or trips is None:
        missing = {"the record size (--record-size)": size, "--round-trip": trips}
        step = f"state {' and '.join(what for what, value in missing.items() if value is None)}"
        return Advice("limit", "not known", "the limits are in bytes per round trip", step)
    busiest = max(moving, key=moving.__getitem__)
    rate = moving[busiest] / facts.seconds * size
    limits = []
    for bound, key, default in _SETTINGS:
        stated = find_setting(facts.settings, key)
        used = default if stated is None else read_integer(stated)
        if used is None or used <= 0:
            continue  # a reference to a secret, or the operating system's value
        seconds = trips[key.startswith("producer.")]
        is_window = bound == "window-bound"
        # A fetch and a batch have one record at least; a connection carries all that a task gets.
        per_second = (used if is_window else max(used, size)) / seconds
        share = (_task_rate(facts, busiest) * size if is_window else rate) / per_second
        name = key.split(".", 2)[2]
        text = f"{share:.0%} of {name} ({used:,} B per {seconds * 1000:g} ms"
        text += " and broker, of its task)" if is_window else ")"
        limits.append((share, text, bound, key))
    limits.sort(reverse=True)
    figures = f"{busiest} copies {rate / 1e6:.3g} MB/s ({size:,.0f} B per record by "
    figures += f"{facts.size_source}): {', '.join(text for _, text, *_ in limits)}"
    if not limits or limits[0][0] < CLOSE:
        finding = "no sign of one: the task's CPU or the brokers are the limit"
        return Advice("limit", finding, figures)
    _, _, bound, key = limits[0]
    on_connect = key.removeprefix("source.")
    prefix = facts.flow.label if on_connect == key else facts.flow.source
    step = f"raise {on_connect} of the connector; in dedicated mode {prefix}.{on_connect}"
    return Advice("limit", f"{bound}: {busiest}", figures, step)


def _task_rate(facts: FlowFacts, partition: TopicPartition) -> float:
    """Records per second of the task of *partition*; of all, if tasks are not known."""
    tasks = (facts.tasks or {}).values()
    own = next((each for each in tasks if partition in each), facts.partitions)
    moved = (facts.partitions[each].replicated for each in own if each in facts.partitions)
    return sum(each or 0 for each in moved) / facts.seconds


def _positions(facts: FlowFacts) -> Iterator[Advice]:
    if facts.coarse:
        finding = f"{facts.coarse} partitions are known by commits and offset syncs only"
        figures = "commits are up to a flush interval old (60 s by default)"
        yield Advice("positions", finding, figures, "observe for longer: --observe 5m")


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def _about(seconds: float) -> str:
    return format_duration(float(round(seconds) if seconds < 120 else round(seconds / 60) * 60))
