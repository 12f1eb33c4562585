"""SCRAM logins: what a block means, what is sent, and that one can log in with it."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.canonical import dumps
from kafkaform.core.change import Action, Batch, Change, Outcome, OutcomeStatus, Ownership, Repeat
from kafkaform.core.resource import Absent, CoverageKind, Depth, Hidden, Identity, Observed, Reading
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.plan.diff import compare
from kafkaform_kafka.connection.settings import make_client_config
from kafkaform_kafka.kinds.user import resource_type as scram
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import RequestNotSent, Wire
from kafkaform_kafka.wire.security import Upsertion, alter_scram, salt_password

from ....kit.kafka.changes import FACTS
from ....kit.kafka.sessions import eventually, login

BOTH = tuple(scram.MECHANISMS)
SECRET = SecretRef("env", "CI_PASSWORD")
VERSIONS = (Ownership(), Ownership(secret_version="1"))


def credential(user: str, mechanism: str = BOTH[0], iterations: Any = 4096) -> FrozenMap:
    """A whole credential as it shall be."""
    return FrozenMap(
        username=user, scram_mechanism=mechanism, scram_iterations=iterations, password=SECRET
    )


def changed(
    action: Action,
    before: FrozenMap | None,
    after: FrozenMap | None,
    rows: tuple[Ownership, Ownership] = VERSIONS,
) -> Change:
    """A change with its paths, as the planner makes it."""
    live = before.without(["password"]) if before is not None else None
    whole = after if after is not None else before
    assert whole is not None
    return Change(
        Identity("kafka", scram.KIND, scram.TYPE.key(whole)),
        f"{scram.KIND}.x",
        action,
        live,
        after,
        compare(live, after, schema=scram.TYPE.schema),
        row_before=rows[0],
        row_after=rows[1],
    )


def new(user: str, mechanism: str = BOTH[0], iterations: Any = 4096) -> Change:
    return changed(Action.CREATE, None, credential(user, mechanism, iterations))


def raised(user: str, mechanism: str = BOTH[0], version: str | None = "2") -> Change:
    """The same credential with another version of its password."""
    same = credential(user, mechanism)
    rows = (Ownership(secret_version="1"), Ownership(secret_version=version))
    return changed(Action.UPDATE, same, same, rows)


def gone(user: str, mechanism: str = BOTH[0]) -> Change:
    return changed(Action.DELETE, credential(user, mechanism), None)


# ── what a block means ──────────────────────────────────────────────────────────────────


def test_a_salted_password_is_what_the_rfc_says() -> None:
    """Hi() of RFC 5802, written out: U1 xor U2 xor …, for both hashes and for text beyond ASCII."""
    for digest in (scram.MECHANISMS[name].digest for name in BOTH):
        made = salt_password("pässwörd", digest, 3)
        block = hmac.new("pässwörd".encode(), made.salt + b"\0\0\0\1", digest).digest()
        total = int.from_bytes(block, "big")
        for _ in range(2):
            block = hmac.new("pässwörd".encode(), block, digest).digest()
            total ^= int.from_bytes(block, "big")
        assert made.password == total.to_bytes(hashlib.new(digest).digest_size, "big")


def test_no_two_salts_are_alike_and_none_is_shown() -> None:
    """Who sees a salted password can guess at the password."""
    one, two = salt_password("x", "sha256", 4096), salt_password("x", "sha256", 4096)
    assert one.salt != two.salt and one.password != two.password
    assert repr(one) == repr(two)


def test_a_password_is_sent_with_a_new_credential_version_or_number_of_iterations() -> None:
    """And never again without such a cause: nobody could tell the difference."""
    same = credential("ci")
    unchanged = (Ownership(secret_version="1"), Ownership(secret_version="1"))
    more = changed(Action.UPDATE, same, credential("ci", iterations=8192), unchanged)
    owners = (unchanged[0], replace(unchanged[0], owners=("kafka_user_scram_credential.y",)))
    sent = [new("ci"), raised("ci"), more]
    silent = [
        changed(Action.UPDATE, same, same, owners),
        changed(Action.ADOPT, same, same),
        raised("ci", version=None),
        changed(Action.FORGET, same, same),
    ]
    for item in sent:
        (step,) = scram.TYPE.steps(item, FACTS)
        assert step.payload["password"] == SECRET and step.repeat is Repeat.NEVER
    assert [scram.TYPE.steps(item, FACTS) for item in silent] == [()] * 4


def test_the_two_mechanisms_of_a_user_never_share_a_request() -> None:
    """A request that names a user twice is refused (92), so each mechanism has its phases."""
    requests = {
        (step.request.part, step.request.phase)
        for make in (new, gone)
        for name in BOTH
        for step in scram.TYPE.steps(make("ci", name), FACTS)
    }
    assert requests == {(1, 10), (1, 11), (2, 30), (2, 31)}


@pytest.mark.parametrize(
    ("text", "key"),
    [("ci|SCRAM-SHA-256", "ci|SCRAM-SHA-256"), (r"a\|b|SCRAM-SHA-512", r"a\|b|SCRAM-SHA-512")],
)
def test_import_ids(text: str, key: str) -> None:
    """The Mongey provider's id without the password."""
    assert scram.TYPE.import_key(text) == key


