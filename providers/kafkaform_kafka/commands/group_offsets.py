"""`alter group --reset-offsets`, `--delete-offsets` and `--delete`: where a group goes on reading.

The plan has the offset of each partition before and after. Where a reset leads is read once, with
the group, so that nothing moves between the plan and the request: the offsets are absolute then.
"""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Change, add_findings
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.resource import Absent, Failed, Hidden, Identity, Observed, Reading
from kafkaform.core.text import inline, parse_amount, parse_whole
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.commands import Alteration, Draft

from ..kinds.commanded.group_offsets import (
    GROUP_OFFSETS,
    GROUP_POSITIONS,
    OFFSETS,
    SHARE,
    Reset,
    parse_partition,
    render_partition,
)
from ..rules.commanded import note_lag
from .describe import ask_groups

RESET, FORGET, DELETE = "--reset-offsets", "--delete-offsets", "--delete"
TOPIC, ALL_TOPICS = "--topic", "--all-topics"
LIST = "`kafkaform describe groups NAME` shows its offsets."


class GroupFlags(Struct, frozen=True):
    """What was typed after `alter group NAME`, besides configs."""

    reset: bool = False
    forget: bool = False
    delete: bool = False
    earliest: bool = False
    latest: bool = False
    current: bool = False
    datetime: str | None = None
    offset: str | None = None
    shift: str | None = None
    duration: str | None = None
    file: str | None = None
    topics: tuple[str, ...] = ()
    all_topics: bool = False

    @property
    def ways(self) -> Mapping[str, str]:
        """Flag -> its value, of those that say where a reset leads."""
        words = {
            "--to-earliest": self.earliest,
            "--to-latest": self.latest,
            "--to-current": self.current,
        }
        values = {
            "--to-datetime": self.datetime,
            "--to-offset": self.offset,
            "--shift-by": self.shift,
            "--by-duration": self.duration,
            "--from-file": self.file,
        }
        return {
            **{flag: "" for flag, typed in words.items() if typed},
            **{flag: value for flag, value in values.items() if value is not None},
        }


WAYS = (
    "--to-earliest, --to-latest, --to-datetime, --by-duration, --to-offset, --shift-by, "
    "--to-current or --from-file"
)


def alter_offsets(names: Sequence[str], flags: GroupFlags) -> Alteration:
    """The alteration of the offsets of these groups. Raises UsageError."""
    names = tuple(dict.fromkeys(names))
    if not names or "" in names:
        raise UsageError("no group is named", "`kafkaform describe groups` lists groups.")
    chosen = {RESET: flags.reset, FORGET: flags.forget, DELETE: flags.delete}
    actions = [flag for flag, typed in chosen.items() if typed]
    options = [
        *flags.ways,
        *([TOPIC] if flags.topics else ()),
        *([ALL_TOPICS] if flags.all_topics else ()),
    ]
    if not actions:
        raise UsageError(f"{options[0]} belongs to {RESET}", f"Add {RESET}.")
    if len(actions) > 1:
        raise UsageError(f"{' and '.join(actions)} exclude each other", "Use separate commands.")
    if flags.delete:
        return _delete_groups(names, options)
    if flags.forget:
        return _delete_offsets(names, flags)
    return _reset_offsets(names, flags)


# ── reset ───────────────────────────────────────────────────────────────────────────────


def _reset_offsets(names: Sequence[str], flags: GroupFlags) -> Alteration:
    if len(flags.ways) != 1:
        raise UsageError(
            f"it is not clear where to reset offsets to: {', '.join(flags.ways) or 'nothing'} "
            "is given",
            f"Give one of {WAYS}.",
        )
    ((flag, text),) = flags.ways.items()
    mode, value = READERS[flag](text)
    if flag == "--from-file":
        if flags.topics or flags.all_topics:
            raise UsageError(
                f"{flag} names the partitions itself", f"Leave out {TOPIC} and {ALL_TOPICS}."
            )
        scopes = read_offset_file(Path(text), names)
    else:
        scopes = dict.fromkeys(names, _read_scopes(flags))
    resets = {name: Reset(name, mode, value, scopes[name]) for name in names}
    positions: dict[str, FrozenMap] = {}
    drafts = tuple(
        Draft(
            GROUP_OFFSETS,
            name,
            partial(_set_targets, positions),
            partial(_note_reset, positions),
            managed=True,
        )
        for name in names
    )
    needs = tuple((GROUP_POSITIONS, reset.key) for reset in resets.values())
    return Alteration(
        drafts, (ask_groups(list(names)),), needs, partial(_keep_positions, resets, positions)
    )


