"""`kafka_connect_connector`: a connector, what it is configured with, and whether it runs.

A worker keeps no id of a connector that would distinguish it from another one of the same name. So
a connector has no incarnation, and every request but the create is absolute.

What halts a connector leaves before its new configs, so that it does not run with them first; what
lets it run leaves after them.

With `offsets_from`, a connector goes on where another one ends. It is created stopped, the other
one is stopped, the offsets are copied, and only then it runs. A deletion of the other one waits for
all of this, as every deletion does. A stopped connector can still lack offsets, so each change of
one copies those that it lacks: whatever ends a run early, the next one goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import (
    Action,
    Change,
    Evidence,
    Path,
    Repeat,
    Request,
    SideEffect,
    Step,
)
from kafkaform.core.resource import CoverageKind, Depth, Facts, Observed, Sweep, Use
from kafkaform.core.schema import STRING, TEXT, AttributeSchema, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value
from kafkaform.provider.contract import BlockCompletion, Outlook, ResourceType

from .definitions import (
    ConnectFacts,
    advise_secret,
    describe_plain_secret,
    is_same_plugin,
    is_secret,
    name_source,
)

TOPIC, GROUP = "kafka_topic", "kafka_consumer_group"
"""The resource types of topics and of consumer groups in the rights that a user needs."""
USED_KINDS = frozenset({TOPIC, GROUP})
READS, WRITES = "reads", "writes to"
READ, WRITE = "Read", "Write"

_SINGLE: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # FileStreamSource and many other sources; the second is that of several vendors.
    "topic": (WRITES, (WRITE,)),
    "kafka.topic": (WRITES, (WRITE,)),
    "errors.deadletterqueue.topic.name": ("sends what fails to", (WRITE,)),
    # KIP-618: a source can keep its offsets in a topic of its own.
    "offsets.storage.topic": ("keeps its offsets in", (READ, WRITE)),
}
"""Configs with the name of one topic -> what a connector does with it, and the rights for it."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
MIRROR = "org.apache.kafka.connect.mirror."
"""MirrorMaker's `topics` are patterns, and for another Kafka cluster."""
_CLIENTS = ("producer", "consumer", "admin")
ELSEWHERE = {
    *(f"{client}.override.bootstrap.servers" for client in _CLIENTS),
    # Confluent's Replicator copies from one cluster to another.
    "src.kafka.bootstrap.servers",
    "dest.kafka.bootstrap.servers",
}
"""Configs with the address of another Kafka cluster."""
_LOGINS = tuple(
    f"{client}.override.{prefix}" for client in _CLIENTS for prefix in ("sasl.", "ssl.")
)
"""How the configs begin that let a client log in as somebody else than the workers."""


NAMING = tuple(_SINGLE)
"""Configs with the name of one topic."""
TARGETS = ("topic", "kafka.topic")
"""Configs with the topic that a source writes to."""


def is_sink(attributes: FrozenMap) -> bool:
    """True for a connector that reads topics of the workers' own cluster. Every sink has `topics`
    or `topics.regex` (SinkConnectorConfig), and hardly a source has."""
    config = attributes.get("config") or EMPTY
    names = config.get("topics") or config.get("topics.regex")
    return bool(names) and not str(attributes.get("class") or "").startswith(MIRROR)


def reads_pattern(attributes: FrozenMap) -> bool:
    """True for a sink that reads whatever topics fit a pattern."""
    return bool((attributes.get("config") or EMPTY).get("topics.regex"))


def name_group(attributes: FrozenMap) -> str:
    """The consumer group of a sink."""
    config = attributes.get("config") or EMPTY
    return str(config.get("consumer.override.group.id") or f"connect-{attributes.get('name')}")


def list_uses(attributes: FrozenMap) -> Sequence[Use]:
    """What these attributes of a connector name, each once. Topics that only the connector's code
    knows are none of it."""
    config = attributes.get("config") or EMPTY
    if not ELSEWHERE.isdisjoint(config) or str(attributes.get("class") or "").startswith(MIRROR):
        return ()
    uses = _find_uses(attributes, config)
    if any(key.startswith(_LOGINS) for key in (*config, *(attributes.get("secret_keys") or ()))):
        uses = (replace(use, rights=()) for use in uses)
    uses_by_object: dict[tuple[str, str], Use] = {}
    for use in uses:
        uses_by_object.setdefault((use.kind, use.key), use)
    return tuple(sorted(uses_by_object.values()))


