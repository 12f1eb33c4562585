"""One file a command: parse its flags, call the packages, print what comes back."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "init": "init:init",
    "validate": "validate:validate",
    "fmt": "fmt:fmt",
    "plan": "plan:plan",
    "apply": "apply:apply_command",
    "destroy": "destroy:destroy",
    "show": "show:show",
    "output": "output:output",
    "import": "import_:import_command",
    "describe": "describe:app",
    "alter": "alter:app",
    "explain": "explain:app",
    "shell": "shell:shell",
    "console": "console:console",
    "graph": "graph:graph",
    "providers": "providers:app",
    "state": "state:app",
    "lock": "lock:app",
    "audit": "audit:app",
    "fleet": "fleet:app",
    "sandbox": "sandbox:app",
    "version": "version:version",
}
"""What is typed -> the module here, and its function or group of commands."""
