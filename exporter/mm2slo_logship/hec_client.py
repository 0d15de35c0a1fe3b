"""Requests to one HTTP Event Collector, with a token that is read again when it is rejected."""

from __future__ import annotations

import os
import re
import ssl
import stat
import uuid
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import orjson
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    SSLError,
)

from mm2slo_core.user_errors import UserError
from mm2slo_logship.hec_protocol import AnswerAction, HecAnswer, read_answer

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
    """Sends to *url*. Never raises: an answer says what to do. Never follows a redirect.

    Splunk counts the ids of acknowledgements per `channel`, and from 0 again when it restarts.
    """

    def __init__(self, url: str, token: HecTokenFile, connection: Connection, version: str) -> None:
        path = urlsplit(url).path
        self.url = url
        self._base = url if path.strip("/") else f"{url}/services/collector"
        self._token = token
        self._pool = connection.pool()
        self.channel = str(uuid.uuid4())  # of the next request
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"mm2slo-logship/{version}",
            "__splunk_app_name": "mm2slo-logship",
            "__splunk_app_version": version,
        }

    def send(self, body: bytes) -> HecAnswer:
        """Post envelopes; compressed if that saves anything."""
        headers = {}
        if len(body) > _COMPRESSED_FROM:
            packer = zlib.compressobj(1, wbits=_GZIP)
            body = packer.compress(body) + packer.flush()
            headers["Content-Encoding"] = "gzip"
        return self._request(f"{self._base}/event", body, headers, self.channel)[0]

    def acknowledged(self, ids: Sequence[int], channel: str) -> tuple[frozenset[int], HecAnswer]:
        """Which of *ids* of *channel* are indexed; each is reported once, later polls deny it."""
        url = f"{self._base}/ack"
        answer, body = self._request(url, orjson.dumps({"acks": ids}), {}, channel)
        try:
            acks = orjson.loads(body)["acks"]
            return frozenset(int(each) for each, is_done in acks.items() if is_done is True), answer
        except (ValueError, LookupError, TypeError, AttributeError):
            return frozenset(), answer

    def _request(
        self, url: str, body: bytes, headers: dict[str, str], channel: str
    ) -> tuple[HecAnswer, bytes]:
        headers = self._headers | headers | {
            "Authorization": f"Splunk {self._token.reveal()}",
            "X-Splunk-Request-Channel": channel,
        }  # fmt: skip
        try:
            response = self._pool.request("POST", url, body=body, headers=headers, redirect=False)
        except HTTPError as error:
            answer, data = _failed(error), b""
        else:
            data = response.data
            answer = read_answer(response.status, response.headers, data, datetime.now(UTC))
        if answer.action is AnswerAction.RETRY:
            # Splunk may restart: a new batch must not get the id of one that was never indexed.
            self.channel = str(uuid.uuid4())
        return answer, data


def _failed(error: HTTPError) -> HecAnswer:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, ProxyError):
        reason = reason.original_error
    if isinstance(reason, ConnectTimeoutError | NameResolutionError | NewConnectionError):
        text = f"cannot connect: {_text(reason)}"
    elif isinstance(reason, SSLError):
        text = f"TLS failed: {_text(reason)}; check ca_file and server_hostname"
    else:
        text = f"connection lost: {_text(reason)}"
        return HecAnswer(action=AnswerAction.RETRY, text=text, is_ambiguous=True)
    return HecAnswer(action=AnswerAction.RETRY, text=text)


def _text(error: Exception) -> str:
    return _CONNECTION.sub("", str(error)) or type(error).__name__


_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class HecTokenFile:
    """The token in *path*. Raises UserError if it cannot be read at the start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._value = _read_token(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(
                f"cannot read logship.token_file {str(path)!r}: {reason}; expected a file with "
                "the token of the HTTP Event Collector"
            ) from None

    def reveal(self) -> str:
        """The token, only for the header of a request."""
        return self._value

    def read_again(self) -> str:
        """The token in the file by now; an unreadable one changes nothing."""
        with suppress(OSError, ValueError):
            self._value = _read_token(self._path)
        return self._value

    def advice(self) -> str | None:
        """What to do if other users of this host can read the file.

        Kubernetes mounts it readable by a group, and the pod has no other users.
        """
        mode = stat.S_IMODE(self._path.stat().st_mode)
        if "KUBERNETES_SERVICE_HOST" in os.environ or not mode & _OTHERS:
            return None
        path = self._path
        return f"{path} has mode {mode:04o}, so other users can read it; run: chmod 600 {path}"


def _read_token(path: Path) -> str:
    value = path.read_text(encoding="ascii").strip()
    if not value or not value.isprintable() or " " in value:
        raise ValueError("it does not contain one token")
    return value
