"""What to type instead of a command or an option of Terraform's that does not exist here.

Only command lines that kafkaform does not understand load these tables.
"""

from __future__ import annotations

from collections.abc import Mapping

_RECREATE = (
    "kafkaform never recreates an object by itself: `kafkaform destroy --target ADDRESS` deletes "
    "it, and the next `kafkaform apply` creates it again."
)
_STATES = (
    "Give each environment a folder that calls shared modules, as in `kafkaform --chdir "
    "environments/prod plan`, or a file of values and a state, as in `kafkaform plan --var-file "
    "prod.kfvars.hcl --state prod.json`. docs/environments.md compares the two."
)
_UNLOCK = "`kafkaform lock show` names the run, and `kafkaform lock release RUN` releases its lock."
_LOGIN = (
    "There is no registry to log in to; the provider block has the login of each system, and "
    "`kafkaform init` checks the folder."
)
_MODULES = "`kafkaform init` fetches modules from Git, and checks those in folders."
_UPGRADE = (
    "`kafkaform init --upgrade` moves modules from Git to what their refs are now. Providers are "
    "Python packages, which pip upgrades."
)
_LOCK_FILE = "`kafkaform init --lockfile=readonly` fetches locked modules only."
_PACKAGES = (
    "Providers are Python packages, which pip installs and mirrors; `kafkaform providers` lists "
    "those of this folder."
)
_FIND = "`kafkaform import --all --out imported.kf.hcl` writes blocks for all live objects."
_BACKEND = (
    "The `backend` block, KAFKAFORM_STATE or --state says where the state is; "
    "`kafkaform state push FILE` moves a state there."
)
_COPY = "`kafkaform state pull --out FILE` saves a copy of the state and its log."
_MEANT = "`kafkaform state list ADDRESS` shows which objects an address means."
_LEAVE_OUT = "Leave it out; there is nothing to choose here."

COMMANDS: Mapping[str, str] = {
    "taint": _RECREATE,
    "untaint": "No object is ever marked for recreation; `kafkaform plan` shows what would change.",
    "workspace": _STATES,
    "env": _STATES,
    "refresh": "`kafkaform apply --refresh-only` records what was changed outside kafkaform.",
    "force-unlock": _UNLOCK,
    "unlock": _UNLOCK,
    "login": _LOGIN,
    "logout": _LOGIN,
    "modules": _MODULES,
    "metadata": "`kafkaform console` evaluates every function that docs/functions.md lists.",
    "query": _FIND,
    "stacks": "One folder can have several provider blocks; `kafkaform plan` plans them together.",
    "push": "`kafkaform state push FILE` moves a state to the place that this folder uses.",
    "help": "`kafkaform --help` lists the commands, and `kafkaform plan --help` explains one.",
    "providers mirror": _PACKAGES,
    "providers lock": _PACKAGES,
    "state replace-provider": (
        "The `provider` argument of a block names its instance; change it there, and "
        "`kafkaform plan` shows the effect."
    ),
    "state identities": "`kafkaform state show ADDRESS` shows what identifies an object.",
}
"""Words that are not a command -> what to do instead."""

OPTIONS: Mapping[str, str] = {
    "--refresh": "Every plan reads the live objects, so leave it out.",
    "--replace": _RECREATE,
    "--lock": "Every run locks the state; `--lock-timeout 60s` waits for another run.",
    "--parallelism": "kafkaform chooses the size of its batches, so leave it out.",
    "--compact-warnings": _LEAVE_OUT,
    "--generate-config-out": _FIND,
    "--state-out": _COPY,
    "--backup": _COPY,
    "--auto-approve": "`kafkaform apply --auto-approve` applies without asking.",
    "--destroy": "`kafkaform destroy` deletes everything; `kafkaform plan --destroy` shows it.",
    "--show-sensitive": "Sensitive values are stored nowhere, so nothing can show them.",
    "--dry-run": _MEANT,
    "--upgrade": _UPGRADE,
    "--lockfile": _LOCK_FILE,
    "--plugin-dir": _PACKAGES,
    "--get": _MODULES,
    "--from-module": _MODULES,
    "--backend": f"{_BACKEND} `kafkaform init --modules-only` leaves the state alone.",
    "--backend-config": _BACKEND,
    "--reconfigure": _BACKEND,
    "--migrate-state": _BACKEND,
    "--force-copy": _BACKEND,
    "--draw-cycles": _LEAVE_OUT,
    "--module-depth": _LEAVE_OUT,
    "--install-autocomplete": "`kafkaform --install-completion` installs completion of commands, "
    "flags and names.",
}
"""An option that the command does not have -> what to do instead."""

# One place for this answer: a destroy asks for the name of what it empties, and so must a script.
_HERE: Mapping[tuple[str, str], str] = {
    ("kafkaform destroy", "--auto-approve"): (
        "`kafkaform destroy --confirm ID` destroys without a question; `kafkaform plan --destroy` "
        "shows the ID in its first line."
    ),
}
"""Command and option -> what to do instead of this option there."""


def advise_terraform_option(flag: str, path: str) -> str | None:
    """What to do instead of an option that the command does not have; None if Terraform has no such
    option. path: the command as it is typed."""
    return _HERE.get((path, flag)) or OPTIONS.get(flag)


def advise_terraform_command(word: str, path: str) -> str | None:
    """What to do instead of an unknown command; None if Terraform has no such command. path: the
    group in which it was typed."""
    return COMMANDS.get(f"{path} {word}".removeprefix("kafkaform "))
