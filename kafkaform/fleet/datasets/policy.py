"""Find the rules of fleet.hcl that each object breaks, in one pass over the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import reduce
from operator import and_, or_

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from ...core.errors import ConfigurationError
from ...core.landing import DESIRED, MEASURED
from ..landed.register import PolicyRule, RegisteredWaiver, matches
from ..landed.snapshots import add_cluster_names
from ..tables.definitions import TABLES, BuildContext, Frames
from .history import make_runs
from .policy_conditions import ATTRS, COLUMNS, ConditionFault, Term, parse_condition
from .resources import add_owner

SOURCES = ("live", "desired")
_OBJECT = ("source", "cluster", "kind", "key", "lineage")
NUMBER = "decimal(38,6)"
"""The type in which conditions compute: exact, and wide enough for any config value."""
_COLUMNS = ("source", *COLUMNS, ATTRS, "captured_at", "lineage")


def build(frames: Frames, context: BuildContext) -> DataFrame:
    """Return the rows of `policy_findings`, from `live`, `desired`, `recorded`, `cluster`,
    `history` and `declared_history`.

    first_seen: since when the object has been as the rule forbids, without a break, by the rule,
    the owners and the clusters of today. Counters have no history: it is their newest snapshot.

    A condition that is NULL finds nothing. A waiver counts until the end of its last day. An object
    that several lineages declare is one finding. Kinds that nobody can declare are judged only by
    rules that name them in full. `path` is empty: a rule is about the whole object. `owner` is the
    rule's, or else the object's.

    Raises ConfigurationError: a condition cannot be read, or two rules have the same name.
    """
    rules = context.register.rules
    conditions = parse_conditions(rules)
    concerned = reduce(or_, map(_concerns, rules), F.lit(False))
    rows = _add_past(_select_rows(frames, context).where(concerned), frames)
    # All rules in one array per row: one pass over the objects, however many rules there are.
    broken = F.array_compact(F.array(*_find_broken(rules, conditions, context.as_of.date())))
    # As a column first: Sail plans what `inline` is of once for each member.
    findings = rows.withColumn("_broken", broken).select(
        *_OBJECT, "owner", "n", "valid_from", "valid_to", F.inline("_broken")
    )
    return _date_findings(findings).select(*TABLES["policy_findings"].names)


def parse_conditions(rules: tuple[PolicyRule, ...]) -> tuple[Term, ...]:
    """Parse the conditions of the rules. Raises ConfigurationError."""
    names = [rule.name for rule in rules]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        advice = "Give each rule its own name in fleet.hcl."
        raise ConfigurationError(f"two rules are named {twice[0]}", advice)
    return tuple(map(_parse_condition, rules))


def _parse_condition(rule: PolicyRule) -> Term:
    if rule.source not in SOURCES:
        raise ConfigurationError(
            f"rule {rule.name}: there is no source {rule.source}", "Write live or desired."
        )
    try:
        return parse_condition(rule.where)
    except ConditionFault as fault:
        raise ConfigurationError(
            f'rule {rule.name}: "where" cannot be read: {fault.message}',
            fault.advice or f"Correct this condition in fleet.hcl: {rule.where}",
        ) from fault


def _select_rows(frames: Frames, context: BuildContext) -> DataFrame:
    """Return all rows that can be judged, with _COLUMNS; a declared object has a row for each
    lineage."""
    lineages = {"live": F.lit(""), "desired": F.col("lineage")}
    sources = [
        frames[name].select(
            F.lit(name).alias("source"),
            *("cluster", "kind", "key", "owner", ATTRS, "captured_at"),
            lineages[name].alias("lineage"),
        )
        for name in SOURCES
    ]
    clusters = frames["cluster"].select("cluster", "env", "region")
    rows = add_owner(sources[0].unionByName(sources[1]), frames, context.register)
    return rows.join(clusters, ["cluster"], "left").select(*_COLUMNS)


def _add_past(rows: DataFrame, frames: Frames) -> DataFrame:
    """Return a row for each interval in which the object was something else, with ATTRS of that
    time, and n, valid_from and valid_to as `make_runs` takes them; valid_to null: it is like this.
    """
    live = frames["history"].withColumn("lineage", F.lit(""))
    desired = frames["declared_history"].where(F.col("source") == DESIRED)
    intervals = [
        past.select(
            F.lit(name).alias("source"),
            *("cluster", "kind", "key", "lineage", "valid_from", "valid_to"),
            F.col(ATTRS).alias("past_attrs"),
        )
        for name, past in (
            ("live", live),
            ("desired", add_cluster_names(desired, frames["cluster"])),
        )
    ]
    in_order = Window.partitionBy(*_OBJECT).orderBy("valid_from")
    # An object that was gone in between is another one: its number leaves a gap.
    is_new = F.coalesce(F.lag("valid_to").over(in_order) < F.col("valid_from"), F.lit(False))
    rank = F.row_number().over(in_order)
    numbered = (
        intervals[0]
        .unionByName(intervals[1])
        .withColumn("is_new", is_new.cast("int"))
        .withColumn("n", rank + F.sum("is_new").over(in_order))
        .withColumn(
            "is_there", F.max(F.col("valid_to").isNull()).over(Window.partitionBy(*_OBJECT))
        )
        # What counts is `live` and `desired`: no finding is lost because its history has ended.
        .where("is_there")
    )
    # left: counters have no intervals.
    joined = rows.join(numbered.drop("is_new", "is_there"), list(_OBJECT), "left")
    return joined.withColumns(
        {
            ATTRS: F.coalesce("past_attrs", ATTRS),
            "n": F.coalesce("n", F.lit(1)),
            "valid_from": F.coalesce("valid_from", "captured_at"),
        }
    )


# -- rules


def _find_broken(
    rules: tuple[PolicyRule, ...], conditions: tuple[Term, ...], today: date
) -> list[Column]:
    """Return for each rule a struct of what a finding says, or null."""
    no_finding = F.lit(None).cast(
        "struct<rule:string,severity:string,message:string,answers:string,"
        "waiver:string,waived_until:date>"
    )
    findings = (
        # A condition that is null is not true, so `when` makes it no finding.
        F.when(_concerns(rule) & to_column(condition), _make_finding(rule, today))
        for rule, condition in zip(rules, conditions, strict=True)
    )
    return [no_finding, *findings]


def _concerns(rule: PolicyRule) -> Column:
    """True for rows that the rule is about."""
    kind = F.col("kind")
    named = F.lit(rule.kind in MEASURED) | ~kind.isin(*MEASURED)
    return (F.col("source") == rule.source) & named & matches(kind, rule.kind)


def _make_finding(rule: PolicyRule, today: date) -> Column:
    valid = [waiver for waiver in rule.waivers if waiver.until >= today]
    ended = sorted((w for w in rule.waivers if w.until < today), key=lambda w: w.until)
    return F.struct(
        F.lit(rule.name).alias("rule"),
        F.lit(rule.severity).alias("severity"),
        F.concat(F.lit(rule.message), _describe_ended(valid, ended)).alias("message"),
        F.lit(rule.owner).cast("string").alias("answers"),
        _take_first(valid, lambda waiver: F.lit(waiver.reason)).alias("waiver"),
        _take_first(valid, lambda waiver: F.lit(waiver.until)).cast("date").alias("waived_until"),
    )


def _describe_ended(valid: list[RegisteredWaiver], ended: list[RegisteredWaiver]) -> Column:
    """Return what the message says about the waiver that ended last, unless another one still
    counts."""
    text = _take_first(ended[::-1], lambda waiver: F.lit(f" (its waiver ended on {waiver.until})"))
    counts = reduce(or_, map(_covers, valid), F.lit(False))
    return F.when(counts, F.lit("")).otherwise(F.coalesce(text, F.lit("")))


def _take_first(
    waivers: list[RegisteredWaiver], read_value: Callable[[RegisteredWaiver], Column]
) -> Column:
    """Return the value for the first waiver that covers the row; null: none does."""
    values = (F.when(_covers(waiver), read_value(waiver)) for waiver in waivers)
    return F.coalesce(*values, F.lit(None))


def _covers(waiver: RegisteredWaiver) -> Column:
    cluster = matches(F.col("cluster"), waiver.cluster)
    return cluster & matches(F.col("key"), waiver.key)


def _date_findings(findings: DataFrame) -> DataFrame:
    """Return one row per object and rule that holds now."""
    runs = make_runs(findings, [*_OBJECT, "rule", *_SAME_FOR_ALL, "owner"])
    # `min` of values that are the same in every row of a group: `first` would depend on row order.
    rows = (
        runs.where(F.col("until").isNull())
        .groupBy("rule", "cluster", "kind", "key")
        .agg(
            F.lit("").alias("path"),
            F.min("owner").alias("owner"),
            F.min("since").alias("first_seen"),
            *(F.min(name).alias(name) for name in _SAME_FOR_ALL),
        )
    )
    return rows.withColumn("owner", F.coalesce("answers", "owner")).withColumn(
        "waived", F.col("waived_until").isNotNull()
    )


_SAME_FOR_ALL = ("severity", "message", "answers", "waiver", "waived_until")


# -- conditions as Spark computes them


def to_column(term: Term) -> Column:
    """Translate the term to a Spark column over rows with the columns that conditions may name."""
    if term.op in _VALUES:
        return _VALUES[term.op](term)
    return _OPERATIONS[term.op](*map(to_column, term.args))


def _cast_term(term: Term) -> Column:
    kind = NUMBER if term.value == "decimal" else term.value
    # try_cast, try_add, …: under ANSI mode, `'x' + 1` of a single topic would fail the whole build.
    return to_column(term.args[0]).try_cast(kind)


_VALUES: Mapping[str, Callable[[Term], Column]] = {
    "number": lambda term: F.lit(term.value).cast(NUMBER),
    "text": lambda term: F.lit(term.value),
    "bool": lambda term: F.lit(term.value),
    "nothing": lambda _: F.lit(None),
    "column": lambda term: F.col(term.value),
    "attrs": lambda _: F.col(ATTRS),
    # A missing attribute is NULL, which no comparison turns into a finding.
    "attr": lambda term: F.try_element_at(F.col(ATTRS), F.lit(term.value)),
    "cast": _cast_term,
    "rlike": lambda term: to_column(term.args[0]).rlike(term.value),
}


def _all(*terms: Column) -> Column:
    return reduce(and_, terms)


def _any(*terms: Column) -> Column:
    return reduce(or_, terms)


def _narrow(operand: Column, digits: int) -> Column:
    """Null instead of a number with which the operation could exceed NUMBER: one value must not
    fail the build for all clusters. Sail has `try_add` and the like for integers alone."""
    return operand.try_cast(f"decimal({digits},6)")


def _add(addend: Column, summand: Column) -> Column:
    return _narrow(addend, 37) + _narrow(summand, 37)


def _subtract(minuend: Column, subtrahend: Column) -> Column:
    return _narrow(minuend, 37) - _narrow(subtrahend, 37)


def _multiply(factor: Column, multiplier: Column) -> Column:
    # No decimal is wide enough for any two factors; a double has 15 digits.
    return (factor.cast("double") * multiplier.cast("double")).try_cast(NUMBER)


def _divide(dividend: Column, divisor: Column) -> Column:
    return (_narrow(dividend, 27) / F.nullif(_narrow(divisor, 27), F.lit(0))).cast(NUMBER)


_OPERATIONS: Mapping[str, Callable[..., Column]] = {
    "and": _all,
    "or": _any,
    "not": lambda one: ~one,
    "null": lambda one: one.isNull(),
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "<=>": lambda one, other: one.eqNullSafe(other),
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": F.try_mod,
    "abs": F.abs,
    "coalesce": F.coalesce,
    "concat": F.concat,
    "contains": F.contains,
    "endswith": F.endswith,
    "length": F.length,
    "lower": F.lower,
    "map_contains_key": F.map_contains_key,
    "replace": F.replace,
    "size": F.size,
    "startswith": F.startswith,
    "trim": F.trim,
    "upper": F.upper,
}
