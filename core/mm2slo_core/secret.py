"""A string that is masked in reprs, logs, errors and JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pydantic_core import PydanticCustomError, core_schema

if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from pydantic import GetCoreSchemaHandler

MASK: Final = "***"
_CREDENTIALS: Final = re.compile(r"\A(?P<scheme>[^:/?#]+://)(?P<pair>[^:/?#]*:.*)@", re.DOTALL)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Secret:
    """A password, key or token; only `reveal()` returns its value."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, only to pass it to a client."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK!r})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __bool__(self) -> bool:
        return bool(self._value)

    @classmethod
    def _validate(cls, value: object) -> Secret:
        if isinstance(value, Secret):
            return value
        if isinstance(value, str):
            return cls(value)
        # The message omits the value: a password written as a number is still a password.
        raise PydanticCustomError("string_type", "expected text")

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json"),
        )


def escape_credentials(url: str) -> str:
    """*url* with user and password, which end at the last `@`, percent-encoded where they are not.

    Parsers of URLs end a password at the first `@` or `/`, and take the rest for the host.
    """
    return _CREDENTIALS.sub(
        lambda match: f"{match['scheme']}{quote(match['pair'], safe=':%')}@", url
    )


def may_carry_secrets(url: SplitResult) -> bool:
    """Whether requests to *url* cannot be read on the network: https, or http on loopback."""
    is_local = url.scheme == "http" and url.hostname in _LOOPBACK
    return bool(url.hostname) and (url.scheme == "https" or is_local)
