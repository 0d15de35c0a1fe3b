"""`Secret`, a text that no output contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

MASK: Final = "***"


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
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        from pydantic_core import PydanticCustomError, core_schema  # not in services

        def validate(value: object) -> Secret:
            if isinstance(value, Secret):
                return value
            if isinstance(value, str):
                return cls(value)
            # The message omits the value: a password written as a number is still a password.
            raise PydanticCustomError("string_type", "expected text")

        return core_schema.no_info_plain_validator_function(
            validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json"),
        )
