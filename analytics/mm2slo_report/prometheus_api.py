"""Prometheus's HTTP API, version 1: queries and status. Every failure is one sentence.

Source of the formats: Prometheus's documentation, "HTTP API". Times are epoch ms.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import requests

from mm2slo_report.http_session import Server, innermost_cause, open_session
from mm2slo_report.sli_source import SliSourceError

_HEADERS: Final = {"Accept": "application/json", "User-Agent": "mm2slo-report"}
_SHOWN: Final = 200
_TIMED_OUT: Final = frozenset({"timeout", "canceled"})

_REFUSED: Final = {
    401: "authentication required: set report.prometheus.token_file",
    403: "access denied for these credentials",
    404: "not found; expected the API of Prometheus at that address",
}
_LATE: Final = frozenset({408, 504})


class QueriedPoint(NamedTuple):
    """A value at a time; it may be NaN or infinite."""

    at: int
    value: float


class QueriedSeries(NamedTuple):
    """One series of a response."""

    labels: Mapping[str, str]
    points: Sequence[QueriedPoint]


class PrometheusClient:
    """Queries *server*, which must respond within *timeout* seconds. Thread-safe.

    Each method raises SliSourceError without a complete response.
    """

    def __init__(self, server: Server, *, timeout: float = 10.0) -> None:
        self._server = server
        self._timeout = timeout
        self._local = threading.local()

    def query(self, expression: str, at: int) -> Sequence[QueriedSeries]:
        """The value of *expression* at *at*: one point of each series, or all of a range."""
        return self._series(
            "query", {"query": expression, "time": _seconds(at), "timeout": self._limit}
        )

    def query_range(
        self, expression: str, start: int, end: int, step: int
    ) -> Sequence[QueriedSeries]:
        """The values at *start*, and every *step* ms after it, until *end* inclusive."""
        given = {
            "query": expression,
            "start": _seconds(start),
            "end": _seconds(end),
            "step": _seconds(step),
            "timeout": self._limit,
        }
        return self._series("query_range", given)

    def runtime(self) -> Mapping[str, Any]:
        """The content of `status/runtimeinfo`."""
        return self._mapping(self._call("GET", "status/runtimeinfo", {}))

    def rule_groups(self, namespace: str | None = None) -> frozenset[str]:
        """Names of the loaded rule groups; with *namespace*, of those with this label."""
        groups = self._mapping(self._call("GET", "rules", {})).get("groups")
        try:
            return frozenset(
                str(each["name"])
                for each in groups or ()
                if namespace is None
                or any(rule["labels"].get("namespace") == namespace for rule in each["rules"])
            )
        except (KeyError, TypeError) as error:
            raise self._unexpected() from error

    @property
    def _limit(self) -> str:
        return f"{max(round(self._timeout * 1000), 1)}ms"

    def _series(self, path: str, given: Mapping[str, str]) -> Sequence[QueriedSeries]:
        # POST: with many flows, a query is longer than the URLs that servers and proxies accept
        # (Prometheus's documentation, "HTTP API").
        data = self._mapping(self._call("POST", path, given))
        try:
            match data["resultType"]:
                case "vector":
                    return [
                        QueriedSeries(each["metric"], (_point(each["value"]),))
                        for each in _rows(data)
                    ]
                case "matrix":
                    return [
                        QueriedSeries(each["metric"], [_point(point) for point in each["values"]])
                        for each in _rows(data)
                    ]
                case _:
                    raise self._unexpected()
        except (KeyError, TypeError, ValueError) as error:
            raise self._unexpected() from error

    def _call(self, method: str, path: str, given: Mapping[str, str]) -> Any:
        try:
            answer = self._server.request(
                self._session(),
                method,
                f"/api/v1/{path}",
                data=given,
                headers=_HEADERS,
                timeout=self._timeout,
            )
        except (requests.RequestException, OSError, ValueError) as error:
            raise self._failed(error) from error
        try:
            document = answer.json()
        except ValueError:
            document = None
        if answer.status_code != requests.codes.ok:
            raise self._refused(answer.status_code, document)
        if not isinstance(document, dict) or document.get("status") != "success":
            raise self._unexpected()
        if document.get("warnings"):
            text = "; ".join(str(each) for each in document["warnings"])
            raise self._problem(f"returned a partial response: {_line(text)}")
        return document.get("data")

    def _mapping(self, data: object) -> Mapping[str, Any]:
        if not isinstance(data, dict):
            raise self._unexpected()
        return data

    def _session(self) -> requests.Session:
        found: requests.Session | None = getattr(self._local, "session", None)
        if found is None:
            found = self._local.session = open_session()
        return found

    def _problem(self, text: str, *, slow: bool = False) -> SliSourceError:
        return SliSourceError(f"Prometheus at {self._server.name} {text}", slow=slow)

    def _unexpected(self) -> SliSourceError:
        return self._problem("returned an unexpected response")

    def _refused(self, status: int, document: object) -> SliSourceError:
        if isinstance(document, dict) and document.get("status") == "error":
            kind = str(document.get("errorType", "error"))
            text = _line(str(document.get("error", "no reason")))
            return self._problem(f"refused ({kind}): {text}", slow=kind in _TIMED_OUT)
        hint = _REFUSED.get(status)
        text = f"returned HTTP {status}" + (f": {hint}" if hint else "")
        return self._problem(text, slow=status in _LATE)

    def _failed(self, error: Exception) -> SliSourceError:
        slow = isinstance(error, requests.Timeout | TimeoutError)
        return self._problem(_failure(error, self._timeout), slow=slow)


def _failure(error: Exception, timeout: float) -> str:
    match error:
        case requests.exceptions.SSLError():
            text = f"has an untrusted certificate, or TLS failed: {_line(innermost_cause(error))}"
        case requests.Timeout() | TimeoutError():
            text = f"did not respond within {timeout:g} s"
        case requests.ConnectionError():
            text = f"is unreachable: {_line(innermost_cause(error))}"
        case requests.RequestException() if not isinstance(error, ValueError):
            text = f"sent a truncated response: {_line(innermost_cause(error))}"
        case UnicodeError():
            text = "was not queried: a file with a secret is not UTF-8 text"
        case OSError() if not isinstance(error, ValueError):
            text = f"was not queried: cannot read a file: {error.filename}: {error.strerror}"
        case _:
            text = "was not queried: a secret or the address contains forbidden characters"
    return text


def _rows(data: Mapping[str, Any]) -> Sequence[Any]:
    rows = data["result"]
    if not isinstance(rows, list):
        raise TypeError
    return rows


def _point(pair: Sequence[Any]) -> QueriedPoint:
    at, value = pair
    return QueriedPoint(round(at * 1000), float(value))


def _seconds(at: int) -> str:
    return f"{at // 1000}.{at % 1000:03d}"


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
