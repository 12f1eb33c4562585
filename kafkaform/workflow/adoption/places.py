"""Find out what the places of many states have in common: `s3://acme-kafka/${folder.path}`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from os.path import normpath
from pathlib import Path
from urllib.parse import urlencode

from ...core.diagnostics import has_errors
from ..configuration.places import LOCAL, find_backend_faults, read_place
from .roots import FolderRoot, ForeignState

PATH, NAME = "${folder.path}", "${folder.name}"
_MARK = {"s3": "s3://{bucket}", "gcs": "gs://{bucket}", "azurerm": "az://{container_name}"}
"""Terraform's backend -> the address of its bucket."""


def choose_states(roots: Sequence[FolderRoot]) -> Mapping[str, str]:
    """Path of a folder -> the place of its state, in the words that other folders share. Folders
    whose place follows no pattern or is that of another one, or without a backend block, are left
    out."""
    shared = {path for paths in list_shared_states(roots).values() for path in paths}
    locations = {
        root.path: location
        for root in roots
        if root.path not in shared and (location := find_state(root)) is not None
    }
    templates = {path: [*_list_templates(path, location)] for path, location in locations.items()}
    counts = Counter(template for listed in templates.values() for template in set(listed))
    chosen = {
        path: max(listed, key=lambda template: counts[template], default="")
        for path, listed in templates.items()
    }
    return {path: template for path, template in chosen.items() if counts[template] > 1}


def list_shared_states(roots: Sequence[FolderRoot]) -> Mapping[str, Sequence[str]]:
    """Place of a state -> the folders that have it, if these are several."""
    users: dict[str, list[str]] = defaultdict(list)
    for root in roots:
        location = find_state(root)
        if location is not None:
            users[location].append(root.path)
    return {location: paths for location, paths in users.items() if len(paths) > 1}


def find_state(root: FolderRoot) -> str | None:
    """The place that the backend block names, as `state` of a `folders` block says it; None if
    there is no such block, or nothing else can say the same."""
    settings = root.settings
    if settings.backend is None or has_errors(tuple(find_backend_faults(settings))):
        return None
    start, options = read_place(settings)
    if settings.backend == LOCAL:
        path = normpath(f"{root.path}/{start}")
        outside = Path(start).is_absolute() or path.startswith("..")
        return None if outside or options else path
    from ...state.backends.obstores import KINDS  # noqa: PLC0415  # most folders have no store

    kind, remaining = KINDS[settings.backend], dict(options)
    bucket, folder = remaining.pop(kind.bucket), remaining.pop(kind.folder).strip("/")
    query = f"?{urlencode(sorted(remaining.items()))}" if remaining else ""
    return f"{start}{bucket}/{folder}{query}"


def _list_templates(path: str, location: str) -> Iterator[str]:
    """The place with the path or the name of the folder as what differs, the best first."""
    for text, stand_in in ((path, PATH), (path.rpartition("/")[2], NAME)):
        matches = [*re.finditer(rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])", location)]
        starts = [0, *(match.end() for match in matches)]
        ends = [*(match.start() for match in matches), len(location)]
        if matches:
            pieces = [location[start:end] for start, end in zip(starts, ends, strict=True)]
            yield stand_in.join(pieces)
            yield f"{location[: ends[-2]]}{stand_in}{pieces[-1]}"


def suggest_state(state: ForeignState | None) -> str | None:
    """A place beside the state of Terraform, in the same bucket; None if it is in no bucket."""
    if state is None or state.kind not in _MARK:
        return None
    try:
        bucket = _MARK[state.kind].format_map(state.options)
    except KeyError:  # the bucket comes from a file of `terraform init -backend-config`
        return None
    return f"{bucket}/kafkaform/{PATH}"
