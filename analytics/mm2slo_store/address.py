"""Where a store is: a path, or a URL of SQLite or PostgreSQL. No password is ever shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from mm2slo_core.errors import UserError

_EXPECTED = "expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class Address:
    """A store's place."""

    url: URL
    file: Path | None
    """Of SQLite; None: PostgreSQL."""

    @property
    def shown(self) -> str:
        """What messages may say: no password, and no query, which may hold one."""
        if self.file is not None:
            return str(self.file)
        plain = self.url.set(drivername="postgresql", query={})
        return plain.render_as_string(hide_password=True)


def address_of(url_or_path: str | Path) -> Address:
    """Read an address.

    Raises UserError when it is none, without showing what may be secret.
    """
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return _file(Path(url_or_path))
    scheme = url_or_path.split("://", 1)[0]
    try:
        url = make_url(url_or_path)
    except (ArgumentError, ValueError):
        raise UserError(
            f"the store's address, of scheme {scheme}, cannot be read: {_EXPECTED}"
        ) from None
    match url.drivername:
        case "sqlite":
            if url.query or url.host:
                raise UserError(
                    f"the store sqlite://... takes a path and nothing else: {_EXPECTED}"
                )
            return _file(Path(url.database or ""))
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return Address(url.set(drivername="postgresql+psycopg"), None)
        case _:
            raise UserError(f"there is no store of the kind {scheme}: {_EXPECTED}")


def _file(path: Path) -> Address:
    if path in (Path(), Path(":memory:")):
        raise UserError(f"the store's address names no file: {_EXPECTED}")
    absolute = path.expanduser().absolute()
    return Address(URL.create("sqlite", database=str(absolute)), absolute)
