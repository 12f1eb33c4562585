"""Start and end sandboxes. However `up` ends, each process that is left is on record."""

from __future__ import annotations

import base64
import secrets
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..core.errors import Interrupted, KafkaformError, UsageError
from ..core.progress import Message, Reporter, ignore_event
from ..core.storage import make_private_folder
from . import brokers, configuration, jars, record, versions
from .brokers import (
    PortTaken,
    Probe,
    Runtime,
    SandboxState,
    SandboxStatus,
    are_brokers_running,
    end_sandbox,
    judge_sandbox,
    name_properties_file,
    start_sandbox,
)
from .jars import make_missing_extra_error, open_repository
from .process import Process, get_file_limits, is_alive
from .record import Broker, Phase, Sandbox, SandboxOptions

_FEW_FILES = 4096
_STARTS = 3
_FIXED_BY_DATA = ("brokers", "kafka_version", "zookeeper")
_FIXED_WHILE_RUNNING = (*_FIXED_BY_DATA, "tls", "config", "classpath", "authorizer")


class Stopped(Struct, frozen=True):
    """What `down` did."""

    sandbox: Sandbox
    ended: tuple[int, ...]
    """Process ids."""
    data_kept: bool
    """The run folder is still there."""


def up(request: SandboxOptions, probe: Probe, report: Reporter = ignore_event) -> Sandbox:
    """Start the sandbox and return it as soon as `probe` counts all its brokers.

    A running sandbox with the same options is returned as it is; `servers.start_servers` starts
    what runs beside the brokers. What a crash or an unfinished `up`
    has left is ended and started again, with its data if it was ever ready. Raises UsageError,
    ConnectError (not ready in time), Locked, KafkaformError (Java, jars), Interrupted.
    """
    record.check_options(request)
    request = replace(request, kafka_version=versions.choose_version(request.kafka_version))
    try:
        with record.hold_lock(request.name):
            return _up(request, probe, report)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; nothing of {request.name} is left running") from None


def _up(request: SandboxOptions, probe: Probe, report: Reporter) -> Sandbox:
    old = record.load_sandbox(request.name)
    if old is not None:
        status = judge_sandbox(old, busy=False)
        _refuse_other_options(status, request)
        if are_brokers_running(old):
            report(Message(f"{old.name} is already running"))
            return old
        _clear_leftovers(status, report)
    runtime = _find_runtime(request, report)
    _warn_of_few_files(report)
    # Data of brokers that were never ready can be half formatted, and a broker refuses to start on
    # it.
    reusable = old if old is not None and old.usable else None
    # Ports are chosen before the brokers bind them, so another program can take one in between.
    for _ in range(_STARTS - 1):
        try:
            return start_sandbox(
                _prepare(request, reusable), runtime, request.ready_within, probe, report
            )
        except PortTaken:
            report(Message("another program has taken one of its ports: trying others"))
    return start_sandbox(_prepare(request, reusable), runtime, request.ready_within, probe, report)


def down(
    name: str, keep_data: bool | None = None, report: Reporter = ignore_event
) -> Stopped | None:
    """End the processes of the sandbox, and remove its data unless it is kept. keep_data: None: as
    the options of `up` said. Returns None if there is no such sandbox."""
    record.check_name(name)
    with record.hold_lock(name):
        sandbox = record.load_sandbox(name)
        if sandbox is None:
            return None
        keep = sandbox.keep_data if keep_data is None else keep_data
        recorded = sandbox.list_processes()
        report(Message(f"ending {name}"))
        ended = end_sandbox(sandbox)
        _refuse_survivors(sandbox, recorded)
        # Only after every process has ended: a broker that runs on recreates files in its folder.
        if not keep or not sandbox.usable:
            shutil.rmtree(sandbox.folder)
            return Stopped(sandbox, tuple(process.pid for process in ended), data_kept=False)
        stopped = replace(
            sandbox.without_processes(), phase=Phase.STOPPED, keep_data=True, reason=""
        )
        record.save_sandbox(stopped)
        return Stopped(stopped, tuple(process.pid for process in ended), data_kept=True)


def _refuse_other_options(status: SandboxStatus, request: SandboxOptions) -> None:
    """Raise UsageError for options that differ from those of a running sandbox or of kept data."""
    # The log of kept data has this number of voters and replicas; a broker more or less would wait
    # for a majority that never comes.
    has = status.sandbox.make_options()
    running = are_brokers_running(status.sandbox)
    names = _FIXED_WHILE_RUNNING if running else _FIXED_BY_DATA if status.sandbox.usable else ()
    request = replace(request, classpath=tuple(jar.absolute() for jar in request.classpath))
    different = [name for name in names if getattr(has, name) != getattr(request, name)]
    if different:
        raise UsageError(
            f"sandbox {request.name} exists with other values of {_list_flags(different)}",
            f"`kafkaform sandbox down --name {request.name} --no-keep-data` ends it and removes "
            "its data; or choose another --name",
        )


