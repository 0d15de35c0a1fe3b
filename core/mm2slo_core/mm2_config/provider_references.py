"""References to secrets: Kafka's config providers, JAAS, and plain secrets made references.

Syntax and resolution as Kafka's `ConfigTransformer`, `EnvVarConfigProvider`, `FileConfigProvider`
and `DirectoryConfigProvider`, and Strimzi's `KubernetesSecretConfigProvider`: one pass, values are
not resolved again. Text with a provider that is not declared stays as written, which is an error.

`SecretReferences` replaces plain secrets by references: when in doubt, a value is a secret: a
needless reference is harmless.

`parse_jaas`: tokens as of `java.io.StreamTokenizer`, grammar as of Kafka's `JaasConfig` and
`JaasContext`. A mistake may cut a password at any place, so errors give positions and never show
text.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Final

from mm2slo_core.config.client_security import jaas_quote
from mm2slo_core.config.config_document import UnresolvedError
from mm2slo_core.file_syntax import PropertiesError, parse_properties
from mm2slo_core.java_values import split_list
from mm2slo_core.mm2_config.mirror_setup import (
    Finding,
    FindingSeverity,
    ProviderKind,
    Setting,
    Settings,
)

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
_PROVIDER_LIST: Final = re.compile(r"(?:^|\.)config\.providers$")
_SECRET_PATH: Final = re.compile(r"(?:[a-z0-9.-]+/)?([a-z0-9][a-z0-9.-]*)")
_PEM: Final = "-----BEGIN "


@dataclass(frozen=True, slots=True)
class MirrorFiles:
    """What MirrorMaker 2's process sees: its environment, its files and its mounted secrets.

    Each function raises UnresolvedError. Paths are those of MirrorMaker 2's machine;
    the caller maps them (`--path FROM=TO`). `secret` takes a secret's name and key.
    """

    environment: Callable[[str], str]
    content: Callable[[str], bytes]
    secret: Callable[[str, str], bytes]


def read_providers(
    *parts: Settings,
) -> tuple[dict[str, ProviderKind | None], tuple[Finding, ...]]:
    """Return what all declared providers read, None if that is not known, and findings of these.

    `config.providers` may have a prefix: clients, workers and connectors read their own
    (`AbstractConfig.resolveConfigVariables`).
    """
    settings = {key: each for part in parts for key, each in part.items()}
    providers: dict[str, ProviderKind | None] = {}
    findings = []
    lists = {key: each for key, each in settings.items() if _PROVIDER_LIST.search(key)}
    declared = [(key, name) for key, each in lists.items() for name in split_list(each.value)]
    for key, name in filter(itemgetter(1), declared):
        setting, names = settings.get(f"{key}.{name}.class"), lists[key]
        kind = providers[name] = _KINDS.get(setting.value.strip()) if setting else None
        if kind:
            continue
        what = f"the class {setting.value!r}, which mm2slo cannot read" if setting else "no class"
        findings.append(Finding(
            "unknown-config-provider", FindingSeverity.WARNING, (setting or names).origin,
            f"config provider {name!r} has {what}",
            f"references such as ${{{name}:...}} are not resolved",
            "set clusters.<alias>.security in mm2slo.yaml if connections to the clusters need it",
        ))  # fmt: skip
    return providers, tuple(findings)


UNDECLARED: Final = (
    "undeclared-provider", FindingSeverity.ERROR, "Kafka takes the text itself as the value",
    "add the name to config.providers, and config.providers.NAME.class, where workers read them",
)  # fmt: skip
"""The check of references to undeclared config providers: name, severity, why and action."""


def undeclared_providers(setting: Setting, providers: Collection[str]) -> Iterator[str]:
    """What is wrong with the references in *setting* to others than the declared *providers*."""
    for match in REFERENCE.finditer(setting.value):
        if match[1] not in providers:
            # What looks like a reference may be a part of a password.
            is_name = re.fullmatch(r"[\w-]{1,50}", match[1])
            which = f"the config provider {match[1]!r}" if is_name else "a config provider"
            yield f"{setting.key} refers to {which}, which config.providers does not list"


def resolve_settings(
    settings: Settings, providers: Mapping[str, ProviderKind | None], files: MirrorFiles
) -> tuple[Settings, tuple[Finding, ...]]:
    """Return *settings* with resolved values; unresolvable references stay as written."""
    findings: list[Finding] = []

    def resolve(setting: Setting) -> Setting:
        for what in undeclared_providers(setting, providers):
            check, severity, why, action = UNDECLARED
            findings.append(Finding(check, severity, setting.origin, what, why, action))

        def substitute(match: re.Match[str]) -> str:
            provider, path, key = match[1], match[2] or "", match[3]
            if provider not in providers:
                return match[0]
            kind = providers[provider]
            try:
                value = _look_up(kind, path, key, files)
            except UnresolvedError as error:
                findings.append(_unresolved(setting, match, kind, str(error)))
                return match[0]
            if value.endswith(("\n", "\r")) and _PEM not in value:
                findings.append(_trailing_newline(setting, match[0]))
            return value

        return replace(setting, value=REFERENCE.sub(substitute, setting.value))

    return {name: resolve(setting) for name, setting in settings.items()}, tuple(findings)


def _look_up(kind: ProviderKind | None, path: str, key: str, files: MirrorFiles) -> str:
    if kind is None:
        raise UnresolvedError("mm2slo cannot read its config provider")
    if kind is ProviderKind.ENV:
        if path:
            raise UnresolvedError("an environment variable has no path")
        return files.environment(key)
    if not path:
        raise UnresolvedError("it has no path")
    if kind is ProviderKind.FILE:
        return _property(files.content(path), key)
    # Kafka compares the key with file names, so a key never leads to another directory.
    if "/" in key or key in {"", ".", ".."}:
        raise UnresolvedError("its key is not a file name")
    if kind is ProviderKind.DIRECTORY:
        return _text(files.content(f"{path.rstrip('/')}/{key}"))
    secret = _SECRET_PATH.fullmatch(path)
    if secret is None:
        raise UnresolvedError("its path is not [NAMESPACE/]SECRET")
    return _text(files.secret(secret[1], key))


def _property(content: bytes, key: str) -> str:
    # FileConfigProvider reads UTF-8, unlike the properties files of Kafka's processes.
    try:
        properties = {line.key: line.value for line in parse_properties(_text(content))}
    except PropertiesError as error:
        raise UnresolvedError(f"the file {error}") from None
    if key not in properties:
        raise UnresolvedError("the file has no such key")
    return properties[key]


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")  # as Java decodes it


def _unresolved(
    setting: Setting, match: re.Match[str], kind: ProviderKind | None, reason: str
) -> Finding:
    reference, path, key = match[0], match[2], match[3]
    if kind is None:
        action = "set in mm2slo.yaml what it is for, such as clusters.<alias>.security"
    elif kind is ProviderKind.ENV:
        action = f"export {key}=... before starting mm2slo"
    elif kind is ProviderKind.SECRET:
        action = f"add --secrets DIR, with this value in DIR/<secret>/{key}"
    else:
        action = f"copy {path} here and add --path {path}=COPY"
    return Finding(
        "unresolved-reference", FindingSeverity.ERROR, setting.origin,
        f"{reference} in {setting.key} cannot be resolved: {reason}",
        "MirrorMaker 2 gets this value from its environment, a file or a secret", action,
    )  # fmt: skip


def _trailing_newline(setting: Setting, reference: str) -> Finding:
    return Finding(
        "trailing-newline", FindingSeverity.WARNING, setting.origin,
        f"the value of {reference} in {setting.key} ends with a line break",
        "Kafka keeps the line break, so that it becomes part of a password",
        "store the value without it: printf %s instead of echo, or kubectl --from-literal",
    )  # fmt: skip


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


# A number is neither a name nor a mark; a / starts a comment, with or without a second one. After a
# single one that ends its line, it is the next line (java.io.StreamTokenizer, which Kafka uses).
_TOKEN: Final = re.compile(
    r"""
    (?P<skip>  [\x00-\x20]+ | /\*(?:.*?\*/|.*) | //[^\r\n]* | /.?[^\r\n]* )
  | -?(?:\d+\.?\d*|\.\d*)
  | (?P<name>  [A-Za-z_$\xa0-\U0010ffff][\w.$\xa0-\U0010ffff-]* )
  | (?P<quote> ["'])(?P<text>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?:(?P=quote))?
  | (?P<mark>  . )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_FLAGS: Final = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_END: Final = (None, None)


class JaasError(ValueError):
    """The text is not one login module; the message contains nothing of it."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module: its class, control flag, and options, which contain passwords."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """Return the only login module of *text*; raises JaasError."""
    tokens = _tokens(text)
    (name, _), (flag, _) = next(tokens, _END), next(tokens, _END)
    if name is None:
        raise JaasError("does not start with the class of a login module")
    if flag is None or flag.upper() not in _FLAGS:
        raise JaasError("has no control flag, such as required, after the class")
    options: dict[str, str] = {}
    for key, mark in tokens:
        if mark == ";":
            break
        (_, equals), (value, _) = next(tokens, _END), next(tokens, _END)
        if key is None or equals != "=" or value is None:
            raise JaasError(f'has no name="value" as option {len(options) + 1}')
        options[key] = value
    else:
        raise JaasError("does not end with a semicolon")
    if next(tokens, None) is not None:
        raise JaasError("has text after its first semicolon; Kafka allows one login module")
    return LoginModule(name, flag.upper(), options)


def _tokens(text: str) -> Iterator[tuple[str | None, str | None]]:
    """Each token as the value of a name or quoted text, and as another character."""
    for match in _TOKEN.finditer(text):
        if match["skip"] is None:
            quoted = match["text"]
            value = match["name"] if quoted is None else _ESCAPE.sub(_unescape, quoted)
            yield value, match["mark"]


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _CONTROLS.get(escaped, escaped)