def _keep_positions(
    resets: Mapping[str, Reset],
    positions: dict[str, FrozenMap],
    readings: Mapping[Identity, Reading],
) -> None:
    """Keep where each reset leads. Raises KafkaformError if that is not known of a partition that
    somebody named."""
    names = {reset.key: name for name, reset in resets.items()}
    for identity, reading in readings.items():
        name = names[identity.key]
        if isinstance(reading, Hidden):
            # The plan says what is missing, as of every object.
            positions[name] = EMPTY
            continue
        if isinstance(reading, Failed):
            fault = reading.fault
            raise KafkaformError(f"{fault.message} ({fault.code}, {fault.where})", fault.advice)
        assert isinstance(reading, Observed)
        problems, rows = reading.details["problems"], reading.details["rows"]
        if problems and (resets[name].scopes or not rows):
            raise UsageError(
                f"the offsets of {inline(name)} cannot be reset: {'; '.join(problems)}", LIST
            )
        if not rows:
            raise UsageError(
                f"the group {inline(name)} does not exist, or has no offsets that can be seen",
                f"Name the topics with {TOPIC} to give it offsets.",
            )
        positions[name] = reading.details


def _set_targets(
    positions: Mapping[str, FrozenMap], attributes: FrozenMap | None, reading: Reading
) -> FrozenMap | None:
    name = reading.identity.key
    targets = {
        render_partition((row["topic"], row["partition"])): row["target"]
        for row in positions[name]["rows"]
    }
    if attributes is None:
        return FrozenMap({"group": name, OFFSETS: FrozenMap(targets)})
    return attributes.with_items({OFFSETS: attributes[OFFSETS].with_items(targets)})


def _note_reset(positions: Mapping[str, FrozenMap], change: Change, reading: Reading) -> Change:
    """The change of those offsets that differ, with the lag before and after."""
    change = _narrow(change)
    changing = {item.path[1] for item in change.paths if item.path[0] == OFFSETS}
    topics: dict[str, list[FrozenMap]] = {}
    for row in positions[reading.identity.key].get("rows") or ():
        if render_partition((row["topic"], row["partition"])) in changing:
            topics.setdefault(row["topic"], []).append(row)
    return add_findings(change, *(note_lag(topic, rows) for topic, rows in topics.items()))


def _narrow(change: Change) -> Change:
    """The change with those offsets only that it concerns: options can move meanwhile."""
    partitions = [item.path[1] for item in change.paths if item.path[0] == OFFSETS]

    def select(attributes: FrozenMap | None) -> FrozenMap | None:
        if attributes is None:
            return None
        offsets = attributes[OFFSETS]
        chosen = {partition: offsets[partition] for partition in partitions if partition in offsets}
        return attributes.with_items({OFFSETS: FrozenMap(chosen)})

    return replace(change, before=select(change.before), after=select(change.after))


# ── delete ──────────────────────────────────────────────────────────────────────────────


def _delete_offsets(names: Sequence[str], flags: GroupFlags) -> Alteration:
    if flags.ways:
        raise UsageError(
            f"{FORGET} does not take {next(iter(flags.ways))}", f"Leave it out, or give {RESET}."
        )
    drafts = tuple(
        Draft(
            GROUP_OFFSETS,
            name,
            partial(_forget, _read_scopes(flags)),
            lambda change, _: _narrow(change),
            managed=True,
        )
        for name in names
    )
    return _make_alteration(drafts)


def _forget(
    scopes: Sequence[str], attributes: FrozenMap | None, reading: Reading
) -> FrozenMap | None:
    name = reading.identity.key
    if attributes is None:
        raise _make_missing_error(name)
    partitions = {parse_partition(text): text for text in attributes[OFFSETS]}
    gone = [
        text
        for (topic, number), text in partitions.items()
        if not scopes or topic in scopes or render_partition((topic, number)) in scopes
    ]
    if attributes["type"] == SHARE and any(":" in scope for scope in scopes):
        raise UsageError(
            f"{inline(name)} is a share group, whose offsets are deleted by topic",
            f"Name topics without partitions with {TOPIC}.",
        )
    unknown = [
        scope
        for scope in scopes
        if not any(scope in (topic, text) for (topic, _), text in partitions.items())
    ]
    if unknown or not gone:
        raise UsageError(
            f"the group {inline(name)} has no offsets of {', '.join(unknown) or 'any topic'}", LIST
        )
    return attributes.with_items({OFFSETS: attributes[OFFSETS].without(gone)})


def _delete_groups(names: Sequence[str], options: Sequence[str]) -> Alteration:
    if options:
        raise UsageError(f"{DELETE} does not take {options[0]}", f"Leave it out, or give {FORGET}.")
    drafts = tuple(Draft(GROUP_OFFSETS, name, lambda *_: None, managed=True) for name in names)
    return replace(_make_alteration(drafts), documents=())


def _make_alteration(drafts: tuple[Draft, ...]) -> Alteration:
    """Of groups that must exist."""
    names = [draft.key for draft in drafts]
    needs = tuple((GROUP_OFFSETS, name) for name in names)
    return Alteration(drafts, (ask_groups(names),), needs, _refuse_absent)


def _refuse_absent(readings: Mapping[Identity, Reading]) -> None:
    for identity, reading in readings.items():
        if isinstance(reading, Absent):
            raise _make_missing_error(identity.key)


def _make_missing_error(name: str) -> UsageError:
    return UsageError(
        f"there is no group {inline(name)}",
        "`kafkaform describe groups` lists all; a group exists as long as it has members or "
        "offsets.",
    )


