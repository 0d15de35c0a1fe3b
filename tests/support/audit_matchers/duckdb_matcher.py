"""The job in DuckDB's SQL.

A copy is compared with the previous one, which is cheaper here than with all later ones; where only
single records are late, as in the data, both counts are equal.
"""

import time
from pathlib import Path

import duckdb
from large_audit_data import WINDOW

from audit_matchers import NAMES, Figures, Prepared

GROUPS = """
select topic, partition, ts, fp,
    count(*) filter (side = 0) as ns, count(*) filter (side = 1) as nd,
    min("offset") filter (side = 0) as s, min("offset") filter (side = 1) as t,
    sum(size) filter (side = 0) as bytes
from records group by topic, partition, ts, fp
"""
CELL = """
case when {upper} < 0 then -2 else
    (ceil(16 * log2(greatest({lower}, 1)) - 2e-13)::bigint + 1) * 1024
    + ceil(16 * log2(greatest({upper}, 1)) - 2e-13)::bigint end
"""


QUERY = f"""
with groups as materialized ({GROUPS}),
matched as materialized (
    select *, lag(t) over (partition by topic, partition order by s) > t as overtaken
    from groups where ns > 0 and nd > 0
),
first_polls as (
    select topic, partition, side, "end", min(latest) as latest,
        arg_min(earliest, latest) as earliest
    from polls group by all
),
s_polls as (select * from first_polls where side = 0),
t_polls as (select * from first_polls where side = 1),
on_source as (
    select m.*, p.earliest as s_earliest, p.latest as s_latest
    from matched m asof left join s_polls p
    on m.topic = p.topic and m.partition = p.partition and m.s < p."end"
),
bracketed as (
    select m.*, p.earliest as t_earliest, p.latest as t_latest
    from on_source m asof left join t_polls p
    on m.topic = p.topic and m.partition = p.partition and m.t < p."end"
),
celled as (
    select topic, partition, {CELL.format(lower="t_earliest - ts", upper="t_latest - ts")} as e,
        {CELL.format(lower="t_earliest - s_latest", upper="t_latest - s_earliest")} as x
    from bracketed where ts >= {WINDOW[0]} and ts < {WINDOW[1]}
),
cells as (select topic, partition, e, x, count(*) as n from celled group by all)
select
    (select sum(n) from cells)::bigint,
    (select sum(bytes) from groups where ts >= {WINDOW[0]} and ts < {WINDOW[1]})::bigint,
    (select count(*) from groups where ns > nd and ts >= {WINDOW[0]} and ts < {WINDOW[1]}),
    (select count(*) from groups where nd > ns and ns > 0),
    (select count(*) from groups where ns = 0 and ts >= {WINDOW[0]} and ts < {WINDOW[1]}),
    (select count(*) from matched where overtaken),
    (select sum(n) from cells where e >= 0)::bigint,
    (select sum(n * ((e // 1024 - 1) * 1000 + e % 1024)) from cells where e >= 0)::bigint,
    (select sum(n) from cells where x >= 0)::bigint,
    (select sum(n * ((x // 1024 - 1) * 1000 + x % 1024)) from cells where x >= 0)::bigint
"""  # noqa: S608 - nothing but the text above goes in


def prepare(folder: Path, heap: str) -> Prepared:
    """See the package."""
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    connection.execute(f"set memory_limit = '{heap.upper()}B'")
    connection.execute(f"set temp_directory = '{folder / 'duckdb'}'")
    connection.execute("set preserve_insertion_order = false")
    for each in ("records", "polls"):
        connection.read_parquet(f"{folder / each}/*.parquet").create_view(each)

    def run() -> Figures:
        row = connection.execute(QUERY).fetchone()
        assert row is not None
        return dict(zip(NAMES, row, strict=True))

    return run, time.process_time
