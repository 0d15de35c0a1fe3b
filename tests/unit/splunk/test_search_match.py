"""Conditions of searches select events as Splunk does."""

import pytest
from splunk_app import search_condition

EVENT = {
    "index": "repl_logs",
    "sourcetype": "mm2:connect:json",
    "event": {"flow": "us->eu", "level": "ERROR", "message": "Task is being killed"},
}
MACROS = {
    "repl_index": {"definition": "index=repl_logs"},
    "repl_mm2": {"definition": '`repl_index` sourcetype IN ("a", "mm2:connect:json")'},
}


@pytest.mark.parametrize(
    ("search", "is_selected"),
    [
        ('search `repl_mm2` flow="us->eu" NOT level=INFO | stats count', True),
        ("`repl_mm2` level IN (WARN, ERROR)", True),
        ("`repl_mm2` level=err*", True),
        ('`repl_mm2` "being KILLED"', True),
        ("(level=INFO OR level=ERROR) index=repl_logs", True),
        ("level=ERROR OR level=INFO index=other", False),
        ("((level=ERROR) AND NOT (index=other))", True),
        ('`repl_mm2` flow="eu->us"', False),
        ("`repl_mm2` event_action=task_failed", False),
        ("`repl_mm2` NOT event_action=task_failed", True),
        ('level=INFO OR message="a|b" | eval x="|"', False),
    ],
)
def test_condition_selects_event(search: str, is_selected: bool) -> None:
    assert search_condition(search, MACROS)(EVENT) == is_selected


@pytest.mark.parametrize("search", ["level==ERROR !", "killed"])
def test_condition_unknown_term_is_rejected(search: str) -> None:
    with pytest.raises(ValueError, match="unknown term"):
        search_condition(search, MACROS)
