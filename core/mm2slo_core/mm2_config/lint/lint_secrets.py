"""Checks of passwords, placeholders and certificates."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509

from mm2slo_core.mm2_config.jaas import JaasError, parse_jaas
from mm2slo_core.mm2_config.lint.lint_input import Hit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_core.mm2_config.lint.lint_input import LintInput
    from mm2slo_core.mm2_config.mirror_setup import MirrorSetup, Setting

SECRET: Final = re.compile(
    r"(?:password|passphrase|secret|keystore\.key|(?:access|refresh)\.?token)$", re.IGNORECASE
)
_REFERENCE: Final = re.compile(r"\$\{[^}:]+:[^}]*\}")
_PLACEHOLDER: Final = re.compile(
    r"\{\{.*?\}\}|(?<![?k])<[A-Za-z][\w .-]*>|\$\{?(?!ConnectionString)[A-Za-z_]\w*\}?"
    r"|\A(?:x{3,}|\*{3,}|change[_-]?me|replace[_-]?me|todo|tbd|fixme|your[_-][\w-]+)\Z",
    re.IGNORECASE,
)
_RENEWAL: Final = timedelta(days=30)


def check_values(lint: LintInput) -> Iterator[Hit]:
    found = {each: key for setup in lint.setups for key, each in _settings(setup)}
    for setting, key in found.items():
        if key.endswith("endpoint.identification.algorithm") and not setting.value.strip():
            yield Hit("host-names-not-verified", setting.origin, f"{setting.key} is empty")
        for name, value in _texts(setting, key).items():
            is_secret, rest = bool(SECRET.search(name)), _REFERENCE.sub("", value.strip())
            # A password may contain such characters.
            search = _PLACEHOLDER.fullmatch if is_secret else _PLACEHOLDER.search
            if is_secret and not value.strip():
                yield Hit("empty-password", setting.origin, f"{name} is empty")
            elif search(rest) and not key.startswith("transforms."):  # TimestampRouter has ${topic}
                yield Hit("placeholder", setting.origin, f"{name} has a placeholder")
            elif is_secret and rest:
                yield Hit("plain-text-password", setting.origin, f"{name} is in plain text")


def check_certificates(lint: LintInput) -> Iterator[Hit]:
    for cluster in (each for setup in lint.setups for each in setup.clusters.values()):
        security = lint.security.get(cluster.alias)
        tls = security.tls if security else None
        # Brokers may use any of several CAs, as during a renewal.
        for what, pem, decisive in (
            ("client certificate", tls and tls.certificate, min),
            ("newest CA certificate", tls and tls.ca, max),
        ):
            if found := x509.load_pem_x509_certificates(pem.encode()) if pem else []:
                end = decisive(each.not_valid_after_utc for each in found)
                if (left := end - lint.now) < _RENEWAL:
                    state = "expires-soon" if left > timedelta(0) else "expired"
                    text = f"the {what} of {cluster.alias} is valid until {end:%Y-%m-%d}"
                    yield Hit(f"certificate-{state}", cluster.origin, text)


def _settings(setup: MirrorSetup) -> Iterator[tuple[str, Setting]]:
    """All settings, with the keys that Kafka sees."""
    for cluster in setup.clusters.values():
        yield from cluster.client.items()
    for flow in setup.flows:
        yield from flow.worker.settings.items()
        for connector in flow.connectors.values():
            yield from connector.settings.items()


def _texts(setting: Setting, key: str) -> Mapping[str, str]:
    """The value, or the options of `sasl.jaas.config`, by names for messages."""
    try:
        options = parse_jaas(setting.value).options if key.endswith("jaas.config") else {}
    except JaasError:
        options = {}
    texts = {f"{setting.key}: {name}": value for name, value in options.items()}
    return texts or {setting.key: setting.value}
