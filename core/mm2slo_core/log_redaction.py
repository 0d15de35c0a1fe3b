"""The log format of all mm2slo programs, and the removal of secrets from log text.

One JSON object per line. The fields are those of events in Splunk (docs/splunk.md): `timestamp`
(RFC 3339, UTC), `level`, `service`, those of `EXTRAS` that the call passes, `logger`, `message`
and, for an exception, `error.type`, `error.message` and `error.stack_trace`, without local
variables. Secrets are redacted in all of them.

Running all regexes on every event would cost more than everything else together. Literals are
searched in whole blocks of lines instead, and regexes run only where one was found.

Patterns: literals are lower case and without `.`, `_` and `-`. Regexes ignore the case of ASCII
letters only: that is what lower-casing bytes does. Each is linear on long lines: it starts at a
literal, bounds its repetitions, or consumes what it has scanned.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Final

EXTRAS: Final = (
    "flow", "cluster", "topic", "partition", "group", "stage", "reason", "records", "seconds",
    "run_id", "request_id", "event_action",
)  # fmt: skip

REQUEST_ID: Final[ContextVar[str]] = ContextVar("request_id")
"""The id of the HTTP request that is answered, for all log lines of its context."""

# In blocks of lines, one search for what several literals share; each costs as much as the others.
_SHARED: Final = ("key", "login")
_RUN: Final = re.compile(r"[A-Za-z0-9]+")


class Redactor:
    """Redacts and counts; one for all files of a process.

    *exact* are secrets that the program itself holds. Shorter ones than three characters are left
    in place: replacing them would garble other text.
    """

    def __init__(self, extra: Iterable[SecretPattern] = (), exact: Iterable[str] = ()) -> None:
        longest_first = sorted(exact, key=len, reverse=True)
        own = (_exact_pattern(secret) for secret in longest_first if len(secret) >= 3)
        self._patterns = (*own, *extra, *PATTERNS)
        self._always = any(not pattern.literals for pattern in self._patterns)
        self._text_literals = {each for pattern in self._patterns for each in pattern.literals}
        self._literals = sorted({_in_blocks(each).encode() for each in self._text_literals})
        self.counts: Counter[str] = Counter()
        """Replaced secrets by the name of their pattern."""

    def suspects(self, texts: Sequence[bytes]) -> set[int]:
        """Return the indexes of the texts that may contain a secret or control characters."""
        if self._always:
            return set(range(len(texts)))
        block = b"\n".join(texts)
        folded = block.translate(_LOWER, _SEPARATORS)
        found = {index for literal in self._literals for index in _lines_with(literal, folded)}
        if b"\\" in block:
            lines = _lines_with(b"\\", folded)
            found |= {index for index in lines if _JSON_ESCAPE.search(texts[index])}
        if len(folded.translate(None, _CONTROLS)) != len(folded):
            found |= {
                index for index, text in enumerate(texts) if text.translate(None, _CONTROLS) != text
            }
        return found

    def redact(self, text: str) -> str:
        """Return *text* without secrets, control characters and terminal sequences."""
        if not text.isprintable():
            text = _TERMINAL.sub("", text)
        folded = text.lower().replace(".", "").replace("_", "").replace("-", "")
        found = {each for each in self._text_literals if each in folded}
        if not self._always and not found:
            return text
        for pattern in self._patterns:
            if not pattern.literals or not found.isdisjoint(pattern.literals):
                text, count = pattern.regex.subn(pattern.replacement, text)
                if count:
                    self.counts[pattern.name] += count
        return text

    def redact_document(self, document: dict[str, object]) -> dict[str, object]:
        """Return *document* without secrets, in names, in values and in fields named as secrets."""
        named = str(document.get("name"))  # of `value`, as in the environment of a container
        return {
            self.redact(name): self._redact_field(named if name == "value" else name, value)
            for name, value in document.items()
        }

    def _redact_field(self, name: str, value: object) -> object:
        if value in (None, "", "null", "[hidden]", REDACTED) or isinstance(value, bool):
            return value
        if SECRET_FIELD.search(name):
            self.counts["field"] += 1
            return REDACTED
        return self._redact_value(value)

    def _redact_value(self, value: object) -> object:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            return self.redact_document(value)
        if isinstance(value, list):
            return [self._redact_value(each) for each in value]
        return value


def _in_blocks(literal: str) -> str:
    return next((each for each in _SHARED if each in literal), literal)


def _exact_pattern(secret: str) -> SecretPattern:
    """The longest run of letters and digits is the same in JSON as in the text."""
    run = max(_RUN.findall(secret), key=len, default="").lower()
    return SecretPattern("exact", (run,) if run else (), re.compile(re.escape(secret)), REDACTED)


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

# A comma without a blank continues the value unless a key follows it.
_CONTINUED: Final = r"(?:[,;][^\s,;}\])&\"'<\\=:]+(?=[\s,;}\])]|$))*"
_STRING: Final = r"\\+\"[^\"\n]*\"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"

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
    replacement: str | Callable[[re.Match[str]], str] | None = None,
    flags: int = 0,
) -> SecretPattern:
    """Without *replacement* only what the group `key` has found stays."""
    compiled = re.compile(regex, _FLAGS | flags)
    usual = rf"\g<key>{REDACTED}" if "key" in compiled.groupindex else REDACTED
    return SecretPattern(name, tuple(literals.split(",")), compiled, replacement or usual)


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
        flags=re.DOTALL,
    ),
    # A line of a properties file: the value ends with the line.
    _pattern(
        "property",
        f"{_NAMES},userinfo",
        r"^(?P<key>[ \t]{0,16}(?:[\w-]{1,64}[.>]){1,12}[\w-]{0,40}?"
        rf"(?:{_SECRET_KEYS}|user\.info){_SUFFIX}"
        rf"{_DESCRIPTIVE}[ \t]{{0,80}}+=[ \t]{{0,80}}+){_KEPT}[^\n]+$",
    ),
    # `<name>x.password</name><value>...`, `name: X_PASSWORD` with `value: ...` on the next line.
    _pattern(
        "name_value",
        _NAMES,
        rf"(?P<key>\bname\\*[\"']?\s{{0,8}}[=:>]\s{{0,8}}\\*[\"']?{_ELEMENT}\\*[\"']?"
        r"(?:</name>)?[\s,/]{0,80}(?:<?\\*[\"']?value\\*[\"']?\s{0,8}[=:>]|>)\s{0,8}+)"
        rf"{_KEPT}(?:{_QUOTED}|[^<\n]{{1,4096}}+(?=</)|{_BARE})",
    ),
    _pattern(
        "element",
        _NAMES,
        rf"(?P<key><{_ELEMENT}(?:\s[^<>\n]{{0,256}})?>\s{{0,80}}+){_KEPT}"
        r"(?:<!\[CDATA\[[^\n]{0,4096}?\]\]>|[^<]{1,4096}+)(?=</)",
    ),
    _pattern(
        "key_value",
        _NAMES,
        rf"(?P<key>(?:{_SECRET_KEYS}){_SUFFIX}{_DESCRIPTIVE}{_EQUALS}){_KEPT}"
        rf"(?:{_QUOTED}|{_NESTED}|{_IN_MAP}|{_BARE}{_CONTINUED})",
    ),
    _pattern(
        "option",
        "pass,pwd,secret,token",
        r"(?P<key>-(?<![\w-]-)-?[\w.-]{0,32}?(?:passw(?:or)?d|passphrase|secret|token|pwd"
        r"|pass(?:in|out)?(?![a-z]))[\w.-]{0,16}+(?:[ ]{1,8}+|\\*[\"']?,[ ]?))"
        rf"{_KEPT}(?!-)(?:{_QUOTED}|{_BARE}{_CONTINUED})",
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
    ),
    _pattern("jwt", "eyj", r"(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?"),
    _pattern(
        "authorization",
        "authorization,bearer",
        rf"(?P<key>authorization{_EQUALS}(?:\\*[\"'])?+(?:(?:basic|bearer|splunk)[ ]+)?+"
        r"|\bbearer[ ]+(?=[\w.~+/=-]{16}))"
        rf"{_KEPT}(?:digest[ ][^\n]+|{_BARE})",
    ),
    _pattern("cookie", "cookie", rf"(?P<key>cookie{_EQUALS}){_KEPT}[^\n}}\"]+"),
    _pattern("assertion", "assertion", rf"(?P<key>assertion=){_KEPT}{_BARE}"),
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
        "url_query", "sig=,?key=,&key=", r"(?P<key>[?&](?:sig|key)=)(?!\[redacted\])[^&\s\"'#]+"
    ),
    _pattern(
        "slack",
        "hooksslack,xox,xapp1",
        r"(?P<key>hooks\.slack(?:-gov)?\.com[\\/]+(?:services|workflows|triggers)[\\/]+)"
        r"[\w\\/-]{8,}|\b(?:xox[a-z]|xapp)-[\w-]{8,}",
    ),
    _pattern("user_info", "userinfo", rf"(?P<key>user\.info{_EQUALS}){_KEPT}(?:{_QUOTED}|{_BARE})"),
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
    ),
    # With errors.log.include.messages, Connect logs keys and values of records.
    _pattern(
        "record_contents",
        "source record is",
        r"(?P<key>source record is = )(?!\[redacted\]).*",
        flags=re.DOTALL,
    ),
)
_REDACTOR: Final = Redactor()


class TextFormatter(logging.Formatter):
    """Lines for a terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return _REDACTOR.redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per record; *service* names the program."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        line: dict[str, object] = {
            "timestamp": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "service": self._service,
        }
        line |= {name: record.__dict__[name] for name in EXTRAS if name in record.__dict__}
        if (request_id := REQUEST_ID.get(None)) is not None:
            line["request_id"] = request_id
        line |= {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line |= {"error.type": type(error).__qualname__, "error.message": str(error)}
            line["error.stack_trace"] = self.formatException(record.exc_info)
        return json.dumps(_REDACTOR.redact_document(line), ensure_ascii=False)


_CONTROLS: Final = bytes({*range(32), 127} - {*b"\t\n"})
_SEPARATORS: Final = b"._-"
_LOWER: Final = bytes(range(256)).lower()

# JSON may write a letter as \u0070 and `/` as \/; \b and \f are control characters.
_JSON_ESCAPE: Final = re.compile(rb"\\[ub/fr]")
_TERMINAL: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def _lines_with(literal: bytes, block: bytes) -> list[int]:
    """Return the indexes of the lines of *block* that contain *literal*."""
    found, index, counted = [], 0, 0
    position = block.find(literal)
    while position >= 0:
        index += block.count(b"\n", counted, position)
        found.append(index)
        counted = block.find(b"\n", position)
        if counted < 0:
            break
        position = block.find(literal, counted)
    return found


SECRET_FIELD: Final = re.compile(
    rf"(?:(?:{_SECRET_KEYS}|jaas\.?config|authorization|cookie|user\.info)[\w.]{{0,64}}|pass)$",
    _FLAGS,
)
"""Names of JSON fields whose whole value is a secret."""
