"""Millions of records of both sides in Parquet, as the audit lands them, with known faults."""

import json
from collections import Counter
from pathlib import Path
from typing import Final

import duckdb

from mm2slo_core.audit.audit_scope import (
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.topology import Flow

TOPICS: Final = 20
PARTITIONS: Final = 12
MINUTES: Final = 60
_POLL_MS: Final = 5_000

_HOT: Final = 2_000.0
"""Size of a hot partition as a multiple of the others."""
_START: Final = 1_800_000_000_000
_END: Final = _START + MINUTES * 60_000

WINDOW: Final = (_START + 60_000, _END - 60_000)
"""Leaves out one minute of records on each side."""

# Source partitions one by one. Of 100,000 records 100 are lost, 200 copied twice, 10 moved
# to the next partition, and 3 copied after the next two.
_LANES = """
create or replace temp table lane as
with places as (
    select partition, unnest(range(size)) as i, size from (values {sizes}) sizes(partition, size)
), drawn as (
    select *, hash(i, partition, {topic}) as seed,
        hash(i, partition, {topic}, 1) / 1.8446745e19 as u,
        hash(i, partition, {topic}, 2) / 1.8446745e19 as v
    from places
)
select partition, i, size, i as "offset", (seed >> 1)::bigint - (1::bigint << 62) as fp,
    ({start} + i / size * {span} + 20 * v)::bigint as ts,
    (1000 * pow(1 - v, -0.83))::bigint % 400000 as kh, (40 + 1900 * v)::int as bytes, v,
    case when u < 0.001 then 'lost' when u < 0.003 then 'again' when u < 0.0031 then 'moved'
        when u < 0.00313 then 'late' end as outcome,
    max(ts + (1 + 29 * u)::bigint) over (partition by partition order by i) as arrived
from drawn
"""

_COPIES = """
create or replace temp table copy as
with copies as (
    select * replace (i + if(outcome is not distinct from 'late', 2.5, 0) as i) from lane
        where outcome is distinct from 'lost' and outcome is distinct from 'moved'
    union all select * replace (i + 1000 as i) from lane where outcome = 'again'
    union all select * replace ((partition + 1) % {partitions} as partition, v * size as i)
        from lane where outcome = 'moved'
)
select * replace (
    row_number() over (partition by partition order by i, fp) - 1 as "offset",
    max(arrived + (15 + 385 * v)::bigint) over (partition by partition order by i, fp) as arrived
) from copies
"""

_RECORDS = """
copy (
    select {topic}::int as topic, 0::int as flow, {side}::tinyint as side,
        partition::int as partition, "offset"::bigint as "offset", ts, fp, kh, bytes as size,
        true as in_records, true as in_keys, false as tombstone
    from {log} order by partition, "offset"
) to '{folder}/records/{topic}-{side}.parquet' (compression zstd)
"""

_POLLS = """
copy (
    with asked as (
        select unnest(range({start} - {every}, {end} + 12 * {every}, {every})) as asked_at
    ), first_seen as (
        select partition, greatest(0, (arrived - {start} + {every} - 1) // {every}) * {every}
            + {start} as asked_at, max("offset") + 1 as "end"
        from {log} group by all
    )
    select {topic}::int as topic, 0::int as flow, {side}::tinyint as side,
        partition::int as partition, coalesce(
            max("end") over (partition by partition order by asked_at), 0)::bigint as "end",
        asked_at - {every} as earliest, asked_at + 3 as latest
    from (select distinct partition from {log}) cross join asked
    left join first_seen using (partition, asked_at)
) to '{folder}/polls/{topic}-{side}.parquet' (compression zstd)
"""

_TRUTH = """
select count(*) filter (outcome in ('lost', 'moved') and ts >= {0} and ts < {1}),
    count(*) filter (outcome = 'again'),
    count(*) filter (outcome = 'moved' and ts >= {0} and ts < {1})
from lane
"""


def scopes(sources: int = 0, *, hot: bool = False) -> tuple[UnitScope, ...]:
    """One unit per topic; of *sources* source records, about as many on the target."""

    def end(topic: int, partition: int) -> int:
        return dict(_sizes(topic, sources, hot=hot))[partition] or 1

    return tuple(
        UnitScope(
            index=topic,
            target_topic=f"us.topic-{topic}",
            flows=(
                FlowScope(
                    Flow("us", "eu"),
                    f"topic-{topic}",
                    tuple(
                        SourcePartition(each, 0, 0, end(topic, each), None)
                        for each in range(PARTITIONS)
                    ),
                ),
            ),
            partitions=tuple(
                TargetPartition(each, 0, 0, end(topic, each)) for each in range(PARTITIONS)
            ),
            window=Window(*WINDOW),
            identity=Identity(),
            taken_at=_END,
        )
        for topic in range(1 if hot else TOPICS)
    )


def generate(folder: Path, sources: int, *, hot: bool = False) -> dict[str, int]:
    """Write `records` and `polls` below *folder* unless they exist; returns some true counts.

    Half the topics have partitions of uneven size; *hot*: one topic with nearly all records in one
    partition. Rows are sorted by partition and offset, like those of a task that reads Kafka.
    """
    noted = folder / "truth.json"
    if noted.exists():
        return dict(json.loads(noted.read_text(encoding="ascii")))
    for name in ("records", "polls"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    truth: Counter[str] = Counter()
    with duckdb.connect() as connection:
        connection.execute("set threads = 2")
        connection.execute("set enable_progress_bar = false")
        for topic in range(1 if hot else TOPICS):
            sizes = ", ".join(
                f"({number}, {size})" for number, size in _sizes(topic, sources, hot=hot)
            )
            lanes = _LANES.format(sizes=sizes, topic=topic, start=_START, span=_END - _START)
            connection.execute(lanes)
            connection.execute(_COPIES.format(partitions=PARTITIONS))
            for side, log in enumerate(("lane", "copy")):
                of_side = {"topic": topic, "side": side, "log": log, "folder": folder}
                connection.execute(_RECORDS.format(**of_side))
                connection.execute(_POLLS.format(**of_side, start=_START, end=_END, every=_POLL_MS))
            row = connection.execute(_TRUTH.format(*WINDOW)).fetchone() or ()
            truth.update(dict(zip(("missing", "duplicated", "unexplained"), row, strict=True)))
    noted.write_text(json.dumps(truth), encoding="ascii")
    return dict(truth)


def _sizes(topic: int, sources: int, *, hot: bool) -> list[tuple[int, int]]:
    shares = [1 / (number + 1) if topic % 2 else 1.0 for number in range(PARTITIONS)]
    if hot:
        shares = [_HOT, *[1.0] * (PARTITIONS - 1)]
    of_topic = sources if hot else sources / TOPICS
    return [(number, int(of_topic * share / sum(shares))) for number, share in enumerate(shares)]
