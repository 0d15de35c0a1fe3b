"""Regexes of secrets in log text, each with the literals of which every match contains one.

Literals are lower case and without `.`, `_` and `-`. Regexes ignore the case of ASCII letters only:
that is what lower-casing bytes does. Each is linear on long lines: it starts at a literal, bounds
its repetitions, or consumes what it has scanned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

REDACTED: Final = "[redacted]"


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A class of secrets; `redact` replaces what `regex` finds.

    Without `literals` the regex runs on every event, which is slow.
    """

    name: str
    literals: tuple[str, ...]
    regex: re.Pattern[str]
    replacement: str = REDACTED


_KEPT: Final = (
    r"(?!\\*[\"']?(?:\[(?:hidden|redacted)\]|\$\{|(?:null|true|false)(?![^\s,;}\])\"'\\]))"
    r"|\\*[\"']\\*[\"'](?![^\s,;}\])]))"
)
"""What is no secret: Kafka's masks, empty settings, references to a config provider."""
_QUOTED: Final = r"(?P<quote>\\*[\"'])(?:[^\n]*?(?<!\\)(?P=quote)|[^\n]*)"
_BARE: Final = r"[^\s,;}\])&\"'<\\]+"
# A comma without a blank continues the value unless a key follows it.
_CONTINUED: Final = r"(?:[,;][^\s,;}\])&\"'<\\=:]+(?=[\s,;}\])]|$))*"
_EQUALS: Final = r"(?:\\*[\"'])?+[ \t]{0,80}+[=:][ \t]{0,80}+"
_TO_LINE_END: Final = r"[^\n]+"
_SECRET_KEYS: Final = (
    r"(?:passw(?:or)?d|passphrase|secret|token|credential)s?(?:-key|-access-key)?"
    r"|access[._-]?key(?!name)|private[._-]?key"
    r"|api[._-]key|apikey(?!=(?-i:[A-Z_]+)\(|=(?-i:[A-Z_]+)\b|=\d)"
)
"""Kafka prints the type of a request as `apiKey=FETCH`."""
_SUFFIX: Final = r"(?:[._][\w.]{0,64}|(?<![._])[a-z]{0,16})"
# Settings that describe a secret: `sasl.oauthbearer.token.endpoint.url`, `password.encoder...`.
_DESCRIPTIVE: Final = (
    r"(?<!\.ms)(?<!\.url)(?<!\.seconds)(?<!\.iterations)(?<!\.length)(?<!\.algorithm)(?<!\.class)"
    r"(?<!\.properties)"
)
_FLAGS: Final = re.IGNORECASE | re.ASCII | re.MULTILINE


def _pattern(
    name: str, literals: str, regex: str, replacement: str = REDACTED, flags: int = 0
) -> SecretPattern:
    return SecretPattern(
        name, tuple(literals.split(",")), re.compile(regex, _FLAGS | flags), replacement
    )


_PEM: Final = r"-----BEGIN .*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)"

