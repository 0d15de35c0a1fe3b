"""Requests to one HTTP Event Collector."""

from __future__ import annotations

import re
import uuid
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import orjson
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    SSLError,
)

from mm2slo_logship.hec.answer import Answer, read_answer
from mm2slo_logship.hec.answer_codes import Action

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from mm2slo_logship.hec.token_file import Token

_TIMEOUT: Final = urllib3.Timeout(connect=5.0, read=30.0)
"""A request that takes long was usually accepted: a shorter timeout duplicates its events."""
_COMPRESSED_FROM: Final = 1024
_CONNECTION: Final = re.compile(r"^\S*Connection\([^)]*\): ")  # in front of urllib3's messages
_GZIP: Final = 31  # zlib's window bits of the gzip format


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How endpoints are reached; `tls` is None for plain HTTP."""

    tls: ssl.SSLContext | None = None
    server_hostname: str | None = None
    proxy: str | None = None

    def pool(self) -> urllib3.PoolManager:
        options: dict[str, object] = {"timeout": _TIMEOUT, "retries": False, "maxsize": 2}
        if self.tls is not None:
            options["ssl_context"] = self.tls
        if self.server_hostname is not None:
            options["server_hostname"] = self.server_hostname
        if self.proxy is not None:
            return urllib3.ProxyManager(self.proxy, **options)  # type: ignore[arg-type]
        return urllib3.PoolManager(**options)  # type: ignore[arg-type]


class HecClient:
    """Sends to *url*. Never raises: an answer says what to do. Never follows a redirect."""

    def __init__(self, url: str, token: Token, connection: Connection, version: str) -> None:
        path = urlsplit(url).path
        self.url = url
        self._base = url if path.strip("/") else f"{url}/services/collector"
        self._token = token
        self._pool = connection.pool()
        self.channel = str(uuid.uuid4())
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"mm2slo-logship/{version}",
            "X-Splunk-Request-Channel": self.channel,
            "__splunk_app_name": "mm2slo-logship",
            "__splunk_app_version": version,
        }

    def send(self, body: bytes) -> Answer:
        """Post envelopes; compressed if that saves anything."""
        headers = {}
        if len(body) > _COMPRESSED_FROM:
            packer = zlib.compressobj(1, wbits=_GZIP)
            body = packer.compress(body) + packer.flush()
            headers["Content-Encoding"] = "gzip"
        return self._request("POST", f"{self._base}/event", body, headers)[0]

    def acknowledged(self, ids: Sequence[int]) -> tuple[frozenset[int], Answer]:
        """Which of *ids* are indexed; each is reported once, later polls deny it."""
        answer, body = self._request("POST", f"{self._base}/ack", orjson.dumps({"acks": ids}), {})
        try:
            acks = orjson.loads(body)["acks"]
            return frozenset(int(each) for each, is_done in acks.items() if is_done is True), answer
        except (ValueError, LookupError, TypeError, AttributeError):
            return frozenset(), answer

    def _request(
        self, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> tuple[Answer, bytes]:
        authorization = {"Authorization": f"Splunk {self._token.reveal()}"}
        try:
            response = self._pool.request(
                method, url, body=body, headers=self._headers | headers | authorization,
                redirect=False,
            )  # fmt: skip
        except HTTPError as error:
            return _failed(error), b""
        now = datetime.now(UTC)
        return read_answer(response.status, response.headers, response.data, now), response.data


def _failed(error: HTTPError) -> Answer:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, ConnectTimeoutError | NameResolutionError | NewConnectionError):
        text = f"cannot connect: {_text(reason)}"
    elif isinstance(reason, SSLError):
        text = f"TLS failed: {_text(reason)}; check ca_file and server_hostname"
    else:
        text = f"connection lost: {_text(reason)}"
        return Answer(action=Action.RETRY, text=text, is_ambiguous=True)
    return Answer(action=Action.RETRY, text=text)


def _text(error: Exception) -> str:
    return _CONNECTION.sub("", str(error)) or type(error).__name__
