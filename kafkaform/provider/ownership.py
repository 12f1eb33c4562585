"""The optional part of the contract for `import --all`: objects that others make for themselves.

Small on purpose: the contract of one function, which only some providers have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ..core.lazy import load
from ..core.resource import Identity, Observed
from .contract import Provider, Session

OwnerFinder: TypeAlias = Callable[[Session, str, Iterable[Observed]], Mapping[Identity, str]]
"""Session, resource type, live objects of it -> those that an application or a service makes for
itself, and who that is, as the end of a sentence: `made by WHO`. It can ask the system, and never
raises because something could not be asked."""


def load_owners(provider: Provider) -> OwnerFinder:
    """How this provider recognises such objects; one without a way recognises none."""
    if not provider.owners:
        return _find_none
    finder: OwnerFinder = load(provider.owners)
    return finder


def _find_none(_: Session, kind: str, items: Iterable[Observed]) -> Mapping[Identity, str]:
    return {}
