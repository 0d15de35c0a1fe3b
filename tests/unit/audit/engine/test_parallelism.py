"""Shuffle partitions by the cluster's cores, unless the session sets them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from mm2slo_audit.engine.parallelism import limit_shuffle_partitions

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
