"""One file per command, or for commands of one idea: read the flags, call one function of
`workflow`, print the result."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "init": "commands.init:init",
    "validate": "commands.validate:validate",
    "check": "commands.check:check",
    "fmt": "commands.fmt:fmt",
    "test": "commands.test:test",
    "plan": "commands.plan:plan",
    "apply": "commands.apply:apply_command",
    "destroy": "commands.apply:destroy",
    "undo": "commands.log.history:undo",
    "show": "commands.state:show",
    "output": "commands.output:output",
    "import": "commands.transfer:import_command",
    "export": "commands.transfer:export_command",
    "describe": "commands.describe:app",
    "alter": "commands.alter:app",
    "explain": "commands.explain:app",
    "propose": "commands.propose:app",
    "shell": "shell:shell",
    "console": "commands.console:console",
    "graph": "commands.declarations:graph",
    "providers": "commands.declarations:app",
    "state": "commands.state:app",
    "history": "commands.log.history:history",
    "lock": "commands.lock:app",
    "audit": "commands.log.audit:app",
    "fleet": "commands.fleet:app",
    "lsp": "commands.services:lsp",
    "serve": "commands.services:serve",
    "sandbox": "commands.sandbox:app",
    "version": "commands.version:version",
}
"""Command -> the module of `cli`, and its function or group of commands."""
