from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import reference_fingerprint as core
from pyspark.sql import functions as F

from mm2slo_audit.spark.connector_rows import (
    fingerprint,
    is_sampled,
    key_hash,
    masked_hashes,
    record_columns,
)
from mm2slo_core.audit.fingerprint import Identity, Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

Message = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, int]

IDENTITIES = [
    Identity(),
    Identity(headers=False),
    Identity(key=False, timestamp=False),
    Identity(value=False, ignored_headers=("b", "trace")),
    Identity(hmac_key=b"secret"),
    Identity(hmac_key=b"long" * 40, ignored_headers=("b",)),
    Identity(hmac_key=b"k", headers=False, timestamp=False),
]


def messages(count: int) -> list[Message]:
    draw = random.Random(7)

    def content() -> bytes | None:
        return draw.choice((None, b"", draw.randbytes(draw.randrange(1, 90))))

    def headers() -> list[tuple[str, bytes | None]] | None:
        some = [(draw.choice(("a", "b", "ü", "trace")), content()) for _ in range(4)]
        return draw.choice((None, [], some[:1], some[:3], some, some * 5))

    return [
        (content(), content(), headers(), draw.choice((0, 1, 1_800_000_000_123, 2**33)))
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def rows() -> list[Message]:
    return messages(400)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: list[Message]) -> DataFrame:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return spark.createDataFrame(
        [
            (
                number,
                None if key is None else bytearray(key),
                None if value is None else bytearray(value),
                None
                if headers is None
                else [(name, None if each is None else bytearray(each)) for name, each in headers],
                epoch + timedelta(milliseconds=timestamp),
            )
            for number, (key, value, headers, timestamp) in enumerate(rows)
        ],
        "n int, key binary, value binary, headers array<struct<key: string, value: binary>>, "
        "timestamp timestamp",
    )


def test_fingerprint_and_key_hash_equal_core(frame: DataFrame, rows: list[Message]) -> None:
    hmac_keys = (None, b"secret", b"long" * 40)
    found = (
        frame.orderBy("n")
        .select(
            F.array(*(fingerprint(each) for each in IDENTITIES)),
            F.array(*(key_hash(each) for each in hmac_keys)),
        )
        .collect()
    )
    assert [list(fingerprints) for fingerprints, _ in found] == [
        [core.fingerprint(identity, *row) for identity in IDENTITIES] for row in rows
    ]
    assert [list(hashes) for _, hashes in found] == [
        [core.key_hash(row[0], each) for each in hmac_keys] for row in rows
    ]


@pytest.mark.parametrize("hmac_key", [None, b"secret"])
def test_masked_hashes_equal_core(
    frame: DataFrame, rows: list[Message], hmac_key: bytes | None
) -> None:
    identity = Identity(must_change=("value", "header:b", "key", "header:ü"), hmac_key=hmac_key)
    found = frame.orderBy("n").select(masked_hashes(identity)).collect()
    assert [tuple(each) for (each,) in found] == [
        core.masked_hashes(identity, key, value, headers) for key, value, headers, _ in rows
    ]


def test_fingerprint_without_headers_column_equals_no_headers(
    frame: DataFrame, rows: list[Message]
) -> None:
    bare = frame.drop("headers").orderBy("n")
    some = [each for each in IDENTITIES if each.headers]
    found = bare.select(F.array(*(fingerprint(each, headers=False) for each in some))).collect()
    assert [list(each) for (each,) in found] == [
        [core.fingerprint(identity, key, value, None, ts) for identity in some]
        for key, value, _, ts in rows
    ]


@pytest.mark.parametrize("sample", [Sample(1.0), Sample(0.3), Sample(0.3, salt=-(2**63))])
def test_record_columns_strata_equal_core(
    frame: DataFrame, rows: list[Message], sample: Sample
) -> None:
    columns = record_columns(Identity(), sample)
    found = (
        frame.select("n", "key", "value", columns.fp.alias("fp"), columns.kh.alias("kh"))
        .orderBy("n")
        .select("fp", "kh", columns.in_records, columns.in_keys, columns.size, columns.tombstone)
        .collect()
    )
    expected = []
    for key, value, headers, timestamp in rows:
        fp, kh = core.fingerprint(Identity(), key, value, headers, timestamp), core.key_hash(key)
        size = len(key or b"") + len(value or b"")
        expected.append(
            (fp, kh, core.keeps_record(sample, fp), core.keeps_key(sample, kh), size, value is None)
        )
    assert [tuple(each) for each in found] == expected
    kept = sum(each[2] for each in expected)
    assert kept == 400 if sample.census else 80 < kept < 160


def test_is_sampled_null_hash_returns_null(spark: SparkSession) -> None:
    row = (
        spark.range(1).select(is_sampled(Sample(0.5), F.lit(None).cast("bigint"), 1 << 20)).first()
    )
    assert row is not None
    assert row[0] is None
