"""`kafka_connect_connector`: a connector, what it is configured with, and whether it runs.

A worker keeps no id of a connector that would distinguish it from another one of the same name. So
a connector has no incarnation, and every request but the create is absolute.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import Diagnostic, Diagnostics, Severity, suggest
from kafkaform.core.legacy import Risk, RiskKind
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import STRING, TEXT, AttributeSchema, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value
from kafkaform.provider.contract import ResourceType

from .plugin_names import finds_plugin
from .secret_keys import is_reference, is_secret
from .steps import make_steps
from .topics import USED_KINDS, list_uses

KIND = "kafka_connect_connector"
SET = "set"
"""The value of `secret_keys` for a config whose secret is set."""
CLASS, NAME = "connector.class", "name"
"""Configs that are attributes of their own."""
RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
STATES = (RUNNING, PAUSED, STOPPED)
STARTING = "starting"
"""What is observed as `state` while nobody can say which of the states it will be."""

LONGEST_NAME = 249
"""Characters. A sink's consumer group is `connect-NAME`, and the record of a connector in the
config topic has the name in its key; Kafka limits neither. Names of topics have this limit."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LISTS = ("topics", "transforms", "predicates", "topics.exclude", "groups", "groups.exclude")
"""Configs that every reader splits at commas and trims (ConfigDef.Type.LIST)."""


def identity_key(text: str) -> str:
    """A connector's name as an identity's key. Raises ValueError."""
    # A worker trims the name of a POST, and refuses control characters
    # (ConnectorConfig.NonEmptyStringWithoutControlChars). It accepts a slash in the body and then
    # finds no connector at the path that has one, encoded or not.
    if not text or text != text.strip() or _CONTROL.search(text):
        raise ValueError(
            f"{text!r} is no name of a connector: it must not be empty, begin or end with a space, "
            "or contain control characters"
        )
    if "/" in text or "\\" in text or text in (".", ".."):
        raise ValueError(
            f"{text!r} cannot name a connector: the REST API finds none with a slash in its name"
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
        key: ",".join(part.strip() for part in value.split(","))
        for key in _LISTS
        if isinstance(value := config.get(key), str)
    }
    return FrozenMap({**config, **lists})


def _target(declared: FrozenMap, observed: Observed | None, _: Facts, keep: bool) -> FrozenMap:
    live = observed.attributes if observed else EMPTY
    foreign = observed.foreign if observed else frozenset()
    said = _canonicalize_config(declared.get("config") or EMPTY)
    kept = {
        key: value
        for key, value in (live.get("config") or EMPTY).items()
        if said.get(key) is None and (keep or key in said or ("config", key) in foreign)
    }
    given = {key: value for key, value in said.items() if value is not None}
    secrets = _select_secrets(declared)
    there = live.get("secret_keys") or EMPTY
    named = declared.get("secret_config") or EMPTY
    left = {key for key in there if keep or key in named}
    return FrozenMap(
        name=declared["name"],
        **{"class": declared["class"]},
        config=FrozenMap({**kept, **given}),
        secret_config=secrets or None,
        secret_keys=FrozenMap(dict.fromkeys(sorted({*left, *secrets}), SET)),
        state=declared.get("state") or RUNNING,
        # Nothing is wanted to have failed: what has is restarted.
        failures=EMPTY,
    )


def _select_secrets(attributes: FrozenMap) -> FrozenMap:
    """The references that are given; null leaves a secret to others."""
    given = attributes.get("secret_config") or EMPTY
    return FrozenMap({key: ref for key, ref in given.items() if ref is not None})


def _select_ours(target: FrozenMap, declared: FrozenMap) -> FrozenMap:
    """The target without what the block keeps but does not set."""
    said, secrets = declared.get("config") or EMPTY, _select_secrets(declared)
    config = {k: v for k, v in target["config"].items() if said.get(k) is not None}
    keys = {k: v for k, v in target["secret_keys"].items() if k in secrets}
    return target.with_items({"config": FrozenMap(config), "secret_keys": FrozenMap(keys)})


def _write_arguments(attributes: FrozenMap) -> FrozenMap:
    """The arguments of a block, with an empty reference for each secret that is set."""
    there = attributes.get("secret_keys") or EMPTY
    state = attributes.get("state")
    return attributes.without(("secret_keys", "failures")).with_items(
        {
            "state": state if state in STATES else RUNNING,
            "secret_config": FrozenMap(dict.fromkeys(there, SecretRef("env", ""))) or None,
        }
    )


# ── faults ──────────────────────────────────────────────────────────────────────────────


