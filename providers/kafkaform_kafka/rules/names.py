"""Rules of names, principals and hosts that can never match a client, whatever exists: the block
alone shows them. `missing_names` has the rules of names that could match something, and do not.

Brokers store ACLs with such names without an error. The authorizer compares texts (AclEntry,
StandardAuthorizerData of Kafka 4.3): besides prefixes, it has one pattern, the literal name `*`
(KIP-290). In any other name, `*` is an ordinary character, which topic names cannot contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from ipaddress import IPv6Address, ip_address

from msgspec import Struct

from kafkaform.core.change import Action, Change, Path
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule
from kafkaform.core.value import EMPTY

from ..kinds.quota import resource_type as quotas
from ..kinds.quota.limits import CLIENT_ID, USER
from ..kinds.user import resource_type as users
from ..protocol import acl as acls
from ..protocol import broker_rules
from ..protocol.acl import CLUSTER, EVERYTHING, NOUNS, SUPPORTED, Acl
from ..protocol.broker_rules import plain_name_faults
from ..protocol.cluster_facts import acl_faults

SETS = (Action.CREATE, Action.UPDATE)
_NAMED = (acls.KIND, quotas.KIND, users.KIND)
_PROOFS = "tests/cluster/claims/test_names.py"
_QUOTAS = "tests/cluster/claims/test_quotas.py"
_PRINCIPAL = re.compile(r"[,;|]\s*(?:User|Group):|\s(?:User|Group):")
"""Where a second principal begins in a text."""
_LIST = re.compile(r"[,;]")
_QUOTES = "\"'`"
_ACL_PROOFS = "tests/cluster/claims/test_access.py"
_PRINCIPAL_PATH, _HOST_PATH, _OPERATION_PATH = (
    ("acl_principal",),
    ("acl_host",),
    ("acl_operation",),
)
_NAME_PATH, _PATTERN_PATH = ("resource_name",), ("resource_pattern_type_filter",)


# ── ACLs ────────────────────────────────────────────────────────────────────────────


def _make_acl_row(
    id: str,
    title: str,
    reason: str,
    example: str,
    fix: str = "",
    proof: str = "",
    *,
    blocks: bool = True,
    needs: Needs = Needs.BLOCK,
    file: str = _ACL_PROOFS,
) -> Rule:
    """A row. file: with the proof."""
    level, block = (Level.BLOCK, Block.IMPOSSIBLE) if blocks else (Level.CAUTION, None)
    proof = f"{file}::{proof}" if proof else ""
    return Rule(
        id, title, level, Harm.NONE, (acls.KIND,), needs, reason, example, fix, block, proof=proof
    )  # fmt: skip


NAME_MISSING = _make_acl_row(
    "acl-resource-name-missing",
    "An ACL names no resource",
    "Brokers refuse an empty resource name with INVALID_REQUEST (42; AclControlManager).",
    'resource_name = ""',
    "Name a resource, or use * for all of them.",
    "test_an_empty_resource_name_is_refused",
)
CLUSTER_RESOURCE = _make_acl_row(
    "acl-cluster-resource",
    "An ACL on the cluster has another name or pattern",
    "The only resource of type Cluster is called kafka-cluster, and brokers refuse others "
    "(Resource.CLUSTER_NAME, AclApis).",
    'resource_type = "Cluster", resource_name = "prod"',
    f"Set resource_name to '{CLUSTER}', with the pattern type Literal.",
    "test_another_name_of_the_cluster_is_refused",
)
OPERATION_UNCHECKED = _make_acl_row(
    "acl-operation-unchecked",
    "Kafka never checks the operation on this type of resource",
    "Each type of resource has its own operations (AclEntry.supportedOperations).",
    'resource_type = "Topic", acl_operation = "ClusterAction"',
    proof="test_brokers_store_operations_that_they_never_check",
)
TOPIC_UNMATCHED = _make_acl_row(
    "acl-topic-unmatched",
    "No topic can match the ACL",
    "Topic names have 1 to 249 of the characters [A-Za-z0-9._-] (Topic.validate), so no other name "
    "or prefix covers one.",
    'resource_type = "Topic", resource_name = "shop.*"',
    proof="test_an_acl_that_only_seems_to_match_gives_nothing",
)
USER_UNMATCHED = _make_acl_row(
    "acl-user-unmatched",
    "No user can match the ACL",
    "A resource of type User is a principal (KIP-373): a type, a colon and a name.",
    'resource_type = "User", resource_name = "app"',
    proof="test_an_acl_for_a_user_without_a_type_gives_nothing",
    file="tests/cluster/claims/test_users.py",
)
PRINCIPAL_INCOMPLETE = _make_acl_row(
    "acl-principal-incomplete",
    "The principal has no type or no name",
    "A principal is a type, a colon and a name (SecurityUtils.parseKafkaPrincipal). Controllers "
    "before Kafka 3.9 store other principals, and the authorizer then fails (KAFKA-18051). A "
    "principal builder can use other types than User.",
    'acl_principal = "app"',
    proof="test_a_principal_without_a_type_is_refused",
)
HOST_UNMATCHED = _make_acl_row(
    "acl-host-unmatched",
    "No client connects from this host",
    "The authorizer compares the host with the text of the client's address "
    "(InetAddress.getHostAddress): no networks, no DNS names, and no other spelling.",
    'acl_host = "10.0.0.0/8"',
    proof="test_an_acl_that_only_seems_to_match_gives_nothing",
)
TOO_NEW = _make_acl_row(
    "acl-too-new",
    "The cluster is too old for the ACL",
    "ACLs on users exist since Kafka 3.3 (KIP-373), the operation TwoPhaseCommit since 4.1 "
    "(KIP-939). Older brokers answer with INVALID_REQUEST (42).",
    'acl_operation = "TwoPhaseCommit"   # on Kafka 3.9',
    needs=Needs.FACTS,
    proof="test_older_brokers_refuse_acls_with_newer_operations",
    file="tests/cluster/claims/test_older_brokers.py",
)
PRINCIPAL_TYPE = _make_acl_row(
    "acl-principal-type",
    "The type of the principal is misspelled",
    "Kafka's own principal builder makes the type `User`, and the authorizer compares the whole "
    "text (DefaultKafkaPrincipalBuilder).",
    'acl_principal = "user:app"',
    "Write User:NAME.",
    "test_an_acl_that_only_seems_to_match_gives_nothing",
    blocks=False,
)
PRINCIPAL_STAR = _make_acl_row(
    "acl-principal-star",
    "A * at the end of a principal means nothing",
    "Only the exact text User:* is a wildcard; principals have no prefixes (KIP-290).",
    'acl_principal = "User:shop*"',
    "Name each principal, or use User:* for everybody.",
    "test_an_acl_that_only_seems_to_match_gives_nothing",
    blocks=False,
)
NAME_STAR = _make_acl_row(
    "acl-name-star",
    "A * in the name of a resource is an ordinary character",
    "Only the literal name * means every resource (KIP-290).",
    'resource_type = "Group", resource_name = "shop.*"',
    fix='Use resource_pattern_type_filter = "Prefixed" for names with a common beginning, or the '
    'name "*" alone for all.',
    proof="test_a_star_at_the_end_of_a_group_name_matches_nothing",
    blocks=False,
)


def _judge_acl(change: Change, _: Facts) -> Iterator[Finding]:
    """Only new ACLs are judged: one that is there may go whatever it says."""
    if change.action is not Action.CREATE:
        return
    acl = acls.parse_acl(change.after or EMPTY)
    for find in _FINDERS:
        yield from find(acl)


def _judge_version(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action is not Action.CREATE:
        return
    acl = acls.parse_acl(change.after or EMPTY)
    for text, advice in acl_faults(acl.resource_type, acl.operation, facts):
        yield TOO_NEW.find(text, _OPERATION_PATH, fix=advice)


def _find_resource(acl: Acl) -> Iterator[Finding]:
    if not acl.resource_name:
        yield NAME_MISSING.find("resource_name is empty", _NAME_PATH)
    if acl.resource_type == "Cluster" and acl.resource_name != CLUSTER:
        yield CLUSTER_RESOURCE.find(f"in ACLs, the cluster has the name '{CLUSTER}'", _NAME_PATH)
    if acl.resource_type == "Cluster" and acl.pattern_type != "Literal":
        yield CLUSTER_RESOURCE.find("an ACL on the cluster cannot be Prefixed", _PATTERN_PATH)


def _find_operation(acl: Acl) -> Iterator[Finding]:
    supported = SUPPORTED[acl.resource_type]
    if acl.operation not in ("All", *supported):
        yield OPERATION_UNCHECKED.find(
            f"'{acl.operation}' is not a {NOUNS[acl.resource_type]} operation: Kafka never checks "
            "it there",
            _OPERATION_PATH,
            fix=f"Use {', '.join(supported)} or All.",
        )


def _find_principal(acl: Acl) -> Iterator[Finding]:
    kind, colon, name = acl.principal.partition(":")
    if not (kind and colon and name):
        fix = f"Write User:{name or (kind if not colon else '') or 'NAME'}"
        yield PRINCIPAL_INCOMPLETE.find(
            f"'{acl.principal}' is not a principal: a principal is a type, a colon and a name",
            _PRINCIPAL_PATH,
            fix=fix + (", or User:* for everybody." if colon else "."),
        )
    # The authorizer compares types as text (KafkaPrincipal.equals), so "user:ci" is nobody.
    if kind.lower() == "user" and kind != "User":
        yield PRINCIPAL_TYPE.find(
            f"the type of Kafka's users is 'User', not '{kind}'", _PRINCIPAL_PATH
        )
    # User:* is a wildcard as a whole (AclEntry.WILDCARD_PRINCIPAL_STRING); no part of a name is
    # one.
    if acl.principal.endswith(EVERYTHING) and acl.principal != "User:*":
        yield PRINCIPAL_STAR.find(
            f"'{acl.principal}' is one principal with exactly this name; only User:* means several",
            _PRINCIPAL_PATH,
        )


def _find_host(acl: Acl) -> Iterator[Finding]:
    if acl.host == EVERYTHING:
        return
    try:
        address = ip_address(acl.host)
    except ValueError:
        yield HOST_UNMATCHED.find(
            f"'{acl.host}' is not an IP address: Kafka compares it with the text of the client's "
            "address, so host names and networks never match",
            _HOST_PATH,
            fix="Use one address, or * for all hosts.",
        )
        return
    spelled = (
        # The authorizer compares the text of Java's getHostAddress, which never shortens an IPv6
        # address with a double colon.
        acls.format_java_address(address) if isinstance(address, IPv6Address) else str(address)
    )
    if address.is_unspecified:
        yield HOST_UNMATCHED.find(
            f"no client connects from {acl.host}", _HOST_PATH, fix="Use * for all hosts."
        )
    elif spelled != acl.host:
        yield HOST_UNMATCHED.find(
            f"Kafka spells the address {acl.host} as {spelled}", _HOST_PATH, fix=f"Write {spelled}."
        )


def _find_name(acl: Acl) -> Iterator[Finding]:
    """Names that match nothing, or something else than they seem to."""
    # Groups, transactional ids and tokens can have any name, so nothing is certain there.
    name, literal = acl.resource_name, acl.pattern_type == "Literal"
    if not name or (name == EVERYTHING and literal) or acl.resource_type == "Cluster":
        return
    if acl.resource_type == "Topic":
        yield from _find_topic(name, acl.pattern_type)
        return
    if acl.resource_type == "User" and literal and ":" not in name:
        yield USER_UNMATCHED.find(
            f"no user matches: a resource of type User is a principal, and '{name}' is not one",
            _NAME_PATH,
            fix=f"Write User:{name}.",
        )
    if not name.endswith(EVERYTHING):
        return
    if literal:
        yield NAME_STAR.find(
            f"'{name}' with the pattern type Literal means exactly this name",
            _NAME_PATH,
            fix="For a prefix, leave the * out and use the pattern type Prefixed.",
        )
    else:
        yield NAME_STAR.find(
            f"the * in the prefix '{name}' is an ordinary character",
            _NAME_PATH,
            fix="For every resource, use the name '*' with the pattern type Literal.",
        )


def _find_topic(name: str, pattern_type: str) -> Iterator[Finding]:
    stem = name.rstrip(EVERYTHING)
    if stem != name and not any(broker_rules.name_faults(f"{stem}x")):
        yield TOPIC_UNMATCHED.find(
            f"no topic matches '{name}': the * is an ordinary character here, and topic names "
            "cannot contain it",
            _NAME_PATH,
            fix=f"Use the name '{stem}' with the pattern type Prefixed."
            if stem
            else "Use the name '*' with the pattern type Literal.",
        )
        return
    # "." and ".." are no topic names, but longer names can start with them.
    longer = f"{name}x" if pattern_type == "Prefixed" and name in (".", "..") else name
    for text, advice in broker_rules.name_faults(longer):
        yield TOPIC_UNMATCHED.find(f"no topic matches: {text}", _NAME_PATH, fix=advice)


_FINDERS: tuple[Callable[[Acl], Iterable[Finding]], ...] = (
    _find_resource,
    _find_operation,
    _find_principal,
    _find_host,
    _find_name,
)

ACL_JUDGES = (
    Judge(
        (
            NAME_MISSING,
            CLUSTER_RESOURCE,
            OPERATION_UNCHECKED,
            TOPIC_UNMATCHED,
            USER_UNMATCHED,
            PRINCIPAL_INCOMPLETE,
            HOST_UNMATCHED,
            PRINCIPAL_TYPE,
            PRINCIPAL_STAR,
            NAME_STAR,
        ),
        (acls.KIND,),
        Needs.BLOCK,
        _judge_acl,
    ),
    Judge((TOO_NEW,), (acls.KIND,), Needs.FACTS, _judge_version),
)


# ── names in ACLs, quotas and users ─────────────────────────────────────────────────


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
    *ACL_JUDGES,
    Judge((BLANK, QUOTED, SEVERAL, TYPED, PATTERN, GROUP_TYPE), _NAMED, Needs.BLOCK, judge_names),
)
