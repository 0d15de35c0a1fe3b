"""Kafka's config provider references, `${provider:[path:]key}`.

Syntax and resolution as Kafka's `ConfigTransformer`, `EnvVarConfigProvider`, `FileConfigProvider`
and `DirectoryConfigProvider`: one pass, values are not resolved again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.mm2_config.mirror_setup import ProviderKind

if TYPE_CHECKING:
    from collections.abc import Callable

_KINDS: Final = {
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider": ProviderKind.ENV,
    "org.apache.kafka.common.config.provider.FileConfigProvider": ProviderKind.FILE,
    "org.apache.kafka.common.config.provider.DirectoryConfigProvider": ProviderKind.DIRECTORY,
    "io.strimzi.kafka.EnvVarConfigProvider": ProviderKind.ENV,
    "io.strimzi.kafka.KubernetesSecretConfigProvider": ProviderKind.SECRET,
}


def provider_kind(class_name: str) -> ProviderKind | None:
    """What the config provider *class_name* reads; None if it cannot be resolved here."""
    return _KINDS.get(class_name.strip())


class UnresolvedReferenceError(LookupError):
    """A reference cannot be resolved; the text gives the reason and contains no secret."""


@dataclass(frozen=True, slots=True)
class MirrorFiles:
    """What MirrorMaker 2's process sees: its environment, its files and its mounted secrets.

    Each function raises UnresolvedReferenceError. Paths are those of MirrorMaker 2's machine or
    container; the caller maps them (`--path FROM=TO`). `secret` takes a secret's name and key.
    """

    environment: Callable[[str], str]
    content: Callable[[str], bytes]
    secret: Callable[[str, str], bytes]
