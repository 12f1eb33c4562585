"""Which logins a change of a SCRAM credential ends."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.resource import Facts
from kafkaform.core.risk import Risk, RiskKind
from kafkaform.core.value import EMPTY


def find_user_risks(change: Change, _: Facts) -> Sequence[Risk]:
    """A login that goes, or gets another password. Open connections stay until they end: a broker
    asks for the password only when a client connects (KIP-368 if it must log in again)."""
    attributes = change.before or EMPTY
    who = f"User:{attributes.get('username')}"
    how = attributes.get("scram_mechanism")
    if change.action is Action.DELETE:
        return (Risk(RiskKind.ACCESS, f"{who} can no longer log in with {how}"),)
    version = change.row_after.secret_version
    if change.action is Action.UPDATE and version != change.row_before.secret_version:
        return (Risk(RiskKind.ACCESS, f"{who} can log in with {how} only by the new password"),)
    return ()
