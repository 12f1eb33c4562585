"""`kafkaform init`: is everything here that plan and apply need? No broker is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...audit.chain import verify
from ...audit.event import timestamp
from ...core.clock import SystemClock
from ...core.diagnostics import has_errors
from ...core.errors import ConfigurationError, StorageError
from ...provider.registry import Registry
from ...render.text import count, inline, table
from ...state.model import State
from ...workflow.configuration.evaluation import Inputs, read_configuration
from ...workflow.stores import Store, open_store, seconds_of
from ...workflow.workspace import lock_info, new_run_id
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
    console, folder = Console.standard(no_color=no_color), Path.cwd()
    if not any(path.name.endswith(CONFIGURATION) for path in folder.iterdir()):
        console.out(EMPTY)
        return
    rows = [
        *_configuration(folder, Inputs.of(var, var_file), console),
        *_storage(open_store(state), seconds_of(lock_timeout, "--lock-timeout")),
    ]
    console.lines(table([[name, inline(found)] for name, found in rows]))
    advice = _advice(folder) if (folder / OURS).is_dir() else ""
    if advice:
        console.out(f"\n{advice}")
    console.out("\nThis folder is ready. Next: `kafkaform plan` shows what an apply would change.")


def _configuration(folder: Path, inputs: Inputs, console: Console) -> Iterator[tuple[str, str]]:
    """What the files say. Raises ConfigurationError with all their faults."""
    registry = Registry()
    configuration = read_configuration(folder, inputs, registry)
    desired = configuration.desired(offline=True)
    if has_errors(desired.diagnostics):
        raise ConfigurationError("the configuration has faults", diagnostics=desired.diagnostics)
    console.diagnostics(desired.diagnostics)
    tree = configuration.tree
    parts = [count(len(tree.configuration), "file")]
    if tree.modules:
        parts.append(count(len(tree.modules), "module"))
    yield "configuration", f"{', '.join(parts)}, {count(len(desired.declared), 'object')} declared"
    for name in registry.names:
        yield f"provider {name}", registry.package(name)


def _storage(store: Store, timeout: float) -> Iterator[tuple[str, str]]:
    """What state and log are like, after proof that they can be locked and written. Raises
    Locked, StorageError."""
    clock = SystemClock()
    info = lock_info(new_run_id(), "init", timestamp(clock.now()))
    with store.backend.lock(info, timeout, clock):
        store.backend.probe()
        store.backend.check_writable()
        store.sink.check_writable()
        found = store.backend.load().state
        yield "state", f"{store.backend.location}: {_state(found)}"
        yield "audit log", f"{store.sink.location}: {_log(store, found)}"
    yield "lock", "can be taken, and is free again"


def _state(found: State | None) -> str:
    if found is None:
        return "none yet, the first apply writes it"
    return f"{count(len(found.objects), 'object')}, serial {found.serial}"


def _log(store: Store, state: State | None) -> str:
    result = verify(store.sink.lines(), state.audit_head if state else None)
    if not result.ok:
        raise StorageError(
            f"{store.sink.location}: record {result.seq}: {result.problem}",
            "Restore the log from a backup, and find out who changed it.",
        )
    return f"{count(result.records, 'record')}, sound" if result.records else "none yet"


def _advice(folder: Path) -> str:
    """What a Git repository around the folder should leave out, if it does not."""
    root = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    if root is None:
        return ""
    places = [p for p in (folder, *folder.parents) if p.is_relative_to(root)]
    for place in places:
        try:
            lines = (place / ".gitignore").read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        if any(line.strip().removeprefix("**").strip("/") == OURS for line in lines):
            return ""
    return f"Add `{OURS}/` to .gitignore: it holds the lock and earlier states of this computer."
