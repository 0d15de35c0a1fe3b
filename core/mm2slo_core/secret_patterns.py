"""Regexes of secrets in log text, each with the literals of which every match contains one.

Literals are lower case and without `.`, `_` and `-`. Regexes ignore the case of ASCII letters only:
that is what lower-casing bytes does. Each is linear on long lines: it starts at a literal, bounds
its repetitions, or consumes what it has scanned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

REDACTED: Final = "[redacted]"


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A class of secrets; `redact` replaces what `regex` finds.

    Without `literals` the regex runs on every event, which is slow.
    """

    name: str
    literals: tuple[str, ...]
    regex: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str] = REDACTED


_KEPT: Final = (
    r"(?!\\*[\"']?(?:\[(?:hidden|redacted)\]|\$\{|(?:null|true|false)(?![^\s,;}\])\"'\\]))"
    r"|\\*[\"']\\*[\"'](?![^\s,;}\])]))"
)
"""What is no secret: Kafka's masks, empty settings, references to a config provider."""
_QUOTED: Final = r"b?(?P<quote>\\*[\"'])(?:[^\n]*?(?<!\\)(?P=quote)|[^\n]*)"
# A quote or closing bracket before a letter belongs to the value, `&` unless a key follows it.
_BARE: Final = (
    r"[^\s,;}\])&\"'<\\]++"
    r"(?:[})\]\"'<](?=\w)|\\(?![nrtu/\"'\\])|&(?![\w.-]{0,64}=)|[^\s,;}\])&\"'<\\]++)*+"
)
_STRING: Final = r"\\+\"[^\"\n]*\"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
# A comma without a blank continues the value unless a key follows it.
_CONTINUED: Final = r"(?:[,;][^\s,;}\])&\"'<\\=:]+(?=[\s,;}\])]|$))*"
# An object or a list, four levels deep; if it does not end, the rest of the line.
_NESTED: Final = (
    reduce(lambda inner, _: rf"[\[{{](?:{_STRING}|[^\[\]{{}}]|{inner})*+[\]}}]", range(4), r"(?!)")
    + rf"(?:{_BARE}{_CONTINUED})?|[\[{{][^\n]*"
)
# A value with blanks, where another key or a bracket ends it: `{password=my secret, topics=.*}`.
_IN_MAP: Final = (
    rf"{_BARE}(?:[^\n=(){{}}\[\]\"']|=(?=[=,;}})\]])|(?<=\S)[({{\[]|[)}}\]\"'](?=\w)){{0,256}}?"
    r"(?=,[ ]?[\w.-]{1,64}[=:]|[})\]](?!\w))"
)
_EQUALS: Final = r"(?:\\*[\"'])?+[ \t]{0,80}+[=:][ \t]{0,80}+"
_TO_LINE_END: Final = r"[^\n]+"
# A set of characters first: regexes that ignore case skip no text otherwise.
_SECRET_KEYS: Final = (
    r"(?-i:[acpstACPST])(?:(?:(?<=p)(?:assw(?:or)?d|assphrase)|(?<=s)ecret|(?<=t)oken"
    r"|(?<=c)redential)s?(?:-key|-access-key)?"
    r"|(?<=a)(?:ccess[._-]?key(?!name)|pi[._-]key"
    r"|pikey(?!=(?-i:[A-Z_]+)\(|=(?-i:[A-Z_]+)\b|=\d))"
    r"|(?<=p)(?:rivate[._-]?key|wd(?:(?<!(?-i:PWD))|(?!=/))"
    r"|ass(?:(?<=[._-]pass)(?![a-z])|(?=\\*[\"']?[ \t]{0,8}=|\\*[\"'][ \t]{0,8}:))))"
)
"""Kafka prints the type of a request as `apiKey=FETCH`; shells keep their folder in `PWD`."""
_ELEMENT: Final = rf"[\w.:-]{{0,64}}?(?:{_SECRET_KEYS}|pass)[\w.-]{{0,64}}"
_SUFFIX: Final = r"(?:[._][\w.]{0,64}|(?<![._])[a-z]{0,16})"
# Settings that describe a secret: `sasl.oauthbearer.token.endpoint.url`, `password.encoder...`.
_DESCRIPTIVE: Final = (
    r"(?<!\.ms)(?<!\.url)(?<!\.seconds)(?<!\.iterations)(?<!\.length)(?<!\.algorithm)(?<!\.class)"
    r"(?<!\.properties)(?<![._]file)(?<![._]path)"
)
_FLAGS: Final = re.IGNORECASE | re.ASCII | re.MULTILINE


def _pattern(
    name: str,
    literals: str,
    regex: str,
    replacement: str | Callable[[re.Match[str]], str] = REDACTED,
    flags: int = 0,
) -> SecretPattern:
    return SecretPattern(
        name, tuple(literals.split(",")), re.compile(regex, _FLAGS | flags), replacement
    )


