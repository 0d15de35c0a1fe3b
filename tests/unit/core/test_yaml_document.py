"""Several documents in one text, and limits of YAML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config import config_document
from mm2slo_core.config.config_document import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_NODES,
    ConfigError,
    parse_document,
    parse_resources,
)
from mm2slo_core.config.config_loader import load_config

FEWER_NODES = 2_000


def laughs(levels: int, width: int = 9) -> str:
    """Lists of *width* aliases each, so that the last one has width^levels values."""
    lines = ["a0: &a0 [ha]"]
    for level in range(1, levels + 1):
        aliases = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return "\n".join(lines)


def long_chain(levels: int) -> str:
    """Each list is within the limit of nesting; with its aliases, the last one is not."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{level}: &a{level} [[[[*a{level - 1}]]]]" for level in range(1, levels + 1)]
    return "\n".join(lines)


def merges(levels: int) -> str:
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}" for n in range(1, levels + 1)]
    return "\n".join(lines)


NESTED = f"has more than {MAX_DEPTH} levels of nesting"
MANY = "has more than {} keys and values, counting aliases"
TOO_LARGE = {
    "nested lists": ("[" * 2_000, NESTED, 1),
    "nested mappings": ("\n".join(" " * n + "a:" for n in range(200)), NESTED, MAX_DEPTH),
    "nested by aliases": (long_chain(40), NESTED, 2),
    "billion laughs": (laughs(9), MANY.format(FEWER_NODES), 1),
    "billion merges": (merges(40), MANY.format(FEWER_NODES), 2),
    "many values": ("- 1\n" * FEWER_NODES, MANY.format(FEWER_NODES), FEWER_NODES + 1),
    "long text": ("a" * (MAX_CHARACTERS + 1), f"has more than {MAX_CHARACTERS} characters", None),
}


@pytest.mark.parametrize(("text", "what", "line"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_parse_document_of_too_large_text_has_that_only_problem(
    text: str, what: str, line: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The parser is slow; the real limit is used by the tests of other functions.
    monkeypatch.setattr(config_document, "MAX_NODES", FEWER_NODES)
    document = parse_document(text)
    (problem,) = document.problems
    assert (problem.what, problem.line) == (what, line)
    assert problem.expected == what.replace("has more than", "at most")
    assert document.value is None
    assert [each.problems for each in parse_resources(text)] == [[problem]]


def test_load_config_of_billion_laughs_reports_the_limit() -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(laughs(9))
    (problem,) = refused.value.problems
    assert problem.what == MANY.format(MAX_NODES)


def test_parse_document_at_the_limits_has_no_problem() -> None:
    assert parse_document("[" * MAX_DEPTH + "]" * MAX_DEPTH).problems == []
    assert parse_document(laughs(4)).problems == []


def test_parse_resources_of_several_documents_has_the_lines_of_each() -> None:
    first, second, empty = parse_resources("a: 1\nb: 2\n---\na: {b: 3}\na: 4\n---\n# none\n")
    assert (first.value, second.value, empty.value) == ({"a": 1, "b": 2}, {"a": {"b": 3}}, None)
    assert (first.line_of(("b",)), second.line_of(("a", "b"))) == (2, 4)
    assert [(problem.what, problem.line) for problem in second.problems] == [
        ("is a duplicate key", 5)
    ]
    assert parse_resources("") == []


@pytest.mark.parametrize(
    ("written", "value"),
    [("yes", True), ("Off", False), ("N", False), ("'no'", "no"), ("yEs", "yEs"), ("true", True)],
)
def test_parse_resources_reads_booleans_as_kubectl(written: str, value: object) -> None:
    assert [each.value for each in parse_resources(f"a: {written}\n")] == [{"a": value}]
    other = parse_document(f"a: {written}\n").value
    assert other == {"a": True if written == "true" else written.strip("'")}


def test_parse_resources_with_a_syntax_error_has_one_document_with_it() -> None:
    (document,) = parse_resources("a: 1\n---\nb: [\n")
    assert [problem.line for problem in document.problems] == [4]


def test_parse_document_of_several_documents_has_a_problem() -> None:
    (problem,) = parse_document("a: 1\n---\nb: 2\n").problems
    assert (problem.what, problem.line) == ("is not YAML: but found another document", 2)


@given(st.text(alphabet="{}[]:,&*-ab \n<?!#|"))
def test_parse_resources_of_any_text_returns_documents(text: str) -> None:
    for document in parse_resources(text):
        assert all(problem.line is None or problem.line > 0 for problem in document.problems)
