"""Compile what looks like a function but is not: `try` and `can`, whose arguments may fail, and the
two that evaluate templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from ...core.schema import STRING
from ...core.text.display import make_sentence
from ...core.value import SecretRef
from ...syntax.nodes import Expression, FunctionCall
from ...syntax.parse import parse_template
from ..functions.spec import render_usage
from ..values.conversion import convert_value
from ..values.faults import HIDDEN, ConvertFault, EvalError, LimitError
from ..values.value import FIELDS, Fields, Marks, Val, add_marks, unmark
from .code import Code, Context, Env, make_failing
from .operators import attempt_code, make_secret_misuse

NESTED = 16
"""How many templates can evaluate each other."""


_PARSING, _PARSING_CHARACTER = 1_000, 4
"""Steps for parsing a template, and for each of its characters."""


class SpecialForm(Struct, frozen=True):
    """A form that is called like a function."""

    doc: str
    """One sentence for the documentation."""
    params: tuple[str, ...]
    """Names of the arguments, for messages."""
    rest: str | None
    """The name of any number of further arguments."""
    compile: Callable[[FunctionCall, Context], Code]


def compile_form(node: FunctionCall, context: Context) -> Code:
    """The code of a call of one of `FORMS`."""
    form = FORMS[node.name]
    count, least = len(node.args), len(form.params)
    if not node.expand and (count == least or (count > least and form.rest)):
        return form.compile(node, context)
    return make_failing(
        EvalError(
            node,
            f"{node.name}() cannot be called with these arguments",
            "It does not accept a list with `...`." if node.expand else "",
            f"Usage: {render_usage(node.name, form.params, form.rest)}.",
        )
    )


# -- what may fail


def _compile_can(node: FunctionCall, context: Context) -> Code:
    code = context.compile_node(node.args[0])
    return lambda env: not isinstance(attempt_code(code, env), EvalError)


def _compile_try(node: FunctionCall, context: Context) -> Code:
    codes = tuple(map(context.compile_node, node.args))

    def run(env: Env) -> Val:
        reason = ""
        for code in codes:
            result = attempt_code(code, env)
            if not isinstance(result, EvalError):
                return result
            reason = f"The last one failed: {result.summary}."
        raise EvalError(node, "None of the arguments of try() can be evaluated", reason)

    return run


# -- templates


def _compile_template(node: FunctionCall, context: Context) -> Code:
    first, second = node.args
    path = context.compile_node(first)
    # `templatefile` reads by the function `file`, so the same rules and digests apply.
    read = replace(node, name="file", args=(first,))
    content = context.compile_node(read) if node.name == "templatefile" else path
    values_code = context.compile_node(second)
    rendering = _Rendering(node, context)

    def run(env: Env) -> Val:
        text, marks = _get_template_text(content(env), first)
        values, own = unmark(values_code(env))
        if isinstance(values, SecretRef):
            raise make_secret_misuse(second)
        if not isinstance(values, FIELDS):
            raise EvalError(second, "The values of a template must be a map or an object")
        shown, hidden = unmark(path(env))
        name = "the template" if hidden or content is path else str(shown)
        with _move_faults(node, name, hide=bool(marks | own)):
            return add_marks(rendering.render_template(text, name, values, env), marks | own)

    return run


def _get_template_text(value: Val, place: Expression) -> tuple[str, Marks]:
    value, marks = unmark(value)
    if isinstance(value, SecretRef):
        raise make_secret_misuse(place)
    try:
        text = convert_value(value, STRING)
    except ConvertFault as fault:
        raise EvalError(place, "A template must be a string", make_sentence(fault)) from None
    if not isinstance(text, str):
        raise EvalError(place, "A template must be a string", "It is null.")
    return text, marks


class _Rendering:
    """Evaluates templates at one place, and keeps the last one, because it is usually the same for
    all instances."""

    __slots__ = ("code", "context", "key", "node")

    def __init__(self, node: FunctionCall, context: Context) -> None:
        self.node = node
        self.context = context
        self.key: tuple[str, Iterable[str]] | None = None
        self.code: Code | None = None

    def render_template(self, text: str, name: str, values: Fields, env: Env) -> Val:
        # The names of the values are part of the code: they hide other first words.
        key = (text, values.fields.keys())
        if self.code is None or self.key != key:
            env.budget.charge(_PARSING + len(text) * _PARSING_CHARACTER, self.node)
            self.code, self.key = self._compile_text(text, name, frozenset(values.fields)), key
        try:
            return self.code(Env({}, dict(values.fields), env.budget))
        except RecursionError:
            raise LimitError(self.node, "Templates are nested too deeply") from None

    def _compile_text(self, text: str, name: str, names: frozenset[str]) -> Code:
        if self.context.templates >= NESTED:
            detail = f"At most {NESTED} templates can evaluate each other."
            raise EvalError(self.node, "Too many templates are nested in each other", detail)
        template, faults = parse_template(text, name)
        if template is None:
            raise EvalError(self.node, f"{name} is not a template", faults[0].summary)
        inner = replace(self.context, bound=names, templates=self.context.templates + 1)
        return inner.compile_node(template)


class _TemplateFault(EvalError):
    """A fault inside a template; its summary begins with the place in the template."""


@contextmanager
def _move_faults(node: FunctionCall, name: str, hide: bool) -> Iterator[None]:
    """Make a fault inside a template a fault of the call that names the innermost template and its
    line. hide: leave out the reason."""
    # Messages show source lines of the configuration only, and the template may be another file.
    try:
        yield
    except LimitError:
        raise
    except EvalError as fault:
        if fault.place is node:
            raise
        summary, detail, where = fault.summary, fault.detail, f"{name}:{fault.place.range.line}"
        if hide:
            summary, detail = f"{where} cannot be evaluated", HIDDEN
        elif not isinstance(fault, _TemplateFault):
            summary = f"{where}: {summary}"
        raise _TemplateFault(node, summary, detail, "" if hide else fault.advice) from None


FORMS: Mapping[str, SpecialForm] = {
    "can": SpecialForm("Whether the argument can be evaluated.", ("value",), None, _compile_can),
    "templatefile": SpecialForm(
        "The text of a file with `${…}` and `%{…}`, evaluated with the values as variables.",
        ("path", "values"),
        None,
        _compile_template,
    ),
    "templatestring": SpecialForm(
        "A text with `${…}` and `%{…}`, evaluated with the values as variables.",
        ("template", "values"),
        None,
        _compile_template,
    ),
    "try": SpecialForm(
        "The first argument that can be evaluated.", ("value",), "values", _compile_try
    ),
}
"""By name."""
