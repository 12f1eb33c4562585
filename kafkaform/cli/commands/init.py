"""`kafkaform init`: check that a folder has everything that plan and apply need. It connects to no
cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...audit.chain import verify_log
from ...audit.event import render_time
from ...core.clock import SystemClock
from ...core.diagnostics import has_errors
from ...core.errors import ConfigurationError, StorageError
from ...render.text import inline, render_count, render_table
from ...state.model import State
from ...workflow.configuration.evaluation import Inputs, read_configuration
from ...workflow.stores import Store, open_store, parse_duration
from ...workflow.testing.files import list_default_files
from ...workflow.workspace import make_lock_info, make_run_id
from ..options.flags import LockTimeout, NoColor, StateFile, Var, VarFile
from ..terminal.console import Console

CONFIGURATION = (".kf.hcl", ".kf.json", ".tf", ".tf.json")
OURS = ".kafkaform"
EMPTY = """There is no configuration here, so there is nothing to prepare.

Write a file such as main.kf.hcl:

  provider "kafka" {
    bootstrap_servers = ["localhost:9092"]
  }

  resource "kafka_topic" "orders" {
    name       = "orders"
    partitions = 3
  }

Then run `kafkaform init` again. No Kafka at hand? `kafkaform sandbox up` starts one here."""


def init(
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
    no_color: NoColor = False,
) -> None:
    """Check that this folder is ready to plan and apply.

    Checks configuration, modules, providers, state, lock and log. Changes nothing except
    .kafkaform, the lock's folder. You can run it again at any time.
    """
    console, folder = Console.make_standard(no_color=no_color), Path.cwd()
    if not any(path.name.endswith(CONFIGURATION) for path in folder.iterdir()):
        console.write(EMPTY)
        return
    rows = [
        *_check_configuration(folder, Inputs.read(var, var_file), console),
        *_check_storage(open_store(state), parse_duration(lock_timeout, "--lock-timeout")),
    ]
    console.write_lines(render_table([[name, inline(found)] for name, found in rows]))
    advice = _advise_ignoring(folder) if (folder / OURS).is_dir() else ""
    if advice:
        console.write(f"\n{advice}")
    console.write(
        "\nThis folder is ready. Next: `kafkaform plan` shows what an apply would change."
    )


def _check_configuration(
    folder: Path, inputs: Inputs, console: Console
) -> Iterator[tuple[str, str]]:
    """Check the files, and yield what they contain. Raises ConfigurationError with all faults."""
    configuration = read_configuration(folder, inputs)
    desired = configuration.evaluate(offline=True).desired
    if has_errors(desired.diagnostics):
        raise ConfigurationError("the configuration has faults", diagnostics=desired.diagnostics)
    console.show_diagnostics(desired.diagnostics)
    tree, tests = configuration.tree, list_default_files()
    parts = [render_count(len(tree.configuration), "file")]
    if tree.modules:
        parts.append(render_count(len(tree.modules), "module"))
    yield (
        "configuration",
        f"{', '.join(parts)}, {render_count(len(desired.declared), 'object')} declared",
    )
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
        found = store.backend.load().state
        yield "state", f"{store.backend.location}: {_render_state(found)}"
        yield "audit log", f"{store.sink.location}: {_check_log(store, found)}"
    yield "lock", "can be taken, and is free again"


def _render_state(found: State | None) -> str:
    if found is None:
        return "none yet, the first apply writes it"
    return f"{render_count(len(found.objects), 'object')}, serial {found.serial}"


def _check_log(store: Store, state: State | None) -> str:
    result = verify_log(store.sink.lines(), state.audit_head if state else None)
    if not result.ok:
        raise StorageError(
            f"{store.sink.location}: record {result.seq}: {result.problem}",
            "Restore the log from a backup, and find out who changed it.",
        )
    return f"{render_count(result.records, 'record')}, sound" if result.records else "none yet"


def _advise_ignoring(folder: Path) -> str:
    """Advice to ignore our folder, if it is in a Git repository that does not ignore it."""
    root = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    if root is None:
        return ""
    places = [p for p in (folder, *folder.parents) if p.is_relative_to(root)]
    for place in places:
        try:
            lines = (place / ".gitignore").read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        # `.kafkaform`, `.kafkaform/`, `/.kafkaform` and `**/.kafkaform` all ignore it.
        if any(line.strip().removeprefix("**").strip("/") == OURS for line in lines):
            return ""
    return f"Add `{OURS}/` to .gitignore: it contains the lock and earlier states of this computer."