def _refuse_config(config: FrozenMap) -> Iterator[tuple[str, str]]:
    for key, attribute in ((NAME, "name"), (CLASS, "class")):
        if key in config:
            yield f"{key} is no config here", f"Write it as the attribute {attribute}."
    for key, value in config.items():
        if isinstance(value, str) and is_secret(key, value):
            yield _describe_plain_secret(key), _advise_secret(key)


def _describe_plain_secret(key: str) -> str:
    return f'config["{key}"] would be a secret in plain text'


def _advise_secret(key: str) -> str:
    return (
        f'Write it as secret_config = {{ "{key}" = secret_env("…") }}, or as '
        "$${PROVIDER:PATH:KEY} if the workers have a config provider."
    )


def _refuse_secrets(config: FrozenMap) -> Iterator[tuple[str, str]]:
    for key, attribute in ((NAME, "name"), (CLASS, "class")):
        if key in config:
            yield f"{key} is no config here", f"Write it as the attribute {attribute}."


def _check(change: Change, facts: Facts) -> Diagnostics:
    if change.action not in (Action.CREATE, Action.UPDATE) or change.after is None:
        return ()
    return (*_find_faults(change, facts), *_find_adoption_warnings(change))


def _find_faults(change: Change, facts: Facts) -> Iterator[Diagnostic]:
    after, before = change.after or EMPTY, change.before or EMPTY
    config = after.get("config") or EMPTY
    for key in sorted(config.keys() & (after.get("secret_config") or EMPTY).keys()):
        yield _make_error(f'"{key}" is in config and in secret_config', "Keep it in one of them.")
    # The definition of the plugin says that the live value is a secret, whatever its name.
    for key in sorted(config.keys() & (before.get("secret_keys") or EMPTY).keys()):
        if not is_reference(str(config[key])):
            yield _make_error(_describe_plain_secret(key), _advise_secret(key))
    class_ = str(after.get("class"))
    plugins = facts.values.get("plugins") or ()
    chosen = change.action is Action.CREATE or class_ != before.get("class")
    if plugins and chosen and not finds_plugin(class_, plugins):
        yield _make_error(
            f"no worker has the plugin {class_}",
            suggest(class_, plugins)
            or "Install it on the workers. The data source kafka_connect_plugins lists what they "
            "have.",
        )
    if change.action is Action.CREATE and after.get("state") != RUNNING:
        yield from _find_missing_feature(facts, "initial_state")
    if after.get("state") == STOPPED and before.get("state") != STOPPED:
        yield from _find_missing_feature(facts, "stop")


FEATURES: Mapping[str, tuple[tuple[int, int], str]] = {
    "initial_state": ((3, 7), "create a connector that does not run at once (KIP-980)"),
    "stop": ((3, 5), "stop a connector (KIP-875)"),
}
"""What the REST API could not do at first: name -> (version of Kafka, what)."""


def _find_missing_feature(facts: Facts, name: str) -> Iterator[Diagnostic]:
    since, what = FEATURES[name]
    version = facts.values.get("release")
    if version is not None and tuple(version) < since:
        has, needs = (".".join(map(str, one)) for one in (version, since))
        yield _make_error(
            f"workers of Kafka {has} cannot {what}",
            f"Upgrade the workers to {needs}, or let the connector run.",
        )


def _find_adoption_warnings(change: Change) -> Iterator[Diagnostic]:
    if change.adopts and (change.after or EMPTY).get("secret_config"):
        yield Diagnostic(
            Severity.WARNING,
            "the secrets that are set stay, even if they are not the declared ones: change "
            "secret_config_version to send the declared ones",
        )


def _make_error(summary: str, advice: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, advice=advice)


def _find_risks(change: Change, _: Facts) -> tuple[Risk, ...]:
    before, after = change.before or EMPTY, change.after or EMPTY
    if change.action is Action.DELETE:
        if before.get("state") in (RUNNING, STARTING):
            return (Risk(RiskKind.AVAILABILITY, "it copies no more records"),)
        return ()
    halted = any(p.path == ("state",) and p.after in (PAUSED, STOPPED) for p in change.paths)
    if change.action is Action.UPDATE and halted:
        what = f"it copies no records while it is {after['state']}"
        return (Risk(RiskKind.AVAILABILITY, what, ("state",)),)
    return ()


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
    check=_check,
    steps=make_steps,
    import_key=identity_key,
    ours=_select_ours,
    written=_write_arguments,
    risks=_find_risks,
    uses=list_uses,
    used_kinds=USED_KINDS,
)
