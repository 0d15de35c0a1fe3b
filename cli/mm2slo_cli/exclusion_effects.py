"""Effects of planned maintenance: rule file, reload of Prometheus, silences in Alertmanager.

Used by `mm2slo exclude` and the report service after the store has changed. A failed step does not
prevent the others. Silences use Alertmanager's API, version 2.
"""

import base64
import http.client
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from mm2slo_alerts.alert_rules import Group, RecordingRule
from mm2slo_alerts.recording_rules import maintenance_groups, maintenance_text
from mm2slo_cli.config_files import read_if_readable
from mm2slo_cli.option_values import format_time
from mm2slo_core.catalogue.promql import Matcher, equal, matching
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.field_types import escape_credentials
from mm2slo_core.objectives.exclusion import Exclusion, matching_flows
from mm2slo_core.objectives.objective import DEFAULT_WINDOW
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store.store import Store

_TIMEOUT_S: Final = 10.0
_MAX_SHOWN: Final = 300


class HttpStatusError(UserError):
    """The server responded with an error status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class MonitoringApi:
    """Base URL and credentials of a server; `str` and `repr` show no credentials."""

    name: str
    base: str
    _authorization: str | None = None

    @classmethod
    def of(cls, name: str, option: str, url: str) -> Self:
        """Parse *url*, for example `http://user:password@host:9093/prefix`.

        Raises UserError, naming *option*, when it is not an HTTP URL.
        """
        try:
            parts = urlsplit(escape_credentials(url.strip()))
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or parts.query or parts.fragment:
            # Not repeated: it may contain a password.
            raise UserError(f"{option} is not an HTTP URL: use for example http://127.0.0.1:9093")
        host = parts.netloc.rpartition("@")[2]
        authorization = None
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return cls(name, f"{parts.scheme}://{host}{parts.path.rstrip('/')}", authorization)

    def __str__(self) -> str:
        return f"{self.name} at {self.base}"

    def __repr__(self) -> str:
        return f"Server({self})"

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request; returns the JSON of the response, or None if it is empty.

        Raises HttpStatusError for an error status, UserError when there is no usable response.
        """
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.base + path, data=data, method=method)
        request.add_header("Accept", "application/json")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self._authorization is not None:
            request.add_header("Authorization", self._authorization)
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as response:
                text = response.read()
        except HTTPError as error:
            message = error.read().decode(errors="replace")
            brief = " ".join(message.split())[:_MAX_SHOWN]
            text = f"{self} returned HTTP {error.code}: {brief}".strip()
            raise HttpStatusError(text, error.code) from None
        except (URLError, OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            why = str(reason) or type(reason).__name__
            raise UserError(f"{self} is unreachable: {why}; check the URL") from None
        try:
            return json.loads(text) if text else None
        except ValueError:
            raise UserError(f"{self} returned a response that is not JSON: check the URL") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionTargets:
    """Where exclusions of `flows` take effect; `window`: the longest window, in seconds."""

    flows: tuple[Flow, ...]
    rules_file: Path
    prometheus: MonitoringApi | None
    alertmanager: MonitoringApi | None
    window: float
    namespace: str | None = None

    @classmethod
    def of(
        cls,
        loaded: Config,
        *,
        rules_file: Path | None = None,
        prometheus: MonitoringApi | None = None,
        alertmanager_url: str | None = None,
    ) -> Self:
        """Return those of the configuration, with overrides. Raises UserError for a bad URL."""
        alertmanager = alertmanager_url or loaded.alerting.links.alertmanager
        return cls(
            flows=tuple(each.flow for each in loaded.flows),
            rules_file=rules_file or Path(loaded.alerting.maintenance.rules_file),
            prometheus=prometheus,
            alertmanager=None
            if alertmanager is None
            else MonitoringApi.of("Alertmanager", "--alertmanager-url", alertmanager),
            window=max((each.window for each in loaded.objective_rules), default=DEFAULT_WINDOW),
            namespace=loaded.alerting.namespace,
        )


@dataclass(slots=True)
class EffectSteps:
    """Completed and failed steps, one sentence each."""

    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Run a step and keep its UserError as a problem."""
        try:
            yield
        except UserError as error:
            self.problems.append(str(error))


def apply_exclusions(
    results: Store, targets: ExclusionTargets, now: int, steps: EffectSteps, *, hint: str
) -> None:
    """Write the rule file from the store and reload Prometheus; without its URL show *hint*."""
    path = targets.rules_file
    with steps.one():
        written = write_rules(path, results.exclusions, targets, now)
        count = sum(len(group.rules) for group in written.groups)
        unchanged = "" if written.changed else ", unchanged"
        steps.done.append(f"{count} rule{'' if count == 1 else 's'} in {path}{unchanged}")
        if targets.prometheus is None:
            if written.changed:
                steps.done.append(
                    f"Prometheus loads it at its next reload: {hint}, or send it SIGHUP"
                )
            return
        missing = reload(targets.prometheus, written.groups)
        if missing is not None:
            raise UserError(missing)
        steps.done.append(f"{targets.prometheus} has loaded it")


def silence_obstacle(targets: ExclusionTargets, new: Exclusion, now: int) -> str:
    """Return why *new* cannot be silenced; empty if it can."""
    if targets.alertmanager is None:
        return "needs Alertmanager's URL: set alerting.links.alertmanager"
    if new.end <= now:
        return "is too late: the maintenance has ended"
    return ""


def add_silence(
    results: Store, targets: ExclusionTargets, new: Exclusion, steps: EffectSteps
) -> Exclusion:
    """Create a silence and return *new* with its id, or *new* if that failed."""
    silence_id = None
    if targets.alertmanager is not None:
        with steps.one():
            flows = matching_flows(new.flows, targets.flows)
            silence_id = silence(targets.alertmanager, new, flows, targets.namespace)
            results.set_silence(new.id, silence_id)
    return new if silence_id is None else replace(new, silence=silence_id)


def expire_silence(
    removed: Exclusion, targets: ExclusionTargets, now: int, steps: EffectSteps
) -> None:
    """Expire the silence of *removed*, if it has one."""
    if removed.silence is None or removed.end <= now:
        return
    with steps.one():
        if targets.alertmanager is None:
            raise UserError(
                f"the silence was not ended: Alertmanager's URL is unknown; end it with: "
                f"amtool silence expire {removed.silence}"
            )
        try:
            ended = end_silence(targets.alertmanager, removed.silence)
        except UserError as error:
            raise UserError(
                f"the silence was not ended: {error}; end it later with: amtool silence expire "
                f"--alertmanager.url={targets.alertmanager.base} {removed.silence}"
            ) from None
        steps.done.append(f"silence {removed.silence} {'ended' if ended else 'had already ended'}")


_RELOAD: Final = "/-/reload"

# Prometheus answers so without --web.enable-lifecycle (its management API).
_FORBIDDEN: Final = 403


@dataclass(frozen=True, slots=True)
class WrittenRules:
    """Content of the rule file, and whether it has changed."""

    groups: tuple[Group, ...]
    changed: bool


def write_rules(
    path: Path,
    exclusions: Callable[[], Iterable[Exclusion]],
    targets: ExclusionTargets,
    now: int,
) -> WrittenRules:
    """Write the result of *exclusions* atomically into the rule file *path*.

    *exclusions* is called again after writing until the file holds its result: of several
    concurrent commands, the last to write may not have been the last to read. Raises UserError when
    the file cannot be written; it is then unchanged.
    """
    changed = False
    while True:
        found = maintenance_groups(
            exclusions(), targets.flows, now, window=targets.window, namespace=targets.namespace
        )
        content = maintenance_text(found)
        if read_if_readable(path) == content:
            return WrittenRules(found, changed)
        _replace(path, content)
        changed = True


def refuse_missing_folder(path: Path) -> None:
    """Raise UserError if the folder of the rule file is missing, before the store changes."""
    if path.is_dir():
        raise UserError(f"rule file {path} is a folder: give the path of a file")
    if not path.parent.is_dir():
        raise UserError(
            f"the folder of rule file {path} does not exist: create {path.parent}, or give another "
            "--rules-file"
        )


def reload(server: MonitoringApi, expected: Iterable[Group]) -> str | None:
    """Reload Prometheus; return what is missing afterwards, or None.

    Raises UserError when it rejects the request or is unreachable.
    """
    try:
        server.call("POST", _RELOAD)
    except HttpStatusError as error:
        if error.status != _FORBIDDEN:
            raise
        raise UserError(
            f"{server} does not reload on request: start it with --web.enable-lifecycle, "
            "or send it SIGHUP"
        ) from None
    # A reload also succeeds if no pattern of rule_files matches the file, so look for the rules.
    response = server.call("GET", "/api/v1/rules?type=record")
    try:
        loaded = {
            (rule["name"], rule.get("labels", {}).get("flow"), _moments(rule["query"]))
            for group in response["data"]["groups"]
            for rule in group["rules"]
        }
    except (KeyError, TypeError):
        raise UserError(f"{server} returned an unexpected list of rules: check the URL") from None
    wanted = {
        (rule.record, rule.labels["flow"], _moments(rule.expr))
        for group in expected
        for rule in group.rules
        if isinstance(rule, RecordingRule)
    }
    if wanted <= loaded:
        return None
    return (
        f"{server} was reloaded but has not loaded the rule file: "
        "add it to rule_files in prometheus.yml and reload again"
    )


def _moments(expression: str) -> tuple[float, ...]:
    """The times in an expression, which Prometheus reformats."""
    return tuple(float(each) for each in re.findall(r"(?:>=|<) ([\d.e+]+)", expression))


def _replace(path: Path, content: str) -> None:
    """Write a temporary file and rename it: Prometheus may read at any time."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        mode = 0o644  # Prometheus runs as another user
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink(missing_ok=True)
        raise UserError(
            f"cannot write rule file {path}: {error.strerror}; "
            "fix this, then run: mm2slo exclude write"
        ) from None


_NOT_FOUND = 404


def silence(
    server: MonitoringApi, exclusion: Exclusion, flows: Sequence[Flow], namespace: str | None = None
) -> str:
    """Silence the alerts of *flows* in *namespace* during *exclusion*; returns the silence's id.

    Alertmanager treats a start in the past as now. Raises UserError with the equivalent amtool
    command when Alertmanager rejects the request or is unreachable.
    """
    matchers = _matchers(flows, namespace)
    try:
        response = server.call("POST", "/api/v2/silences", _body(exclusion, matchers))
        if not isinstance(response, dict) or "silenceID" not in response:
            raise UserError(f"{server} returned an unexpected response: check the URL")
        return str(response["silenceID"])
    except UserError as error:
        raise UserError(
            f"no silence was created: {error}; create it later with: "
            f"{_amtool_line(server, exclusion, matchers)}"
        ) from None


def end_silence(server: MonitoringApi, silence_id: str) -> bool:
    """Expire a silence; False if it does not exist or has ended already.

    Raises UserError when Alertmanager rejects the request or is unreachable.
    """
    path = f"/api/v2/silence/{silence_id}"
    try:
        found = server.call("GET", path)
        if isinstance(found, dict) and found.get("status") == {"state": "expired"}:
            return False
        server.call("DELETE", path)
    except HttpStatusError as error:
        if error.status == _NOT_FOUND:
            return False
        raise
    return True


def _amtool_line(server: MonitoringApi, exclusion: Exclusion, matchers: Iterable[Matcher]) -> str:
    """Return the amtool command that creates the same silence."""
    return shlex.join(
        [
            "amtool",
            "silence",
            "add",
            f"--alertmanager.url={server.base}",
            f"--author={exclusion.who}",
            f"--start={_moment(exclusion.start)}",
            f"--end={_moment(exclusion.end)}",
            f"--comment={_comment(exclusion)}",
            *(f"{each.label}{each.operator}{each.value}" for each in matchers),
        ]
    )


def _body(exclusion: Exclusion, matchers: Iterable[Matcher]) -> dict[str, object]:
    return {
        "matchers": [
            {
                "name": each.label,
                "value": each.value,
                "isRegex": each.operator == "=~",
                "isEqual": True,
            }
            for each in matchers
        ],
        "startsAt": _moment(exclusion.start),
        "endsAt": _moment(exclusion.end),
        "createdBy": exclusion.who,
        "comment": _comment(exclusion),
    }


def _matchers(flows: Sequence[Flow], namespace: str | None) -> tuple[Matcher, ...]:
    """The currently configured flows: a wildcard must not silence flows added later."""
    if len(flows) == 1:
        chosen = equal("flow", flows[0].label)
    else:
        chosen = matching("flow", "|".join(re.escape(flow.label) for flow in sorted(flows)))
    return (chosen,) if namespace is None else (chosen, equal("namespace", namespace))


def _moment(epoch_ms: int) -> str:
    """Always with seconds, as Go's RFC 3339 requires."""
    text = format_time(epoch_ms)
    return text.replace("Z", ":00Z") if epoch_ms % 60_000 == 0 else text


def _comment(exclusion: Exclusion) -> str:
    return f"mm2slo exclusion {exclusion.id}: {exclusion.reason}"
