"""Rules of logins with SCRAM credentials and delegation tokens: which stop working, and which never
do."""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.value import EMPTY

from ..kinds.commanded.resource_types import TOKEN
from ..kinds.kind import SILENT
from ..kinds.user.resource_type import KIND, find_iteration_faults, sends_password

TYPES = (KIND,)
_SETS = (Action.CREATE, Action.UPDATE)
_PROOFS = "tests/cluster/claims/test_users.py"
_EXAMPLE = """\
resource "kafka_user_scram_credential" "orders" {{
  username            = "{name}"
  scram_mechanism     = "SCRAM-SHA-256"
  scram_iterations    = {iterations}
  password            = var.password
  password_wo_version = "{version}"
}}"""


def _make_example(name: str = "orders", iterations: int = 4096, version: str = "1") -> str:
    return _EXAMPLE.format(name=name, iterations=iterations, version=version)


# ── rows ────────────────────────────────────────────────────────────────────────────────

ITERATIONS = Rule(
    "user-iterations-invalid",
    "A number of iterations that Kafka refuses",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "The controller refuses other numbers with UNACCEPTABLE_CREDENTIAL (93; "
    "ScramControlManager.java).",
    _make_example(iterations=1000),
    block=Block.IMPOSSIBLE,
    proof=f"{_PROOFS}::test_the_controller_refuses_few_and_many_iterations",
)
NOT_ASCII = Rule(
    "user-name-not-ascii",
    "A name with which nobody can log in",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "The controller stores the credential, but brokers refuse the first message of the login of a "
    "name beyond ASCII (the pattern SASLNAME in ScramMessages.java).",
    _make_example("zoë"),
    "Choose a name of ASCII characters.",
    proof=f"{_PROOFS}::test_a_name_beyond_ascii_cannot_log_in",
)
DELETED = Rule(
    "user-credential-deleted",
    "A login stops working",
    Level.DANGER,
    Harm.ACCESS_LOST,
    TYPES,
    Needs.OBJECT,
    "Brokers refuse new logins. Open connections stay until they must log in again "
    "(connections.max.reauth.ms, KIP-368).",
    "# the block of a kafka_user_scram_credential is removed",
    "Make sure that no client uses the credential any more.",
    proof=f"{_PROOFS}::test_a_deleted_credential_refuses_new_logins_and_keeps_open_ones",
)
PASSWORD = Rule(
    "user-password-changed",
    "A login works with the new password only",
    Level.DANGER,
    Harm.ACCESS_LOST,
    TYPES,
    Needs.OBJECT,
    "A credential has one password at a time. Open connections stay until they must log in again "
    "(connections.max.reauth.ms, KIP-368).",
    _make_example(version="2"),
    "Give the clients the new password at the same time, or let them use the credential of "
    "another mechanism or user meanwhile.",
    proof=f"{_PROOFS}::test_a_new_password_refuses_the_old_one_and_keeps_open_connections",
)
OWN = Rule(
    "user-own-login",
    "The plan changes the login of whoever applies it",
    Level.CAUTION,
    Harm.ACCESS_LOST,
    TYPES,
    Needs.FACTS,
    "A run logs in on each connection. What it opens after the change needs the new login, and so "
    "do later runs.",
    _make_example("admin", version="2"),
    "Have the new login ready before you apply.",
    proof=f"{_PROOFS}::test_a_new_password_refuses_the_old_one_and_keeps_open_connections",
)
ADOPTED = Rule(
    "user-password-unknown",
    "The password of an adopted credential stays",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.OBJECT,
    "Nobody can read which password a credential has (KIP-554), so an adoption sends none.",
    _make_example(),
    "Change password_wo_version to send the declared password.",
    proof=f"{_PROOFS}::test_a_credential_shows_nothing_of_its_password",
)
TOKEN_ENDED = Rule(
    "token-ended",
    "A delegation token ends",
    Level.DANGER,
    Harm.ACCESS_LOST,
    (TOKEN,),
    Needs.OBJECT,
    "Brokers refuse logins with a token that has expired, and nobody can renew it (KIP-48).",
    "# kafkaform alter delegation-token TOKEN_ID --expire",
    "Make sure that no client uses the token any more.",
    proof="tests/cluster/kafka/test_token_logins.py::test_a_token_that_has_ended",
)


# ── judges ──────────────────────────────────────────────────────────────────────────────


def _judge_block(change: Change, _: Facts) -> Iterator[Finding]:
    """What the block alone shows."""
    if change.action not in _SETS or change.after is None:
        return
    if sends_password(change):
        for text, fix in find_iteration_faults(change.after.get("scram_iterations")):
            yield ITERATIONS.find(text, ("scram_iterations",), fix=fix)
    name = change.after["username"]
    # A credential of such a name that exists already can still be changed and deleted.
    if change.action is Action.CREATE and not name.isascii():
        yield NOT_ASCII.find(
            f"nobody can log in as '{name}': brokers accept only ASCII characters in the name of a "
            "SCRAM login",
            ("username",),
        )


def _judge_logins(change: Change, facts: Facts) -> Iterator[Finding]:
    """Which logins stop working, and whose."""
    attributes = change.before or change.after or EMPTY
    principal = f"User:{attributes.get('username')}"
    mechanism = attributes.get("scram_mechanism")
    if change.action is Action.DELETE:
        yield DELETED.find(f"{principal} can no longer log in with {mechanism}")
    elif change.action is Action.UPDATE and (
        change.row_after.secret_version != change.row_before.secret_version
    ):
        yield PASSWORD.find(f"{principal} can log in with {mechanism} only with the new password")
    # An adoption sends no request, so whether both passwords agree stays unknown.
    if change.adopts and change.action in (Action.ADOPT, Action.IMPORT):
        yield ADOPTED.find(
            f"the current {mechanism} password of {principal} stays, even if it is not the "
            "declared one"
        )
    if principal == facts.principal and change.action not in SILENT:
        if change.action is Action.DELETE:
            yield OWN.find(
                f"the {mechanism} credential of {principal}, which applies this plan, is deleted: "
                "later runs need another login"
            )
        elif sends_password(change):
            yield OWN.find(
                f"the {mechanism} password of {principal}, which applies this plan, is set: later "
                "runs need it"
            )


def _judge_token(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action is Action.DELETE:
        owner = (change.before or EMPTY).get("owner") or "its owner"
        yield TOKEN_ENDED.find(f"{owner} can no longer log in with the token {change.identity.key}")


JUDGES = (
    Judge((ITERATIONS, NOT_ASCII), TYPES, Needs.BLOCK, _judge_block),
    Judge((DELETED, PASSWORD, OWN, ADOPTED), TYPES, Needs.OBJECT, _judge_logins),
    Judge((TOKEN_ENDED,), TOKEN_ENDED.types, Needs.OBJECT, _judge_token),
)