PATTERNS: Final = (
    # Key material before key=value, which would stop at its first blank.
    _pattern(
        "key_material",
        "storekey,storecert,private key",
        r"(?P<key>ssl\.(?:keystore\.key|keystore\.certificate\.chain|truststore\.certificates)"
        rf"{_EQUALS}){_KEPT}(?:(?:\\*[\"'])?(?:{_PEM}(?:\s|\\n)*)+|{_TO_LINE_END})"
        r"|-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----"
        r".*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
        rf"\g<key>{REDACTED}",
        re.DOTALL,
    ),
    # A line of a properties file: the value ends with the line.
    _pattern(
        "property",
        "pass,secret,token,credential,apikey,accesskey,privatekey,userinfo",
        r"^(?P<key>[ \t]{0,16}(?:[\w-]{1,64}[.>]){1,12}[\w-]{0,40}?"
        rf"(?:{_SECRET_KEYS}|user\.info){_SUFFIX}"
        rf"{_DESCRIPTIVE}[ \t]{{0,80}}+=[ \t]{{0,80}}+){_KEPT}[^\n]+$",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "key_value",
        "pass,secret,token,credential,apikey,accesskey,privatekey",
        rf"(?P<key>(?:{_SECRET_KEYS}){_SUFFIX}{_DESCRIPTIVE}{_EQUALS}){_KEPT}"
        rf"(?:{_QUOTED}|{_BARE}{_CONTINUED})",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "option",
        "pass,secret,token",
        r"(?P<key>--[\w.-]{0,32}?(?:password|passphrase|secret|token)[\w.-]{0,16}+[ ]{1,8}+)"
        rf"{_KEPT}(?!-)(?:{_QUOTED}|{_BARE})",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "jaas",
        "jaas,loginmodule",
        rf"(?P<key>sasl\.jaas\.config{_EQUALS}|LoginModule\s{{1,8}}"
        rf"(?:required|requisite|sufficient|optional)\b){_KEPT}(?!\s\[redacted\])"
        r"(?:(?>[^\";\\]|\\+\"[^\"\n]*\"|\"(?:[^\"\\\n]|\\.)*\"|[\"\\]){0,4000}?;|[^\n]*)",
        rf"\g<key> {REDACTED};",
    ),
    _pattern(
        "jaas_option",
        "unsecuredlogin",
        rf"(?P<key>unsecuredLogin\w{{1,64}}{_EQUALS}){_KEPT}(?:{_QUOTED}|{_BARE})",
        rf"\g<key>{REDACTED}",
    ),
    _pattern("jwt", "eyj", r"(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?"),
    _pattern(
        "authorization",
        "authorization,bearer",
        rf"(?P<key>authorization{_EQUALS}(?:\\*[\"'])?+(?:(?:basic|bearer|splunk)[ ]+)?+"
        r"|\bbearer[ ]+(?=[\w.~+/=-]{16}))"
        rf"{_KEPT}(?:digest[ ][^\n]+|{_BARE})",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "cookie",
        "cookie",
        rf"(?P<key>cookie{_EQUALS}){_KEPT}[^\n}}\"]+",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "assertion", "assertion", rf"(?P<key>assertion=){_KEPT}{_BARE}", rf"\g<key>{REDACTED}"
    ),
    _pattern(
        "url",
        "://,sig=,?key=,&key=",
        r"(?P<key>://[^\s/:@\"'<>]{0,256}:)(?!\[redacted\]@)[^\s/\"'<>]{1,512}(?P<end>@)"
        r"|(?P<query>[?&](?:sig|key)=)(?!\[redacted\])[^&\s\"'#]+",
        rf"\g<key>\g<query>{REDACTED}\g<end>",
    ),
    _pattern(
        "user_info",
        "userinfo",
        rf"(?P<key>user\.info{_EQUALS}){_KEPT}(?:{_QUOTED}|{_BARE})",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "cloud_key",
        "akia",
        r"\bAKIA[0-9A-Z]{16}\b(?:[^\w/+]{1,8}[A-Za-z0-9/+]{40}\b)?",
    ),
    _pattern(
        "scram",
        "storedkey,serverkey,hmac",
        r"(?P<key>\b(?:salt(?==[^,\s]{1,512},stored_?key)|stored_?key|server_?key|hmac)"
        rf"{_EQUALS}){_KEPT}(?:{_QUOTED}|{_BARE})",
        rf"\g<key>{REDACTED}",
    ),
    # With errors.log.include.messages, Connect logs keys and values of records.
    _pattern(
        "record_contents",
        "source record is",
        r"(?P<key>source record is = )(?!\[redacted\]).*",
        rf"\g<key>{REDACTED}",
        re.DOTALL,
    ),
)

SECRET_FIELD: Final = re.compile(
    rf"(?:{_SECRET_KEYS}|jaas\.?config|authorization|cookie|user\.info)[\w.]{{0,64}}$", _FLAGS
)
"""Names of JSON fields whose whole value is a secret."""
