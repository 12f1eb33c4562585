"""The tables are walked: every rule has a source, names what exists, and finds what it is about."""

from __future__ import annotations

import re
from datetime import date

import pytest

from kafkaform.core.finding import Level
from kafkaform.syntax.parse import parse
from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.resource_kinds import KINDS
from kafkaform_kafka.rules.vendors import ROWS
from kafkaform_kafka.vendors.profile import (
    APACHE,
    Citation,
    Condition,
    Profile,
    Refusal,
    Sends,
    Switches,
    VendorNote,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
    find_breaches,
)
from kafkaform_kafka.vendors.profile import PROFILES as NAMES
from kafkaform_kafka.vendors.profiles import PROFILES

from .samples import make_pairs

ALL = sorted(PROFILES.values(), key=lambda one: one.name)
RULES = [(profile, rule) for profile in ALL for rule in profile.rules]
JUDGING = [(profile, rule) for profile in ALL for rule in profile.judging]


def name_rule(value: Profile | VendorRule | Refusal) -> str:
    return value.name if isinstance(value, Profile) else value.sentence[:40]


def list_sources(profile: Profile) -> list[Citation]:
    said: list[VendorRule | Refusal | VendorNote] = [*profile.rules, *profile.notes]
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
def test_a_rule_names_what_exists(profile: Profile, rule: VendorRule | Refusal) -> None:
    """Types, requests and attributes; and it says whose rule it is."""
    assert rule.kinds and set(rule.kinds) <= {kind.name for kind in KINDS}
    assert set(rule.apis) <= APIS.keys()
    assert isinstance(rule, VendorRule) or rule.apis
    assert any(
        word in rule.sentence for word in profile.title.split() if word not in ("Amazon", "for")
    )
    assert not rule.sentence.endswith(".")
    heads = list_attributes(rule.condition) if isinstance(rule, VendorRule) else []
    for kind in rule.kinds:
        type_ = next(one.type for one in KINDS if one.name == kind)
        assert type_ is not None
        # The entity of a quota is made from other arguments.
        assert set(heads) <= {*type_.schema.attributes, "entity"}


@pytest.mark.parametrize(("profile", "rule"), RULES, ids=name_rule)
def test_a_refusal_says_what_to_do(profile: Profile, rule: VendorRule | Refusal) -> None:
    """Whoever is refused is told what to change. A rule explains only refusals of the request as a
    whole: other reasons for the same code must not be taken for it."""
    judges = isinstance(rule, VendorRule)
    if judges and rule.level is Level.BLOCK:
        assert rule.advice
    if rule.apis:
        assert "{found}" not in rule.sentence
        assert not judges or isinstance(rule.condition, Sends)


@pytest.mark.parametrize(("profile", "rule"), JUDGING, ids=name_rule)
def test_a_rule_finds_what_it_is_about(profile: Profile, rule: VendorRule) -> None:
    """A change that fulfils the condition is found, and a change that does not is left alone."""
    pairs = list(make_pairs(rule))
    assert pairs
    for bad, good in pairs:
        assert rule.id in {item.id for item, _ in find_breaches(profile, bad)}, bad
        if good is not None:
            assert rule.id not in {item.id for item, _ in find_breaches(profile, good)}, good


@pytest.mark.parametrize(("profile", "rule"), JUDGING, ids=name_rule)
def test_a_rule_has_a_row(profile: Profile, rule: VendorRule) -> None:
    """Its id begins with the profile, or with that of a profile with the same rule; the row has the
    source and an example that can be read."""
    row = ROWS[rule.id]
    assert re.fullmatch(r"[a-z0-9-]+", row.id)
    assert any(row.id.startswith(f"{name}-") for name in PROFILES)
    assert row.id.startswith(profile.name.removesuffix("-express"))
    assert (row.level, row.types) == (rule.level, rule.kinds)
    assert row.title and "{found}" not in row.title and row.title[-1] != "."
    assert rule.source.url in row.why
    assert parse(row.example, "example.kf.hcl")[1] == ()
    assert len({r.sentence for _, r in JUDGING if r.id == rule.id}) == 1


@pytest.mark.parametrize("profile", ALL, ids=name_rule)
def test_configs_that_only_the_vendor_sets_are_those_that_a_rule_refuses(profile: Profile) -> None:
    """What a plan would refuse to remove is left alone instead, and nothing else is."""
    limits = [
        rule.condition.only
        for rule in profile.judging
        if isinstance(rule.condition, WritesKey)
        and rule.level is Level.BLOCK
        and rule.condition.attribute == "config"
        and rule.condition.only is not None
        and "kafka_topic_config" in rule.kinds
    ]
    assert limits == ([] if profile.topic_configs is None else [profile.topic_configs])