@pytest.mark.parametrize("text", ["ci", "ci|SCRAM-SHA-1", "|SCRAM-SHA-256", "ci|SCRAM-SHA-256|x"])
def test_import_ids_that_name_nothing(text: str) -> None:
    """The advice never repeats what may be a password."""
    with pytest.raises(ValueError, match=r"username\|scram_mechanism"):
        scram.TYPE.import_key(text)


def test_a_plan_holds_a_reference_and_never_a_value() -> None:
    """What is saved, shown and logged of a step names the secret only."""
    item = new("ci")
    item = replace(item, steps=scram.TYPE.steps(item, FACTS))
    assert "CI_PASSWORD" in dumps(item)
    (path,) = (p for p in item.paths if p.path == ("password",))
    assert path.sensitive and path.after == SECRET


# ── a real broker ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def user(admin: KafkaSession, prefix: str) -> Iterator[str]:
    """A name whose credentials are gone afterwards."""
    yield prefix
    apply(admin, *(gone(prefix, name) for name in BOTH))


def apply(session: KafkaSession, *changes: Change, password: str = "first") -> list[Outcome]:
    """Send the changes as the engine would, a batch for each phase."""
    steps = [step for item in changes for step in scram.TYPE.steps(item, session.facts)]
    phases = sorted({step.request for step in steps}, key=lambda request: request.phase)
    batches = (
        Batch("b", "kafka", request, tuple(step for step in steps if step.request == request))
        for request in phases
    )
    return [o for batch in batches for o in session.apply(batch, {str(SECRET): Secret(password)})]


def statuses(outcomes: list[Outcome]) -> set[OutcomeStatus]:
    return {outcome.status for outcome in outcomes}


def read(session: KafkaSession, user: str, mechanism: str, node: str | None = None) -> Reading:
    identity = Identity("kafka", scram.KIND, scram.identity_key(user, mechanism))
    return session.read([identity], at=node)[identity]


def lets_in(broker: Any, user: str, mechanism: str, password: str) -> bool:
    """Whether this login works."""
    settings = login(broker, "admin", username=user, mechanism=mechanism, password=password)
    try:
        Wire(make_client_config(settings), 1.5).close()
    except RequestNotSent:
        return False
    return True


def test_one_can_log_in_by_both_mechanisms(broker: Any, admin: KafkaSession, user: str) -> None:
    """Declared twice, sent in two requests, and each password opens its own door only."""
    assert statuses(apply(admin, new(user, BOTH[0]))) == {OutcomeStatus.APPLIED}
    assert statuses(apply(admin, new(user, BOTH[1], 8192), password="zweites: ü")) == {
        OutcomeStatus.APPLIED
    }
    eventually(lambda: lets_in(broker, user, BOTH[0], "first"), bool)
    eventually(lambda: lets_in(broker, user, BOTH[1], "zweites: ü"), bool)
    assert not lets_in(broker, user, BOTH[1], "first")
    for name, iterations in zip(BOTH, (4096, 8192), strict=True):
        for node in (None, *admin.facts.nodes):
            seen = read(admin, user, name, node)
            assert isinstance(seen, Observed)
            assert seen.attributes == credential(user, name, iterations).without(["password"])


def test_a_raised_version_changes_the_password(broker: Any, admin: KafkaSession, user: str) -> None:
    """The old one is refused from then on, the new one accepted."""
    apply(admin, new(user))
    eventually(lambda: lets_in(broker, user, BOTH[0], "first"), bool)
    assert statuses(apply(admin, raised(user), password="second")) == {OutcomeStatus.APPLIED}
    eventually(lambda: lets_in(broker, user, BOTH[0], "second"), bool)
    assert not lets_in(broker, user, BOTH[0], "first")


