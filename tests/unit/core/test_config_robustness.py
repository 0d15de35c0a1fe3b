"""Any input results in a configuration or in a ConfigError."""

import contextlib
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_loader import bare_annotation, is_model, load_config
from mm2slo_core.config.config_model import Config

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.text(max_size=5),
    st.sampled_from(["us->eu", "us", "eu->eu", "5s", "off", "${env:X}", "$${", "a{", ".*", "x:1"]),
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def shaped(annotation: Any) -> st.SearchStrategy[Any]:
    """Values that partly match *annotation*."""
    found = bare_annotation(annotation)
    arguments: tuple[Any, ...] = getattr(found, "__args__", ())
    if is_model(found):
        keys = {name: shaped(info.annotation) for name, info in found.model_fields.items()}
        return st.fixed_dictionaries({}, optional={**keys, "unknown": anything}) | anything
    if getattr(found, "__origin__", None) is tuple:
        return st.lists(shaped(arguments[0]), max_size=3) | anything
    if len(arguments) == 2:
        return st.dictionaries(st.sampled_from(["us", "eu", "a.b"]), shaped(arguments[1]))
    return anything


@given(shaped(Config))
@example({"clusters": {"us": {}}, "flows": [{"engine": ["other"], "canary": 5}]})
@example({"clusters": [], "flows": {}, "defaults": 5, "exporter": None})
def test_load_config_of_any_value_returns_config_or_raises_config_error(value: Any) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(yaml.safe_dump(value)), Config)


@given(st.text() | st.text(alphabet="{}[]:,&*!|>'\"%@`#-? \n\tab0"))
@example("\x00")
@example("a: *a")
@example("? [a]\n: b")
@example("<<: [a, {b: c}]")
@example("--- a\n--- b\n")
@example("&a [*a]")
@example("a: 0x1F\nb: 1_000\nc: 2020-01-01\nd: .inf")
def test_load_config_of_any_text_returns_config_or_raises_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(text), Config)
