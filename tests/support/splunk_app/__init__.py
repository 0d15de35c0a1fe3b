"""A linter of Splunk apps: AppInspect accepts unknown keys, broken regexes and wrong searches."""

from splunk_app.app_lint import lint_app
from splunk_app.conf_file import read_conf
from splunk_app.search_match import search_condition

__all__ = ["lint_app", "read_conf", "search_condition"]
