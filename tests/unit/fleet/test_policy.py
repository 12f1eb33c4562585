"""Policy findings: conditions, waivers, owners, ages, against a row-by-row reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from random import Random
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from kafkaform.core.errors import ConfigurationError
from kafkaform.fleet.datasets import policy
from kafkaform.fleet.datasets.policy_conditions import (
    FUNCTIONS,
    MOST_CHARACTERS,
    ConditionFault,
    Term,
    parse_condition,
)
from kafkaform.fleet.landed.register import Owner, PolicyRule, Register, RegisteredWaiver

from ...spark import oracle_policy
from ...spark.live_rows import NOW, Row, cluster, context, days, frames, live, rows_of
from . import oracle_conditions

KINDS = ("kafka_topic", "kafka_topic_config", "kafka_acl", "cluster", "topic_usage")
KEYS = ("orders.a", "orders.b", "pay[1]", "x y", "a")
CLUSTERS = ("prod-1", "prod-2", "dev")
OWNERS = (Owner("sales", ("orders.*",)), Owner("late", ("*.a", "pay[1]")))
TODAY = NOW.date()
INPUTS = ("live", "desired", "recorded", "cluster", "history", "declared_history")


def rule(name: str, where: str, **more: Any) -> PolicyRule:
    return PolicyRule(name, "high", more.pop("kind", "*"), where, f"breaks {name}", **more)


def _waivers(dice: Random) -> tuple[RegisteredWaiver, ...]:
    return tuple(
        RegisteredWaiver(
            TODAY + timedelta(days=dice.choice((-30, -1, 0, 1, 90))),
            f"reason {dice.randrange(9)}",
            dice.choice(("*", "prod-*", "prod-?", "dev")),
            dice.choice(("*", "orders.*", "pay[1]", "?")),
        )
        for _ in range(dice.randrange(4))
    )


def _rules(dice: Random, count: int) -> tuple[list[PolicyRule], dict[str, Any]]:
    rules, meanings = [], {}
    for number in range(count):
        said, meanings[f"r{number}"] = oracle_conditions.condition(dice)
        made = rule(
            f"r{number}",
            said,
            kind=dice.choice(("*", "kafka_*", "kafka_topic", "kafka_topi?", "cluster", "nothing")),
            source=dice.choice(("live", "live", "desired")),
            owner=dice.choice((None, None, "platform")),
            waivers=_waivers(dice),
        )
        rules.append(made)
    return rules, meanings


def _objects(dice: Random) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {"live": [], "desired": [], "recorded": []}
    for name in CLUSTERS:
        for kind in KINDS:
            for key in dice.sample(KEYS, 3):
                where = {"owner": dice.choice((None, None, "own")), "captured_at": days(1)}
                tables["live"].append(live(name, kind, key, _attrs(dice), **where))
                for table, lineage in (("desired", "l1"), ("desired", "l2"), ("recorded", "l1")):
                    if dice.random() < 0.3:
                        row = live(name, kind, key, _attrs(dice), owner=dice.choice((None, table)))
                        del row["snapshot"]
                        tables[table].append({**row, "lineage": lineage})
    return tables


def _attrs(dice: Random) -> dict[str, str]:
    names = (name for name in oracle_conditions.ATTRS if dice.random() < 0.8)
    return {name: dice.choice(oracle_conditions.VALUES) for name in names}


def _tables(dice: Random, rules: list[PolicyRule]) -> Mapping[str, list[Row]]:
    tables = _objects(dice)
    tables["cluster"] = [
        cluster("prod-1", env="prod", region="eu", cluster_id="id-1"),
        cluster("prod-2", env="prod"),
    ]
    tables["history"] = [
        {**{name: row[name] for name in oracle_policy.OBJECT}, **interval}
        for row in tables["live"]
        if row["kind"] not in oracle_policy.NAMED_ONLY
        for interval in _intervals(dice, row["attrs"])
    ]
    scopes = {"prod-1": "id-1"}
    tables["declared_history"] = [
        {
            **{name: row[name] for name in ("kind", "key", "lineage")},
            **{"source": dice.choice(("desired", "desired", "state")), **interval},
            "scope_id": scopes.get(row["cluster"], row["cluster"]),
        }
        for row in tables["desired"]
        for interval in _intervals(dice, row["attrs"])
    ]
    return tables


def _intervals(dice: Random, attrs: Mapping[str, str]) -> Iterator[Row]:
    """What an object was before it became this; sometimes it was gone in between."""
    end = None
    for number in range(dice.randrange(1, 5)):
        begin = days(5 * number + 1 + dice.random())
        yield {
            "attrs": attrs if number == 0 else _attrs(dice),
            "valid_from": begin,
            "valid_to": end,
        }
        end = begin if dice.random() < 0.7 else begin - timedelta(hours=9)


def test_random_rules_over_random_objects(spark: SparkSession) -> None:
    """60 rules with random conditions and waivers: the same findings as row by row."""
    dice = Random(11)
    rules, meanings = _rules(dice, 60)
    register = Register(rules=tuple(rules), owners=OWNERS)
    tables = _tables(dice, rules)
    made = policy.build(frames(spark, tables), context(register))
    wanted = oracle_policy.findings(tables, register, meanings, TODAY)
    order = ("rule", "cluster", "kind", "key")
    found = sorted(rows_of(made), key=lambda row: [row[n] for n in order])
    wanted.sort(key=lambda row: [row[n] for n in order])
    assert len(wanted) > 200
    assert {bool(row["waived"]) for row in wanted} == {True, False}
    assert any("waiver ended" in row["message"] for row in wanted)
    assert len({row["first_seen"] for row in wanted}) > 50
    for one, other in zip(found, wanted, strict=True):
        assert one == other, next(r.where for r in rules if r.name == other["rule"])


SAID = {
    "attrs['text'] > 1": False,
    "attrs['text'] <= 1": False,
    "attrs['gone'] > 1": False,
    "attrs['gone'] IS NULL": True,
    "attrs['big'] = 9223372036854775807": True,
    "attrs['big'] = 9223372036854775806": False,
    "attrs['n'] / 0 > 1": False,
    "(attrs['n'] / 0) is null": True,
    "attrs['big'] * attrs['big'] * attrs['big'] > 1": False,
    "-attrs['n'] = -3": True,
    "2 + 3 * 2 - 1 = 7": True,
    "10 % 4 = 2": True,
    "1 = 1 or 1 / 0 = 1 and 1 = 2": True,
    "not 1 = 2 and 1 = 1": True,
    "NOT NOT key = 'k'": True,
    "key = 'k' AND kind = 'kafka_topic' AND cluster = 'c'": True,
    "owner is null": True,
    "null": False,
    "owner <=> null": True,
    "attrs['quote'] = 'it''s \\ %'": True,
    "attrs['quote'] like 'it''s \\ \\%'": False,
    "attrs['quote'] rlike '\\\\'": True,
    "attrs['flag']": None,
    "attrs['flag'] = true": True,
    "attrs['text'] = true": False,
    "cast(attrs['flag'] as boolean)": True,
    "try_cast(attrs['n'] as bigint) = 3": True,
    "cast(attrs['text'] as int) is null": True,
    "cast(3 as string) = '3.000000'": True,
    "size(attrs) = 5": True,
    "coalesce(attrs['gone'], attrs['n'], '9') = 3": True,
    "concat(key, '-', kind) = 'k-kafka_topic'": True,
    "upper(lower('aB')) = 'AB' and trim(' a ') = 'a'": True,
    "replace(key, 'k', 'xx') = 'xx' and abs(-2) = 2": True,
    "length('Ünï') = 3": True,
    "map_contains_key(attrs, 'gone')": False,
    "'3' > '12'": True,
    "attrs['n'] > '12'": True,
    "attrs['n'] not between 1 and 2": True,
    "attrs['n'] in (1, 3)": True,
    "attrs['n'] in (1, null)": False,
}
"""Condition -> whether it finds the object below; None: it cannot be read."""
OBJECT = {
    "text": "abc",
    "big": "9223372036854775807",
    "n": "3",
    "quote": "it's \\ %",
    "flag": "true",
}


def test_what_conditions_mean(spark: SparkSession) -> None:
    """Literal conditions; none of them ends the build, whatever the text of an attribute is."""
    rules = [rule(said, said) for said, found in SAID.items() if found is not None]
    tables = {name: [] for name in INPUTS}
    objects = {**tables, "live": [live("c", "kafka_topic", "k", OBJECT)]}
    made = policy.build(frames(spark, objects), context(Register(rules=tuple(rules))))
    found = {row["rule"] for row in rows_of(made)}
    assert found == {said for said, expected in SAID.items() if expected}


def test_without_rules_there_are_no_findings(spark: SparkSession) -> None:
    """An empty register is a sound one."""
    made = policy.build(frames(spark, dict.fromkeys(INPUTS, [])), context())
    assert rows_of(made) == []


REFUSED = {
    "": "expected a value, not the end, at character 1",
    "attrs['flag']": "expected true or false, not text",
    "ownr is null": "there is no column ownr at character 1",
    "java_method('java.lang.System', 'exit', 1) = 1": "there is no function java_method",
    "reflect('a', 'b') = 'c'": "there is no function reflect",
    "input_file_name() = 'x'": "there is no function input_file_name",
    "key in (select key from live)": "there is no column select",
    "exists (select 1)": "there is no function exists",
    "key = 'a'; drop table live": "unexpected ; at character 10",
    "key = 'a' -- all": "there is no column all",
    "key = 'a' /* x */": "expected a value",
    "key = 'a": "the quote is not closed at character 7",
    'key = "a"': 'unexpected " at character 7',
    "attrs = 'a'": "expected text, not the map attrs",
    "attrs[1] = 'a'": "in single quotes",
    "attrs['a'] = attrs": "not the map attrs",
    "key rlike '('": "cannot be read",
    "key rlike 'a{,3}'": "which Java reads differently",
    "key rlike '(?P<a>x)'": "which Java reads differently",
    "key rlike '[a[b]'": "which Java reads differently",
    "key rlike attrs['x']": "expected a pattern in single quotes",
    "key like 1": "expected a pattern in single quotes",
    "lower(key, key) = 'a'": "lower takes 1 values, not 2",
    "coalesce() = 'a'": "coalesce takes 1 values, not 0",
    "cast(key as date) = 'a'": "date is not one of the types",
    "1 = 1 1": "expected AND, OR or the end, not 1",
    "(1 = 1": ") is missing",
    "not": "expected a value",
    "key not 'a'": "RLIKE after NOT",
    "key + 1": "expected true or false, not a number",
    "(1 = 1) = 2": "expected a number, not true or false",
    "(" * 100: "nested too deeply",
    "1" + "+1" * 200 + " = 1": "nested too deeply",
    "not " * 100 + "1": "expected true or false",
    "1" * 31 + " = 1": "at most 30 digits",
    "1 = 1" + " " * MOST_CHARACTERS: f"more than {MOST_CHARACTERS} characters",
}


@pytest.mark.parametrize("where", REFUSED, ids=lambda where: where[:30] or "empty")
def test_what_is_no_condition(where: str) -> None:
    """The fault says what and where; nothing else than a fault is ever raised."""
    with pytest.raises(ConditionFault) as fault:
        parse_condition(where)
    assert REFUSED[where] in fault.value.message


def _noise() -> Iterator[tuple[str, Term]]:
    """Conditions with some words put in the place of others, as far as they can be read."""
    dice = Random(3)
    words = [*"()[],'=<>+-*/%;", "attrs", "attrs['n']", "key", "1", "'a'", "and", "not", "in", "is"]
    words += ["null", "like", "between", "cast(null as int)", "true", "ß", "\n", "\\", "<=>"]
    words += [f"{name}(null)" for name in FUNCTIONS]
    for _ in range(4_000):
        said = dice.choice((*SAID, oracle_conditions.condition(dice, 0)[0])).split(" ")
        for _ in range(dice.randrange(1, 3)):
            said[dice.randrange(len(said))] = dice.choice(words)
        try:
            yield " ".join(said), parse_condition(" ".join(said))
        except ConditionFault as fault:
            assert fault.message


def test_random_noise_is_refused_or_computed(spark: SparkSession) -> None:
    """Whatever somebody writes: a fault, or a condition that Spark takes and that cannot fail."""
    read = dict(_noise())
    assert len(read) > 200
    row = live("c", "kafka_topic", "k", OBJECT)
    place = frames(spark, {"live": [row]})["live"].withColumns(
        {name: F.lit(None).cast("string") for name in ("env", "region")}
    )
    made = [policy.to_column(term).cast("boolean") for term in read.values()]
    (values,) = place.select(F.array(*made).alias("values")).collect()
    assert len(values["values"]) == len(read)


def test_every_function_and_sign_is_computed() -> None:
    """What can be read can be computed."""
    assert policy._OPERATIONS.keys() >= FUNCTIONS.keys()


def test_a_bad_rule_is_named() -> None:
    """The error names the rule and says what to do."""
    cases = {
        "two rules are named a": (rule("a", "true"), rule("a", "false")),
        'rule b: "where" cannot be read: there is no column keys': (rule("b", "keys = 'x'"),),
        "rule c: there is no source state": (rule("c", "true", source="state"),),
    }
    for message, rules in cases.items():
        with pytest.raises(ConfigurationError) as error:
            policy.parse_conditions(rules)
        assert error.value.message.startswith(message)
        assert error.value.advice
