"""Keep the log of a run short: at its end, old lines become segments, and what is in segments is
removed elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from ..apply.ledger import Ledger
from ..apply.stop import Stop
from ..audit.event import parse_time, render_time
from ..audit.sealing import remove_superseded, seal_lines
from ..audit.segments import LIMITS, Limits, Manifest, read_manifest
from ..audit.sink import SealableSink, Sink
from ..core.clock import Clock
from ..core.errors import Interrupted, Locked, StorageError
from ..core.progress import Progress
from ..state.backend import Lease
from .model import Announcer, Note

TASK, LABEL = "seal", "Sealing the audit log"
PATIENCE = 2.0
"""Seconds for which nothing is said."""


def seal_log(
    sink: Sink,
    ledger: Ledger,
    lease: Lease,
    clock: Clock,
    announce: Announcer,
    stop: Stop,
    limits: Limits = LIMITS,
) -> None:
    """Seal what the log has too much of, and remove what was sealed long enough ago. The caller has
    the lock, and has saved its state. Never raises: whatever fails is announced, and the next run
    goes on."""
    if not isinstance(sink, SealableSink):
        return
    # What the run was to do is done. So nothing here can end it, neither a signal nor a screen.
    announce.sending = True
    try:
        with stop.listening():
            _seal(sink, ledger, lease, _Watch(clock, announce, stop), limits)
    except Interrupted:
        announce(Note("The audit log was not sealed to its end; the next run goes on."))
    except (StorageError, Locked) as error:
        announce(
            Note(
                f"The audit log was not sealed: {error.message}. Everything else is complete. The "
                f"next run tries again. {error.advice}"
            )
        )


class _Watch(Struct):
    """Says how far the work is, and ends it if somebody asks to stop."""

    clock: Clock
    announce: Announcer
    stop: Stop
    begin: float = 0.0

    def report(self, done: int, total: int, *, finished: bool = False) -> None:
        """So many records are sealed. Raises Interrupted."""
        self.stop.check()
        if self.clock.monotonic() - self.begin > PATIENCE:
            self.announce(Progress(TASK, LABEL, done, total, "records", finished=finished))


def _seal(sink: SealableSink, ledger: Ledger, lease: Lease, watch: _Watch, limits: Limits) -> None:
    """Raises StorageError, Locked, Interrupted."""
    watch.begin = watch.clock.monotonic()
    manifest = read_manifest(sink.sealed)
    if sink.is_long(manifest.head.seq, limits):
        sealed, end = manifest.head.seq, ledger.journal.head.seq
        manifest = seal_lines(
            sink.sealed,
            sink.read_unsealed(sealed),
            lineage=ledger.state.lineage,
            time=render_time(watch.clock.now()),
            size=limits.segment,
            ensure=lease.ensure,
            report=lambda last: watch.report(last - sealed, end - sealed),
        )
        watch.report(manifest.head.seq - sealed, end - sealed, finished=True)
    if manifest.segments:
        # Before anything is removed: a version that knows no segments refuses this state.
        if not ledger.state.sealed:
            ledger.save_state(replace(ledger.state, sealed=True))
        _remove(sink, manifest, lease.ensure, watch, limits)


def _remove(
    sink: SealableSink,
    manifest: Manifest,
    ensure: Callable[[float], None],
    watch: _Watch,
    limits: Limits,
) -> None:
    def check(seconds: float) -> None:
        watch.stop.check()
        ensure(seconds)

    now = watch.clock.now()
    strays = sink.remove_sealed(
        manifest, check, lambda time: now - parse_time(time) >= limits.grace
    )
    strays += remove_superseded(
        sink.sealed, manifest, check, lambda time: now - time >= limits.grace
    )
    for name in strays:
        watch.announce(
            Note(
                f"{name} at {sink.location} is not a part of the audit log, and nothing was sent "
                "because of it: a run wrote it that had lost its lock, or somebody else did. "
                "`kafkaform audit verify` says more."
            )
        )
