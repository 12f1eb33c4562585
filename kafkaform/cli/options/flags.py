"""Flags that several commands share, spelled as Terraform spells them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Var = Annotated[
    list[str], typer.Option("--var", metavar="NAME=VALUE", help="Set an input variable.")
]
VarFile = Annotated[
    list[Path],
    typer.Option("--var-file", metavar="FILE", help="Read input variables from this file."),
]
StateFile = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="PLACE",
        help="Where the state is: a file, or s3://, gs://, az:// with bucket and prefix; default: "
        "KAFKAFORM_STATE, the backend block, or kafkaform.state.json here.",
    ),
]
Target = Annotated[
    list[str],
    typer.Option(
        "--target", metavar="ADDRESS", help="Only this address or glob, and what it depends on."
    ),
]
Exclude = Annotated[
    list[str],
    typer.Option(
        "--exclude", metavar="ADDRESS", help="Not this address or glob, nor what depends on it."
    ),
]
Adopt = Annotated[
    list[str],
    typer.Option(
        "--adopt", metavar="GLOB", help="Take over live objects whose address this glob names."
    ),
]
MaxDeletes = Annotated[
    int | None,
    typer.Option("--max-deletes", metavar="N", min=0, help="Allow at most this many deletions."),
]
OPEN_ACCESS, UNPROVEN_ACCESS = "open-access", "unproven-access"
"""What blocks a change and can be accepted (see `Block`)."""
AcceptOpenAccess = Annotated[
    bool,
    typer.Option(
        f"--accept-{OPEN_ACCESS}",
        help="Delete the last ACL of a resource, although that may open it to everybody.",
    ),
]
AcceptUnprovenAccess = Annotated[
    bool,
    typer.Option(
        f"--accept-{UNPROVEN_ACCESS}",
        help="Change ACLs, although the cluster decides otherwise than its ACLs say.",
    ),
]
FailOn = Annotated[
    list[str],
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="Exit 8 if the plan has such: deletes, blocked, drift.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON lines for programs.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
LockTimeout = Annotated[
    str,
    typer.Option(
        "--lock-timeout", metavar="TIME", help="How long to wait for the state lock, such as 60s."
    ),
]
AutoApprove = Annotated[
    bool, typer.Option("--auto-approve", "--force", help="Do not ask; apply what is planned.")
]
Untrusted = Annotated[
    bool,
    typer.Option(
        "--untrusted",
        help="Anybody may have written these files: they read no other files, and connections "
        "come from the environment only.",
    ),
]
Input = Annotated[bool, typer.Option("--input/--no-input", help="May questions be asked?")]


def accepted(*, open_access: bool, unproven_access: bool) -> tuple[str, ...]:
    """The waivers that these flags give."""
    given = {OPEN_ACCESS: open_access, UNPROVEN_ACCESS: unproven_access}
    return tuple(name for name, wanted in given.items() if wanted)
