"""`kafkaform init`: check that a folder has everything that plan and apply need, or write the file
of a repository for the folders that are there. It connects to no cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from ...audit.records import render_time, verify_log
from ...audit.sink import find_start
from ...core.clock import SystemClock
from ...core.diagnostics import has_errors
from ...core.errors import ConfigurationError, StorageError, UsageError
from ...core.storage import read_named_file
from ...render.text import inline, render_count, render_table, wrap_lines
from ...state.model import State
from ...syntax.nodes import FILE_BYTES
from ...workflow.adoption.repository_draft import (
    RepositoryDraft,
    draft_repository,
    list_avoidable,
    list_differences,
    list_left_out,
)
from ...workflow.configuration.evaluation import Inputs, read_configuration
from ...workflow.configuration.files import find_root
from ...workflow.configuration.repository import FILES as REPOSITORY_FILES
from ...workflow.generate.files import write_new_files
from ...workflow.modules.cache import LOCK_FILE, read_own_locks
from ...workflow.modules.installation import SOURCES, Installation, read_sources
from ...workflow.plan_documents import save_file
from ...workflow.stores import (
    AUDIT_FILE,
    STATE_FILE,
    Store,
    find_anchor,
    open_store,
    parse_duration,
)
from ...workflow.testing.files import list_default_files
from ...workflow.workspace import make_lock_info, make_run_id
from ..options.flags import LockTimeout, NoColor, StateFile, Untrusted, Var, VarFile
from ..terminal.console import Console

CONFIGURATION = (".kf.hcl", ".kf.json", ".tf", ".tf.json", ".tofu", ".tofu.json")
OURS = ".kafkaform"
IGNORING = ".gitignore"
PLAN_FILE = ".kfplan"
_SECRET_FILES = ("*.env", "*.key", "*.p12", "*.jks", "*.keytab", "*.pfx")
"""Files that contain passwords or private keys."""
EMPTY = """There is no configuration here, so there is nothing to prepare.

Write a file such as main.kf.hcl:

  provider "kafka" {
    bootstrap_servers = ["localhost:9092"]
  }

  resource "kafka_topic" "orders" {
    name       = "orders"
    partitions = 3
  }