def _list_flags(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _clear_leftovers(status: SandboxStatus, report: Reporter) -> None:
    if status.explanation and status.state is not SandboxState.STOPPED:
        report(Message(f"{status.sandbox.name} was {status.state}: starting it again"))
    end_sandbox(status.sandbox)
    _refuse_survivors(status.sandbox, status.sandbox.list_processes())
    if not status.sandbox.usable:
        shutil.rmtree(status.sandbox.folder)


def _refuse_survivors(sandbox: Sandbox, processes: tuple[Process, ...]) -> None:
    """Raise KafkaformError if one of these still runs."""
    # Under a running broker, data must neither be removed nor used by another broker.
    survivors = [str(process.pid) for process in processes if is_alive(process)]
    if survivors:
        raise KafkaformError(
            f"processes of {sandbox.name} could not be ended: {', '.join(survivors)}",
            "end these processes, then run `kafkaform sandbox down` again",
        )


def _find_runtime(request: SandboxOptions, report: Reporter) -> Runtime:
    version = versions.choose_version(request.kafka_version)
    used = versions.find_java(version)
    class_path = jars.find_class_path(report, open_repository, version)
    extra = tuple(jar.absolute() for jar in request.classpath)
    return Runtime(
        used, (*extra, *class_path), None if extra else jars.find_archive(used, class_path)
    )


def _warn_of_few_files(report: Reporter) -> None:
    soft, hard = get_file_limits()
    if 0 <= soft < _FEW_FILES:
        allowed = "no limit" if hard < 0 else f"the hard limit, {hard}"
        report(
            Message(
                f"warning: this shell allows {soft} open files and a broker needs about one per "
                f"partition; the brokers get {allowed}"
            )
        )


def _prepare(request: SandboxOptions, old: Sandbox | None) -> Sandbox:
    """Write all files that the brokers of a sandbox read. Returns the sandbox; nothing runs yet."""
    previous = tuple(broker.ports for broker in old.brokers) if old else ()
    allotted = brokers.allocate_ports(request.brokers, request.tls, previous)
    fresh = Sandbox(
        name=request.name,
        phase=Phase.STARTING,
        cluster_id=old.cluster_id if old else "" if request.zookeeper else _make_cluster_id(),
        brokers=tuple(
            Broker(number, broker_ports) for number, broker_ports in enumerate(allotted, start=1)
        ),
        # Kept data has the credentials of its first start.
        admin_password=old.admin_password if old else secrets.token_hex(16),
        ci_password=old.ci_password if old else secrets.token_hex(16),
        broker_password=old.broker_password if old else secrets.token_hex(16),
        config=request.config,
        classpath=tuple(str(jar.absolute()) for jar in request.classpath),
        keep_data=request.keep_data,
        usable=old is not None,
        kafka_version=versions.choose_version(request.kafka_version),
        zookeeper=request.zookeeper,
        authorizer=request.authorizer,
        servers=old.without_processes().servers if old else (),
        connect_password=(old and old.connect_password) or secrets.token_hex(16),
    )
    record.save_sandbox(fresh)
    _write_files(fresh)
    return fresh


def _write_files(sandbox: Sandbox) -> None:
    folder = sandbox.folder
    for name in ("data", "tmp"):
        make_private_folder(folder / name, parents=True)
    if sandbox.tls:
        _create_certificates(folder / "tls")
    logging = versions.find_traits(sandbox.kafka_version).logging
    record.write_private(folder / logging.file_name, logging.text)
    record.write_private(
        configuration.locate_properties(sandbox), configuration.render_client_properties(sandbox)
    )
    if sandbox.zookeeper:
        record.write_private(
            folder / configuration.ZOOKEEPER_PROPERTIES,
            configuration.render_zookeeper_properties(sandbox),
        )
        record.write_private(
            folder / configuration.ZOOKEEPER_LOGINS, configuration.render_zookeeper_logins(sandbox)
        )
    for broker in sandbox.brokers:
        text = configuration.render_properties(sandbox, broker)
        record.write_private(folder / name_properties_file(broker), text)


def _create_certificates(folder: Path) -> None:
    try:
        from .certificates import create_certificates  # noqa: PLC0415  # it needs a library of the sandbox extra
    except ImportError:
        raise make_missing_extra_error("cryptography") from None
    create_certificates(folder)


def _make_cluster_id() -> str:
    """A cluster id: 22 characters of URL-safe base64."""
    # The storage tool would take a leading `-` for a flag.
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode("ascii")
        if not text.startswith("-"):
            return text
