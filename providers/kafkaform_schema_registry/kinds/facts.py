"""Short, because types, rules and the session all read it: the facts of a registry."""

from __future__ import annotations

from kafkaform.core.resource import ProviderFacts


class RegistryFacts(ProviderFacts, frozen=True, kw_only=True):
    """What a registry can do, and what the provider block says about it."""

    modes: bool = True
    """It has modes, of its own and of subjects."""
    subject_none: bool = True
    """A subject can have the level NONE. False: the registry takes that as the removal of the
    subject's level, so that its own counts."""
    listing_limit: int | None = None
    """A listing of subjects ends after so many, without a word; None if it has all."""
    login: bool = False
    """The session logs in, so that a listing can lack what its user must not see."""
    hard_delete: bool = False
    """Deleted schemas are also removed for good (`hard_delete` of the provider block)."""
