"""Explain the refusals of a vendor's cluster: what it does not offer is not a missing right.

A managed cluster answers requests that it does not offer with the codes of a missing right or of an
old version. The usual advice, to grant the right, would lead nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kafkaform.core.finding import Level
from kafkaform.core.resource import Failed, Fault, FaultClass, Hidden, Identity, Reading, Sweep

from ..protocol.faults import code_name
from .profile import Profile, Refusal, Sends, VendorRule

# Codes that say "no" to the request itself. After any other code something else went wrong.
_REFUSALS = frozenset(map(code_name, (29, 30, 31, 35, 37, 38, 39, 40, 42, 44, 54)))
_NO_RIGHT = code_name(31)


def explain_fault(profile: Profile, fault: Fault, kind: str) -> Fault:
    """The fault with what the profile knows about this refusal; the same fault if it knows
    nothing. kind: the resource type that the request was about."""
    if fault.code not in _REFUSALS:
        return fault
    api = fault.where.partition(" at ")[0]
    rule = next((rule for rule in _list_rules(profile, kind) if api in rule.apis), None)
    if rule is None:
        return fault
    text = f"{fault.message}. {_describe(rule)}"
    return replace(fault, message=text, advice=rule.advice or _choose_advice(profile))


def explain_reading(profile: Profile, reading: Reading) -> Reading:
    """The reading with its fault explained."""
    kind = reading.identity.kind
    if isinstance(reading, Failed):
        return Failed(reading.identity, explain_fault(profile, reading.fault, kind))
    if isinstance(reading, Hidden):
        # Nobody can grant a right that the vendor does not have.
        rule = next((rule for rule in _list_rules(profile, kind) if _denies(rule)), None)
        if rule is not None:
            return Failed(reading.identity, _make_denial(profile, reading, rule))
    return reading


def explain_readings(
    profile: Profile, readings: Mapping[Identity, Reading]
) -> Mapping[Identity, Reading]:
    """The readings with their faults explained."""
    return {identity: explain_reading(profile, reading) for identity, reading in readings.items()}


def explain_sweep(profile: Profile, sweep: Sweep) -> Sweep:
    """The listing with its fault explained."""
    fault = sweep.coverage.fault
    if fault is None:
        return sweep
    explained = explain_fault(profile, fault, sweep.kind)
    return replace(sweep, coverage=replace(sweep.coverage, fault=explained))


def _list_rules(profile: Profile, kind: str) -> Iterable[VendorRule | Refusal]:
    return (rule for rule in profile.rules if kind in rule.kinds)


def _denies(rule: VendorRule | Refusal) -> bool:
    """True if the vendor refuses every change of the kind."""
    return isinstance(rule, VendorRule) and rule.level is Level.BLOCK and rule.condition == Sends()


def _describe(rule: VendorRule | Refusal) -> str:
    return f"{rule.sentence} ({rule.source.url})"


def _make_denial(profile: Profile, hidden: Hidden, rule: VendorRule | Refusal) -> Fault:
    return Fault(
        _NO_RIGHT,
        f"{hidden.right} is missing. {_describe(rule)}",
        FaultClass.PERMISSION,
        advice=rule.advice or _choose_advice(profile),
    )


def _choose_advice(profile: Profile) -> str:
    return f"manage it with the tools of {profile.title}"
