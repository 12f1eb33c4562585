"""From what workers say about a connector to what a plan compares: no secret gets beyond here.

A stack trace can contain what the connector was configured with: addresses with logins, and
statements. So only its first line and its last cause are taken, without secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kafkaform.core.resource import Identity, Observed
from kafkaform.core.secret import Secret, mask_secrets
from kafkaform.core.value import EMPTY, FrozenMap

from .connector import (
    CLASS,
    KIND,
    NAME,
    PAUSED,
    RUNNING,
    STARTING,
    STOPPED,
    identity_key,
    make_attributes,
)
from .definitions import is_secret
from .rest import Connector, Definition, TaskStatus

FAILED = "FAILED"
MAX_REASON = 300
"""Characters of a reason."""
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_TRACE_LOGIN = re.compile(r"(://)[^/\s:@]*:[^/\s@]+@")
_PARAMETER = re.compile(
    r"\b(\w*(?:password|pwd|secret|token)\w*)\s*[=:]\s*[^\s,;&)]+", re.IGNORECASE
)


def list_failures(connector: Connector) -> Iterator[str]:
    """One sentence for each part that has failed."""
    status = connector.status
    if status is not None and status.state == FAILED:
        yield f"the connector failed on worker {status.worker}: {shorten_trace(status.trace)}"
    for task in connector.tasks:
        if task.state == FAILED:
            yield f"task {task.id} failed on worker {task.worker}: {shorten_trace(task.trace)}"


def find_failed(connector: Connector) -> tuple[str, ...]:
    """What has failed: `connector`, `tasks`."""
    failed: list[str] = []
    if connector.status is not None and connector.status.state == FAILED:
        failed.append("connector")
    if any(task.state == FAILED for task in connector.tasks):
        failed.append("tasks")
    return tuple(failed)


def shorten_trace(trace: str) -> str:
    """The first line of a stack trace and its last cause, without secrets."""
    masked = mask_secrets(trace)
    first = masked.strip().partition("\n")[0].strip()
    causes = _CAUSE.findall(masked)
    text = f"{first}; caused by {causes[-1].strip()}" if causes else first
    text = _PARAMETER.sub(r"\1=(secret)", _TRACE_LOGIN.sub(r"\1(secret)@", text))
    text = " ".join(text.split()) or "it does not say why"
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"


def describe_progress(connector: Connector) -> str:
    """How far the startup of a connector is."""
    status, tasks = connector.status, connector.tasks
    if status is None or status.state != "RUNNING":
        return "no worker runs it yet"
    running = sum(_runs(task) for task in tasks)
    return f"{running} of {len(tasks)} tasks run" if tasks else "it has no tasks yet"


def _runs(task: TaskStatus) -> bool:
    return task.state == "RUNNING"


_PLUGIN = re.compile(r"(?:key|value|header)\.converter|(?:transforms|predicates)\.[^.]+\.type")
"""Configs that name a further plugin, whose own configs have the config's name as a prefix."""
_STATES = {"PAUSED": PAUSED, "STOPPED": STOPPED}
_LOGIN = re.compile(r"://[^/\s:@?#]*:([^/\s@?#]+)@")
FAILURE = "failed"
"""The value of `failures` for a part that has failed."""


def list_plugins(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each plugin that a connector uses, with the prefix of its configs."""
    if CLASS in config:
        yield config[CLASS], ""
    for key, value in config.items():
        if _PLUGIN.fullmatch(key) and value:
            yield value, f"{key.removesuffix('.type')}."


def find_passwords(
    config: Mapping[str, str], definitions: Mapping[str, Definition]
) -> frozenset[str]:
    """The configs that the plugins of a connector declare as PASSWORD."""
    return frozenset(
        prefix + key
        for class_, prefix in list_plugins(config)
        if class_ in definitions
        for key in definitions[class_].passwords
    )


def find_secrets(
    config: Mapping[str, str], definitions: Mapping[str, Definition]
) -> dict[str, str]:
    """The configs of a connector that are secrets. From now on they are masked in all output."""
    passwords = find_passwords(config, definitions)
    secrets = {key: value for key, value in config.items() if is_secret(key, value, passwords)}
    for value in secrets.values():
        for text in (value, *_LOGIN.findall(value)):
            Secret(text)
    return secrets


def observe(instance: str, connector: Connector, definitions: Mapping[str, Definition]) -> Observed:
    """The reading of a connector. definitions: those of its plugins, as far as they are known."""
    secrets = find_secrets(connector.config, definitions)
    config = {
        key: value
        for key, value in connector.config.items()
        if key not in secrets and key not in (CLASS, NAME)
    }
    class_ = connector.config.get(CLASS, "")
    own = definitions.get(class_)
    known = {k: v for k, v in own.defaults.items() if k not in own.passwords} if own else {}
    defaults = {key: known[key] for key in config if key in known}
    failed = FrozenMap(dict.fromkeys(find_failed(connector), FAILURE))
    state = compute_state(connector)
    attributes = make_attributes(connector.name, class_, config, secrets, state)
    starts = state == STARTING
    return Observed(
        Identity(instance, KIND, connector.name),
        attributes.with_items({"failures": failed}),
        moving=FrozenMap(state=RUNNING) if starts else None,
        ticket=make_ticket(connector.name) if starts else None,
        fallbacks=FrozenMap({f"config.{key}": value for key, value in known.items()}),
        details=_make_details(connector, attributes, failed, starts=starts),
        foreign=frozenset(
            [
                # What a worker, or a service around it, filled in is not somebody's decision.
                *(("config", k) for k, v in defaults.items() if attributes["config"][k] == v),
                *(("failures", component) for component in failed),
            ]
        ),
    )


def _make_details(
    connector: Connector, attributes: FrozenMap, failed: FrozenMap, *, starts: bool
) -> FrozenMap:
    reasons = tuple(list_failures(connector))
    return FrozenMap(
        secret_keys=attributes["secret_keys"],
        failures=failed,
        # A connector with such a name can be listed, and not be asked for.
        internal=not _can_be_named(connector.name),
        **({"reasons": reasons} if reasons else EMPTY),
        **({"progress": describe_progress(connector)} if starts else EMPTY),
    )


def _can_be_named(name: str) -> bool:
    try:
        return bool(identity_key(name))
    except ValueError:
        return False


def compute_state(connector: Connector) -> str:
    """running, paused, stopped, or starting.

    A failed connector does not say whether it is meant to run, so it counts as running. One that no
    worker has taken yet is starting, and so is one of which not every task runs.
    """
    status = connector.status
    if status is None:
        return STARTING
    if status.state in _STATES:
        return _STATES[status.state]
    if status.state == "FAILED":
        return RUNNING
    settled = {"RUNNING", "FAILED"}
    runs = status.state == "RUNNING" and all(task.state in settled for task in connector.tasks)
    return RUNNING if runs else STARTING


def make_ticket(name: str) -> str:
    """The name of the startup of this connector."""
    return f"startup:{name}"


def read_ticket(ticket: str) -> str:
    """The connector that a ticket is about."""
    return ticket.partition(":")[2]
