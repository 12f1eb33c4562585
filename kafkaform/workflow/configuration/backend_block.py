"""Check and read the `backend` block, which says where the state is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...core.diagnostics import Diagnostic, Severity, suggest

if TYPE_CHECKING:
    from ...language.declare.settings import Settings

LOCAL, IN_PROCESS = "local", "memory"
LEASE = "lease"
"""The one argument that the store does not know: how long a remote lock outlives a dead run."""


def read_place(settings: Settings) -> tuple[str, Mapping[str, str]]:
    """The place that a block without faults names, and its options."""
    # Stores take their options as texts, and write booleans in lower case.
    texts = {
        n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in settings.options.items()
    }
    if settings.backend == LOCAL:
        return texts["path"], {}
    from ...state.backends.obstores import KINDS  # noqa: PLC0415  # only a state in a store needs its client

    return f"{KINDS[str(settings.backend)].start}://", texts


def find_backend_faults(settings: Settings) -> Iterator[Diagnostic]:
    """Why the backend block names no place; nothing if it names one."""
    kinds, name = _list_kinds(), str(settings.backend)
    if name not in kinds:
        yield _make_fault(
            settings, f'There is no backend "{name}"', f"There are: {', '.join(kinds)}."
        )
        return
    required, optional = kinds[name]
    names = (*required, *optional)
    for name, value in settings.options.items():
        # The file is committed, so a key or a password in it would be public.
        if name not in names:
            hint = suggest(name, names) or f"It takes: {', '.join(names)}."
            advice = f"{hint} Credentials come from the environment only."
            yield _make_fault(
                settings, f'The backend "{settings.backend}" has no argument "{name}"', advice
            )
        elif not isinstance(value, str | bool) or value == "":
            yield _make_fault(
                settings, f'"{name}" of a backend block must be a text', "Put it in quotes."
            )
    for name in required:
        if name not in settings.options:
            yield _make_fault(
                settings, f'The backend "{settings.backend}" needs "{name}"', f"Add {name}."
            )


def _list_kinds() -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Name -> the required and the optional arguments of each backend."""
    from ...state.backends.obstores import COMMON, KINDS  # noqa: PLC0415  # only a state in a store needs its client

    remote = {
        name: ((kind.bucket, kind.folder), (*kind.settings, *COMMON, LEASE))
        for name, kind in KINDS.items()
        if name != IN_PROCESS
    }
    return {LOCAL: (("path",), ()), **remote}


def _make_fault(settings: Settings, summary: str, advice: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, range=settings.range, advice=advice)
