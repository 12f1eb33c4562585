"""Rules of SCRAM credentials: which logins stop working, and which never do."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change, Ownership, PathChange
from kafkaform.core.finding import Harm, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.commanded.resource_types import TOKEN
from kafkaform_kafka.kinds.user import resource_type as users

from ....kit.kafka.judgement import judge, name_rules

NAME = "SCRAM-SHA-256"


def credential(
    action: Action,
    name: str = "u",
    *,
    iterations: int = 4096,
    versions: tuple[str | None, str | None] = (None, None),
    adopts: bool = False,
    paths: tuple[PathChange, ...] = (),
) -> Change:
    """A change of a credential. versions: of the password, before and after."""
    whole = FrozenMap(username=name, scram_mechanism=NAME, scram_iterations=iterations)
    before = None if action is Action.CREATE else whole
    after = None if action is Action.DELETE else whole
    identity = Identity("kafka", users.KIND, users.identity_key(name, NAME))
    rows = [Ownership(secret_version=version) for version in versions]
    return Change(
        identity,
        "kafka_user_scram_credential.x",
        action,
        before,
        after,
        paths,
        adopts=adopts,
        row_before=rows[0],
        row_after=rows[1],
    )


RAISED = ("1", "2")
SAME = ("1", "1")
CASES: tuple[tuple[str, Change, Change, str], ...] = (
    # rule, a change that it finds, one that it does not, the sentence
    (
        "user-credential-deleted",
        credential(Action.DELETE),
        credential(Action.FORGET),
        "User:u can no longer log in with SCRAM-SHA-256",
    ),
    (
        "user-password-changed",
        credential(Action.UPDATE, versions=RAISED),
        credential(Action.UPDATE, versions=SAME),
        "User:u can log in with SCRAM-SHA-256 only with the new password",
    ),
    (
        "user-password-unknown",
        credential(Action.ADOPT, adopts=True),
        credential(Action.ADOPT),
        "the current SCRAM-SHA-256 password of User:u stays, even if it is not the declared one",
    ),
    (
        "user-own-login",
        credential(Action.DELETE, "admin"),
        credential(Action.DELETE, "other"),
        "the SCRAM-SHA-256 credential of User:admin, which applies this plan, is deleted: later "
        "runs need another login",
    ),
    (
        "user-own-login",
        credential(Action.UPDATE, "admin", versions=RAISED),
        credential(Action.UPDATE, "admin", versions=SAME),
        "the SCRAM-SHA-256 password of User:admin, which applies this plan, is set: later runs "
        "need it",
    ),
    (
        "user-iterations-invalid",
        credential(Action.CREATE, iterations=4095),
        credential(Action.CREATE, iterations=4096),
        "scram_iterations = 4095: Kafka accepts 4096 to 16384",
    ),
    (
        "user-iterations-invalid",
        credential(Action.CREATE, iterations=16385),
        credential(Action.NOOP, iterations=16385),
        "scram_iterations = 16385: Kafka accepts 4096 to 16384",
    ),
    (
        "user-name-not-ascii",
        credential(Action.CREATE, "zoë"),
        credential(Action.UPDATE, "zoë", versions=RAISED),
        "nobody can log in as 'zoë': brokers accept only ASCII characters in the name of a SCRAM "
        "login",
    ),
)


@pytest.mark.parametrize(("rule", "hit", "miss", "text"), CASES)
def test_each_rule_finds_what_it_is_about(rule: str, hit: Change, miss: Change, text: str) -> None:
    """With its sentence, and not beside it."""
    assert [f.text for f in judge(hit) if f.rule == rule] == [text]
    assert rule not in name_rules(judge(miss))


def test_logins_that_end_are_dangers() -> None:
    """Who fails on lost access, sees both."""
    for change in (credential(Action.DELETE), credential(Action.UPDATE, versions=RAISED)):
        (finding,) = judge(change)
        assert (finding.level, finding.harm) == (Level.DANGER, Harm.ACCESS_LOST)


def test_a_new_login_takes_nothing() -> None:
    """No finding about a plain create, also in `validate`."""
    create = credential(Action.CREATE, versions=(None, "1"))
    assert judge(create) == []
    assert judge(create, Facts(""), only_block=True) == []


def test_what_the_block_alone_shows() -> None:
    """`validate` finds numbers and names that cannot work."""
    block = credential(Action.CREATE, "zoë", iterations=1)
    assert name_rules(judge(block, Facts(""), only_block=True)) == [
        "user-iterations-invalid",
        "user-name-not-ascii",
    ]


def test_other_iterations_need_the_password_again() -> None:
    """A number that Kafka refuses is found where the password is sent for it."""
    path = PathChange(("scram_iterations",), 4096, 20000)
    change = credential(Action.UPDATE, iterations=20000, paths=(path,))
    assert name_rules(judge(change)) == ["user-iterations-invalid"]


def test_a_token_that_ends() -> None:
    """Its owner is named; a token that is only shortened still logs in."""
    identity = Identity("kafka", TOKEN, "t1")
    token = FrozenMap(token_id="t1", owner="User:app")
    (finding,) = judge(Change(identity, "x", Action.DELETE, token))
    assert (finding.rule, finding.level) == ("token-ended", Level.DANGER)
    assert finding.text == "User:app can no longer log in with the token t1"
    assert judge(Change(identity, "x", Action.UPDATE, token, token)) == []
