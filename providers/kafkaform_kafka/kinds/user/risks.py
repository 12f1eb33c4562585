"""Finds the risks of SCRAM credential changes: which logins stop working."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Risk, RiskKind
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY


def find_user_risks(change: Change, _: Facts) -> Sequence[Risk]:
    """A risk if the credential is deleted or gets a new password."""
    # Open connections stay: a broker checks the password only when a client connects, or when it
    # must log in again (KIP-368).
    attributes = change.before or EMPTY
    who = f"User:{attributes.get('username')}"
    how = attributes.get("scram_mechanism")
    if change.action is Action.DELETE:
        return (Risk(RiskKind.ACCESS, f"{who} can no longer log in with {how}"),)
    version = change.row_after.secret_version
    if change.action is Action.UPDATE and version != change.row_before.secret_version:
        return (Risk(RiskKind.ACCESS, f"{who} can log in with {how} only with the new password"),)
    return ()
