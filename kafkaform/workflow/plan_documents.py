"""Plans as documents: rendered as text, JSON, a Markdown comment or an HTML page, and saved in and
loaded from files that the user names.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, cast, get_args

from ..apply.secrets import refuse_exposed
from ..core import canonical, storage
from ..core.errors import ConfigurationError, StorageError, UsageError
from ..core.secret import mask_secrets
from ..core.storage import make_storage_error
from ..core.value import FrozenMap
from ..core.words import Vocabulary, Words
from ..plan.codec import decode, encode
from ..plan.model import Plan
from ..provider.registry import Registry
from ..render import review
from ..render.plan_text import render_plan_text
from ..render.terraform import to_json
from ..render.text import Detail, render_json
from .planning import render_apply_command

Form = Literal["text", "json", "markdown", "html"]


def save_file(path: Path, data: bytes, *, private: bool) -> None:
    """Replace a file atomically. A hard link to the earlier file keeps the old bytes.

    private: only this user can read it. Raises StorageError, also for a link or a place that is
    not a regular file.
    """
    if not path.name:  # "" and "."
        raise StorageError(f"cannot save it: {path}: it is a folder", "Name a file.")
    fresh = storage.make_temporary_name(path)
    try:
        # In a shared folder such as /tmp, whoever made the link would choose what is written.
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file")
        storage.write_new(fresh, data)
        if not private:
            fresh.chmod(0o666 & ~_get_umask())
        fresh.replace(path)
    except OSError as error:
        # The first fault is the one to report.
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        storage_error = make_storage_error("cannot save it", path, error)
        raise StorageError(storage_error.message, "Choose another place.") from None


def _get_umask() -> int:
    # The system tells the mask only to a process that sets it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def save_plan(plan: Plan, path: Path | str) -> None:
    """Save a plan in a file that only this user can read, to apply it later.

    Raises StorageError, and ConfigurationError for a plan that contains a secret.
    """
    refuse_exposed(plan)
    save_file(Path(path), encode(plan), private=True)


def save_approval(plan: Plan, path: Path) -> None:
    """Save the approval token of a plan as a line of its own; it is not a secret.

    Raises StorageError.
    """
    save_file(path, f"{plan.token}\n".encode(), private=False)


def remove_file(path: Path) -> None:
    """Remove a file that a command writes, if it exists. Raises StorageError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        storage_error = make_storage_error("cannot remove it", path, error)
        raise StorageError(storage_error.message, "Choose another place.") from None


def load_plan(path: Path | str) -> Plan:
    """Load a plan that `save_plan` or `kafkaform plan --out FILE` saved.

    Raises UsageError for a file that cannot be read, PlanRefused for one that is not a plan.
    """
    return decode(_read_file(Path(path)), str(path))


def _read_file(path: Path) -> bytes:
    try:
        return storage.read(path.resolve())
    except (OSError, RuntimeError) as error:  # Python 3.11 and 3.12 raise RuntimeError for loops
        reason = getattr(error, "strerror", None) or "it is a link that leads to itself"
        raise UsageError(
            f"{path} cannot be read: {reason}", "Save a plan: `kafkaform plan -out=FILE`."
        ) from None


def load_plan_document(path: Path | str) -> FrozenMap:
    """Load a plan as the document of `show --json`, from a saved plan or from such a document.

    Raises UsageError for a file that cannot be read or contains neither, PlanRefused for a saved
    plan that was altered.
    """
    data = _read_file(Path(path))
    try:
        document = canonical.loads(data)
    except canonical.CanonicalError as error:
        raise _make_no_plan_error(path, str(error)) from None
    if isinstance(document, FrozenMap) and {"resource_changes", "kafkaform"} <= document.keys():
        return document
    plan = decode(data, str(path))
    return cast(FrozenMap, canonical.loads(canonical.dumps(to_json(plan)).encode()))


def _make_no_plan_error(path: Path | str, reason: str) -> UsageError:
    return UsageError(
        f"{path} contains no plan: {reason}",
        "Name a plan saved with `kafkaform plan --out FILE`, or its JSON from "
        "`kafkaform show --json FILE`.",
    )


def read_words(plan: Plan) -> Vocabulary:
    """What the users of the plan's providers call their things."""
    return read_words_of(plan.instances)


def read_words_of(instances: Iterable[str]) -> Vocabulary:
    """What the users of the providers of these instances call their things. A provider that is not
    installed here has no words."""
    words: dict[str, Words] = {}
    registry = Registry()
    for instance in instances:
        # A plan can be shown where it was not made; renderers then use neutral words.
        with contextlib.suppress(ConfigurationError):
            words[instance] = registry.load(instance.partition(".")[0]).words
    return words


def render_plan(
    plan: Plan,
    form: Form = "text",
    *,
    colour: bool = False,
    width: int = 100,
    detail: Detail = "grouped",
    approval: bool = True,
    whole: Path | None = None,
    name: str = "",
) -> str:
    """Render a plan for people or programs; every line is safe to print.

    form: `text` as on a terminal, `json` in the shape of Terraform's plan, `markdown` for a review
    comment, `html` for a page that loads nothing. colour, width (columns), detail and approval
    apply to text only. detail: `concise` for one line per change, `grouped` for equal changes
    together, `full` for each change by itself. approval: show the token, for those who apply the
    plan later. whole: a file that has the whole plan; a shortened comment gives its name without
    the folder, which exists only where the plan was made. name: of the folder or environment, for
    the heading of a comment. Raises UsageError for another form.
    """
    if form not in get_args(Form):
        raise UsageError(
            f"there is no form {form!r} of a plan", f"Use one of {', '.join(get_args(Form))}."
        )
    if form == "json":
        return mask_secrets(render_json(to_json(plan)))
    if form == "markdown":
        return mask_secrets(
            review.comment.render_markdown(
                plan,
                words=read_words(plan),
                command=render_apply_command(plan),
                whole=whole.name if whole is not None else "",
                name=name,
            )
        )
    if form == "html":
        # Secrets are masked before the page escapes them.
        return review.html_page.render_html(
            plan, words=read_words(plan), command=render_apply_command(plan)
        )
    return mask_secrets(
        render_plan_text(
            plan,
            words=read_words(plan),
            colour=colour,
            width=width,
            detail=detail,
            approval=approval,
        )
    )
