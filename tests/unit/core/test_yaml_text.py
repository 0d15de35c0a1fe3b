"""Text stays text for readers of YAML 1.1 and 1.2."""

import pytest
import yaml

from mm2slo_core.config.config_document import parse_document, parse_resources
from mm2slo_core.file_syntax import dump_yaml


@pytest.mark.parametrize(
    "text", ["0E0", "1e3", "-2E+5", ".5e1", "12", "1.5", "0o17", "true", "~", "y", "N", "on"]
)
def test_dumped_text_is_read_as_text(text: str) -> None:
    written = dump_yaml({"username": text})
    assert yaml.safe_load(written) == {"username": text}
    assert parse_document(written).value == {"username": text}
    assert parse_resources(written)[0].value == {"username": text}


@pytest.mark.parametrize("text", ["us-east", "1.2.3", "0x", "e5", "10s"])
def test_dumped_text_is_quoted_only_if_needed(text: str) -> None:
    assert dump_yaml({"key": text}) == f"key: {text}\n"
