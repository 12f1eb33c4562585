"""`kafka_user_scram_credential`: a user's credential for one SCRAM mechanism (KIP-554).

The cluster reports only the mechanism and the iterations. The password is sent with a new
credential, when `password_wo_version` changes, and when the iterations change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import Closure, ResourceType

from ...protocol import keys
from ...protocol.acl import CLUSTER, EVERYTHING
from ...protocol.apis import ALTER_USER_SCRAM_CREDENTIALS
from ..kind import (
    DELETE_SCRAM_SHA_256,
    DELETE_SCRAM_SHA_512,
    SET_SCRAM_SHA_256,
    SET_SCRAM_SHA_512,
    SILENT,
    Document,
    KindRights,
    ResourceKind,
    all_paths,
    defer,
    make_closure,
    make_step,
    paths_below,
)

KIND = "kafka_user_scram_credential"
API = ALTER_USER_SCRAM_CREDENTIALS.name
# ScramControlManager refuses other numbers with UNACCEPTABLE_CREDENTIAL (93).
FEWEST, MOST = 4096, 16384
"""The fewest and the most iterations."""


class Mechanism(Struct, frozen=True):
    """One SCRAM mechanism."""

    code: int
    """The protocol's number."""
    digest: str
    """The hash's name in `hashlib`."""
    upsert: Request
    delete: Request


MECHANISMS: Mapping[str, Mechanism] = {
    "SCRAM-SHA-256": Mechanism(1, "sha256", SET_SCRAM_SHA_256, DELETE_SCRAM_SHA_256),
    "SCRAM-SHA-512": Mechanism(2, "sha512", SET_SCRAM_SHA_512, DELETE_SCRAM_SHA_512),
}


def identity_key(username: str, mechanism: str) -> str:
    """The key of a credential, and its import id."""
    return keys.join((username, mechanism))


def make_attributes(username: str, mechanism: str, iterations: int) -> FrozenMap:
    """The attributes of a credential that can be read."""
    return FrozenMap(username=username, scram_mechanism=mechanism, scram_iterations=iterations)


def _key(attributes: FrozenMap) -> str:
    username, mechanism = attributes.get("username"), attributes.get("scram_mechanism")
    if not isinstance(username, str) or not username:
        raise ValueError("a kafka_user_scram_credential needs a username")
    return identity_key(username, str(mechanism))


def _import_key(text: str) -> str:
    fields = keys.split(text)
    if len(fields) == 2 and fields[0] and fields[1] in MECHANISMS:
        return keys.join(fields)
    if len(fields) == 3:
        raise ValueError(
            "the import id of a kafka_user_scram_credential is username|scram_mechanism, without "
            "the password, which should not be in any file"
        )
    raise ValueError(
        "the import id of a kafka_user_scram_credential is username|scram_mechanism, with "
        f"{' or '.join(MECHANISMS)}"
    )


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    names = ("username", "scram_mechanism", "scram_iterations", "password")
    return FrozenMap({name: declared.get(name) for name in names})


def find_iteration_faults(iterations: Value) -> Iterable[tuple[str, str]]:
    """A number of iterations that Kafka refuses, with what to write instead."""
    if not isinstance(iterations, int) or not FEWEST <= iterations <= MOST:
        yield (
            f"scram_iterations = {iterations}: Kafka accepts {FEWEST} to {MOST}",
            f"Write a number from {FEWEST} to {MOST}.",
        )


