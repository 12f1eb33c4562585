"""Rules of names that match nothing, whatever exists: the block alone shows them.

`missing_names` has the rules of names that could match something, and do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from msgspec import Struct

from kafkaform.core.change import Action, Change, Path
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.value import EMPTY

from ..kinds.quota import resource_type as quotas
from ..kinds.quota.limits import CLIENT_ID, USER
from ..kinds.user import resource_type as users
from ..protocol import acl as acls
from ..protocol.acl import EVERYTHING
from ..protocol.broker_rules import plain_name_faults

SETS = (Action.CREATE, Action.UPDATE)
_NAMED = (acls.KIND, quotas.KIND, users.KIND)
_PROOFS = "tests/cluster/claims/test_names.py"
_QUOTAS = "tests/cluster/claims/test_quotas.py"
_PRINCIPAL = re.compile(r"[,;|]\s*(?:User|Group):|\s(?:User|Group):")
"""Where a second principal begins in a text."""
_LIST = re.compile(r"[,;]")
_QUOTES = "\"'`"


# ── rows ────────────────────────────────────────────────────────────────────────────────


def make_quota(user: str) -> str:
    """An example: a quota of a user, who is written as an expression."""
    return (
        f'resource "kafka_quota" "x" {{\n  user   = {user}\n'
        "  config = { request_percentage = 50 }\n}"
    )


def make_role(
    principal: str, topic: str = "orders", group: str = '\n  group     = "orders"'
) -> str:
    """An example: the role of a consumer. group: the line of its group, or nothing."""
    return (
        f'resource "kafka_access" "x" {{\n  principal = "{principal}"\n  role      = "consumer"\n'
        f'  topics    = ["{topic}"]{group}\n}}'
    )


_make_row = partial(Rule, level=Level.CAUTION, harm=Harm.NONE)
BLANK = _make_row(
    "name-blank-at-end",
    "A name that begins or ends with a blank",
    types=_NAMED,
    needs=Needs.BLOCK,
    why="Brokers compare names as whole texts: an ACL for `User:app ` gives nothing to `User:app` "
    "(StandardAuthorizerData.java).",
    example=make_role("User:orders "),
    fix="Remove the blank.",
    proof=f"{_PROOFS}::test_another_spelling_of_a_principal_gives_nothing",
)
QUOTED = _make_row(
    "name-quoted",
    "A name in quotes",
    types=_NAMED,
    needs=Needs.BLOCK,
    why="Brokers compare names as whole texts, so quotes are a part of the name "
    "(StandardAuthorizerData.java).",
    example=make_quota("\"'orders'\""),
    fix="Remove the quotes.",
    proof=f"{_PROOFS}::test_another_spelling_of_a_principal_gives_nothing",
)
SEVERAL = _make_row(
    "name-several",
    "Several names in one text",
    types=_NAMED,
    needs=Needs.BLOCK,
    why="An ACL has one principal, and a quota one user (KIP-11, KIP-546): brokers take the text "
    "for one name.",
    example=make_role("User:orders,User:billing"),
    fix="Write one block for each, with for_each.",
    proof=f"{_PROOFS}::test_another_spelling_of_a_principal_gives_nothing",
)
TYPED = _make_row(
    "name-with-type",
    "A principal where a user's name belongs",
    types=(quotas.KIND, users.KIND),
    needs=Needs.BLOCK,
    why="Quotas and credentials name a user without the type of the principal (KIP-546, KIP-554).",
    example=make_quota('"User:orders"'),
    fix="Leave out the type: write the name alone.",
    proof=f"{_QUOTAS}::test_another_spelling_of_a_user_limits_nobody",
)
PATTERN = _make_row(
    "quota-name-pattern",
    "A pattern where a quota takes a name",
    types=(quotas.KIND,),
    needs=Needs.BLOCK,
    why="Quotas have no patterns: an entity is one name, or the default for all that have no quota "
    "of their own (KIP-55, KIP-546).",
    example=make_quota('"*"'),
    fix="Name each client, or use the default entity.",
    proof=f"{_QUOTAS}::test_a_pattern_in_a_quota_matches_nobody",
)
GROUP_TYPE = _make_row(
    "acl-principal-group",
    "An ACL for a group of users",
    types=(acls.KIND,),
    needs=Needs.BLOCK,
    why="The logins of Kafka make principals of the type User only "
    "(DefaultKafkaPrincipalBuilder.java); other types need a principal.builder.class of your own.",
    example=make_role("Group:operators"),
    fix="Write one block for each user, unless your brokers have such a class.",
    proof=f"{_PROOFS}::test_another_spelling_of_a_principal_gives_nothing",
)
# ── what the block alone shows ──────────────────────────────────────────────────────────


class _Name(Struct, frozen=True):
    """A name in an object."""

    text: str
    path: Path
    noun: str
    """What it is the name of."""


def _list_names(change: Change) -> Iterator[_Name]:
    """The names that a created object has to match, without the types of principals."""
    attributes = change.after or EMPTY
    if change.identity.kind == acls.KIND:
        principal = str(attributes["acl_principal"])
        yield _Name(principal.partition(":")[2], ("acl_principal",), "principal")
        if attributes["resource_type"] in ("Group", "TransactionalID"):
            noun = acls.NOUNS[attributes["resource_type"]]
            yield _Name(attributes["resource_name"], ("resource_name",), noun)
    elif change.identity.kind == users.KIND:
        yield _Name(attributes["username"], ("username",), "user")
    else:
        entity = quotas.read_entity(attributes)
        for component, attribute in ((USER, "user"), (CLIENT_ID, "client_id")):
            if entity.get(component):
                yield _Name(entity[component], (attribute,), attribute.replace("_", " "))


def judge_names(change: Change, _: Facts) -> Iterator[Finding]:
    """The names of a created or changed object that match nothing."""
    if change.action not in SETS or (change.action is Action.UPDATE and not change.paths):
        return
    for name in _list_names(change):
        text, bare = name.text, name.text.strip()
        if text != bare:
            yield BLANK.find(
                f"the {name.noun} '{text}' {'begins' if text[:1].isspace() else 'ends'} with a "
                "blank, which is a part of the name",
                name.path,
            )
        if len(bare) > 1 and bare[0] in _QUOTES and bare[0] == bare[-1]:
            yield QUOTED.find(
                f"the quotes are a part of the {name.noun} {bare}",
                name.path,
                fix=f"Write {bare[1:-1]}.",
            )
    if change.identity.kind == quotas.KIND:
        yield from _judge_quota_names(change)
    if change.identity.kind == acls.KIND and change.after is not None:
        yield from _judge_principal(str(change.after["acl_principal"]))
    if change.identity.kind in TYPED.types:
        yield from _judge_types(change)


def _judge_principal(principal: str) -> Iterator[Finding]:
    path = ("acl_principal",)
    if _PRINCIPAL.search(principal):
        yield SEVERAL.find(f"'{principal}' is one principal with exactly this name", path)
    elif principal.startswith("Group:"):
        yield GROUP_TYPE.find(
            f"{principal} is nobody: Kafka's logins are users, and brokers know no groups of users",
            path,
        )


def _judge_quota_names(change: Change) -> Iterator[Finding]:
    for name in _list_names(change):
        if EVERYTHING in name.text or name.text == "<default>":
            default = f'Write {name.path[0]} = "{quotas.DEFAULT}" for all without their own quota.'
            is_default = name.text in (EVERYTHING, "<default>")
            yield PATTERN.find(
                f"a quota is for one {name.noun}, and none is called '{name.text}': quotas have no "
                "patterns",
                name.path,
                fix=default if is_default else "Write one block for each, with for_each.",
            )
        # The names of certificates have commas, too: CN=app,O=shop.
        elif _LIST.search(name.text) and "=" not in name.text:
            yield SEVERAL.find(
                f"'{name.text}' is one {name.noun} with exactly this name", name.path
            )


def _judge_types(change: Change) -> Iterator[Finding]:
    for name in _list_names(change):
        for text, fix in plain_name_faults(name.text):
            yield TYPED.find(text, name.path, fix=fix)


JUDGES = (
    Judge((BLANK, QUOTED, SEVERAL, TYPED, PATTERN, GROUP_TYPE), _NAMED, Needs.BLOCK, judge_names),
)
