"""Starts and ends sandboxes. Whatever happens to `up`, no process is left that nobody knows."""

from __future__ import annotations

import base64
import secrets
import shutil
import uuid
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..core.errors import Interrupted, KafkaformError, UsageError
from ..core.progress import Message, Report, silent
from . import (
    classes,
    condition,
    configuration,
    environment,
    jars,
    java,
    lock,
    options,
    places,
    ports,
    record,
)
from .condition import State
from .download import missing_extra, repository
from .options import Options
from .process import GRACE, Process, alive, end, open_file_limits
from .record import Broker, Phase, Sandbox
from .start import PortTaken, Probe, Runtime, properties_file, start

_FEW_FILES = 4096
_STARTS = 3
_FIXED_BY_DATA: tuple[str, ...] = ("brokers",)
_FIXED_WHILE_RUNNING = (*_FIXED_BY_DATA, "tls", "config", "classpath")


class Stopped(Struct, frozen=True):
    """What `down` did. ended: process ids; data_kept: the run folder is still there."""

    sandbox: Sandbox
    ended: tuple[int, ...]
    data_kept: bool


def up(wanted: Options, probe: Probe, report: Report = silent) -> Sandbox:
    """Starts the sandbox and returns it once `probe` counts all its brokers.

    A running one with the same options is returned as it is; what a crash or an unfinished
    `up` left is ended and started again, with its data if it ever worked. Raises UsageError,
    ConnectError (not ready in time), Locked, KafkaformError (Java, jars), Interrupted."""
    options.check(wanted)
    try:
        with lock.hold(wanted.name):
            return _up(wanted, probe, report)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; nothing of {wanted.name} is left running") from None


def _up(wanted: Options, probe: Probe, report: Report) -> Sandbox:
    old = record.load(wanted.name)
    if old is not None:
        found = condition.of(old, busy=False)
        _refuse_other_options(found, wanted)
        if found.state is State.RUNNING:
            report(Message(f"{old.name} is running already"))
            return old
        _clear_leftovers(found, report)
    runtime = _runtime(wanted, report)
    _warn_of_few_files(report)
    kept = old if old is not None and old.usable else None
    for _ in range(_STARTS - 1):
        try:
            return start(_prepare(wanted, kept), runtime, wanted.ready_within, probe, report)
        except PortTaken:
            report(Message("somebody else has taken one of its ports: trying others"))
    return start(_prepare(wanted, kept), runtime, wanted.ready_within, probe, report)


def down(name: str, keep_data: bool | None = None, report: Report = silent) -> Stopped | None:
    """Ends the sandbox's own processes and removes its data unless that is to be kept.

    keep_data: None = as `up` was told. Returns None if there is no such sandbox."""
    options.check_name(name)
    with lock.hold(name):
        sandbox = record.load(name)
        if sandbox is None:
            return None
        keep = sandbox.keep_data if keep_data is None else keep_data
        recorded = sandbox.processes()
        report(Message(f"ending {name}"))
        ended = end(recorded, GRACE)
        _refuse_survivors(sandbox, recorded)
        if not keep or not sandbox.usable:
            shutil.rmtree(sandbox.folder)
            return Stopped(sandbox, tuple(each.pid for each in ended), data_kept=False)
        brokers = tuple(replace(broker, process=None) for broker in sandbox.brokers)
        kept = replace(sandbox, phase=Phase.STOPPED, brokers=brokers, keep_data=True, reason="")
        record.save(kept)
        return Stopped(kept, tuple(each.pid for each in ended), data_kept=True)


def _refuse_other_options(found: condition.Status, wanted: Options) -> None:
    """A running sandbox is what it is; kept data was made for a number of brokers."""
    has = found.sandbox.options()
    running = found.state is State.RUNNING
    names = _FIXED_WHILE_RUNNING if running else _FIXED_BY_DATA if found.sandbox.usable else ()
    wanted = replace(wanted, classpath=tuple(jar.absolute() for jar in wanted.classpath))
    different = [name for name in names if getattr(has, name) != getattr(wanted, name)]
    if different:
        raise UsageError(
            f"sandbox {wanted.name} exists with another --{', --'.join(different)}",
            f"`kafkaform sandbox down --name {wanted.name} --no-keep-data` ends it and removes its "
            "data; or choose another --name",
        )


def _clear_leftovers(found: condition.Status, report: Report) -> None:
    if found.explanation and found.state is not State.STOPPED:
        report(Message(f"{found.sandbox.name} was {found.state}: starting it again"))
    processes = found.sandbox.processes()
    end(processes, GRACE)
    _refuse_survivors(found.sandbox, processes)
    if not found.sandbox.usable:
        shutil.rmtree(found.sandbox.folder)


def _refuse_survivors(sandbox: Sandbox, processes: tuple[Process, ...]) -> None:
    """Data must not be removed, nor started again, under a broker that still runs."""
    left = [str(process.pid) for process in processes if alive(process)]
    if left:
        raise KafkaformError(
            f"brokers of {sandbox.name} could not be ended: process {', '.join(left)}",
            "end them yourself, then run `kafkaform sandbox down` again",
        )


def _runtime(wanted: Options, report: Report) -> Runtime:
    found = jars.class_path(report, repository)
    extra = tuple(jar.absolute() for jar in wanted.classpath)
    used = java.find()
    return Runtime(used, (*extra, *found), None if extra else classes.archive(used, found))


def _warn_of_few_files(report: Report) -> None:
    soft, hard = open_file_limits()
    if 0 <= soft < _FEW_FILES:
        allowed = "no limit" if hard < 0 else f"the hard limit, {hard}"
        report(
            Message(
                f"warning: this shell allows {soft} open files and a broker needs about one per "
                f"partition; the brokers get {allowed}"
            )
        )


def _prepare(wanted: Options, old: Sandbox | None) -> Sandbox:
    """The sandbox with everything that its brokers read on disk; nothing runs yet."""
    previous = tuple(broker.ports for broker in old.brokers) if old else ()
    allotted = ports.allocate(wanted.brokers, wanted.tls, previous)
    fresh = Sandbox(
        name=wanted.name,
        phase=Phase.STARTING,
        cluster_id=old.cluster_id if old else _cluster_id(),
        brokers=tuple(Broker(number, each) for number, each in enumerate(allotted, start=1)),
        admin_password=old.admin_password if old else secrets.token_hex(16),
        ci_password=old.ci_password if old else secrets.token_hex(16),
        broker_password=old.broker_password if old else secrets.token_hex(16),
        config=wanted.config,
        classpath=tuple(str(jar.absolute()) for jar in wanted.classpath),
        keep_data=wanted.keep_data,
        usable=old is not None,
    )
    record.save(fresh)
    _write_files(fresh)
    return fresh


def _write_files(sandbox: Sandbox) -> None:
    folder = sandbox.folder
    for name in ("data", "tmp"):
        places.private_folder(folder / name)
    if sandbox.tls:
        _create_certificates(folder / "tls")
    places.write_private(folder / "log4j2.properties", configuration.LOGGING)
    places.write_private(environment.properties_file(sandbox), environment.properties(sandbox))
    for broker in sandbox.brokers:
        text = configuration.properties(sandbox, broker)
        places.write_private(folder / properties_file(broker), text)


def _create_certificates(folder: Path) -> None:
    try:
        from .certificates import create  # noqa: PLC0415  # it needs a library of the sandbox extra
    except ImportError:
        raise missing_extra("cryptography") from None
    create(folder)


def _cluster_id() -> str:
    """22 characters of URL-safe base 64. A leading `-` would look like a flag to the storage
    tool."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode("ascii")
        if not text.startswith("-"):
            return text