def sends_password(change: Change) -> bool:
    """True if the password must be sent."""
    # Nobody can read which password is set. Other iterations need it again, because only the salted
    # password is stored.
    version = change.row_after.secret_version
    raised = version is not None and version != change.row_before.secret_version
    anew = change.action is Action.CREATE or (raised and not change.adopts)
    return anew or bool(paths_below(change, "scram_iterations"))


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    username, name = keys.split(change.identity.key)
    if change.action is Action.DELETE:
        payload: dict[str, Value] = {"username": username, "mechanism": name, "delete": True}
        return (
            _make_step(change, MECHANISMS[name].delete, payload, all_paths(change), Repeat.SAFE),
        )
    if not sends_password(change):
        return ()
    after = change.after or EMPTY
    payload = {
        "username": username,
        "mechanism": name,
        "iterations": after.get("scram_iterations"),
        "password": after.get("password"),
    }
    creates = change.action is Action.CREATE
    paths = all_paths(change) if creates else paths_below(change, "scram_iterations")
    # The salt is random, so a repeat would be another request, maybe over a newer password.
    return (_make_step(change, MECHANISMS[name].upsert, payload, paths, Repeat.NEVER),)


def _make_step(
    change: Change,
    request: Request,
    payload: Mapping[str, Value],
    paths: tuple[Path, ...],
    repeat: Repeat,
) -> Step:
    return make_step(
        change, 1, request, payload, paths, weight=1, repeat=repeat, evidence=Evidence.LOCAL
    )


_EVERYTHING = (
    ("Cluster", CLUSTER),
    *((resource_type, EVERYTHING) for resource_type in ("Topic", "Group", "TransactionalID")),
)
"""All that a user has access to: resource type and name."""


def _list_closures(
    attributes: FrozenMap, _: Facts, remaining: Sequence[FrozenMap]
) -> tuple[Closure, ...]:
    # A credential that was deleted cannot come back, because nobody can read the password. So the
    # user can still log in, and do nothing.
    username = attributes["username"]
    if any(credential["username"] == username for credential in remaining):
        raise ValueError(f'"{username}" keeps another credential, and so needs its access')
    return tuple(
        make_closure(name, f"User:{username}", "All", (name, resource))
        for name, resource in _EVERYTHING
    )


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "A user's SCRAM credential. The import id is username|scram_mechanism. Nobody can read a "
        "password back, so it is sent when the credential is created, when password_wo_version "
        "changes, and when scram_iterations changes.",
        AttributeSchema("username", STRING, "Name of the user.", required=True),
        AttributeSchema(
            "scram_mechanism",
            STRING,
            "The SCRAM mechanism.",
            required=True,
            choices=tuple(MECHANISMS),
        ),
        AttributeSchema(
            "scram_iterations",
            NUMBER,
            f"Iterations of the hash, from {FEWEST} to {MOST}.",
            default=FEWEST,
            whole=True,
            refuses=find_iteration_faults,
        ),
        AttributeSchema(
            "password",
            STRING,
            "The password.",
            required=True,
            secret=True,
            aliases=("password_wo",),
        ),
        AttributeSchema(
            "password_wo_version",
            STRING,
            "Any text. When it changes, the password is sent again.",
            aliases=("password_version",),
        ),
    ),
    key=_key,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=_import_key,
    belongs_to=lambda attributes, principal: f"User:{attributes['username']}" == principal,
    closures=_list_closures,
)


def list_users(items: Sequence[Observed], name: str, _: Mapping[str, str]) -> tuple[FrozenMap, ...]:
    """One row for each user, with its credentials."""
    users: dict[str, list[FrozenMap]] = {}
    for item in sorted(items, key=lambda item: item.identity.key):
        credential = FrozenMap(
            mechanism=item.attributes["scram_mechanism"],
            iterations=item.attributes["scram_iterations"],
        )
        users.setdefault(item.attributes["username"], []).append(credential)
    return tuple(
        FrozenMap(name=user, credentials=tuple(credentials))
        for user, credentials in sorted(users.items())
        if fnmatchcase(user, name)
    )


KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        # Reading and changing users needs Describe and Alter on Cluster, which ACLs need too and
        # which the guard always protects.
        rights=KindRights("Cluster", deletes="Alter"),
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED"),
        document=Document("users", list_users, "other users may be hidden"),
    ),
)
