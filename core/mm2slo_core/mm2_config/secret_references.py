"""Replaces secrets in plain text by references to files of mounted secrets.

When in doubt, a value is a secret: a needless reference is harmless.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.client_security import jaas_quote
from mm2slo_core.mm2_config.jaas import JaasError, parse_jaas
from mm2slo_core.mm2_config.mirror_setup import ProviderKind
from mm2slo_core.mm2_config.provider_references import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mm2slo_core.mm2_config.mirror_setup import Setting

PROVIDER: Final = "secretdir"
JAAS: Final = "sasl.jaas.config"
_SECRET_KEY: Final = re.compile(
    r"(?i)passw|passphrase|secret|credential|jaas|user\.?info|assertion"
    r"|(?:private|api|access|keystore)[._-]?key|(?:access|refresh|auth|bearer)[._-]?token"
    r"|(?:token|pwd|pass)$"
)
_PUBLIC_KEY: Final = re.compile(
    r"\.(?:location|file|path|type|class|ur[il]|client\.id|algorithm|source)$"
    r"|\.assertion\.(?!private)"
)
_SECRET_VALUE: Final = re.compile(
    r"(?i)PRIVATE KEY-|://\S+@|hooks\.slack|(?:passw\w*|token|secret)[\"']?\s*[=:]"
)
_PUBLIC_OPTION: Final = re.compile(
    r"username|principal|keyTab|(?:use|store)[A-Z]\w+|scope|(?:oauth\.sasl\.)?extension[._]\w+"
    r"|(?:.*[.\w])?(?:[iI]d|[uU]r[il]|[sS]cope|audience|location|[tT]ype|algorithm|Name|Region|Arn)"
)


@dataclass(frozen=True, slots=True)
class SecretReferences:
    """References to files *folder*/NAME/KEY.

    *providers* are the names of config providers, *kinds* what the known ones read. With *every*,
    other references become secrets as well. *created* are the secrets to create: what to store
    under a name and key, and the value.
    """

    providers: Collection[str]
    kinds: Mapping[str, ProviderKind]
    folder: str
    every: bool
    created: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict, repr=False)

    def create(self, name: str, key: str, content: str, value: str) -> str:
        """A reference to a secret with *value*, which *content* describes."""
        name = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")
        key = re.sub(r"[^\w.-]+", "_", key, flags=re.ASCII)
        while self.created.setdefault((name, key), (content, value))[1] != value:
            key += "-2"
        return f"${{{PROVIDER}:{self.folder}/{name}:{key}}}"

    def note(self, text: str) -> str:
        """The secrets to create for *text*, as comments."""
        lines = [
            f"#   {name}, key {key}: {' '.join(content.split())}\n"
            for (name, key), (content, _) in self.created.items()
            if name in text and key in text
        ]
        return "".join(["# Create these secrets:\n", *lines]) if lines else ""

    def hide(self, name: str, key: str, setting: Setting) -> Setting:
        """*setting*, of a client's *key*, with its secrets moved to the secret *name*."""
        held: dict[int, str] = {}

        def hold(match: re.Match[str]) -> str:
            if match[1] not in self.providers:
                return match[0]
            held[0xE000 + len(held)] = self._moved(name, match)
            return chr(max(held))

        # Kafka inserts values before it parses JAAS: a reference may be anywhere in a line.
        text = REFERENCE.sub(hold, setting.value)
        plain = text.translate(dict.fromkeys(held)).strip()
        by_key = _SECRET_KEY.search(key) and not _PUBLIC_KEY.search(key)
        if plain and (by_key or _SECRET_VALUE.search(plain)):
            try:
                # Kafka would take text after ${ as part of the next reference.
                if not key.endswith(JAAS) or "${" in plain:
                    raise JaasError
                text = self._hide_options(name, key.removesuffix(JAAS), text, held, setting)
            except JaasError:
                content = f"{setting.key} ({setting.origin})"
                text = self.create(name, key, content, setting.value)
        return replace(setting, value=text.translate(held))

    def _moved(self, name: str, match: re.Match[str]) -> str:
        kind, path, key = self.kinds.get(match[1]), match[2] or "", match[3]
        if kind is ProviderKind.SECRET and (self.every or "*" not in key):
            return f"${{{PROVIDER}:{self.folder}/{path.rpartition('/')[2]}:{key}}}"
        if kind is ProviderKind.SECRET or (kind and self.every):
            content = f"the value of {match[0]}"
            return self.create(name, key.replace("*", "all"), content, match[0])
        return match[0]

    def _hide_options(
        self, name: str, prefix: str, text: str, held: dict[int, str], setting: Setting
    ) -> str:
        module, options, secrets = parse_jaas(text), [], 0
        for option, value in module.options.items():
            quoted = jaas_quote(value)
            public = _PUBLIC_OPTION.fullmatch(option) or value in {"true", "false"}
            if not public and value.translate(dict.fromkeys(held)).strip():
                # Kafka inserts it into the line, so it is stored with escapes.
                content = f"{option} of {setting.key} ({setting.origin})"
                content += ', with a \\ before each " and \\' * (quoted != f'"{value}"')
                stored = quoted[1:-1].translate(held)
                quoted, secrets = f'"{self.create(name, prefix + option, content, stored)}"', 1
            options.append(f"{option}={quoted}")
        line = " ".join([module.name, module.flag.lower(), *options])
        return f"{line};" if secrets else text