def _find_uses(attributes: FrozenMap, config: FrozenMap) -> Iterator[Use]:
    pattern = str(config.get("topics.regex") or "").strip()
    for topic in (topics := list_topics(config, "topics")):
        yield Use(TOPIC, topic, READS, rights=(READ,))
    if pattern:
        # The connector goes on without one of the topics.
        yield Use(TOPIC, pattern, READS, needed=False, rights=(READ,), pattern=True)
    if topics or pattern:
        yield Use(
            GROUP, name_group(attributes), "keeps its offsets in", needed=False, rights=(READ,)
        )
    for key, (verb, rights) in _SINGLE.items():
        for topic in list_topics(config, key):
            yield Use(TOPIC, topic, verb, rights=rights)


def list_topics(config: FrozenMap, key: str) -> list[str]:
    """The topics that a config names."""
    if key not in config:
        return []
    names = (name.strip() for name in str(config.get(key) or "").split(","))
    return [name for name in names if _NAME.fullmatch(name)]


MAX_ITEMS = 100
"""Connectors in a batch. Each is a request of its own, and the leader of the workers takes one
after the other; the outcomes of a batch become durable together."""


def make_request(name: str, part_number: int, phase: int) -> Request:
    """A place in the order of requests."""
    return Request(name, part_number, phase, max_items=MAX_ITEMS, max_weight=MAX_ITEMS)


CREATE = make_request("CreateConnectors", 1, 10)
HALT = make_request("HaltConnectors", 1, 20)
CONFIGURE = make_request("ConfigureConnectors", 1, 30)
CARRY = make_request("CarryOffsets", 1, 35)
RESUME = make_request("ResumeConnectors", 1, 40)
RESTART = make_request("RestartConnectors", 1, 50)
DELETE = make_request("DeleteConnectors", 2, 10)

HALTED = ("paused", "stopped")


def make_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    """The steps of a change: one for a create and a delete, up to three for an update."""
    make = _STEPS.get(change.action)
    return make(change) if make else ()


def _create(change: Change) -> tuple[Step, ...]:
    after = change.after or EMPTY
    secrets = after.get("secret_config") or EMPTY
    carries = bool(after.get(OFFSETS_FROM))
    payload = {
        "class": after["class"],
        "config": after["config"],
        "secrets": secrets,
        "state": STOPPED if carries else after["state"],
    }
    evidence = Evidence.LOCAL if secrets else Evidence.REMOTE
    paths = _list_paths(change)
    if not carries:
        return (_make_step(change, 1, CREATE, payload, paths, Repeat.VERIFY, evidence),)
    made_later = {("state",), (OFFSETS_FROM,)}
    made = tuple(path for path in paths if path not in made_later)
    state = FrozenMap(state=after["state"])
    return (
        _make_step(change, 1, CREATE, payload, made, Repeat.VERIFY, evidence),
        _carry(change, 2),
        _make_step(change, 3, RESUME, state, (("state",),)),
    )


def _carry(change: Change, number: int) -> Step:
    """The step that copies offsets. It reads what is there first, so it can be sent again."""
    source = (change.after or EMPTY)[OFFSETS_FROM]
    step = _make_step(change, number, CARRY, {"source": source}, ((OFFSETS_FROM,),))
    stop = SideEffect(replace(change.identity, key=source), ("state",))
    return replace(step, alters=(stop,))


def _delete(change: Change) -> tuple[Step, ...]:
    return (_make_step(change, 1, DELETE, EMPTY, _list_paths(change)),)


def _update(change: Change) -> tuple[Step, ...]:
    after = change.after or EMPTY
    halts = after.get("state") in HALTED
    state = _select_paths(change, "state", OFFSETS_MISSING)
    failed = _select_paths(change, "failures")
    if failed and after.get("state") == "stopped":
        # A stopped connector has no tasks that could have failed.
        state, failed = (*state, *failed), ()
    makers: list[Callable[[int], Step | None]] = []
    move = FrozenMap(state=after.get("state"))
    carries = bool(_select_paths(change, OFFSETS_FROM))
    if state and halts and not carries:
        makers.append(lambda n: _make_step(change, n, HALT, move, state))
    makers.append(lambda n: _configure(change, n))
    if carries:
        makers.append(lambda n: _carry(change, n))
    if state and (carries or not halts):
        makers.append(lambda n: _make_step(change, n, RESUME, move, state))
    if failed:
        makers.append(lambda n: _make_step(change, n, RESTART, move, failed))
    steps: list[Step] = []
    for make in makers:
        if (step := make(len(steps) + 1)) is not None:
            steps.append(step)
    return tuple(steps)


