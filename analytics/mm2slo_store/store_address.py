"""Store addresses: a path, or a URL of SQLite or PostgreSQL. Messages never show a password."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from mm2slo_core.secret import escape_credentials
from mm2slo_core.user_errors import UserError

_EXPECTED = "expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The address of a store."""

    url: URL
    file: Path | None
    """The SQLite file; None: PostgreSQL."""

    @property
    def redacted(self) -> str:
        """The address without its password, and without its query, which may hold one."""
        if self.file is not None:
            return str(self.file)
        plain = self.url.set(drivername="postgresql", query={})
        return plain.render_as_string(hide_password=True)


def parse_address(url_or_path: str | Path) -> StoreAddress:
    """Parse an address. Raises UserError, without secrets, if it is invalid."""
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return _file(Path(url_or_path))
    scheme = url_or_path.split("://", 1)[0]
    try:
        url = make_url(escape_credentials(url_or_path))
    except (ArgumentError, ValueError):
        raise UserError(f"invalid store address of scheme {scheme}; {_EXPECTED}") from None
    match url.drivername:
        case "sqlite":
            if url.query or url.host:
                raise UserError(f"store address sqlite://... takes only a path; {_EXPECTED}")
            return _file(Path(url.database or ""))
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return StoreAddress(url.set(drivername="postgresql+psycopg"), None)
        case _:
            raise UserError(f"unknown store type {scheme!r}; {_EXPECTED}")


def _file(path: Path) -> StoreAddress:
    if path in (Path(), Path(":memory:")):
        raise UserError(f"store address without a file; {_EXPECTED}")
    absolute = path.expanduser().absolute()
    return StoreAddress(URL.create("sqlite", database=str(absolute)), absolute)
