"""What is recorded holds no secret: a plan that says one is refused, foreign words are cleaned."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from kafkaform.apply.secrets import refuse_exposed
from kafkaform.audit.journal import make_outcome_body, make_validate_body
from kafkaform.core.canonical import dumps
from kafkaform.core.change import Evidence, Verdict
from kafkaform.core.errors import ConfigurationError
from kafkaform.core.resource import Declared, Fault, FaultClass, Output
from kafkaform.core.secret import Secret, watch_secrets
from kafkaform.core.value import FrozenMap
from kafkaform.workflow.model import record_outputs

from ...kit.audit_story import ORDERS, records_of
from ...kit.simulated.engine import apply, desired, house, plan, topic

SECRET = 'canary-"Zq7"'
FAULT = Fault("INVALID_CONFIG", f"bad password {SECRET}", FaultClass.DEFINITE)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    """The secret is in hand."""
    with watch_secrets():
        Secret(SECRET)
        yield


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (replace(topic("t"), owner=f"team {SECRET}"), "owner"),
        (replace(topic("t"), labels=FrozenMap(note=SECRET)), "labels"),
        (topic("t", config={"follower.replication.throttled.replicas": SECRET}), "config"),
    ],
)
def test_a_plan_that_says_a_secret_is_refused(said: Declared, place: str) -> None:
    """Before the first record of the run, naming block and argument and not the secret; a plan
    that does not is none the worse."""
    where = house()
    with pytest.raises(ConfigurationError) as refused:
        apply(where, desired(said))
    (fault,) = refused.value.diagnostics
    assert fault.summary == f"kafka_topic.t contains a secret in plain text, in {place}"
    assert fault.range is not None and "canary" not in fault.summary + fault.advice
    assert records_of(where.sink) == [] and where.cluster.requests["CreateTopics"] == 0
    refuse_exposed(plan(where, desired(topic("other"))))


def test_a_password_that_is_a_name_is_no_reason_to_refuse() -> None:
    """Who has one like that has chosen it, and the name has to be said."""
    with watch_secrets():
        Secret("orders")
        refuse_exposed(plan(house(), desired(topic("orders"))))


def test_the_words_of_a_fault_are_cleaned_before_they_are_hashed() -> None:
    """An outcome must be recorded whatever the broker said, so it is not refused."""
    bodies = (
        make_outcome_body(ORDERS, "failed", FAULT),
        make_validate_body("a", [Verdict("s", Evidence.REMOTE, FAULT)]),
    )
    for body in bodies:
        text = dumps(body)
        assert "bad password (secret)" in text and "canary" not in text


def test_an_output_is_recorded_without_a_secret() -> None:
    """One that nobody has called sensitive and that holds one all the same."""
    value = FrozenMap(a=(f"x {SECRET}", 1), b=None)
    found = record_outputs((Output("o", value, False), Output("s", SECRET, True)))
    assert json.loads(dumps(found)) == {
        "o": {"value": {"a": ["x (secret)", 1], "b": None}, "sensitive": False},
        "s": {"value": None, "sensitive": True},
    }