def _configure(change: Change, number: int) -> Step | None:
    """The step that sets and removes configs, None if nothing is to be set."""
    before, after = change.before or EMPTY, change.after or EMPTY
    paths = _select_paths(change, "class", "config", "secret_keys")
    config, references = after.get("config") or EMPTY, after.get("secret_config") or EMPTY
    secret_keys = after.get("secret_keys") or EMPTY
    put = {path[1]: config[path[1]] for path in paths if path[0] == "config" and path[1] in config}
    removed = [
        path[1]
        for path in paths
        if (path[0] == "config" and path[1] not in config and path[1] not in secret_keys)
        or (path[0] == "secret_keys" and path[1] not in secret_keys and path[1] not in config)
    ]
    new = {path[1] for path in paths if path[0] == "secret_keys"}
    secrets = {k: r for k, r in references.items() if k in new or _sends_secrets(change)}
    if not paths and not secrets:
        return None
    payload: dict[str, Value] = {
        "class": after["class"],
        "put": FrozenMap(put),
        "gone": tuple(sorted(set(removed))),
        "secrets": FrozenMap(secrets),
        "state": after.get("state"),
        "was": before.get("class"),
    }
    # A dry run knows no secrets, and whether one was stored must not be read back.
    repeat = Repeat.NEVER if secrets else Repeat.SAFE
    evidence = Evidence.LOCAL if secrets else Evidence.REMOTE
    return _make_step(change, number, CONFIGURE, payload, paths, repeat, evidence)


def _sends_secrets(change: Change) -> bool:
    """True if a new version asks for the secrets to be sent again."""
    # An adoption keeps the secrets that are set: whether they are the declared ones is unknown.
    version = change.row_after.secret_version
    return version is not None and version != change.row_before.secret_version and not change.adopts


_STEPS: Mapping[Action, Callable[[Change], tuple[Step, ...]]] = {
    Action.CREATE: _create,
    Action.UPDATE: _update,
    Action.DELETE: _delete,
}


def _list_paths(change: Change) -> tuple[Path, ...]:
    return tuple(item.path for item in change.paths)


def _select_paths(change: Change, *heads: str) -> tuple[Path, ...]:
    """The paths below these attributes. `owner` and `labels` are in the state alone."""
    return tuple(item.path for item in change.paths if item.path[0] in heads)


def _make_step(
    change: Change,
    number: int,
    request: Request,
    payload: Mapping[str, Value],
    paths: tuple[Path, ...],
    repeat: Repeat = Repeat.SAFE,
    evidence: Evidence = Evidence.LOCAL,
) -> Step:
    identity = change.identity
    prefix = f"{identity.instance}/{identity.kind}/{identity.key}#"
    return Step(
        id=f"{prefix}{number}",
        identity=identity,
        address=change.address,
        request=request,
        payload=FrozenMap({"name": identity.key, **payload}),
        weight=1,
        after=(f"{prefix}{number - 1}",) if number > 1 else (),
        repeat=repeat,
        evidence=evidence,
        paths=paths,
    )


KIND = "kafka_connect_connector"
SET = "set"
"""The value of `secret_keys` for a config whose secret is set."""
CLASS, NAME = "connector.class", "name"
"""Configs that are attributes of their own."""
OFFSETS_FROM, OFFSETS_MISSING = "offsets_from", "offsets_missing"
"""The attributes with the connector whose offsets this one goes on from, and with its name if there
is none. A plan sets one of them, so that an apply never takes the one for the other."""
RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
STATES = (RUNNING, PAUSED, STOPPED)
STARTING = "starting"
"""What is observed as `state` while nobody can say which of the states it will be."""