# ── what was typed ──────────────────────────────────────────────────────────────────────

_PARTITIONS = re.compile(r"\d{1,9}(,\d{1,9})*", re.ASCII)
_ISO = re.compile(
    r"P(?:(?P<d>\d{1,9})D)?(?:T(?:(?P<h>\d{1,9})H)?(?:(?P<m>\d{1,9})M)?(?:(?P<s>\d{1,9})S)?)?",
    re.ASCII,
)
_SHIFT = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def _read_scopes(flags: GroupFlags) -> tuple[str, ...]:
    """Topics and partitions of --topic; none for all topics. Raises UsageError."""
    if bool(flags.topics) == flags.all_topics:
        raise UsageError(
            f"{TOPIC} and {ALL_TOPICS} exclude each other"
            if flags.topics
            else "it is not clear which offsets are meant",
            f"Give {TOPIC} NAME or {TOPIC} NAME:0,1 for each topic, or {ALL_TOPICS}.",
        )
    scopes: list[str] = []
    for text in flags.topics:
        topic, colon, numbers = text.partition(":")
        if not topic or (colon and not _PARTITIONS.fullmatch(numbers)):
            raise UsageError(
                f"{TOPIC} {inline(text)!r} is not a topic", "Write orders, or orders:0,3."
            )
        partitions = [
            render_partition((topic, int(number))) for number in numbers.split(",") if colon
        ]
        scopes += partitions or [topic]
    return tuple(dict.fromkeys(scopes))


def _read_time(text: str) -> tuple[str, int]:
    """Milliseconds since 1970. Raises UsageError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--to-datetime {inline(text)!r} is not a time",
            "Write 2026-11-29T08:30:00Z, or another time of ISO 8601; without a zone it is UTC.",
        ) from None
    return "to-datetime", int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)


def _read_duration(text: str) -> tuple[str, int]:
    """The time so long ago. Raises UsageError."""
    match = _ISO.fullmatch(text)
    try:
        if match is not None and any(match.groups()):
            amount = "".join(f"{n}{unit}" for unit, n in match.groupdict().items() if n)
        else:
            amount = text
        milliseconds = parse_amount(amount, "ms")
        if milliseconds < 0:
            raise ValueError("expected how long ago")
    except ValueError as error:
        raise UsageError(
            f"--by-duration {inline(text)!r} is not a duration: {error}", "Write 2h, 1d12h or PT2H."
        ) from None
    return "to-datetime", int(time.time() * 1000) - milliseconds


def _read_offset(text: str) -> tuple[str, int]:
    offset = parse_whole(text)
    if offset is None:
        raise UsageError(
            f"--to-offset {inline(text)!r} is not an offset", "Write a whole number, 0 or more."
        )
    return "to-offset", offset


def _read_shift(text: str) -> tuple[str, int]:
    if not _SHIFT.fullmatch(text) or int(text) == 0:
        raise UsageError(
            f"--shift-by {inline(text)!r} is not a number of records",
            "Write -100 to read 100 records of each partition again, or 100 to skip them.",
        )
    return "shift-by", int(text)


READERS: Mapping[str, Callable[[str], tuple[str, int]]] = {
    "--to-earliest": lambda _: ("to-earliest", 0),
    "--to-latest": lambda _: ("to-latest", 0),
    "--to-current": lambda _: ("to-current", 0),
    "--to-datetime": _read_time,
    "--to-offset": _read_offset,
    "--shift-by": _read_shift,
    "--by-duration": _read_duration,
    "--from-file": lambda _: ("from-file", 0),
}
"""Flag -> reads its value, as mode and value of a `Reset`. Raises UsageError."""


def read_offset_file(path: Path, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Group -> offsets as scopes, of a file as Kafka's tool exports it: lines with topic, partition
    and offset, or with the group in front. Raises UsageError."""
    flag = f"--from-file {inline(str(path))}"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [(number, row) for number, row in enumerate(csv.reader(file), 1) if row]
    except (OSError, ValueError, csv.Error) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else "it is no CSV"
        raise UsageError(f"{flag} cannot be read: {cause}", "Name a readable CSV file.") from None
    scopes: dict[str, list[str]] = {name: [] for name in names}
    for number, row in lines:
        *group, topic, partition, offset = ["", *row][-4:] if len(row) in (3, 4) else [""] * 4
        if not topic or parse_whole(partition) is None or parse_whole(offset) is None:
            raise UsageError(
                f"{flag}, line {number}: it is not topic,partition,offset",
                "Write a line such as orders,0,42 for each partition, or billing,orders,0,42.",
            )
        partition = render_partition((topic, int(partition)))
        for name in names if len(row) == 3 else group:
            if name in scopes:
                scopes[name].append(f"{partition}={int(offset)}")
    for name, listed in scopes.items():
        if not listed:
            raise UsageError(
                f"{flag} has no offsets of the group {inline(name)}", "Name a group that it has."
            )
    return {name: tuple(dict.fromkeys(listed)) for name, listed in scopes.items()}
