"""Rules of names that decide whether anything happens: names that match nothing, and typos.

What a block alone shows is found without a cluster. Whether a name exists is asked for created
objects only, and never where the listing that would show it is not known to be complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from kafkaform.core.change import Action, Change, Path
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity, Sweep
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.value import EMPTY, FrozenMap

from ..authority.authorizer import (
    PREFIXED,
    Access,
    AccessQuestion,
    AccessVerdict,
    authorize,
    has_acl,
    index_acls,
)
from ..authority.calibration import identify_self
from ..kinds.acl import resource_type as acls
from ..kinds.acl.resource_type import ALLOW, EVERYTHING, Acl
from ..kinds.config.resource_type import GROUP as GROUP_CONFIG
from ..kinds.quota import resource_type as quotas
from ..kinds.quota.levels import CLIENT_ID, USER
from ..kinds.topic import resource_type as topics
from ..kinds.user import resource_type as users
from ..protocol import groups, keys, rights
from ..protocol.near_names import index_names

_CREATES = (Action.CREATE, Action.UPDATE)
_NAMED = (acls.KIND, quotas.KIND, users.KIND)
_PROOFS = "tests/cluster/claims/test_names.py"
_QUOTAS = "tests/cluster/claims/test_quotas.py"
_PRINCIPAL = re.compile(r"[,;|]\s*(?:User|Group):|\s(?:User|Group):")
"""Where a second principal begins in a text."""
_LIST = re.compile(r"[,;]")
_QUOTES = "\"'`"
# `CN=app,O=shop` of a certificate, `app/host@REALM` of Kerberos.
_OF_OTHER_LOGINS = re.compile(r"[=/@]")
ANONYMOUS = "ANONYMOUS"


# ── rows ────────────────────────────────────────────────────────────────────────────────


def _make_quota(user: str) -> str:
    return (
        f'resource "kafka_quota" "x" {{\n  user   = {user}\n'
        "  config = { request_percentage = 50 }\n}"
    )


def _make_role(
    principal: str, topic: str = "orders", group: str = '\n  group     = "orders"'
) -> str:
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
    example=_make_role("User:orders "),
    fix="remove the blank",
    proof=f"{_PROOFS}::test_another_spelling_of_a_principal_gives_nothing",
)
QUOTED = _make_row(
    "name-quoted",
    "A name in quotes",
    types=_NAMED,
    needs=Needs.BLOCK,
    why="Brokers compare names as whole texts, so quotes are a part of the name "
    "(StandardAuthorizerData.java).",
    example=_make_quota("\"'orders'\""),
    fix="remove the quotes",
    proof=f"{_PROOFS}::test_another_spelling_of_a_principal_gives_nothing",
)
SEVERAL = _make_row(
    "name-several",
    "Several names in one text",
    types=_NAMED,
    needs=Needs.BLOCK,
    why="An ACL has one principal, and a quota one user (KIP-11, KIP-546): brokers take the text "
    "for one name.",
    example=_make_role("User:orders,User:billing"),
    fix="write one block for each, with for_each",
    proof=f"{_PROOFS}::test_another_spelling_of_a_principal_gives_nothing",
)
TYPED = _make_row(
    "name-with-type",
    "A principal where a user's name belongs",
    types=(quotas.KIND, users.KIND),
    needs=Needs.BLOCK,
    why="Quotas and credentials name a user without the type of the principal (KIP-546, KIP-554).",
    example=_make_quota('"User:orders"'),
    proof=f"{_QUOTAS}::test_another_spelling_of_a_user_limits_nobody",
)
PATTERN = _make_row(
    "quota-name-pattern",
    "A pattern where a quota takes a name",
    types=(quotas.KIND,),
    needs=Needs.BLOCK,
    why="Quotas have no patterns: an entity is one name, or the default for all that have no quota "
    "of their own (KIP-55, KIP-546).",
    example=_make_quota('"*"'),
    proof=f"{_QUOTAS}::test_a_pattern_in_a_quota_matches_nobody",
)
GROUP_TYPE = _make_row(
    "acl-principal-group",
    "An ACL for a group of users",
    types=(acls.KIND,),
    needs=Needs.BLOCK,
    why="The logins of Kafka make principals of the type User only "
    "(DefaultKafkaPrincipalBuilder.java); other types need a principal.builder.class of your own.",
    example=_make_role("Group:operators"),
    fix="write one block for each user, unless your brokers have such a class",
    proof=f"{_PROOFS}::test_another_spelling_of_a_principal_gives_nothing",
)
TOPIC_MISSING = _make_row(
    "acl-topic-missing",
    "An ACL for a topic that does not exist",
    types=(acls.KIND,),
    needs=Needs.PLAN,
    why="A literal ACL is for the topic of exactly this name (KIP-290).",
    example=_make_role("User:orders", "ordres"),
)
GROUP_MISSPELT = _make_row(
    "acl-group-misspelt",
    "An ACL for a group whose name is nearly that of another one",
    types=(acls.KIND,),
    needs=Needs.PLAN,
    why="A literal ACL is for the group of exactly this name (KIP-290). A group exists from its "
    "first member on, so only a name that is nearly that of another group is told.",
    example=_make_role("User:orders", group='\n  group     = "ordres"'),
)
LOGIN_MISSING = _make_row(
    "user-login-missing",
    "A name with which nobody logs in",
    types=(acls.KIND, quotas.KIND),
    needs=Needs.PLAN,
    why="The cluster has users with SCRAM credentials (KIP-554), and none of this name. Users of "
    "PLAIN, OAuth, certificates and Kerberos are in no list of the cluster.",
    example=_make_quota('"ordres"'),
    fix="correct the name, or leave it if the user logs in without SCRAM",
)
NO_GROUP = _make_row(
    "access-without-group",
    "Rights to read topics, and no group to read in",
    types=(acls.KIND,),
    needs=Needs.PLAN,
    why="A consumer with a group.id needs Read on that group, and is refused with "
    "GROUP_AUTHORIZATION_FAILED (30) otherwise (KafkaApis.handleJoinGroupRequest).",
    example=_make_role("User:orders", group=""),
    fix="set group, groups or group_prefixes, unless the client reads without a group",
    proof=f"{_PROOFS}::test_a_consumer_without_a_right_on_its_group_is_refused",
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
        for part, attribute in ((USER, "user"), (CLIENT_ID, "client_id")):
            if entity.get(part):
                yield _Name(entity[part], (attribute,), attribute.replace("_", " "))


def _judge_names(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action not in _CREATES or (change.action is Action.UPDATE and not change.paths):
        return
    for name in _list_names(change):
        yield from _judge_name(name)
    if change.identity.kind == quotas.KIND:
        yield from _judge_quota_names(change)
    if change.identity.kind == acls.KIND and change.after is not None:
        yield from _judge_principal(str(change.after["acl_principal"]))
    if change.identity.kind in TYPED.types:
        yield from _judge_types(change)


def _judge_name(name: _Name) -> Iterator[Finding]:
    text, bare = name.text, name.text.strip()
    if text != bare:
        yield BLANK.find(
            f"the {name.noun} '{text}' {'begins' if text[:1].isspace() else 'ends'} with a blank, "
            "which is a part of the name",
            name.path,
        )
    if len(bare) > 1 and bare[0] in _QUOTES and bare[0] == bare[-1]:
        yield QUOTED.find(
            f"the quotes are a part of the {name.noun} {bare}", name.path, fix=f"write {bare[1:-1]}"
        )


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
            default = name.text in (EVERYTHING, "<default>")
            yield PATTERN.find(
                f"a quota is for one {name.noun}, and none is called '{name.text}': quotas have no "
                "patterns",
                name.path,
                fix=f'write {name.path[0]} = "{quotas.DEFAULT}" for each without a quota of its own'
                if default
                else "write one block for each, with for_each",
            )
        # The names of certificates have commas, too: CN=app,O=shop.
        elif _LIST.search(name.text) and "=" not in name.text:
            yield SEVERAL.find(
                f"'{name.text}' is one {name.noun} with exactly this name", name.path
            )


def _judge_types(change: Change) -> Iterator[Finding]:
    for name in _list_names(change):
        plain = name.text.removeprefix("User:")
        if plain != name.text:
            yield TYPED.find(
                f"'{name.text}' is a principal; quotas and credentials use the name without "
                "'User:'",
                name.path,
                fix=f"write '{plain}', unless the user logs in with the name '{name.text}'",
            )


# ── what does not exist ─────────────────────────────────────────────────────────────────


def list_needs(changes: Iterable[Change]) -> Mapping[str, Depth]:
    """The listings that tell whether the names in created objects exist."""
    needs: dict[str, Depth] = {}
    for change in changes:
        if not change.effective or change.action not in _CREATES:
            continue
        if change.identity.kind == quotas.KIND and USER in quotas.read_entity(
            change.after or EMPTY
        ):
            needs[users.KIND] = Depth.NAMES
        if change.identity.kind == acls.KIND:
            acl = acls.parse_acl(change.after or EMPTY)
            needs |= {users.KIND: Depth.NAMES, acls.KIND: Depth.FULL, rights.KIND: Depth.FULL}
            kind = _KINDS.get(acl.resource_type)
            if kind is not None and acl.pattern_type != PREFIXED:
                needs[kind] = Depth.NAMES
    return needs


_KINDS = {"Topic": topics.KIND, "Group": groups.KIND}
"""Resource type of ACLs -> the listing of its names."""
_CONTAINERS: Mapping[str, tuple[str, ...]] = {
    topics.KIND: (topics.KIND,),
    groups.KIND: (GROUP_CONFIG.kind,),
    users.KIND: (users.KIND,),
}
"""Listing -> the resource types whose keys begin with such a name."""


def _list_live_and_declared(scene: Scene, kind: str) -> set[str]:
    """The names after the plan, as far as they can be seen."""
    sweep = scene.sweeps.get(kind)
    identities = {item.identity for item in sweep.items} if sweep else set()
    for change in scene.changes:
        if change.identity.kind not in _CONTAINERS[kind]:
            continue
        if change.after is not None:
            identities.add(change.identity)
        elif change.effective and change.action is Action.DELETE:
            identities.discard(change.identity)
    return {keys.split(identity.key)[0] for identity in identities}


def _list_created_acls(scene: Scene) -> list[tuple[Change, Acl]]:
    return [
        (change, acls.parse_acl(change.after or EMPTY))
        for change in scene.changes
        if change.identity.kind == acls.KIND and change.action is Action.CREATE and change.effective
    ]


def _is_complete(sweep: Sweep | None) -> bool:
    return sweep is not None and sweep.coverage.kind is CoverageKind.COMPLETE


def _get_block(change: Change) -> str:
    """The address of the block: a role's ACLs have one."""
    return change.address.partition("/acl[")[0]


