"""In: options of `sandbox up`, and a probe that counts answering brokers. Out: a real Kafka.

One or three brokers on the loopback address, from pinned jars and any Java from 17 on.
Must not know: plans, providers, Kafka clients, terminals.
"""

from .condition import State, Status, status
from .environment import Format, properties_file, render
from .lifecycle import Stopped, down, up
from .logs import follow, last_lines
from .options import Options, parse_override
from .record import Broker, Ports, Sandbox, load, names
from .start import Probe

__all__ = [
    "Broker",
    "Format",
    "Options",
    "Ports",
    "Probe",
    "Sandbox",
    "State",
    "Status",
    "Stopped",
    "down",
    "follow",
    "last_lines",
    "load",
    "names",
    "parse_override",
    "properties_file",
    "render",
    "status",
    "up",
]
