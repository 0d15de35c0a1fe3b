"""Partitions of exchanges by the cluster's cores and the rows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from generated_units import generate

from mm2slo_audit.engine.judgement import count_exchange_partitions, limit_shuffle_partitions
from mm2slo_audit.engine.unit_columns import Units

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

NAME = "spark.sql.shuffle.partitions"


def session_on(spark: SparkSession, cores: int, names: set[str]) -> SparkSession:
    """A real session's settings on a cluster with that many cores."""
    context = SimpleNamespace(
        defaultParallelism=cores, getConf=lambda: SimpleNamespace(contains=names.__contains__)
    )
    return cast("SparkSession", SimpleNamespace(sparkContext=context, conf=spark.conf))


def test_limit_shuffle_partitions_sets_eight_per_core_and_restores(spark: SparkSession) -> None:
    before = spark.conf.get(NAME)
    with limit_shuffle_partitions(session_on(spark, 3, set())):
        assert spark.conf.get(NAME) == "24"
    assert spark.conf.get(NAME) == before != "24"


def test_limit_shuffle_partitions_after_error_restores(spark: SparkSession) -> None:
    before = spark.conf.get(NAME)
    with pytest.raises(KeyError), limit_shuffle_partitions(session_on(spark, 3, set())):
        raise KeyError
    assert spark.conf.get(NAME) == before


def test_limit_shuffle_partitions_keeps_session_setting(spark: SparkSession) -> None:
    before = spark.conf.get(NAME)
    with limit_shuffle_partitions(session_on(spark, 3, {NAME})):
        assert spark.conf.get(NAME) == before


def test_count_exchange_partitions_of_few_rows_is_one_per_core(spark: SparkSession) -> None:
    scope = generate(1, partitions=12, size=1_500).scope
    on_two_cores = session_on(spark, 2, set())
    assert count_exchange_partitions(on_two_cores, Units((scope,)), {}) == 2
    larger = tuple(replace(each, end=each.end + 20_000) for each in scope.partitions)
    units = Units((replace(scope, partitions=larger),))
    assert count_exchange_partitions(on_two_cores, units, {}) == 11
    assert count_exchange_partitions(on_two_cores, units, {(0, 0): 2}) == 11
    huge = tuple(replace(each, end=each.end + 200_000) for each in scope.partitions)
    units = Units((replace(scope, partitions=huge),))
    assert count_exchange_partitions(on_two_cores, units, {(0, 0): 2}) == 13
    # Of a sample, few rows are landed.
    assert count_exchange_partitions(on_two_cores, units, {(0, 0): 2}, 0.01) == 2
    assert count_exchange_partitions(on_two_cores, units, {}, 0.01, 250_000) == 10
