"""`kafkaform fleet`: examine all clusters at once."""

from __future__ import annotations

import os
import sys
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.clock import SystemClock
from ...core.errors import UsageError
from ...fleet import answers
from ...fleet.access.permission_rows import PermissionFilter
from ...render.text import render_json
from ...workflow import fleet
from ...workflow.configuration.evaluation import Inputs
from ...workflow.stores import parse_duration
from ..options.flags import InOrder, Json, LockTimeout, Quiet, Var, VarFile
from ..options.provider_commands import Opener, connects
from ..terminal.console import Console, outlive_output
from ..terminal.progress import open_bars

app = typer.Typer(
    help="Examine all clusters at once: drift, access, use, history.", no_args_is_help=True
)
FILE = "fleet.hcl"
File = Annotated[Path, typer.Option("--file", metavar="FILE", help="The fleet's register.")]
Master = Annotated[
    str,
    typer.Option(
        "--master",
        metavar="URL",
        envvar="KAFKAFORM_FLEET_MASTER",
        help="Where it runs: embedded, or Spark: local[N], spark://…, yarn, k8s://…, sc://….",
    ),
]
Jars = Annotated[
    str,
    typer.Option(
        "--jars",
        metavar="PATH,…",
        envvar="KAFKAFORM_FLEET_JARS",
        help="Delta Lake's JARs, if Maven can't be reached.",
    ),
]
Ivy = Annotated[
    Path | None,
    typer.Option(
        "--ivy-settings",
        metavar="FILE",
        envvar="KAFKAFORM_FLEET_IVY_SETTINGS",
        help="Ivy settings for downloading JARs from another repository.",
    ),
]
Cluster = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Only this cluster.")
]
Principal = Annotated[
    str | None,
    typer.Option("--principal", metavar="NAME", help="Only this principal, such as User:ci."),
]
Owner = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Only topics of this owner.")
]
TellFile = Annotated[
    Path | None,
    typer.Option("--tell-file", metavar="DIR", help="Tell each owner by a Markdown file."),
]
TellWebhook = Annotated[
    str | None,
    typer.Option("--tell-webhook", metavar="URL", help="Tell each owner by a POST of JSON."),
]
TellIssue = Annotated[
    bool,
    typer.Option(
        "--tell-issue", help="Tell each owner by an issue, in a job of GitHub Actions or GitLab CI."
    ),
]
Again = Annotated[bool, typer.Option("--again", help="Also tell owners who were told already.")]
Propose = Annotated[
    Path | None,
    typer.Option("--propose", metavar="DIR", help="Write the changes that are due, for a review."),
]
NoticeDays = Annotated[
    int | None,
    typer.Option(
        "--notice-days",
        metavar="N",
        min=0,
        help=f"How many days an owner has to object. Default: as {FILE} says.",
    ),
]
Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help="table, json or csv.")]
INCOMPLETE = 5
"""Exit code if not everything is known."""


def _check_root(value: str | None) -> str | None:
    """Refuse a name that is not text: Spark and Delta Lake take texts only."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise typer.BadParameter("its name is not UTF-8 text; rename the folder.") from None
    return value


Root = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="PLACE",
        envvar="KAFKAFORM_FLEET_ROOT",
        callback=_check_root,
        help="Where the fleet's files are: a folder, an s3://, gs:// or abfss:// URL with bucket "
        f"and prefix, or an hdfs:// URL with host, port and folder. Default: the root in {FILE}.",
    ),
]


def _check_share(value: float | None) -> float | None:
    """Refuse `nan`: typer takes it for any range, and no number of bad lines would exceed it."""
    if value is not None and isnan(value):
        raise typer.BadParameter(f"{value} is not a share.")
    return value


@app.command(cls=InOrder)
def snapshot(
    file: File = Path(FILE),
    root: Root = None,
    only: Annotated[
        list[str], typer.Option("--only", metavar="GLOB", help="Only these clusters and states.")
    ] = [],
    parallel: Annotated[
        int, typer.Option("--parallel", metavar="N", min=1, help="Clusters read at once.")
    ] = 16,
    var: Var = [],
    var_file: VarFile = [],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read all clusters into the landing folder.

    Reads states, configurations and logs, too. Changes nothing except the landing folder.
    Exit code 5: not everything could be read.
    """
    outlive_output()
    register = fleet.register_file.read_fleet(file, Inputs.read(var, var_file))
    missing = fleet.snapshot.check_secrets(register, only)
    Console.make_standard().show_diagnostics((*register.warnings, *missing))
    with _make_bars(quiet=quiet or json) as report:
        summary = fleet.snapshot.take_snapshot(
            register, root=root, only=only, parallel=parallel, report=report
        )
    _print(summary.make_document() if json else list(summary.render_lines()))
    raise typer.Exit(summary.exit_code)


