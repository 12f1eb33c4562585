"""Policies that tests compile, and changes that they judge."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from kafkaform.core.diagnostics import Diagnostics
from kafkaform.core.finding import Finding
from kafkaform.core.value import freeze
from kafkaform.language.policy.blocks import select_policy_blocks
from kafkaform.language.policy.compilation import FIELDS, Policy, compile_policies, find_findings
from kafkaform.language.values.conversion import lift_value
from kafkaform.language.values.faults import Budget
from kafkaform.language.values.value import ObjectVal
from kafkaform.syntax.parse import parse

TODAY = date(2026, 6, 15)
RULES = b"""
policy "few_partitions" {
  settings  = { most = 3 }
  condition = change.after.partitions <= setting.most
  message   = "${change.key} has more than ${setting.most} partitions"
}

policy "named" {
  settings  = { prefix = "x." }
  condition = startswith(change.key, setting.prefix)
  message   = "${change.key} does not begin with ${setting.prefix}"
}
"""


RULE_IDS = {"topic-retention-cut": False, "topic-deleted": True}
"""The rules that the policies of these tests can name, and whether waivers can lift them."""


def attempt(text: str, systems: tuple[str, ...] = ()) -> tuple[tuple[Policy, ...], Diagnostics]:
    """The policies of a file, and all faults."""
    file, faults = parse(text, "p.kfpolicy.hcl")
    blocks, stray = select_policy_blocks([file])
    policies, wrong = compile_policies(blocks, {"kafka": lambda: RULES}, systems, RULE_IDS)
    return policies, (*faults, *stray, *wrong)


def compiled(text: str) -> tuple[Policy, ...]:
    """The policies of a file without faults."""
    policies, faults = attempt(text)
    assert not faults, faults
    return policies


def faults_of(text: str) -> list[str]:
    """Summary, detail and advice of each fault."""
    return [" ".join(filter(None, (f.summary, f.detail, f.advice))) for f in attempt(text)[1]]


def find(text: str, today: date = TODAY, **change: Any) -> list[Finding]:
    """The policies of a file that a change breaks."""
    usual: Mapping[str, Any] = {**dict.fromkeys(FIELDS), "address": "kafka_topic.a", "key": "a"}
    data: Any = freeze({**usual, **change})
    lifted = lift_value(data)
    assert isinstance(lifted, ObjectVal)
    address = str(data["address"])
    return list(find_findings(compiled(text), lifted, address, today, Budget()))
