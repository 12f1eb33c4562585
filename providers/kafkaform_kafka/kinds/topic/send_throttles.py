"""Sends the requests that read, set and remove replication throttles (KIP-73)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial

from kafkaform.core.resource import Fault

from ...cluster.brokers import LAG
from ...cluster.context import ClusterContext
from ...cluster.exchange import attempt
from ...protocol.faults import fault_of, lost_answer_fault
from ...wire.answers import ItemAnswers
from ...wire.configs import alter_configs, describe_configs
from ...wire.topics import ANSWER_MARGIN, list_topics
from .throttles import ThrottleAccess, ThrottlePlace

_BUILT_IN = 5
"""ConfigSource DEFAULT_CONFIG."""
_API = "IncrementalAlterConfigs"
_PAUSE = 0.1


def make_throttle_access(context: ClusterContext) -> ThrottleAccess:
    """Access to the throttles of this cluster."""
    # One deadline for all places: brokers catch up at the same time.
    return ThrottleAccess(
        partial(read_throttle, context),
        partial(alter_throttle, context),
        partial(_read_topic_id, context),
        partial(_wait_for_lag, time.monotonic() + LAG),
        context.throttles,
        context.foreign,
    )


def _wait_for_lag(deadline: float) -> bool:
    time.sleep(_PAUSE)
    return time.monotonic() < deadline


def _read_topic_id(context: ClusterContext, topic: str) -> str | Fault | None:
    rows = attempt("Metadata", lambda: list_topics(context.wire, [topic], context.timeout))
    if isinstance(rows, Fault):
        return rows
    [row] = rows
    if row.code in (0, 3):
        return row.topic_id if row.code == 0 else None
    return fault_of("Metadata", row.code, topic)


def read_throttle(context: ClusterContext, setting: ThrottlePlace) -> Mapping[str, str] | Fault:
    """The throttle keys that are set at this place, on any level, and their values."""
    api = "DescribeConfigs"
    answers = attempt(
        api,
        lambda: describe_configs(
            context.wire,
            setting.resource,
            [setting.name],
            context.timeout,
            keys=list(setting.keys),
            node=setting.node,
        ),
        setting.node,
    )
    if isinstance(answers, Fault):
        return answers
    answer = answers.get(setting.name)
    if answer is None:
        return lost_answer_fault(api, f"{setting} is missing in the answer", setting.node or "")
    if answer.code:
        return fault_of(api, answer.code, setting.name, answer.message, setting.node or "")
    return {
        entry.name: entry.value
        for entry in answer.configs or ()
        if entry.value and entry.source != _BUILT_IN
    }


def alter_throttle(
    context: ClusterContext, setting: ThrottlePlace, put: Mapping[str, str], gone: Sequence[str]
) -> Fault | None:
    """Set some keys at this place and remove others."""
    payload = {"resource": setting.resource, "name": setting.name, "set": put, "delete": gone}
    answers: ItemAnswers | Fault = attempt(
        _API,
        lambda: alter_configs(
            context.wire,
            [payload],
            context.timeout + ANSWER_MARGIN,
            validate_only=False,
            node=setting.node,
        ),
        setting.node,
    )
    if isinstance(answers, Fault):
        return answers
    answer = answers.items.get((setting.resource, setting.name))
    if answer is None:
        return lost_answer_fault(_API, f"{setting} is missing in the answer", setting.node or "")
    return fault_of(_API, answer.code, setting.name, answer.message) if answer.code else None
