"""The check of wording finds private words in every form, and nothing else."""

import importlib.util
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy" / "scripts" / "wording"


@pytest.fixture(scope="module")
def findings() -> Callable[[str], list[tuple[int, str, str]]]:
    loader = SourceFileLoader("wording", str(SCRIPT))
    spec = importlib.util.spec_from_loader("wording", loader)
    assert spec is not None
    module: Any = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    found: Callable[[str], list[tuple[int, str, str]]] = module.findings
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is told anew.", ["told", "anew"]),
        ("def assert_told(self):", ["told"]),
        ("class LastTold:", ["Told"]),
        ("class ToldClusters:", ["Told"]),
        ("Nobody knows what waits.", ["Nobody", "what waits"]),
        ("how it stands\nat the beginning", ["stands", "beginning"]),
        ("stand-alone, of course; outstanding, swords, retold", []),
        ("a password, a keyword, mtold", []),
        ("-----BEGIN CERTIFICATE-----; connection.begin()", []),
    ],
)
def test_wording_findings_are_whole_words(
    text: str, words: list[str], findings: Callable[[str], list[tuple[int, str, str]]]
) -> None:
    assert sorted(word for _, word, _ in findings(text)) == sorted(words)


def test_wording_findings_name_line_and_replacement(
    findings: Callable[[str], list[tuple[int, str, str]]],
) -> None:
    assert findings("fine\nmended") == [(2, "mended", "fix, repair, resolve")]
