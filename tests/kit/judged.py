"""Transitional: a provider of which some judges are no rules yet, with rules made of them. Shorter
than a module should be, because it goes with `kafkaform/plan/legacy.py`."""

from __future__ import annotations

from typing import Any

from kafkaform.core.rule import RuleBook
from kafkaform.plan.legacy import make_book
from kafkaform.provider.contract import Provider


class Judged:
    """The provider, with all that judges its changes as rules."""

    def __init__(self, provider: Any) -> None:
        self._provider: Provider = provider

    def load_rules(self) -> RuleBook:
        return make_book(self._provider)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)
