"""Seal the logs of tests, which are small: as a run with the lock does it, with other limits."""

from __future__ import annotations

from collections.abc import Callable

from kafkaform.audit.sealing import remove_superseded, seal_lines
from kafkaform.audit.segments import Manifest, read_manifest
from kafkaform.audit.sink import SealableSink

from .audit_story import LINEAGE

SOON = "2026-11-28T12:00:00.000000Z"


def be_sure(seconds: float) -> None:
    """The lock stays ours."""


def seal(
    sink: SealableSink,
    size: int = 1000,
    time: str = SOON,
    lineage: str = LINEAGE,
    ensure: Callable[[float], None] = be_sure,
) -> Manifest:
    """Seal all but the last append, in segments of so many bytes of lines."""
    after = read_manifest(sink.sealed).head.seq
    portions = sink.read_unsealed(after)
    return seal_lines(sink.sealed, portions, lineage=lineage, time=time, size=size, ensure=ensure)


def remove(sink: SealableSink, ensure: Callable[[float], None] = be_sure) -> tuple[str, ...]:
    """Remove everything that was sealed, however short ago."""
    manifest = read_manifest(sink.sealed)
    strays = sink.remove_sealed(manifest, ensure, lambda time: True)
    return strays + remove_superseded(sink.sealed, manifest, ensure, lambda time: True)
