"""Complete the next word of a command, with names that the cluster has now or with fixed words, and
read the objects that a command names: the kind and then the name, as in `topic orders`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import UsageError
from kafkaform.core.text import inline
from kafkaform.provider.commands import Ask, Complete, NameListing
from kafkaform.provider.contract import Session

from .. import inspect
from ..inspect.configs import CONFIG_ENTITIES, ENTITY_TYPES
from ..inspect.documents import open_source, read_document
from ..inspect.source import DescribeQuery
from ..kinds.quota.limits import QUOTA_KEYS
from ..kinds.user.resource_type import MECHANISMS
from ..protocol.config_keys import GROUP_KEYS, METRICS_KEYS, TOPIC_KEYS, UpdateMode, broker_keys

_AT_ONCE = (UpdateMode.BROKER, UpdateMode.CLUSTER)

# Of brokers only the dynamic configs (KIP-226). All others need server.properties and a restart,
# and those of one listener need its name in front.
KEYS: Mapping[str, Callable[[], Iterable[str]]] = {
    "topic": lambda: TOPIC_KEYS,
    "broker": lambda: (n for n, key in broker_keys().items() if key.mode in _AT_ONCE),
    "group": lambda: GROUP_KEYS,
    "client-metrics": lambda: METRICS_KEYS,
    "user": lambda: (*(n for n, key in QUOTA_KEYS.items() if not key.ip), *MECHANISMS),
    "client": lambda: (n for n, key in QUOTA_KEYS.items() if not key.ip),
    "ip": lambda: (n for n, key in QUOTA_KEYS.items() if key.ip),
}
"""Entity of `alter` -> the configs that it takes."""


# ── names ───────────────────────────────────────────────────────────────────────────────


# Each listing is a document of `describe`, so that completion offers what `describe` shows. The
# shell keeps its answer for some seconds: a key press must not send a request each time.
def list_topics(session: Session) -> Iterable[str]:
    """Names of topics that we can see."""
    return [row["name"] for row in read_document(session, "topics", DescribeQuery())["topics"]]


def list_brokers(session: Session) -> Iterable[str]:
    """Ids of the live brokers."""
    return [str(row["id"]) for row in read_document(session, "brokers", DescribeQuery())["brokers"]]


def list_users(session: Session) -> Iterable[str]:
    """Users with a password and users with a limit."""
    users = read_document(session, "users", DescribeQuery())["users"]
    return {*(row["name"] for row in users), *_list_limited(session, "user")}


def list_principals(session: Session) -> Iterable[str]:
    """Principals of ACLs, and the users."""
    acls = read_document(session, "acls", DescribeQuery())["acls"]
    users = (f"User:{name}" for name in list_users(session))
    return {*(row["acl_principal"] for row in acls), *users}


def list_clients(session: Session) -> Iterable[str]:
    """Client ids with a limit."""
    return _list_limited(session, "client-id")


def list_addresses(session: Session) -> Iterable[str]:
    """IP addresses with a limit."""
    return _list_limited(session, "ip")


def list_groups(session: Session) -> Iterable[str]:
    """Groups that we can see."""
    return _list_entities(session, "groups")


def list_active_groups(session: Session) -> Iterable[str]:
    """Groups that have members or offsets now, without a look at their configs."""
    return [
        group.name for group in inspect.group_details.list_all_groups(open_source(session)).groups
    ]


def list_transactional_ids(session: Session) -> Iterable[str]:
    """Transactional ids that a coordinator remembers."""
    transactions = inspect.transactions.list_all_transactions(open_source(session)).transactions
    return [transaction.row.transactional_id for transaction in transactions]


def list_subscriptions(session: Session) -> Iterable[str]:
    """Names of client metrics subscriptions."""
    return _list_entities(session, "client-metrics")


def list_tokens(session: Session) -> Iterable[str]:
    """Ids of delegation tokens that we can see."""
    rows = read_document(session, "delegation-tokens", DescribeQuery())["delegation-tokens"]
    return [row["token_id"] for row in rows]


def _list_limited(session: Session, kind: str) -> Iterable[str]:
    """The names in entities of quotas."""
    rows = read_document(session, "quotas", DescribeQuery())["quotas"]
    names = (row["entity"].get(kind) for row in rows)
    return [name for name in names if name is not None]  # the default entity has no name


def _list_entities(session: Session, entity_type: str) -> Iterable[str]:
    document = read_document(session, "configs", DescribeQuery(entity_type=entity_type))
    return [entity["name"] for entity in document["entities"]]


LISTINGS: Mapping[str, NameListing] = {
    **dict.fromkeys(("topic", "topics"), list_topics),
    **dict.fromkeys(("broker", "brokers"), list_brokers),
    **dict.fromkeys(("user", "users"), list_users),
    **dict.fromkeys(("group", "groups"), list_groups),
    **dict.fromkeys(("delegation-token", "delegation-tokens"), list_tokens),
    "client": list_clients,
    "ip": list_addresses,
    "client-metrics": list_subscriptions,
}
"""Entity or entity type -> the listing of its names."""
CLIENT_LISTINGS = {"user": list_users, "client": list_clients, "ip": list_addresses}
"""Kind of whom a quota limits -> the listing of their names."""
NAMELESS = "cluster"
"""The one kind of which there is one object only, so that no name follows."""
RESOURCE_LISTINGS: Mapping[str, NameListing | None] = {
    "topic": list_topics,
    "group": list_groups,
    "transactional-id": list_transactional_ids,
    "delegation-token": list_tokens,
    "user-principal": list_principals,
    NAMELESS: None,
}
"""Kind of resource -> what lists the names that there are."""


# ── completions ─────────────────────────────────────────────────────────────────────────


def complete_entity(words: Sequence[str], ask: Ask) -> Iterable[str]:
    """Complete with names of the objects that the command is about (`describe topics`, `alter
    topic`); for `describe configs`, those of the entity type."""
    listing = LISTINGS.get(_read_entity_type(words) if words[1] == "configs" else words[1])
    return ask(listing) if listing else ()


def complete_described_configs(words: Sequence[str], ask: Ask) -> Iterable[str]:
    """Complete the words of `describe configs`: a kind, a name unless it is the cluster, and
    configs. After --entity-type, and after a config, only configs follow."""
    operands = [word for word in words[2:] if word[:2] != "--"]
    entity_type = _read_entity_type(words)
    kinds: Iterable[str] = ()
    if operands[:1] and operands[0] in ENTITY_TYPES:
        kind, *names = operands
        if not names and kind != "cluster":
            return complete_entity(("alter", kind), ask)
        entity_type = ENTITY_TYPES[kind]
    elif entity_type == "topics" and operands in ([], ["topics"]):
        kinds = ENTITY_TYPES
    entity = CONFIG_ENTITIES.get(entity_type)
    return (*kinds, *(entity.known() if entity else ()))


def complete_altered_keys(words: Sequence[str], _: Ask) -> Iterable[str]:
    """Complete --delete-config with the configs that `alter` can change."""
    return KEYS[words[1]]()


def complete_altered_pairs(words: Sequence[str], _: Ask) -> Iterable[str]:
    """Complete --add-config with the same configs; a value follows."""
    return [f"{key}=" for key in KEYS[words[1]]()]


def _read_entity_type(words: Sequence[str]) -> str:
    """The value of the last --entity-type, topics without one."""
    kinds = [kind for flag, kind in pairwise(words) if flag == "--entity-type"]
    return kinds[-1] if kinds else "topics"


# ── objects that a command names ────────────────────────────────────────────────────────


def read_objects(words: Sequence[str], kinds: Iterable[str]) -> Mapping[str, str | None]:
    """Kind -> name, of words such as `user ci client app`; None if the last kind has no name.
    Raises UsageError."""
    kind_names = tuple(kinds)
    named: dict[str, str | None] = {}
    remaining = list(words)
    while remaining:
        kind = remaining.pop(0)
        if kind not in kind_names:
            raise make_kind_error(kind, kind_names)
        if kind in named:
            raise UsageError(f"{kind} is named twice", "Name each kind only once.")
        named[kind] = NAMELESS if kind == NAMELESS else remaining.pop(0) if remaining else None
    return named


def merge_objects(
    named: Mapping[str, str | None], flags: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    """The objects of the words and those of the flags, without those that neither names. Raises
    UsageError if both name one kind, and for a kind without a name."""
    flag_values = {kind: name for kind, name in flags.items() if name is not None}
    for kind, name in named.items():
        if name is None:
            raise UsageError(f"{kind} has no name", f"Write {kind} NAME.")
        if kind in flag_values:
            raise UsageError(
                f"{kind} {inline(name)} and --{FLAGS.get(kind, kind)} exclude each other",
                "Give one of them.",
            )
    return {**flag_values, **{kind: name for kind, name in named.items() if name is not None}}


FLAGS: Mapping[str, str] = {"client": "client-id"}
"""Kind -> its flag, if that is called otherwise."""


def make_kind_error(word: str, kinds: Sequence[str]) -> UsageError:
    """The error for a word where a kind is expected."""
    listed = ", ".join(kinds)
    return UsageError(
        f"{inline(repr(word))} is not a kind of object here",
        suggest(word, kinds) or f"Write the kind and the name; the kinds are {listed}.",
    )


def complete_objects(listings: Mapping[str, NameListing | None]) -> Complete:
    """Complete kinds and names in turn. listings: kind -> what lists its names, if anything
    does."""

    def complete(words: Sequence[str], ask: Ask) -> Iterable[str]:
        operands = [word for word in words[2:] if not word.startswith("-")]
        while operands and operands[0] in listings:
            kind = operands.pop(0)
            if kind == NAMELESS:
                continue
            if not operands:
                listing = listings[kind]
                return ask(listing) if listing is not None else ()
            operands.pop(0)
        return () if operands else [kind for kind in listings if kind not in words[2:]]

    return complete