def test_a_deleted_login_is_refused(broker: Any, admin: KafkaSession, user: str) -> None:
    """One mechanism goes, the other stays; deleting what is gone is no failure of its own."""
    apply(admin, *(new(user, name) for name in BOTH))
    eventually(lambda: lets_in(broker, user, BOTH[1], "first"), bool)
    assert statuses(apply(admin, gone(user, BOTH[0]))) == {OutcomeStatus.APPLIED}
    eventually(lambda: read(admin, user, BOTH[0]), lambda seen: isinstance(seen, Absent))
    eventually(lambda: lets_in(broker, user, BOTH[0], "first"), lambda inside: not inside)
    assert lets_in(broker, user, BOTH[1], "first")
    (again,) = apply(admin, gone(user, BOTH[0]))
    assert again.fault is not None
    assert (again.fault.code, again.fault.kind) == ("RESOURCE_NOT_FOUND", "converged")


def test_every_user_has_its_own_answer(broker: Any, admin: KafkaSession, user: str) -> None:
    """One that the controller refuses leaves the others of the request alone."""
    wire = Wire(make_client_config(login(broker, "admin")), 8)
    made = salt_password("x", "sha256", 4096)
    rows = [Upsertion(name, 1, n, made) for name, n in ((user, 4096), (f"{user}-x", 100))]
    answers = alter_scram(wire, rows, [], 10)
    twice = alter_scram(wire, [rows[0], replace(rows[0], mechanism=2)], [], 10)
    wire.close()
    assert {name: item.code for name, item in answers.items.items()} == {user: 0, f"{user}-x": 93}
    assert twice.items[user].code == 92


def test_a_user_without_credentials_is_absent(admin: KafkaSession, prefix: str) -> None:
    """91 proves it."""
    assert isinstance(read(admin, prefix, BOTH[0]), Absent)


def test_the_listing_tells_every_user(admin: KafkaSession, user: str) -> None:
    """All mechanisms of all users, and that these are all."""
    apply(admin, *(new(user, name) for name in BOTH))

    def mine() -> set[str]:
        sweep = admin.sweep(scram.KIND, Depth.NAMES)
        assert sweep.coverage.kind is CoverageKind.COMPLETE
        return {i.identity.key for i in sweep.items if i.identity.key.startswith(user)}

    eventually(mine, lambda seen: seen == {scram.identity_key(user, name) for name in BOTH})


def test_without_rights_nothing_is_told_and_nothing_done(
    ci: KafkaSession, admin: KafkaSession, user: str
) -> None:
    """Hidden with the right's name; the dry run refuses before a password is needed."""
    assert read(ci, "admin", BOTH[0]) == Hidden(
        Identity("kafka", scram.KIND, f"admin|{BOTH[0]}"), "Describe on Cluster"
    )
    sweep = ci.sweep(scram.KIND, Depth.NAMES)
    assert (sweep.coverage.kind, sweep.items) == (CoverageKind.FAILED, ())
    assert sweep.coverage.fault is not None
    assert sweep.coverage.fault.code == "CLUSTER_AUTHORIZATION_FAILED"
    (step,) = scram.TYPE.steps(new(user), ci.facts)
    batch = Batch("b", "kafka", step.request, (step,))
    (refused,), (passed,) = ci.preflight(batch), admin.preflight(batch)
    assert refused.fault is not None and "Alter on Cluster" in refused.fault.advice
    assert passed.fault is None and passed.evidence == "local"
    (outcome,) = apply(ci, new(user))
    assert outcome.fault is not None and outcome.fault.kind == "permission"


def test_no_log_and_no_error_holds_a_password(
    broker: Any, admin: KafkaSession, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever level a program around us sets for all loggers, and whatever goes wrong."""
    caplog.set_level(logging.DEBUG)
    outcomes = apply(admin, new(user), password="hush-hush")
    wire = admin.context.wire
    with suppress(Exception):
        wire.send(object(), 1)
    outcomes += apply(admin, new(user, iterations=1), password="hush-hush")
    assert "hush-hush" not in caplog.text + repr(outcomes)
    assert outcomes[-1].fault is not None and outcomes[-1].fault.code == "UNACCEPTABLE_CREDENTIAL"
