"""In: options of `sandbox up`, and a probe that counts brokers that answer. Out: a real Kafka.

It is one broker or three on the loopback address, from pinned jars of one of several versions,
with any Java that fits.
Must not know: plans, providers, Kafka clients, terminals.
"""

from .brokers import Probe, SandboxState, SandboxStatus, follow_logs, read_last_lines, read_status
from .configuration import Format, locate_properties, render
from .lifecycle import Stopped, down, up
from .record import (
    DEFAULT_NAME,
    Broker,
    Ports,
    Sandbox,
    SandboxOptions,
    Server,
    ServerKind,
    list_sandboxes,
    load_sandbox,
    parse_override,
)
from .versions import DEFAULT_VERSION, list_versions

__all__ = [
    "Broker",
    "DEFAULT_NAME",
    "DEFAULT_VERSION",
    "Format",
    "SandboxOptions",
    "Ports",
    "Probe",
    "Sandbox",
    "SandboxState",
    "SandboxStatus",
    "Server",
    "ServerKind",
    "Stopped",
    "down",
    "follow_logs",
    "read_last_lines",
    "load_sandbox",
    "list_sandboxes",
    "list_versions",
    "parse_override",
    "locate_properties",
    "render",
    "read_status",
    "up",
]
