"""Keep the log of a run short: at its end, old lines become segments, and what is in segments is
removed elsewhere."""

from __future__ import annotations

from msgspec.structs import replace

from ..apply.ledger import Ledger
from ..apply.stop import Stop
from ..audit.records import parse_time, render_time
from ..audit.sealing import remove_superseded, seal_lines
from ..audit.sink import LIMITS, SealableSink, SealLimits, Sink, read_manifest
from ..core.clock import Clock
from ..core.errors import Interrupted, Locked, StorageError
from ..core.progress import Message, SlowTask
from ..render.text import render_count
from ..state.backend import Lease
from .model import Announcer, Note


def seal_log(
    sink: Sink,
    ledger: Ledger,
    lease: Lease,
    clock: Clock,
    announce: Announcer,
    stop: Stop,
    limits: SealLimits = LIMITS,
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
            _seal(sink, ledger, lease, clock, announce, stop, limits)
    except Interrupted:
        announce(Note("The audit log was not sealed to its end; the next run goes on."))
    except (StorageError, Locked) as error:
        announce(
            Note(
                f"The audit log was not sealed: {error.message}. Everything else is complete. The "
                f"next run tries again. {error.advice}"
            )
        )


def _seal(
    sink: SealableSink,
    ledger: Ledger,
    lease: Lease,
    clock: Clock,
    announce: Announcer,
    stop: Stop,
    limits: SealLimits,
) -> None:
    """Raises StorageError, Locked, Interrupted."""

    def ensure(seconds: float) -> None:
        stop.check()
        lease.ensure(seconds)

    manifest = read_manifest(sink.sealed)
    if sink.is_long(manifest.head.seq, limits):
        begin, end = manifest.head.seq, ledger.journal.head.seq
        task = SlowTask("Sealing the audit log", "records", announce, clock)

        def report(last: int) -> None:
            stop.check()
            task.report(last - begin, end - begin)

        manifest = seal_lines(
            sink.sealed,
            sink.read_unsealed(begin),
            lineage=ledger.state.lineage,
            time=render_time(clock.now()),
            size=limits.segment,
            ensure=ensure,
            report=report,
        )
    if not manifest.segments:
        return
    # Before anything is removed: a version that knows no segments refuses this state.
    if not ledger.state.sealed:
        ledger.save_state(replace(ledger.state, sealed=True))
        announce(
            Message(
                f"Sealed records 1 to {manifest.head.seq:,} of the audit log in "
                f"{render_count(len(manifest.segments), 'segment')}; versions that know no "
                "segments refuse this state from now on"
            )
        )
    now = clock.now()
    strays = (
        *sink.remove_sealed(manifest, ensure, lambda time: now - parse_time(time) >= limits.grace),
        *remove_superseded(sink.sealed, manifest, ensure, lambda time: now - time >= limits.grace),
    )
    for name in strays:
        announce(
            Note(
                f"{name} at {sink.location} is not a part of the audit log, and nothing was sent "
                "because of it: a run wrote it that had lost its lock, or somebody else did. "
                "`kafkaform audit verify` says more."
            )
        )