LONGEST_NAME = 249
"""Characters. A sink's consumer group is `connect-NAME`, and the record of a connector in the
config topic has the name in its key; Kafka limits neither. Names of topics have this limit."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNSERVED = frozenset("/\\%{}")
"""Characters of names that workers accept in the body of a create. In a path, encoded as they must
be, the server of the workers answers 400 to the first three (Jetty's UriCompliance since Kafka 4.0:
ambiguous separator or encoding, suspicious character), and older ones find no connector with a
slash. A create with braces ends with 500 after the connector was made: its answer fills them as
variables of a template (ConnectorsResource.createConnector, UriBuilder.fromUri)."""
_LISTS = frozenset(
    {"topics", "transforms", "predicates", "topics.exclude", "groups", "groups.exclude"}
)
"""Configs that every reader splits at commas and trims (ConfigDef.Type.LIST)."""


def identity_key(text: str) -> str:
    """A connector's name as an identity's key. Raises ValueError."""
    # A worker trims the name of a POST, and refuses control characters
    # (ConnectorConfig.NonEmptyStringWithoutControlChars).
    if not text or text != text.strip() or _CONTROL.search(text):
        raise ValueError(
            f"{text!r} is no name of a connector: it must not be empty, begin or end with a space, "
            "or contain control characters"
        )
    if unserved := sorted(set(text) & _UNSERVED):
        raise ValueError(
            f"{text!r} cannot name a connector: workers create it, and then fail on requests for "
            f"it because of the {' '.join(unserved)} in its name"
        )
    if text in (".", ".."):
        raise ValueError(
            f"{text!r} cannot name a connector: in the path of a request it is a folder"
        )
    if len(text) > LONGEST_NAME:
        raise ValueError(f"the name of a connector has at most {LONGEST_NAME} characters here")
    return text


def _key(attributes: FrozenMap) -> str:
    return identity_key(str(attributes.get("name") or ""))


def make_attributes(
    name: str, class_: str, config: Mapping[str, str], secrets: Iterable[str], state: str
) -> FrozenMap:
    """Observed attributes, without failures. config: without secrets, name and class; secrets: the
    configs whose values are secrets."""
    return FrozenMap(
        name=name,
        **{"class": class_},
        config=_canonicalize_config(config),
        secret_keys=FrozenMap(dict.fromkeys(sorted(secrets), SET)),
        state=state,
        failures=EMPTY,
    )


def _canonical(attributes: FrozenMap, _: Facts) -> FrozenMap:
    config = attributes.get("config")
    if not config:
        return attributes
    return attributes.with_items({"config": _canonicalize_config(config)})


def _canonicalize_config(config: Mapping[str, Value]) -> FrozenMap:
    """One spelling for equal lists."""
    lists = {
        key: ",".join(item.strip() for item in value.split(","))
        for key in config.keys() & _LISTS
        if isinstance(value := config[key], str)
    }
    return FrozenMap({**config, **lists})


def _target(declared: FrozenMap, observed: Observed | None, facts: Facts, keep: bool) -> FrozenMap:
    live = observed.attributes if observed else EMPTY
    class_, live_class = str(declared["class"]), str(live.get("class") or "")
    if live_class and is_same_plugin(class_, live_class, ConnectFacts.of(facts).plugins):
        # Workers run the same class under its full and its short names.
        class_ = live_class
    foreign = observed.foreign if observed else frozenset()
    declared_config = _canonicalize_config(declared.get("config") or EMPTY)
    kept_config = {
        key: value
        for key, value in (live.get("config") or EMPTY).items()
        if declared_config.get(key) is None
        and (keep or key in declared_config or ("config", key) in foreign)
    }
    set_config = {key: value for key, value in declared_config.items() if value is not None}
    secrets = _select_secrets(declared)
    live_secrets = live.get("secret_keys") or EMPTY
    named = declared.get("secret_config") or EMPTY
    kept_secrets = {key for key in live_secrets if keep or key in named}
    return FrozenMap(
        name=declared["name"],
        **{"class": class_},
        config=FrozenMap({**kept_config, **set_config}),
        secret_config=secrets or None,
        secret_keys=FrozenMap(dict.fromkeys(sorted({*kept_secrets, *secrets}), SET)),
        state=declared.get("state") or RUNNING,
        # Once it has run, it has its own offsets.
        **{
            name: declared.get(name) if live.get("state") in (None, STOPPED) else None
            for name in (OFFSETS_FROM, OFFSETS_MISSING)
        },
        # Nothing is wanted to have failed: what has is restarted.
        failures=EMPTY,
    )


def _select_secrets(attributes: FrozenMap) -> FrozenMap:
    """The references that are given; null leaves a secret to others."""
    references = attributes.get("secret_config") or EMPTY
    return FrozenMap({key: ref for key, ref in references.items() if ref is not None})


def _select_ours(target: FrozenMap, declared: FrozenMap) -> FrozenMap:
    """The target without what the block keeps but does not set."""
    declared_config, secrets = declared.get("config") or EMPTY, _select_secrets(declared)
    config = {k: v for k, v in target["config"].items() if declared_config.get(k) is not None}
    keys = {k: v for k, v in target["secret_keys"].items() if k in secrets}
    return target.with_items({"config": FrozenMap(config), "secret_keys": FrozenMap(keys)})


def _write_arguments(attributes: FrozenMap) -> FrozenMap:
    """The arguments of a block, with an empty reference for each secret that is set."""
    secret_keys = attributes.get("secret_keys") or EMPTY
    state = attributes.get("state")
    return attributes.without(("secret_keys", "failures")).with_items(
        {
            "state": state if state in STATES else RUNNING,
            "secret_config": FrozenMap(dict.fromkeys(secret_keys, SecretRef("env", ""))) or None,
        }
    )


# ── offsets of another connector ────────────────────────────────────────────────────────


def _list_sources(attributes: FrozenMap) -> Collection[str]:
    """The connector whose offsets a block names."""
    source = attributes.get(OFFSETS_FROM)
    try:
        return [] if source is None else [identity_key(str(source))]
    except ValueError:
        return []  # a rule says so


def _list_needs(sources: Collection[str]) -> Mapping[str, Depth]:
    return {name_source(source): Depth.FULL for source in sources}


def _complete(
    attributes: FrozenMap, _: Mapping[str, Outlook], sweeps: Mapping[str, Sweep]
) -> FrozenMap:
    """The block of a connector that starts over, if the one that it names is proven to be
    missing."""
    source = str(attributes[OFFSETS_FROM])
    listing = sweeps[name_source(source)]
    if listing.items or listing.coverage.kind is not CoverageKind.COMPLETE:
        return attributes
    return attributes.with_items({OFFSETS_FROM: None, OFFSETS_MISSING: source})


# ── faults ──────────────────────────────────────────────────────────────────────────────


def _refuse_config(config: FrozenMap) -> Iterator[tuple[str, str]]:
    for key, attribute in ((NAME, "name"), (CLASS, "class")):
        if key in config:
            yield f"{key} is no config here", f"Write it as the attribute {attribute}."
    for key, value in config.items():
        if isinstance(value, str) and is_secret(key, value):
            yield describe_plain_secret(key), advise_secret(key)


def _refuse_secrets(config: FrozenMap) -> Iterator[tuple[str, str]]:
    for key, attribute in ((NAME, "name"), (CLASS, "class")):
        if key in config:
            yield f"{key} is no config here", f"Write it as the attribute {attribute}."


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "A connector of Kafka Connect. The import id is its name.",
        AttributeSchema("name", STRING, "Name of the connector.", required=True),
        AttributeSchema(
            "class",
            STRING,
            "Its plugin, `connector.class`: the name of a Java class, in full or as the short form "
            "that the workers know.",
            required=True,
        ),
        AttributeSchema(
            "config",
            map_of(TEXT),
            "Its configs, without name, class and secrets; a list is a list or text with commas. "
            "The plan shows and removes configs that are set but not in the map. null leaves a "
            "config as it is. A reference for a config provider of the workers is written "
            "`$${file:PATH:KEY}`, and stays text.",
            refuses=_refuse_config,
        ),
        AttributeSchema(
            "secret_config",
            map_of(STRING),
            "Configs that are secrets, by name, such as secret_env(…). They are sent, and neither "
            "shown nor recorded.",
            secret=True,
            refuses=_refuse_secrets,
        ),
        AttributeSchema(
            "secret_config_version",
            STRING,
            "Any text. When it changes, secret_config is sent again.",
        ),
        AttributeSchema(
            "state",
            STRING,
            "running; paused: its tasks stay and do nothing; stopped: it has no tasks (Kafka 3.5).",
            default=RUNNING,
            choices=STATES,
        ),
        AttributeSchema(
            OFFSETS_FROM,
            STRING,
            "The connector whose offsets a new one goes on from, such as the one that it replaces "
            "under another name (Kafka 3.7). That one is stopped, and has to be deleted by the "
            "same plan or stopped already. Without effect once this connector runs.",
            unread=True,
        ),
        AttributeSchema(
            OFFSETS_MISSING,
            STRING,
            "What offsets_from names if there is no such connector: this one starts over.",
            computed=True,
            unread=True,
        ),
        AttributeSchema(
            "secret_keys",
            map_of(STRING),
            "The configs that are set to a secret, without their values.",
            computed=True,
        ),
        AttributeSchema(
            "failures",
            map_of(STRING),
            "What has failed: `connector`, `tasks`. An apply restarts it, once.",
            computed=True,
        ),
    ),
    key=_key,
    canonical=_canonical,
    target=_target,
    steps=make_steps,
    import_key=identity_key,
    ours=_select_ours,
    written=_write_arguments,
    uses=list_uses,
    used_kinds=USED_KINDS,
    completion=BlockCompletion(_list_sources, _list_needs, _complete),
)