def _survey_resources(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """Topics and groups that ACLs name and that do not exist, once for each block."""
    created = _list_created_acls(scene)
    told: set[tuple[str, str, str]] = set()
    sees_topic = _make_topic_sight(scene)
    for resource_type, kind in _KINDS.items():
        named = [
            (change, acl)
            for change, acl in created
            if acl.resource_type == resource_type
            and acl.pattern_type != PREFIXED
            and acl.resource_name != EVERYTHING
        ]
        sweep = scene.sweeps.get(kind)
        if not named or sweep is None or sweep.coverage.kind is CoverageKind.FAILED:
            continue
        names = _list_live_and_declared(scene, kind)
        index = index_names(names)
        for change, acl in named:
            place = (_get_block(change), kind, acl.resource_name)
            if acl.resource_name in names or place in told:
                continue
            told.add(place)
            near = index.find_near(acl.resource_name)
            if kind == topics.KIND and (near or sees_topic(acl.resource_name)):
                yield change.identity, _make_missing(TOPIC_MISSING, "topic", acl, near)
            elif near:
                yield change.identity, _make_missing(GROUP_MISSPELT, "group", acl, near)


def _make_missing(rule: Rule, noun: str, acl: Acl, near: str) -> Finding:
    text = f"the {noun} '{acl.resource_name}' is neither declared nor live"
    return rule.find(
        text + (f"; there is a {noun} '{near}'" if near else ""),
        ("resource_name",),
        fix=f"write '{near}' if that is meant"
        if near
        else f"correct the name, or declare the {noun}",
    )


class _TopicSight(Struct, frozen=True):
    """Whether a topic that is in no listing would be in it if it existed."""

    access: Access | None
    """The live ACLs; None if they are unknown."""
    principal: str | None
    favoured: bool
    """We have a right that no ACL explains: we are a super user, or what has no ACL is open."""
    deleted: frozenset[str]
    """The topics that this plan deletes."""

    def __call__(self, name: str) -> bool:
        if self.access is None or name in self.deleted:
            return name in self.deleted
        if self.favoured and not has_acl(self.access.index, "Topic", name):
            return True
        question = AccessQuestion(self.principal, None, "Describe", "Topic", name)
        return authorize(self.access, question).verdict is AccessVerdict.ALLOWED


def _make_topic_sight(scene: Scene) -> _TopicSight:
    # Brokers leave out topics that we may not describe, without an error.
    deleted = frozenset(
        change.identity.key
        for change in scene.changes
        if change.identity.kind == topics.KIND
        and change.action is Action.DELETE
        and change.effective
    )
    sweep, principal = scene.sweeps.get(acls.KIND), scene.facts.principal
    if sweep is None or not _is_complete(sweep):
        return _TopicSight(None, principal, favoured=False, deleted=deleted)
    access = _build_access([acls.parse_acl(item.attributes) for item in sweep.items], scene.facts)
    own = identify_self(access, scene.sweeps.get(rights.KIND), scene.facts)
    access = own.access(access)
    favoured = any(
        authorize(
            access, AccessQuestion(principal, None, operation, "Cluster", acls.CLUSTER)
        ).verdict
        is AccessVerdict.UNKNOWN
        for operation in own.cluster or ()
    )
    return _TopicSight(access, principal, favoured=favoured, deleted=deleted)


def _build_access(rules: Iterable[Acl], facts: Facts) -> Access:
    settings = FrozenMap(facts.values.get("authorizer") or EMPTY)
    super_users = settings.get("super_users")
    return Access(
        index_acls(rules),
        None if super_users is None else frozenset(super_users),
        settings.get("allow_if_no_acl"),
    )


def _survey_logins(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """Users that ACLs and quotas name, and that have no credential, once for each block."""
    if not _is_complete(scene.sweeps.get(users.KIND)):
        return
    names = _list_live_and_declared(scene, users.KIND)
    if not names:
        return
    settings = scene.facts.values.get("authorizer") or EMPTY
    others = {*(settings.get("super_users") or ()), scene.facts.principal, f"User:{ANONYMOUS}"}
    index = index_names(names)
    told: set[tuple[str, str]] = set()
    for change, name, path in _list_named_users(scene):
        place = (_get_block(change), name)
        plain = name not in names and name.strip() == name and not _OF_OTHER_LOGINS.search(name)
        if plain and f"User:{name}" not in others and place not in told:
            told.add(place)
            near = index.find_near(name)
            yield (
                change.identity,
                LOGIN_MISSING.find(
                    f"no user with a SCRAM credential is called '{name}', declared or live"
                    + (f"; there is a user '{near}'" if near else ""),
                    path,
                    fix=f"write '{near}' if that is meant" if near else None,
                ),
            )


def _list_named_users(scene: Scene) -> Iterator[tuple[Change, str, Path]]:
    for change, acl in _list_created_acls(scene):
        kind, _, name = acl.principal.partition(":")
        # What is no name of one user has a finding of its own.
        if kind == "User" and not name.endswith(EVERYTHING) and not _PRINCIPAL.search(name):
            yield change, name, ("acl_principal",)
    for change in scene.changes:
        if change.identity.kind != quotas.KIND or change.action not in _CREATES:
            continue
        name = quotas.read_entity(change.after or EMPTY).get(USER) if change.effective else None
        if name and not any(_judge_quota_names(change)) and not name.startswith("User:"):
            yield change, name, ("user",)


def _survey_groups(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """Principals that can read topics from now on, and have no group to read them in."""
    sweep = scene.sweeps.get(acls.KIND)
    created = _list_created_acls(scene)
    readers = [(change, acl) for change, acl in created if _allows_read(acl, "Topic")]
    if not readers or sweep is None or not _is_complete(sweep):
        return
    gone = {
        change.identity
        for change in scene.changes
        if change.action is Action.DELETE and change.effective
    }
    after: Sequence[Acl] = [
        *(acls.parse_acl(item.attributes) for item in sweep.items if item.identity not in gone),
        *(acl for _, acl in created),
    ]
    access = _build_access((), scene.facts)
    if access.allow_if_no_acl:
        return
    members = {acl.principal for acl in after if _allows_read(acl, "Group")}
    if "User:*" in members:
        return
    for change, acl in readers:
        if acl.principal not in {*members, *(access.super_users or ())}:
            members.add(acl.principal)
            yield (
                change.identity,
                NO_GROUP.find(
                    f"{acl.principal} can read topics, and has no right on any consumer group: a "
                    "consumer with a group.id is refused"
                ),
            )


def _allows_read(acl: Acl, resource_type: str) -> bool:
    return (
        acl.permission == ALLOW
        and acl.resource_type == resource_type
        and acl.operation in ("Read", "All")
    )


JUDGES = (
    Judge((BLANK, QUOTED, SEVERAL, TYPED, PATTERN, GROUP_TYPE), _NAMED, Needs.BLOCK, _judge_names),
)
SURVEYS = (
    Survey((TOPIC_MISSING, GROUP_MISSPELT), _survey_resources),
    Survey((LOGIN_MISSING,), _survey_logins),
    Survey((NO_GROUP,), _survey_groups),
)
