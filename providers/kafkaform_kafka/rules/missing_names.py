"""Rules of names that do not exist: typos in ACLs, roles and quotas, and readers without a group.

Only what a plan creates or changes is asked about, and never where the listing that would show a
name is not known to be complete. Names are near if one or two typing mistakes lie between them: a
character that is missing, doubled, wrong, or exchanged with its neighbour. `orders-1` and
`orders-2` are siblings and not near.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from kafkaform.core.change import Action, Change, Path
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity, Sweep
from kafkaform.core.rule import Needs, Rule, Scene, Survey
from kafkaform.core.value import EMPTY

from ..authority.authorizer import (
    Access,
    AccessQuestion,
    AccessVerdict,
    authorize,
    has_acl,
    index_acls,
)
from ..authority.permissions import identify_self
from ..kinds.config.resource_type import GROUP as GROUP_CONFIG
from ..kinds.quota import resource_type as quotas
from ..kinds.quota.limits import USER
from ..kinds.topic import resource_type as topics
from ..kinds.user import resource_type as users
from ..protocol import acl as acls
from ..protocol import keys
from ..protocol.acl import ALLOW, EVERYTHING, LISTED_GROUPS, LISTED_RIGHTS, PREFIXED, Acl
from ..protocol.cluster_facts import KafkaFacts
from .names import SETS, judge_names, make_quota, make_role

SHORT = 6
"""Names with fewer characters are near with one mistake only: two make another word."""
_SEPARATORS = re.compile(r"[._-]")
_NUMBERS = re.compile(r"[._-]?v?\d+", re.ASCII)


class NameIndex(Struct, frozen=True):
    """The names of one kind; `index_names` makes one."""

    lengths: Mapping[int, Sequence[str]]
    """Length -> the names of this length, sorted."""
    plain: Mapping[str, str]
    """Name without its case and separators -> the first such name."""

    def find_near(self, name: str) -> str:
        """The nearest of these names, the first of equally near ones; empty if none is near."""
        respelled = self.plain.get(_simplify(name), name)
        if respelled != name:
            return respelled
        most, stem = 1 if len(name) < SHORT else 2, _drop_numbers(name)
        best, least = "", most + 1
        for candidate in self._list_candidates(name, most):
            if candidate != name and _drop_numbers(candidate) != stem:
                distance = _count_mistakes(name, candidate, least - 1)
                best, least = (candidate, distance) if distance < least else (best, least)
        return best

    def _list_candidates(self, name: str, most: int) -> Iterator[str]:
        # Two mistakes touch four of five parts at most, even if both exchange neighbours of two
        # parts. So a near name has one part as it is, which is quick to find.
        size = max(1, len(name) // 5)
        chunks = {name[start : start + size] for start in range(0, len(name) - size + 1, size)}
        has_part = re.compile("|".join(map(re.escape, sorted(chunks)))).search
        for length in range(len(name) - most, len(name) + most + 1):
            yield from filter(has_part, self.lengths.get(length, ()))


def index_names(names: Iterable[str]) -> NameIndex:
    """These names, ready to be searched for near ones."""
    lengths: dict[int, list[str]] = defaultdict(list)
    plain: dict[str, str] = {}
    for name in sorted(names):
        lengths[len(name)].append(name)
        plain.setdefault(_simplify(name), name)
    return NameIndex(lengths, plain)


def _simplify(name: str) -> str:
    """Equal for names that differ only in case and separators."""
    return _SEPARATORS.sub("-", name).casefold()


def _drop_numbers(name: str) -> str:
    """Equal for siblings: `orders`, `orders-1` and `orders-v2`."""
    return _NUMBERS.sub("", name)


def _count_mistakes(name: str, candidate: str, most: int) -> int:
    """The mistakes between two names, or a number over `most`. Few mistakes are quicker tried than
    counted by a table."""
    if name == candidate:
        return 0
    if most == 0 or abs(len(name) - len(candidate)) > most:
        return most + 1
    start = 0
    for char, candidate_char in zip(name, candidate, strict=False):
        if char != candidate_char:
            break
        start += 1
    name, candidate = name[start:], candidate[start:]
    rests = [(name[1:], candidate[1:]), (name[1:], candidate), (name, candidate[1:])]
    if name[:2] == candidate[1::-1]:
        rests.append((name[2:], candidate[2:]))
    return 1 + min(_count_mistakes(*suffixes, most - 1) for suffixes in rests)


# `CN=app,O=shop` of a certificate, `app/host@REALM` of Kerberos.
_OF_OTHER_LOGINS = re.compile(r"[=/@]")
COMPARED = 200_000
"""Pairs of names that a plan compares: what takes a second or two. Where more names are missing,
they are no typos, and the nearest ones are not looked for."""
ANONYMOUS = "User:ANONYMOUS"
"""Whoever does not log in."""
_PROOFS = "tests/cluster/claims/test_names.py"
_make_row = partial(Rule, level=Level.CAUTION, harm=Harm.NONE)


# ── rows ────────────────────────────────────────────────────────────────────────────────

TOPIC_MISSING = _make_row(
    "acl-topic-missing",
    "An ACL for a topic that does not exist",
    types=(acls.KIND,),
    needs=Needs.PLAN,
    why="A literal ACL is for the topic of exactly this name (KIP-290).",
    example=make_role("User:orders", "ordres"),
    fix="Correct the name, or declare the topic.",
    proof="tests/cluster/claims/test_access.py::test_an_acl_that_only_seems_to_match_gives_nothing",
)
GROUP_MISSPELT = _make_row(
    "acl-group-misspelt",
    "An ACL for a group whose name is nearly that of another one",
    types=(acls.KIND,),
    needs=Needs.PLAN,
    why="A literal ACL is for the group of exactly this name (KIP-290). A group exists from its "
    "first member on, so only a name that is nearly that of another group is told.",
    example=make_role("User:orders", group='\n  group     = "ordres"'),
    fix="Correct the name, or leave it if the group is still to come.",
    proof="tests/cluster/claims/test_access.py::test_a_star_at_the_end_of_a_group_name_matches_nothing",
)
LOGIN_MISSING = _make_row(
    "user-login-missing",
    "A name with which nobody logs in",
    types=(acls.KIND, quotas.KIND),
    needs=Needs.PLAN,
    why="The cluster has users with SCRAM credentials (KIP-554), and none of this name. Users of "
    "PLAIN, OAuth, certificates and Kerberos are in no list of the cluster.",
    example=make_quota('"ordres"'),
    fix="Correct the name, or leave it if the user logs in without SCRAM.",
    proof="tests/cluster/claims/test_access.py::test_a_user_of_plain_is_in_no_list",
)
NO_GROUP = _make_row(
    "access-without-group",
    "Rights to read topics, and no group to read in",
    types=(acls.KIND,),
    needs=Needs.PLAN,
    why="A consumer with a group.id needs Read on that group, and is refused with "
    "GROUP_AUTHORIZATION_FAILED (30) otherwise (KafkaApis.handleJoinGroupRequest).",
    example=make_role("User:orders", group=""),
    fix="Set group, groups or group_prefixes, unless the client reads without a group.",
    proof=f"{_PROOFS}::test_a_consumer_without_a_right_on_its_group_is_refused",
)


# ── what does not exist ─────────────────────────────────────────────────────────────────


def list_needs(changes: Iterable[Change]) -> Mapping[str, Depth]:
    """The listings that tell whether the names in created objects exist."""
    needs: dict[str, Depth] = {}
    for change in changes:
        if not change.effective or change.action not in SETS:
            continue
        if change.identity.kind == quotas.KIND and USER in quotas.read_entity(
            change.after or EMPTY
        ):
            needs[users.KIND] = Depth.NAMES
        if change.identity.kind == acls.KIND:
            acl = acls.parse_acl(change.after or EMPTY)
            needs |= {users.KIND: Depth.NAMES, acls.KIND: Depth.FULL, LISTED_RIGHTS: Depth.FULL}
            kind = _KINDS.get(acl.resource_type)
            if kind is not None and acl.pattern_type != PREFIXED:
                needs[kind] = Depth.NAMES
    return needs


_KINDS = {"Topic": topics.KIND, "Group": LISTED_GROUPS}
"""Resource type of ACLs -> the listing of its names."""
_CONTAINERS: Mapping[str, tuple[str, ...]] = {
    topics.KIND: (topics.KIND,),
    LISTED_GROUPS: (GROUP_CONFIG.kind,),
    users.KIND: (users.KIND,),
}
"""Listing -> the resource types whose keys begin with such a name."""


def _list_live_and_declared(scene: Scene, kind: str) -> set[str]:
    """The names after the plan, as far as they can be seen."""
    sweep = scene.sweeps.get(kind)
    identities = {item.identity for item in sweep.items} if sweep else set()
    instances = {change.identity.instance for change in scene.changes}
    identities |= {
        i for i in scene.elsewhere if i.kind in _CONTAINERS[kind] and i.instance in instances
    }
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
    reported: set[tuple[str, str, str]] = set()
    sees_topic = _make_topic_sight(scene)
    for resource_type, kind in _KINDS.items():
        rules = [
            (change, acl)
            for change, acl in created
            if acl.resource_type == resource_type
            and acl.pattern_type != PREFIXED
            and acl.resource_name != EVERYTHING
        ]
        sweep = scene.sweeps.get(kind)
        if not rules or sweep is None or sweep.coverage.kind is CoverageKind.FAILED:
            continue
        names = _list_live_and_declared(scene, kind)
        index = index_names(names)
        for change, acl in rules:
            key = (_get_block(change), kind, acl.resource_name)
            if acl.resource_name in names or key in reported:
                continue
            reported.add(key)
            near = (
                index.find_near(acl.resource_name) if len(reported) * len(names) <= COMPARED else ""
            )
            if kind == topics.KIND and (near or sees_topic(acl.resource_name)):
                yield change.identity, _make_missing(TOPIC_MISSING, "topic", acl, near)
            elif near:
                yield change.identity, _make_missing(GROUP_MISSPELT, "group", acl, near)


def _make_missing(rule: Rule, noun: str, acl: Acl, near: str) -> Finding:
    text = f"the {noun} '{acl.resource_name}' is neither declared nor live"
    return rule.find(
        text + (f"; there is a {noun} '{near}'" if near else ""),
        ("resource_name",),
        fix=f"Write '{near}' if that is meant."
        if near
        else f"Correct the name, or declare the {noun}.",
    )


class _TopicSight(Struct, frozen=True):
    """Whether a topic that is in no listing would be in it if it existed."""

    access: Access | None
    """The live ACLs; None if they are unknown."""
    principal: str | None
    is_favoured: bool
    """We have a right that no ACL explains: we are a super user, or what has no ACL is open."""
    deleted: frozenset[str]
    """The topics that this plan deletes."""

    def __call__(self, name: str) -> bool:
        if self.access is None or name in self.deleted:
            return name in self.deleted
        if self.is_favoured and not has_acl(self.access.index, "Topic", name):
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
        return _TopicSight(None, principal, is_favoured=False, deleted=deleted)
    access = _build_access([acls.parse_acl(item.attributes) for item in sweep.items], scene.facts)
    own = identify_self(access, scene.sweeps.get(LISTED_RIGHTS), scene.facts)
    access = own.access(access)
    is_favoured = any(
        authorize(
            access, AccessQuestion(principal, None, operation, "Cluster", acls.CLUSTER)
        ).verdict
        is AccessVerdict.UNKNOWN
        for operation in own.cluster or ()
    )
    return _TopicSight(access, principal, is_favoured=is_favoured, deleted=deleted)


def _build_access(rules: Iterable[Acl], facts: Facts) -> Access:
    cluster = KafkaFacts.of(facts)
    super_users = cluster.authorizer.get("super_users")
    return Access(
        index_acls(rules),
        None if super_users is None else frozenset(super_users),
        cluster.authorizer.get("allow_if_no_acl"),
        zookeeper=bool(cluster.zookeeper),
    )


def _survey_logins(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """Users that ACLs and quotas name, and that have no credential, once for each block."""
    if not _is_complete(scene.sweeps.get(users.KIND)):
        return
    names = _list_live_and_declared(scene, users.KIND)
    if not names:
        return
    settings = KafkaFacts.of(scene.facts).authorizer
    exempt = {*(settings.get("super_users") or ()), scene.facts.principal, ANONYMOUS}
    index = index_names(names)
    reported: set[tuple[str, str]] = set()
    for change, name, path in _list_named_users(scene):
        key = (_get_block(change), name)
        exists = name in names or f"User:{name}" in exempt or _OF_OTHER_LOGINS.search(name)
        if not exists and key not in reported:
            reported.add(key)
            near = index.find_near(name) if len(reported) * len(names) <= COMPARED else ""
            yield (
                change.identity,
                LOGIN_MISSING.find(
                    f"no user with a SCRAM credential is called '{name}', declared or live"
                    + (f"; there is a user '{near}'" if near else ""),
                    path,
                    fix=f"Write '{near}' if that is meant." if near else None,
                ),
            )


def _list_named_users(scene: Scene) -> Iterator[tuple[Change, str, Path]]:
    """The users that ACLs and quotas name. A name that matches nothing anyway is left out."""
    for change in scene.changes:
        kind, attributes = change.identity.kind, change.after or EMPTY
        if kind not in LOGIN_MISSING.types or not change.effective or change.action not in SETS:
            continue
        if kind == acls.KIND:
            type_, _, name = attributes["acl_principal"].partition(":")
            name = name if type_ == "User" and not name.endswith(EVERYTHING) else None
            path = ("acl_principal",)
        else:
            name, path = quotas.read_entity(attributes).get(USER), ("user",)
        if name and not any(judge_names(change, scene.facts)):
            yield change, name, path


def _survey_groups(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    """Principals that can read topics from now on, and have no group to read them in."""
    sweep = scene.sweeps.get(acls.KIND)
    created = _list_created_acls(scene)
    readers = [(change, acl) for change, acl in created if _allows_read(acl, "Topic")]
    if not readers or sweep is None or not _is_complete(sweep):
        return
    deleted = {
        change.identity
        for change in scene.changes
        if change.action is Action.DELETE and change.effective
    }
    rules = [
        *(acls.parse_acl(item.attributes) for item in sweep.items if item.identity not in deleted),
        *(acl for _, acl in created),
    ]
    access = _build_access(rules, scene.facts)
    if access.allow_if_no_acl:
        return
    members = {acl.principal for acl in rules if _allows_read(acl, "Group")}
    if "User:*" in members:
        return
    for change, acl in readers:
        if acl.principal in {*members, *(access.super_users or ())}:
            continue
        host = None if acl.host == EVERYTHING else acl.host
        question = AccessQuestion(acl.principal, host, "Read", "Topic", acl.resource_name)
        # A DENY can take away what the ACL gives.
        if authorize(access, question).verdict is AccessVerdict.ALLOWED:
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


SURVEYS = (
    Survey((TOPIC_MISSING, GROUP_MISSPELT), _survey_resources),
    Survey((LOGIN_MISSING,), _survey_logins),
    Survey((NO_GROUP,), _survey_groups),
)
