"""One file a command: parse its flags, call the packages, print what comes back."""

from __future__ import annotations

import typer

from . import (
    apply,
    audit,
    destroy,
    import_,
    lock,
    output,
    plan,
    sandbox,
    show,
    state,
    validate,
    version,
)


def register(app: typer.Typer) -> None:
    """Every command under its name."""
    for name, function in (
        ("validate", validate.validate),
        ("plan", plan.plan),
        ("apply", apply.apply_command),
        ("destroy", destroy.destroy),
        ("show", show.show),
        ("output", output.output),
        ("import", import_.import_command),
        ("version", version.version),
    ):
        app.command(name)(function)
    for name, group in (
        ("state", state.app),
        ("lock", lock.app),
        ("audit", audit.app),
        ("sandbox", sandbox.app),
    ):
        app.add_typer(group, name=name)
