"""Kafka's config provider references, `${provider:[path:]key}`.

Syntax and resolution as Kafka's `ConfigTransformer`, `EnvVarConfigProvider`, `FileConfigProvider`
and `DirectoryConfigProvider`, and Strimzi's `KubernetesSecretConfigProvider`: one pass, values are
not resolved again, and text with an unknown provider stays as written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.java_values import split_list
from mm2slo_core.mm2_config.findings import Finding, Severity
from mm2slo_core.mm2_config.mirror_setup import ProviderKind, Setting
from mm2slo_core.properties_text import PropertiesError, parse_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_core.mm2_config.mirror_setup import Settings

_KINDS: Final = {
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider": ProviderKind.ENV,
    "org.apache.kafka.common.config.provider.FileConfigProvider": ProviderKind.FILE,
    "org.apache.kafka.common.config.provider.DirectoryConfigProvider": ProviderKind.DIRECTORY,
    "io.strimzi.kafka.EnvVarConfigProvider": ProviderKind.ENV,
    "io.strimzi.kafka.KubernetesSecretConfigProvider": ProviderKind.SECRET,
}
PROVIDER_CLASSES: Final = {kind: name for name, kind in reversed(_KINDS.items())}
# Matches what ConfigTransformer's \$\{([^}]*?):(([^}]*?):)?([^}]*?)\} matches, in linear time.
REFERENCE: Final = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")
_SECRET_PATH: Final = re.compile(r"(?:[a-z0-9.-]+/)?([a-z0-9][a-z0-9.-]*)")
_PEM: Final = "-----BEGIN "


class UnresolvedReferenceError(LookupError):
    """A reference cannot be resolved; the text gives the reason and contains no secret."""


@dataclass(frozen=True, slots=True)
class MirrorFiles:
    """What MirrorMaker 2's process sees: its environment, its files and its mounted secrets.

    Each function raises UnresolvedReferenceError. Paths are those of MirrorMaker 2's machine;
    the caller maps them (`--path FROM=TO`). `secret` takes a secret's name and key.
    """

    environment: Callable[[str], str]
    content: Callable[[str], bytes]
    secret: Callable[[str, str], bytes]


def read_providers(settings: Settings) -> tuple[dict[str, ProviderKind], tuple[Finding, ...]]:
    """Return what the providers of `config.providers` read, and findings of unknown classes."""
    providers: dict[str, ProviderKind] = {}
    findings = []
    names = settings.get("config.providers")
    if names is None:
        return providers, ()
    for name in filter(None, split_list(names.value)):
        setting = settings.get(f"config.providers.{name}.class")
        if setting and setting.value.strip() in _KINDS:
            providers[name] = _KINDS[setting.value.strip()]
            continue
        what = f"the class {setting.value!r}, which mm2slo cannot read" if setting else "no class"
        findings.append(Finding(
            "unknown-config-provider", Severity.WARNING, (setting or names).origin,
            f"config provider {name!r} has {what}",
            f"references such as ${{{name}:...}} are not resolved",
            "set clusters.<alias>.security in mm2slo.yaml if connections to the clusters need it",
        ))  # fmt: skip
    return providers, tuple(findings)


def resolve_settings(
    settings: Settings, providers: Mapping[str, ProviderKind], files: MirrorFiles
) -> tuple[Settings, tuple[Finding, ...]]:
    """Return *settings* with resolved values; unresolvable references stay as written."""
    findings: list[Finding] = []

    def resolve(setting: Setting) -> Setting:
        def substitute(match: re.Match[str]) -> str:
            provider, path, key = match[1], match[2] or "", match[3]
            kind = providers.get(provider)
            if kind is None:
                return match[0]
            try:
                value = _look_up(kind, path, key, files)
            except UnresolvedReferenceError as error:
                findings.append(_unresolved(setting, match, kind, str(error)))
                return match[0]
            if value.endswith(("\n", "\r")) and _PEM not in value:
                findings.append(_trailing_newline(setting, match[0]))
            return value

        return replace(setting, value=REFERENCE.sub(substitute, setting.value))

    return {name: resolve(setting) for name, setting in settings.items()}, tuple(findings)


def _look_up(kind: ProviderKind, path: str, key: str, files: MirrorFiles) -> str:
    if kind is ProviderKind.ENV:
        if path:
            raise UnresolvedReferenceError("an environment variable has no path")
        return files.environment(key)
    if not path:
        raise UnresolvedReferenceError("it has no path")
    if kind is ProviderKind.FILE:
        return _property(files.content(path), key)
    # Kafka compares the key with file names, so a key never leads to another directory.
    if "/" in key or key in {"", ".", ".."}:
        raise UnresolvedReferenceError("its key is not a file name")
    if kind is ProviderKind.DIRECTORY:
        return _text(files.content(f"{path.rstrip('/')}/{key}"))
    secret = _SECRET_PATH.fullmatch(path)
    if secret is None:
        raise UnresolvedReferenceError("its path is not [NAMESPACE/]SECRET")
    return _text(files.secret(secret[1], key))


def _property(content: bytes, key: str) -> str:
    # FileConfigProvider reads UTF-8, unlike the properties files of Kafka's processes.
    try:
        properties = {line.key: line.value for line in parse_properties(_text(content))}
    except PropertiesError as error:
        raise UnresolvedReferenceError(f"the file {error}") from None
    if key not in properties:
        raise UnresolvedReferenceError("the file has no such key")
    return properties[key]


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")  # as Java decodes it


def _unresolved(setting: Setting, match: re.Match[str], kind: ProviderKind, reason: str) -> Finding:
    reference, path, key = match[0], match[2], match[3]
    if kind is ProviderKind.ENV:
        action = f"export {key}=... before starting mm2slo"
    elif kind is ProviderKind.SECRET:
        action = f"add --secrets DIR, with this value in DIR/<secret>/{key}"
    else:
        action = f"copy {path} here and add --path {path}=COPY"
    return Finding(
        "unresolved-reference", Severity.ERROR, setting.origin,
        f"{reference} in {setting.key} cannot be resolved: {reason}",
        "MirrorMaker 2 gets this value from its environment, a file or a secret", action,
    )  # fmt: skip


def _trailing_newline(setting: Setting, reference: str) -> Finding:
    return Finding(
        "trailing-newline", Severity.WARNING, setting.origin,
        f"the value of {reference} in {setting.key} ends with a line break",
        "Kafka keeps the line break, so that it becomes part of a password",
        "store the value without it: printf %s instead of echo, or kubectl --from-literal",
    )  # fmt: skip