@app.command()
@connects
def run(
    opener: Opener,
    root: Root = None,
    only: Annotated[
        list[str], typer.Option("--only", metavar="TABLE", help="Only this table and its inputs.")
    ] = [],
    from_topic: Annotated[
        str | None,
        typer.Option("--from-topic", metavar="TOPIC", help="Audit topic to read first."),
    ] = None,
    max_corrupt: Annotated[
        float | None,
        typer.Option(
            "--max-corrupt",
            metavar="SHARE",
            min=0,
            max=1,
            callback=_check_share,
            help="Allow this share of bad lines, 0 to 1.",
        ),
    ] = None,
    fail_on: Annotated[
        list[str],
        typer.Option(
            "--fail-on",
            metavar="FINDING",
            help="Exit with 8 if there are such findings. A wrong name lists all.",
        ),
    ] = [],
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=1, help="Keep only the newest N builds."),
    ] = None,
    master: Master = "",
    jars: Jars = "",
    ivy_settings: Ivy = None,
    lock_timeout: LockTimeout = "0s",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Update the tables with new landing files.

    Exit code 8: there are findings that --fail-on names; 5: not all clusters are known.
    """
    outlive_output()
    target = _choose_root(root)
    patience = parse_duration(lock_timeout, "--lock-timeout")
    request = fleet.runs.BuildRequest(
        target, tuple(only), max_corrupt, from_topic, tuple(fail_on), keep, patience
    )
    spark = fleet.runs.read_spark_options(master, jars, ivy_settings)
    with _make_bars(quiet=quiet or json) as report:
        result = fleet.runs.make_build(request, spark, opener.resolve_connection, report)
    _print(fleet.runs.make_document(result) if json else list(fleet.runs.render_result(result)))
    fleet.runs.refuse_findings(target, fail_on)
    _end_if_incomplete(target)


@app.command()
def report(
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="A file: .html, .md or .json.")
    ] = Path("fleet.html"),
    root: Root = None,
    csv: Annotated[bool, typer.Option("--csv", help="Also write all tables as CSV.")] = False,
    redact: Annotated[bool, typer.Option("--redact", help="Mask principals.")] = False,
) -> None:
    """Write the report of the current build."""
    for path in fleet.answers.write_report(_choose_root(root), out, csv=csv, redact=redact):
        Console.make_standard().note(f"Wrote {path}.")


@app.command()
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A SELECT over the build's tables.")],
    root: Root = None,
    form: Format = "table",
) -> None:
    """Query the current build's tables with SQL.

    Names clusters whose rows are old on standard error.
    """
    target, console = _choose_root(root), Console.make_standard()
    console.write(fleet.answers.format_sheet(fleet.answers.query_build(target, sql), form))
    for line in fleet.answers.list_old_rows(target, sql):
        console.note(line)


@app.command("who-can")
def who_can(
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="Such as READ.")],
    resource: Annotated[str, typer.Argument(metavar="TYPE/NAME", help="Such as topic/orders.")],
    root: Root = None,
    cluster: Cluster = None,
    principal: Principal = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="The client's IP. Default: any.")
    ] = None,
    form: Format = "table",
) -> None:
    """Show who can do something, on every cluster.

    Exit code 5: not all clusters are known.
    """
    target = _choose_root(root)
    sheet = fleet.answers.find_who_can(
        target, operation, resource, cluster=cluster, principal=principal, host=host
    )
    Console.make_standard().write(fleet.answers.format_sheet(sheet, form))
    _end_if_incomplete(target, cluster)


@app.command()
def permissions(
    root: Root = None,
    cluster: Cluster = None,
    principal: Principal = None,
    resource: Annotated[
        str | None,
        typer.Option(
            "--resource", metavar="TYPE/NAME", help="Only this resource: topic/a, 'topic/a.*'."
        ),
    ] = None,
    expand: Annotated[
        bool, typer.Option("--expand", help="Use Spark to list every resource.")
    ] = False,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="table, json, csv or parquet.")
    ] = "table",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A new file for csv, a new folder for parquet."),
    ] = None,
    master: Master = "",
    jars: Jars = "",
    ivy_settings: Ivy = None,
    quiet: Quiet = False,
) -> None:
    """Show what each principal can do.

    Lists the patterns that ACLs name or, with --expand, every existing resource.
    Exit code 5: not all clusters are known.
    """
    request = fleet.answers.PermissionsRequest(
        _choose_root(root), PermissionFilter(cluster, principal, resource), form, out
    )
    fleet.answers.check_request(request)
    if expand:
        with _make_bars(quiet=quiet) as report:
            text = fleet.answers.export_by_resource(
                request, fleet.runs.read_spark_options(master, jars, ivy_settings), report
            )
    else:
        text = fleet.answers.export_by_pattern(request)
    if out is None:
        Console.make_standard().write(text)
    else:
        Console.make_standard().note(f"Wrote {out}.")
    _end_if_incomplete(request.root, cluster)


@app.command()
def history(
    key: Annotated[str, typer.Option("--key", metavar="TYPE/NAME", help="Such as topic/orders.")],
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="On this cluster.")],
    root: Root = None,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="How far back, such as 30d or 12h.")
    ] = "30d",
    form: Format = "table",
) -> None:
    """Show the history of one object.

    Shows who changed what and when, and what was changed by other means.
    """
    sheet = fleet.answers.find_history(_choose_root(root), key, cluster, since)
    Console.make_standard().write(fleet.answers.format_history(sheet, form, key))


@app.command(cls=InOrder)
def unused(
    file: File = Path(FILE),
    root: Root = None,
    cluster: Cluster = None,
    owner: Owner = None,
    tell_file: TellFile = None,
    tell_webhook: TellWebhook = None,
    tell_issue: TellIssue = False,
    again: Again = False,
    propose: Propose = None,
    notice_days: NoticeDays = None,
    var: Var = [],
    var_file: VarFile = [],
    json: Json = False,
) -> None:
    """Bring unused topics to their end, step by step.

    Lists them with their next step. Changes no cluster and no configuration.
    Exit code 5: not all clusters are known, or an owner was not told; 6: nobody knows whether an
    owner was told.
    """
    register = fleet.register_file.read_fleet(file, Inputs.read(var, var_file))
    flags = fleet.channels.TellFlags(tell_file, tell_webhook, tell_issue, again, propose)
    channel = fleet.channels.choose_channel(flags, os.environ)
    target = root or register.root or _choose_root(root)
    view = fleet.unused.read_view(
        register, target, SystemClock().now(), cluster=cluster, owner=owner, notice_days=notice_days
    )
    deliveries = tuple(fleet.unused.tell_owners(view, channel, again=again)) if channel else ()
    files, skipped = fleet.unused.propose_changes(view, register, propose) if propose else ((), ())
    if json:
        _print(fleet.unused.make_document(view, deliveries, files, skipped))
    elif channel is None and propose is None:
        Console.make_standard().write(fleet.unused.render_view(view))
    for line in fleet.unused.render_actions(deliveries, files, skipped):
        Console.make_standard().note(line)
    code = fleet.unused.choose_exit_code(deliveries)
    if code == 0:
        _end_if_incomplete(target, cluster)
    raise typer.Exit(code)


@app.command()
def status(root: Root = None, json: Json = False) -> None:
    """Show which builds exist and what they cover.

    Exit code 5: not all clusters and configurations are known.
    """
    fleet_status = fleet.answers.read_status(_choose_root(root))
    if json:
        _print(fleet.answers.make_status_document(fleet_status))
    else:
        Console.make_standard().write(answers.history.render_status(fleet_status))
    raise typer.Exit(INCOMPLETE if fleet_status.complete is False else 0)


@app.command()
def doctor(
    root: Root = None,
    master: Master = "",
    jars: Jars = "",
    ivy_settings: Ivy = None,
    json: Json = False,
) -> None:
    """Check that the pipeline can run here, or say why not."""
    spark = fleet.runs.read_spark_options(master, jars, ivy_settings)
    checks = (
        *fleet.runs.examine_computer(root, spark),
        *fleet.snapshot.examine_register(Path(FILE)),
    )
    _print(
        fleet.runs.make_checks_document(checks) if json else list(fleet.runs.render_checks(checks))
    )
    raise typer.Exit(1 if any(check.good is False for check in checks) else 0)


@app.command()
def prepare(
    master: Master = "",
    jars: Jars = "",
    ivy_settings: Ivy = None,
    quiet: Quiet = False,
) -> None:
    """Make Spark start faster on this computer.

    Fetches Delta Lake's JARs and archives Java's classes. Run it once per computer or image, and
    again after an update of Java or Spark.
    """
    outlive_output()
    with _make_bars(quiet=quiet) as report:
        text = fleet.runs.prepare_spark(
            fleet.runs.read_spark_options(master, jars, ivy_settings), report
        )
    Console.make_standard().write(text)


# ── shared ──────────────────────────────────────────────────────────────────────────────


def _choose_root(root: str | None) -> str:
    """The root of the command line or environment, or else of fleet.hcl. Raises UsageError."""
    if root:
        return root
    if Path(FILE).exists():
        declared = fleet.register_file.read_fleet(Path(FILE)).root
        if declared:
            return declared
    raise UsageError(
        "there is no root for the fleet's files",
        f"Give --root, set KAFKAFORM_FLEET_ROOT, or write root into the fleet block of {FILE}.",
    )


def _end_if_incomplete(root: str, cluster: str | None = None) -> None:
    """Exit with 5 if a cluster is not fully known, after naming it."""
    unknown = list(fleet.runs.list_unread_clusters(root, cluster))
    for line in unknown:
        Console.make_standard().note(f"Not known: {line}")
    if unknown:
        raise typer.Exit(INCOMPLETE)


def _make_bars(*, quiet: bool) -> Any:
    return open_bars(sys.stderr, SystemClock(), quiet=quiet)


def _print(output: Any) -> None:
    """Print lines for people, or one JSON document."""
    Console.make_standard().write_lines(
        output if isinstance(output, list) else [render_json(output)]
    )
