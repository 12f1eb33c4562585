"""In: options of `sandbox up`, and a probe that counts brokers that answer. Out: a real Kafka.

It is one broker or three on the loopback address, from pinned jars, with any Java from 17 on.
Must not know: plans, providers, Kafka clients, terminals.
"""

from .condition import SandboxState, SandboxStatus, read_status
from .environment import Format, locate_properties, render
from .lifecycle import Stopped, down, up
from .logs import follow_logs, read_last_lines
from .options import DEFAULT_NAME, SandboxOptions, parse_override
from .record import Broker, Ports, Sandbox, list_sandboxes, load_sandbox
from .start import Probe

__all__ = [
    "Broker",
    "DEFAULT_NAME",
    "Format",
    "SandboxOptions",
    "Ports",
    "Probe",
    "Sandbox",
    "SandboxState",
    "SandboxStatus",
    "Stopped",
    "down",
    "follow_logs",
    "read_last_lines",
    "load_sandbox",
    "list_sandboxes",
    "parse_override",
    "locate_properties",
    "render",
    "read_status",
    "up",
]
