"""Reading what `mm2slo render` wrote gives the same flows and security, in every form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from generated_mirror_setups import FILES, PASSWORD, STORE_PASSWORD, material, setups
from hypothesis import given
from strimzi_schemas import FOLDER, schema_errors

from mm2slo_core.mm2_config.config_overlay import read_security
from mm2slo_core.mm2_config.connect_json import read_connect_json
from mm2slo_core.mm2_config.mirror_setup import Form, MirrorSetup, Settings
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.provider_references import resolve_settings
from mm2slo_core.mm2_config.rendered_setup import (
    SECRETS_FOLDER,
    Rendered,
    portable_setup,
    render_connect,
    render_properties,
    render_strimzi,
)
from mm2slo_core.mm2_config.strimzi_setup import read_strimzi

if TYPE_CHECKING:
    Render = Callable[[Sequence[MirrorSetup]], Rendered]

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def read_back_properties(texts: Mapping[str, str]) -> list[MirrorSetup]:
    return [read_properties(name, text.encode()) for name, text in texts.items()]


def read_back_strimzi(texts: Mapping[str, str]) -> list[MirrorSetup]:
    return [found for name, text in texts.items() for found in read_strimzi(name, text)]


def read_back_connect(texts: Mapping[str, str]) -> list[MirrorSetup]:
    folders: dict[str, list[tuple[str, str]]] = {}
    for name, text in texts.items():
        folders.setdefault(name.partition("/")[0], []).append((name, text))
    return [
        read_connect_json(
            [each for each in files if each[0].endswith(".json")],
            next((name, text.encode()) for name, text in files if name.endswith(".properties")),
        )
        for files in folders.values()
    ]


FORMS: dict[Form, tuple[Render, Callable[[Mapping[str, str]], list[MirrorSetup]]]] = {
    Form.PROPERTIES: (render_properties, read_back_properties),
    Form.STRIMZI: (render_strimzi, read_back_strimzi),
    Form.CONNECT_JSON: (render_connect, read_back_connect),
}


def texts_of(settings: Settings) -> dict[str, str]:
    return {
        key: each.value
        for key, each in settings.items()
        if not (key.endswith(".converter") and each.value == BYTES)
    }


def flows_of(setups: Sequence[MirrorSetup], form: Form) -> dict[str, object]:
    strimzi = form is Form.STRIMZI
    made = portable_setup(setups, "/mnt" if strimzi else SECRETS_FOLDER, every=strimzi)
    return {
        flow.label: (
            each.worker.names,
            texts_of(each.worker.settings),
            {k: (c.name, c.state, texts_of(c.settings)) for k, c in each.connectors.items()},
        )
        for flow, each in made.flows.items()
    }


def security_of(setups: Sequence[MirrorSetup]) -> dict[str, object]:
    found: dict[str, object] = {}
    for setup in setups:
        used = {alias for each in setup.flows for alias in (each.flow.source, each.flow.target)}
        for alias in used:
            client, unresolved = resolve_settings(
                setup.clusters[alias].client, setup.providers, FILES
            )
            security, problems = read_security(client, FILES)
            assert not unresolved
            assert security is not None, problems
            found[alias] = security, client["bootstrap.servers"].value
    return found


def check_round_trip(setup: MirrorSetup, form: Form) -> None:
    render, read_back = FORMS[form]
    texts, findings = render([setup])
    assert findings == []
    if form is Form.STRIMZI and FOLDER.is_dir():
        assert [error for text in texts.values() for error in schema_errors(text)] == []
    written = "".join(texts.values())
    for secret in (PASSWORD, STORE_PASSWORD, material()["tls.key"], material()["password"]):
        assert secret not in written
    again = [each for each in read_back(texts) if each.clusters]
    assert flows_of(again, form) == flows_of([setup], form)
    assert security_of(again) == security_of([setup])


@given(setups(Form.PROPERTIES))
def test_rendered_properties_have_equal_flows_and_security(setup: MirrorSetup) -> None:
    check_round_trip(setup, Form.PROPERTIES)


@given(setups(Form.CONNECT_JSON))
def test_rendered_connectors_have_equal_flows_and_security(setup: MirrorSetup) -> None:
    check_round_trip(setup, Form.CONNECT_JSON)


@given(setups(Form.STRIMZI))
def test_rendered_resources_have_equal_flows_and_security(setup: MirrorSetup) -> None:
    check_round_trip(setup, Form.STRIMZI)
