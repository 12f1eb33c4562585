"""The tables are walked: every rule has a source, names what exists, and finds what it is about."""

from __future__ import annotations

from datetime import date

import pytest

from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.resource_kinds import KINDS
from kafkaform_kafka.vendors.names import APACHE
from kafkaform_kafka.vendors.names import PROFILES as NAMES
from kafkaform_kafka.vendors.profile import (
    Citation,
    Condition,
    Profile,
    RuleEffect,
    Sends,
    Switches,
    VendorNote,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
)
from kafkaform_kafka.vendors.profiles import PROFILES
from kafkaform_kafka.vendors.rules import find_breaches

from .samples import make_pairs

ALL = sorted(PROFILES.values(), key=lambda one: one.name)
RULES = [(profile, rule) for profile in ALL for rule in profile.rules]


def name_rule(value: Profile | VendorRule) -> str:
    return value.name if isinstance(value, Profile) else value.says[:40]


def list_sources(profile: Profile) -> list[Citation]:
    said: list[VendorRule | VendorNote] = [*profile.rules, *profile.notes]
    return [one.source for one in said] + (
        [profile.connection.source] if profile.connection else []
    )


def list_attributes(when: Condition | None) -> list[str]:
    """The attributes that a condition looks at."""
    match when:
        case WritesKey():
            return [when.attribute]
        case WritesValue() | Switches():
            return [when.path[0]]
        case Writes():
            return [path[0] for path in when.paths]
    return []


def test_the_names_are_those_of_the_tables() -> None:
    """A provider block can name each profile, and Apache Kafka, which has no table."""
    assert set(NAMES) == {*PROFILES, APACHE}
    assert PROVIDER.config.attributes["profile"].choices == NAMES


@pytest.mark.parametrize("profile", ALL, ids=name_rule)
def test_each_statement_has_a_source_that_was_read(profile: Profile) -> None:
    """A title, an address, which edition it was, and the day."""
    for source in list_sources(profile):
        assert source.title and source.edition
        assert source.url.startswith("https://") and " " not in source.url
        assert date.fromisoformat(source.read) <= date(2026, 12, 31)


@pytest.mark.parametrize(("profile", "rule"), RULES, ids=name_rule)
def test_a_rule_names_what_exists(profile: Profile, rule: VendorRule) -> None:
    """Types, requests and attributes; and it says whose rule it is."""
    assert rule.kinds and set(rule.kinds) <= {kind.name for kind in KINDS}
    assert set(rule.apis) <= APIS.keys()
    assert rule.when is not None or rule.apis
    assert any(word in rule.says for word in profile.title.split() if word not in ("Amazon", "for"))
    assert not rule.says.endswith(".")
    heads = list_attributes(rule.when)
    for kind in rule.kinds:
        type_ = next(one.type for one in KINDS if one.name == kind)
        assert type_ is not None
        # The entity of a quota is made from other arguments.
        assert set(heads) <= {*type_.schema.attributes, "entity"}


@pytest.mark.parametrize(("profile", "rule"), RULES, ids=name_rule)
def test_a_refusal_says_what_to_do(profile: Profile, rule: VendorRule) -> None:
    """Whoever is refused is told what to change. A rule explains only refusals of the request as a
    whole: other reasons for the same code must not be taken for it."""
    if rule.effect is RuleEffect.REFUSE and rule.when is not None:
        assert rule.advice
    if rule.apis:
        assert "{found}" not in rule.says
        assert rule.when is None or isinstance(rule.when, Sends)


@pytest.mark.parametrize(
    ("profile", "rule"), [(p, r) for p, r in RULES if r.when is not None], ids=name_rule
)
def test_a_rule_finds_what_it_is_about(profile: Profile, rule: VendorRule) -> None:
    """A change that fulfils the condition is found, with its sentence and source, and a change
    that does not is left alone."""
    pairs = list(make_pairs(rule))
    assert pairs
    for bad, good in pairs:
        found = {id(one): text for one, text in find_breaches(profile, bad)}
        assert id(rule) in found, bad
        assert rule.source.url in found[id(rule)] and "{found}" not in found[id(rule)]
        if good is not None:
            assert id(rule) not in {id(one) for one, _ in find_breaches(profile, good)}, good


@pytest.mark.parametrize("profile", ALL, ids=name_rule)
def test_configs_that_only_the_vendor_sets_are_those_that_a_rule_refuses(profile: Profile) -> None:
    """What a plan would refuse to remove is left alone instead, and nothing else is."""
    limits = [
        rule.when.only
        for rule in profile.rules
        if isinstance(rule.when, WritesKey)
        and rule.effect is RuleEffect.REFUSE
        and rule.when.attribute == "config"
        and rule.when.only is not None
        and "kafka_topic_config" in rule.kinds
    ]
    assert limits == ([] if profile.topic_configs is None else [profile.topic_configs])
