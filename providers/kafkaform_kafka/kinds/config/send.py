"""Sends IncrementalAlterConfigs (KIP-339) for every kind of resource, once.

In a dry run the broker checks the same request with `validate_only`. Secrets are unknown in a dry
run: of a step with secrets, the broker checks the configs that do not depend on them, and the right
to send the step is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Secrets

from ...cluster.context import ClusterContext, Order, Reply, attempt
from ...protocol.faults import ALTER, config_fault, lost_answer_fault, right_for_configs
from ...wire.answers import ItemAnswers
from ...wire.configs import alter_configs
from ...wire.topics import ANSWER_MARGIN
from .faults import MASK

_LISTENER = re.compile(r"listener\.name\.[^.]+\.")


def send_alter_configs(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """One request for all steps; in a dry run without secrets and what depends on them."""
    steps = [(_strip_secrets(step) if order.dry else step) for step in order.steps]
    sent = [step for step in steps if step is not None]
    faults = {r.step.id: r.fault for r in _send_request(context, sent, order)} if sent else {}
    return [
        Reply(step, faults.get(step.id) or (_check_right(context, step) if order.dry else None))
        for step in order.steps
    ]


def _strip_secrets(step: Step) -> Step | None:
    """The step without its secrets and what depends on them; None if nothing is left to check."""
    if not _get_secrets(step):
        return step
    # A broker checks the keystore, its type and its password of one listener together.
    listeners = {match[0] for key in _get_secrets(step) if (match := _LISTENER.match(key))}

    def alone(key: str) -> bool:
        match = _LISTENER.match(key)
        return match is None or match[0] not in listeners

    put = FrozenMap({key: value for key, value in step.payload["set"].items() if alone(key)})
    gone = tuple(key for key in step.payload["delete"] if alone(key))
    payload = step.payload.without(["secrets"]).with_items({"set": put, "delete": gone})
    return replace(step, payload=payload) if put or gone else None


def _send_request(context: ClusterContext, steps: Sequence[Step], order: Order) -> Sequence[Reply]:
    node = steps[0].request.node
    answers = attempt(
        ALTER,
        lambda: alter_configs(
            context.wire,
            [_make_payload(step, order.secrets) for step in steps],
            context.timeout + ANSWER_MARGIN,
            validate_only=order.dry,
            node=node,
        ),
        node,
    )
    if isinstance(answers, Fault):
        return [Reply(step, answers) for step in steps]
    return [Reply(step, _make_fault(step, answers, order.secrets)) for step in steps]


def _get_secrets(step: Step) -> FrozenMap:
    return FrozenMap(step.payload.get("secrets") or EMPTY)


def _make_payload(step: Step, secrets: Secrets) -> FrozenMap:
    revealed = {key: secrets[str(ref)].reveal() for key, ref in _get_secrets(step).items()}
    return step.payload.with_items({"set": FrozenMap({**step.payload["set"], **revealed})})


def _make_fault(step: Step, answers: ItemAnswers, secrets: Secrets) -> Fault | None:
    resource, name = step.payload["resource"], step.payload["name"]
    answer = answers.items.get((resource, name))
    if answer is None:
        return lost_answer_fault(ALTER, f"{step.identity.key} is missing in the broker's answer")
    if answer.code == 0:
        return None
    sent = [secrets[str(ref)].reveal() for ref in _get_secrets(step).values()]
    message = _redact_message(answer.message or "", sent)
    return config_fault(ALTER, resource, name, answer.code, message, wait=answers.throttle)


def _redact_message(message: str, secrets: Iterable[str]) -> str:
    """The broker's message without secrets: brokers quote values that they refuse."""
    # The longest first, so that no secret is left in pieces because it contains another one.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        message = message.replace(secret, MASK)
    return message


def _check_right(context: ClusterContext, step: Step) -> Fault | None:
    """The fault of a step with secrets if the cluster reports that we lack the right."""
    rights = context.facts.values.get("rights")
    if not _get_secrets(step) or not rights or "AlterConfigs" in rights:
        return None
    right = right_for_configs(ALTER, step.payload["resource"], step.payload["name"])
    return Fault(
        "CLUSTER_AUTHORIZATION_FAILED",
        "the right to alter configs is missing",
        FaultClass.PERMISSION,
        "DescribeCluster",
        f"grant {right}, or run as a principal that has it",
    )
