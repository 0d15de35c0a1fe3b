from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from mm2slo_audit.session.spark_errors import describe_spark_error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), "Spark's JVM ended: check its memory"),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's JVM ended"),
        (
            ValueError("\n\tat Main\n No space left on device \n\tat more"),
            "No space left on device",
        ),
        (ValueError("x" * 500), f"{'x' * 400} ..."),
        (ValueError(""), "no reason given"),
    ],
)
def test_describe_spark_error_is_one_sentence(error: Exception, expected: str) -> None:
    found = describe_spark_error(error)
    assert found.startswith(expected)
    assert "\n" not in found