_CURL_USER: Final = (
    r"(?P<key>[\s\"'](?:-[a-z]{0,8}u\s{0,8}|--(?:proxy-)?user[ =]\s{0,8})(?P<open>\\*[\"'])?"
    r"[^\s:\"']{1,128}:)(?!\[redacted\])"
    r"(?(open)[^\n]+?(?=(?P=open)(?!\w))|(?:[^\s\"']|[\"'](?=\w))+)"
)


def _without_passwords(command: re.Match[str]) -> str:
    return re.sub(_CURL_USER, rf"\g<key>{REDACTED}", command[0], flags=_FLAGS)


_NAMES: Final = "pass,pwd,secret,token,credential,apikey,accesskey,privatekey"
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
        f"{_NAMES},userinfo",
        r"^(?P<key>[ \t]{0,16}(?:[\w-]{1,64}[.>]){1,12}[\w-]{0,40}?"
        rf"(?:{_SECRET_KEYS}|user\.info){_SUFFIX}"
        rf"{_DESCRIPTIVE}[ \t]{{0,80}}+=[ \t]{{0,80}}+){_KEPT}[^\n]+$",
        rf"\g<key>{REDACTED}",
    ),
    # `<name>x.password</name><value>...`, `name: X_PASSWORD` with `value: ...` on the next line.
    _pattern(
        "name_value",
        _NAMES,
        rf"(?P<key>\bname\\*[\"']?\s{{0,8}}[=:>]\s{{0,8}}\\*[\"']?{_ELEMENT}\\*[\"']?"
        r"(?:</name>)?[\s,/]{0,80}(?:<?\\*[\"']?value\\*[\"']?\s{0,8}[=:>]|>)\s{0,8}+)"
        rf"{_KEPT}(?:{_QUOTED}|[^<\n]{{1,4096}}+(?=</)|{_BARE})",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "element",
        _NAMES,
        rf"(?P<key><{_ELEMENT}(?:\s[^<>\n]{{0,256}})?>\s{{0,80}}+){_KEPT}"
        r"(?:<!\[CDATA\[[^\n]{0,4096}?\]\]>|[^<]{1,4096}+)(?=</)",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "key_value",
        _NAMES,
        rf"(?P<key>(?:{_SECRET_KEYS}){_SUFFIX}{_DESCRIPTIVE}{_EQUALS}){_KEPT}"
        rf"(?:{_QUOTED}|{_NESTED}|{_IN_MAP}|{_BARE}{_CONTINUED})",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "option",
        "pass,pwd,secret,token",
        r"(?P<key>-(?<![\w-]-)-?[\w.-]{0,32}?(?:passw(?:or)?d|passphrase|secret|token|pwd"
        r"|pass(?:in|out)?(?![a-z]))[\w.-]{0,16}+(?:[ ]{1,8}+|\\*[\"']?,[ ]?))"
        rf"{_KEPT}(?!-)(?:{_QUOTED}|{_BARE}{_CONTINUED})",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "curl",
        "curl",
        rf"\bcurl\b[^\n]{{0,1000}}?{_CURL_USER}[^\n]*",
        _without_passwords,
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
    # User and password may contain `@`, the password `/` and quotes. A user alone is a token in
    # HTTP, but a container or an account elsewhere: `abfss://container@account`.
    _pattern(
        "url",
        "://",
        r"://(?:(?P<key>(?!\[)[^\s/:\"'<>]{0,256}:)(?!(?:\[redacted\]|\*+)@)"
        r"(?!\d{1,5}(?:[^\w@:]|$))(?:[^\s:\"'<>]|:(?!//)|[\"'<>](?=\w)){1,512}(?=@)"
        r"|(?:(?<=http://)|(?<=https://))(?![^\s/]{0,512}(?:\[redacted\]|\*)@)"
        r"[^\s/?#:\"'<>]{1,512}(?=@))",
        rf"://\g<key>{REDACTED}",
    ),
    _pattern(
        "url_query",
        "sig=,?key=,&key=",
        r"(?P<key>[?&](?:sig|key)=)(?!\[redacted\])[^&\s\"'#]+",
        rf"\g<key>{REDACTED}",
    ),
    _pattern(
        "slack",
        "hooksslack,xox,xapp1",
        r"(?P<key>hooks\.slack(?:-gov)?\.com[\\/]+(?:services|workflows|triggers)[\\/]+)"
        r"[\w\\/-]{8,}|\b(?:xox[a-z]|xapp)-[\w-]{8,}",
        rf"\g<key>{REDACTED}",
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
    rf"(?:(?:{_SECRET_KEYS}|jaas\.?config|authorization|cookie|user\.info)[\w.]{{0,64}}|pass)$",
    _FLAGS,
)
"""Names of JSON fields whose whole value is a secret."""