Then run `kafkaform init` again. No Kafka at hand? `kafkaform sandbox up` starts one here. Are there
configurations in folders below? `kafkaform init --repository` writes one file for all of them."""


Upgrade = Annotated[
    bool,
    typer.Option("--upgrade", help="Move modules from Git to what their refs are now."),
]
Lockfile = Annotated[
    str,
    typer.Option(
        "--lockfile",
        metavar="MODE",
        help="readonly: fetch locked modules only, and leave their lock file as it is.",
    ),
]
ModulesOnly = Annotated[
    bool,
    typer.Option(
        "--modules-only", help="Do not touch state, lock or log (implied by --untrusted)."
    ),
]

Gitignore = Annotated[
    bool,
    typer.Option("--gitignore", help="Add to .gitignore what must not be committed."),
]
OfRepository = Annotated[
    bool,
    typer.Option(
        "--repository",
        help="Write kafkaform.hcl for the folders below, as they are: docs/repository.md.",
    ),
]


def init(
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
    upgrade: Upgrade = False,
    lockfile: Lockfile = "",
    modules_only: ModulesOnly = False,
    gitignore: Gitignore = False,
    repository: OfRepository = False,
    untrusted: Untrusted = False,
    no_color: NoColor = False,
) -> None:
    """Check that this folder is ready to plan and apply.

    Fetches modules from Git and writes their lock file, kafkaform.modules.json. Checks
    configuration, modules, providers, state, lock and log. You can run it again at any time.

    --repository writes kafkaform.hcl for the folders below this one, and changes none of their
    plans.
    """
    if repository:
        flags = {
            "--var": var,
            "--var-file": var_file,
            "--state": state,
            "--upgrade": upgrade,
            "--lockfile": lockfile,
            "--modules-only": modules_only,
            "--gitignore": gitignore,
            "--untrusted": untrusted,
        }
        _init_repository([flag for flag, value in flags.items() if value], no_color=no_color)
        return
    readonly = _read_lockfile_mode(lockfile, untrusted, upgrade)
    if gitignore and (modules_only or untrusted):
        flag = "--untrusted" if untrusted else "--modules-only"
        raise UsageError(f"--gitignore and {flag} exclude each other", "Leave out one of them.")
    console, folder = Console.make_standard(no_color=no_color), Path.cwd()
    if not any(path.name.endswith(CONFIGURATION) for path in folder.iterdir()):
        console.write(EMPTY)
        return
    inputs = Inputs.read(var, var_file, untrusted=untrusted)
    # As it was named, because --untrusted refuses links on the way to it.
    rows = [*_check_configuration(Path(), inputs, upgrade, readonly, console)]
    store = None if modules_only or untrusted else open_store(state)
    if store is not None:
        # A job that plans can read the store, and not write it.
        rows += _check_storage(store, parse_duration(lock_timeout, "--lock-timeout"))
    console.write_lines(render_table([[name, inline(text)] for name, text in rows]))
    missing = [] if store is None else _list_unignored(folder, store)
    if missing and gitignore:
        _add_ignored(folder / IGNORING, [pattern for pattern, _ in missing])
        console.write(f"\nAdded to {IGNORING}: {', '.join(pattern for pattern, _ in missing)}")
    elif missing:
        console.write(f"\n{_advise_ignoring(missing)}")
    console.write(
        "\nThis folder is ready. Next: `kafkaform plan` shows what an apply would change."
    )


# ── the file of a repository ────────────────────────────────────────────────────────────


def _init_repository(flags: Sequence[str], *, no_color: bool) -> None:
    """Write the file of a repository, and say what is in it. Raises UsageError for other flags and
    for a file that exists, ConfigurationError, StorageError."""
    if flags:
        raise UsageError(
            f"--repository and {flags[0]} exclude each other", "Leave out one of them."
        )
    console = Console.make_standard(no_color=no_color)
    draft = draft_repository(Path.cwd())
    write_new_files({Path(REPOSITORY_FILES[0]): draft.text})
    console.write_lines(_render_draft(draft, console.width))


def _render_draft(draft: RepositoryDraft, width: int) -> Iterator[str]:
    """What was written, what differs, what is left out, and what to do next."""
    folders = render_count(len(draft.meanings), "folder")
    yield f"Wrote {REPOSITORY_FILES[0]} for {folders}. It changes none of their plans."
    yield ""
    rows = [
        [f"cluster {item.name}", render_count(len(item.folders), "folder"), item.login.provider]
        for item in draft.clusters
    ]
    counts = Counter(draft.patterns.values())
    for pattern, meaning in draft.groups.items():
        uses = ", ".join(f"{instance} = {name}" for instance, name in meaning.uses)
        state = f"state {meaning.state}" if meaning.state is not None else ""
        about = "; ".join(text for text in (uses, state) if text) or "nothing in common"
        rows.append([f"folders {pattern}", render_count(counts[pattern], "folder"), about])
    yield from render_table(rows)
    sections = {
        "What differs:": list_differences(draft),
        "Left out:": list_left_out(draft),
        "Next:": _list_next_steps(draft),
    }
    for title, sentences in sections.items():
        lines = [f"  · {sentence}" for sentence in sentences]
        if lines:
            yield from ("", title, *wrap_lines(lines, width))


def _list_next_steps(draft: RepositoryDraft) -> Iterator[str]:
    yield "`kafkaform validate --all` checks all folders."
    if any(item.login.missing for item in draft.clusters):
        yield 'Add what the clusters lack, such as sasl_password = secret_env("NAME").'
    few = list_avoidable(draft)
    if few:
        yield (
            f"For fewer folders blocks, move or remove {', '.join(map(inline, few))}, which a "
            "pattern would match too; then delete the file, and run the command again."
        )
    if draft.clusters:
        yield (
            "Remove provider and backend blocks that say the same as the file, folder by folder: "
            "`kafkaform plan` shows no change. A block that stays wins over the file."
        )
    if any(root.terraform for root in draft.roots.roots):
        yield "Keep these blocks where Terraform still runs: it does not know the file."
    yield "Add owners, labels and boundaries: docs/repository.md."


# ── one folder ──────────────────────────────────────────────────────────────────────────


def _read_lockfile_mode(mode: str, untrusted: bool, upgrade: bool) -> bool:
    """Whether the lock file of modules stays as it is. Raises UsageError."""
    if mode not in ("", "readonly"):
        raise UsageError(f'--lockfile cannot be "{inline(mode)}"', "Write --lockfile=readonly.")
    if upgrade and (mode or untrusted):
        raise UsageError(
            f"{'--lockfile=readonly' if mode else '--untrusted'} and --upgrade exclude each other: "
            "an upgrade changes the lock file of modules",
            "Upgrade where you trust the files, and commit the lock file.",
        )
    return bool(mode) or untrusted


def _check_configuration(
    folder: Path, inputs: Inputs, upgrade: bool, readonly: bool, console: Console
) -> Iterator[tuple[str, str]]:
    """Fetch modules, check the files, and yield what they contain. Raises ConfigurationError with
    all faults."""
    path = folder.absolute()
    locks = read_own_locks(find_root(path), path, links=not inputs.untrusted)
    sources = read_sources(inputs.environment.get(SOURCES)) if inputs.untrusted else None
    modules = Installation(locks, upgrade, readonly, sources)
    configuration = read_configuration(folder, inputs, modules.open_package)
    console.show_diagnostics(tuple(modules.warnings))
    # A module that cannot be read can call others, whose locks must stay.
    lock_file = modules.render_lock_file()
    if lock_file is not None and not has_errors(configuration.tree.diagnostics):
        save_file(folder / LOCK_FILE, lock_file, private=False)
    built = configuration.evaluate(offline=True)
    desired = built.desired
    if has_errors(desired.diagnostics):
        raise ConfigurationError("the configuration has faults", diagnostics=desired.diagnostics)
    console.show_diagnostics((*desired.diagnostics, *configuration.list_unconnected(built)))
    tree, tests = configuration.tree, list_default_files()
    amounts = [render_count(len(tree.configuration), "file")]
    if tree.modules:
        amounts.append(render_count(len(tree.modules), "module"))
    yield (
        "configuration",
        f"{', '.join(amounts)}, {render_count(len(desired.declared), 'object')} declared",
    )
    for package, action in modules.actions.items():
        yield "module", f"{package} at {action}"
    for package in modules.list_removed():
        yield "module", f"{package} is not needed any more"
    if tests:
        yield "tests", f"{render_count(len(tests), 'test file')}; `kafkaform test` runs them"
    for name in sorted({config.name for config in desired.providers.values()}):
        yield f"provider {name}", configuration.registry.describe_package(name)


def _check_storage(store: Store, timeout: float) -> Iterator[tuple[str, str]]:
    """Check that state and log can be locked and written, and yield what they contain. Raises
    Locked, StorageError."""
    clock = SystemClock()
    info = make_lock_info(make_run_id(), "init", render_time(clock.now()))
    with store.backend.lock(info, timeout, clock):
        # Some stores that speak S3 ignore conditions on writes, on which the lock depends. Only a
        # trial shows that.
        store.backend.probe()
        store.backend.check_writable()
        store.sink.check_writable()
        stored_state = store.backend.load().state
        yield "state", f"{store.backend.location}: {_render_state(stored_state)}"
        yield "audit log", f"{store.sink.location}: {_check_log(store, stored_state)}"
    yield "lock", "can be taken, and is free again"


def _render_state(stored_state: State | None) -> str:
    if stored_state is None:
        return "none yet, the first apply writes it"
    return f"{render_count(len(stored_state.objects), 'object')}, serial {stored_state.serial}"


def _check_log(store: Store, state: State | None) -> str:
    anchor = find_anchor(store.sink, state)
    start = find_start(store.sink.sealed, anchor)
    result = verify_log(store.sink.lines(start.seq), anchor, start=start)
    if not result.ok:
        raise StorageError(
            f"{store.sink.location}: record {result.seq}: {result.problem}",
            "Restore the log from a backup, and find out who changed it.",
        )
    return f"{render_count(result.records, 'record')}, sound" if result.records else "none yet"


def _list_unignored(folder: Path, store: Store) -> list[tuple[str, str]]:
    """The lines that .gitignore lacks, with reasons, if this folder is in a Git repository that
    would commit what must not be: our folder, a state and its log, saved plans, and files with
    passwords or keys."""
    root = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    if root is None:
        return []
    ignored = {
        line.strip().removeprefix("**").strip("/")
        for parent in (folder, *folder.parents)
        if parent.is_relative_to(root)
        for line in _read_ignored(parent)
    }
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    reasons: dict[str, str] = {}
    if (folder / OURS).is_dir():
        reasons[f"{OURS}/"] = "the lock and earlier states of this computer"
    if store.backend.location == str(folder / STATE_FILE):
        shared = "Git does not lock it; a backend block stores it where everybody can"
        folder_of_log = f"{AUDIT_FILE.removesuffix('.jsonl')}/"
        reasons |= {STATE_FILE: shared, AUDIT_FILE: "the log of the same state"}
        reasons[folder_of_log] = "old records of this log"
    reasons[f"*{PLAN_FILE}"] = "saved plans, which fit one moment only"
    for name in files:
        pattern = next((glob for glob in _SECRET_FILES if fnmatchcase(name, glob)), None)
        if pattern is not None:
            reasons[pattern] = "passwords and private keys"
    return [
        (pattern, reason)
        for pattern, reason in reasons.items()
        if not any(fnmatchcase(pattern.strip("/"), line) for line in ignored)
    ]


def _advise_ignoring(missing: list[tuple[str, str]]) -> str:
    width = max(len(pattern) for pattern, _ in missing)
    lines = (f"  {pattern:<{width}}  # {reason}" for pattern, reason in missing)
    head = (
        f"Add these lines to {IGNORING}, without the remarks (`kafkaform init --gitignore` does):"
    )
    return "\n".join((head, "", *lines))


def _add_ignored(path: Path, patterns: list[str]) -> None:
    """Add lines to the end of the file; what is there stays. Raises StorageError, UsageError."""
    if path.is_symlink():  # Git does not follow it
        raise UsageError(f"{path.name} is a link, which Git does not follow", "Make it a file.")
    try:
        before = path.read_bytes() if path.exists() else b""
        gap = b"\n" if before and not before.endswith(b"\n") else b""
        with path.open("ab") as file:
            file.write(gap + "".join(f"{pattern}\n" for pattern in patterns).encode())
    except OSError as error:
        raise StorageError(
            f"{path.name} cannot be written: {error.strerror}", "Check the rights on this folder."
        ) from None


def _read_ignored(folder: Path) -> list[str]:
    """The lines of the folder's .gitignore."""
    try:
        return read_named_file(folder / IGNORING, FILE_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
