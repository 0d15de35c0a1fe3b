"""The job in Polars, with its streaming engine."""

import time
from pathlib import Path
from typing import Any

import polars as pl
from large_audit_data import WINDOW

from audit_matchers import Figures, Prepared


def prepare(folder: Path, _heap: str) -> Prepared:
    """See the package."""
    start, end = WINDOW
    place = ["topic", "partition"]
    offset, side = pl.col("offset"), pl.col("side")

    def bracket(lower: pl.Expr, upper: pl.Expr) -> pl.Expr:
        def index(ms: pl.Expr) -> pl.Expr:
            return (16 * ms.clip(1).cast(pl.Float64).log(2) - 2e-13).ceil().cast(pl.Int64)

        cell = (index(lower) + 1) * 1024 + index(upper)
        return pl.when(upper < 0).then(-2).otherwise(cell)

    def run() -> Figures:
        records = pl.scan_parquet(folder / "records" / "*.parquet")
        polls = pl.read_parquet(folder / "polls" / "*.parquet")
        groups = (
            records.group_by(*place, "ts", "fp")
            .agg(
                ns=(side == 0).sum(),
                nd=(side == 1).sum(),
                s=offset.filter(side == 0).min(),
                t=offset.filter(side == 1).min(),
                bytes=pl.col("size").cast(pl.Int64).filter(side == 0).sum(),
            )
            .collect(engine="streaming")
        )
        judged = groups.filter((pl.col("ts") >= start) & (pl.col("ts") < end))
        both = (groups["ns"] > 0) & (groups["nd"] > 0)
        matched = groups.filter(both).sort(*place, "s")
        duplicated = groups.filter((pl.col("nd") > pl.col("ns")) & (pl.col("ns") > 0)).height
        del groups
        matched = matched.with_columns(
            overtaken=pl.col("t").cum_min(reverse=True).over(place) < pl.col("t")
        )
        for number, name in enumerate("st"):
            of_side = polls.filter(pl.col("side") == number).select(
                *place,
                pl.col("end").alias(f"{name}_end"),
                pl.col("earliest").alias(f"{name}_earliest"),
                pl.col("latest").alias(f"{name}_latest"),
            )
            matched = matched.with_columns(at=pl.col(name) + 1).sort("at")
            matched = matched.join_asof(
                of_side.sort(f"{name}_end"),
                left_on="at",
                right_on=f"{name}_end",
                by=place,
                strategy="forward",
            )
        ts, arrived = pl.col("ts"), pl.col("t_latest")
        cells = (
            matched.filter((ts >= start) & (ts < end))
            .with_columns(
                e=bracket(pl.col("t_earliest") - ts, arrived - ts),
                x=bracket(
                    pl.col("t_earliest") - pl.col("s_latest"), arrived - pl.col("s_earliest")
                ),
            )
            .group_by(*place, "e", "x")
            .agg(n=pl.len())
        )
        figures: dict[str, Any] = {
            "matched": cells["n"].sum(),
            "source_bytes": judged["bytes"].sum(),
            "missing": judged.filter(pl.col("ns") > pl.col("nd")).height,
            "duplicated": duplicated,
            "unexplained": judged.filter(pl.col("ns") == 0).height,
            "overtaken": matched["overtaken"].sum(),
        }
        for kind in "ex":
            known = cells.filter(pl.col(kind) >= 0)
            weight = (known[kind] // 1024 - 1) * 1000 + known[kind] % 1024
            figures[f"{kind}_n"] = known["n"].sum()
            figures[f"{kind}_weight"] = (known["n"].cast(pl.Int64) * weight).sum()
        return figures

    return run, time.process_time
