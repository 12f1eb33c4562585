"""Compile function calls, which convert, check and unmark arguments before the function sees them;
and what looks like a function but is not: `try` and `can`, whose arguments may fail, and the two
that evaluate templates."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from ...core.schema import STRING
from ...core.text import make_sentence
from ...core.value import SecretRef
from ...syntax.nodes import Expression, FunctionCall
from ...syntax.parse import parse_template
from ..functions.spec import Function, Param, render_usage
from ..values.conversion import (
    CONVERSION,
    compute_conversion_cost,
    compute_type_cost,
    convert_value,
    require_shallow,
)
from ..values.faults import (
    HIDDEN_REASON,
    LIMITS,
    ConvertFault,
    EvalError,
    FunctionFault,
    LimitError,
    LimitFault,
    Skipped,
    suggest_near,
)
from ..values.value import (
    FIELDS,
    SEQUENCES,
    UNMARKED,
    Composite,
    FieldValues,
    Marked,
    Marks,
    Null,
    Val,
    add_marks,
    find_sealed,
    marks_of,
    unmark,
    unmark_deep,
)
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
    variadic: str | None
    """The name of any number of further arguments."""
    compile: Callable[[FunctionCall, Context], Code]


def compile_form(node: FunctionCall, context: Context) -> Code:
    """The code of a call of one of `FORMS`."""
    form = FORMS[node.name]
    count, required_count = len(node.args), len(form.params)
    if not node.expand and (count == required_count or (count > required_count and form.variadic)):
        return form.compile(node, context)
    return make_failing(
        EvalError(
            node,
            f"{node.name}() cannot be called with these arguments",
            "It does not accept a list with `...`." if node.expand else "",
            f"Usage: {render_usage(node.name, form.params, form.variadic)}.",
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
        values, value_marks = unmark(values_code(env))
        if isinstance(values, SecretRef):
            raise make_secret_misuse(second)
        if not isinstance(values, FIELDS):
            raise EvalError(second, "The values of a template must be a map or an object")
        path_value, path_marks = unmark(path(env))
        name = "the template" if path_marks or content is path else str(path_value)
        with _move_faults(node, name, hide=bool(marks | value_marks)):
            return add_marks(
                rendering.render_template(text, name, values, env), marks | value_marks
            )

    return run


def _get_template_text(value: Val, location: Expression) -> tuple[str, Marks]:
    value, marks = unmark(value)
    if isinstance(value, SecretRef):
        raise make_secret_misuse(location)
    try:
        text = convert_value(value, STRING)
    except ConvertFault as fault:
        raise EvalError(location, "A template must be a string", make_sentence(fault)) from None
    if not isinstance(text, str):
        raise EvalError(location, "A template must be a string", "It is null.")
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

    def render_template(self, text: str, name: str, values: FieldValues, env: Env) -> Val:
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
        if fault.location is node:
            raise
        summary, detail, position = (
            fault.summary,
            fault.detail,
            f"{name}:{fault.location.range.line}",
        )
        if hide:
            summary, detail = f"{position} cannot be evaluated", HIDDEN_REASON
        elif not isinstance(fault, _TemplateFault):
            summary = f"{position}: {summary}"
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


SPECIAL = tuple(FORMS)


def get_function_name(node: FunctionCall) -> str:
    """The name of the function that is called. Those of the language are also in OpenTofu's
    namespace `core`: `core::max` is `max`."""
    return node.name.removeprefix("core::")


def find_foreign_provider(node: FunctionCall, installed: Container[str]) -> str | None:
    """The provider of `provider::NAME::FUNCTION`, unless it is installed; None for any other."""
    words = node.name.split("::")
    return words[1] if words[0] == "provider" and words[1] not in installed else None


def compile_call(node: FunctionCall, context: Context) -> Code:
    # A fault in the text becomes code that raises it, because `try` and `can` may catch it.
    name = get_function_name(node)
    if name in FORMS:
        return compile_form(replace(node, name=name), context)
    codes = tuple(map(context.compile_node, node.args))
    function = context.functions.get(name)
    if function is None and name.startswith("provider::"):
        # The check of names has reported it, unless it belongs to a provider that is skipped.
        def skip(_: Env) -> Val:
            raise Skipped(f"{node.name}()")

        return skip
    if function is None:
        return make_failing(make_unknown_function_fault(node, context.functions))
    if not node.expand:
        fault = _check_arity(node, function, len(codes))
        if fault is not None:
            return make_failing(fault)
    caller = _FunctionCall(function, node)
    if node.expand:
        fixed_codes = codes[:-1]
        return lambda env: caller.run_call(
            [*[code(env) for code in fixed_codes], *_expand_last(node, codes[-1], env)], env
        )
    return lambda env: caller.run_call([code(env) for code in codes], env)


def make_unknown_function_fault(node: FunctionCall, functions: Mapping[str, Function]) -> EvalError:
    return EvalError(
        node,
        f"There is no function {node.name}",
        advice=suggest_near(node.name, (*functions, *SPECIAL))
        or "docs/functions.md lists the functions.",
    )


def _check_arity(node: FunctionCall, function: Function, count: int) -> EvalError | None:
    if count < len(function.params):
        problem = f"too few arguments: {function.params[count].name} is missing"
    elif count > len(function.params) and function.variadic is None:
        problem = f"too many arguments: it takes {len(function.params)}"
    else:
        return None
    return EvalError(node, f"{function.name}() has {problem}", f"Usage: {function.usage()}.")


def _expand_last(node: FunctionCall, last: Code, env: Env) -> Sequence[Val]:
    """The elements of the last argument of `f(xs...)`."""
    value, marks = unmark(last(env))
    if not isinstance(value, SEQUENCES):
        raise EvalError(node.args[-1], "Only a list, set or tuple can be expanded by `...`")
    env.budget.admit(len(value.items), node)
    return [add_marks(item, marks) for item in value.items]


class _FunctionCall(Struct, frozen=True):
    """One call of a function in the text."""

    function: Function
    node: FunctionCall

    def run_call(self, values: list[Val], env: Env) -> Val:
        node, function = self.node, self.function
        if node.expand and (fault := _check_arity(node, function, len(values))) is not None:
            raise fault
        params = function.params
        if function.variadic is not None:
            params += (function.variadic,) * (len(values) - len(params))
        pairs = list(zip(params, values, strict=True))
        # Steps are taken before anything is computed: a call that is too much is never begun.
        cost = function.steps + sum(
            self._compute_cost(index, param, value) for index, (param, value) in enumerate(pairs)
        )
        env.budget.charge(cost, node)
        if function.unifies:
            env.budget.charge(_compute_unification_cost(values), node)
        marks, arguments = UNMARKED, []
        for index, (param, value) in enumerate(pairs):
            argument, argument_marks = self._prepare_argument(index, param, value)
            arguments.append(argument)
            marks |= argument_marks
        result = self._call_function(arguments, bool(marks))
        self._check_result(result)
        if marks and not function.passes and isinstance(result, SecretRef):
            # A reference carries no marks, because it is not the secret: plans and states show it.
            raise EvalError(
                self._locate_argument(0),
                f"{function.name}() cannot be called with a sensitive value",
                "Plans show where a secret comes from.",
                "Use a value that is not sensitive, or nonsensitive(…) if everyone is allowed to "
                "see it.",
            )
        env.budget.charge(_compute_look_cost(result, function), node)
        return add_marks(result, marks)

    def _compute_cost(self, index: int, param: Param, argument: Val) -> int:
        """Steps for an argument: to convert it, to take its marks off, to look through it."""
        value = unmark(argument)[0]
        if not isinstance(value, Composite):
            return 2 + _compute_look_cost(value, self.function)
        require_shallow(value, self._locate_argument(index))
        cost = (
            2
            + compute_conversion_cost(value, param.type)
            + _compute_look_cost(value, self.function)
        )
        if param.deep:
            cost += compute_type_cost(value)
        if not self.function.passes and marks_of(value):
            cost += value.work
        return cost

    def _locate_argument(self, index: int | None) -> Expression:
        if index is None or not self.node.args:
            return self.node
        return self.node.args[min(index, len(self.node.args) - 1)]

    def _prepare_argument(self, index: int, param: Param, value: Val) -> tuple[Val, Marks]:
        """The argument as the function needs it, and the marks that were taken off."""
        function = self.function
        try:
            value = convert_value(value, param.type)
        except ConvertFault as fault:
            # The path of a fault can contain a sensitive key.
            reason = fault.message if marks_of(value) else str(fault)
            raise self._make_unsuitable_fault(index, param, reason) from None
        if not param.null and isinstance(unmark(value)[0], Null):
            raise self._make_unsuitable_fault(index, param, "it is null")
        if isinstance(value, str) or param.marked:
            return value, UNMARKED
        if function.passes:
            return unmark(value)
        # A function that reads its arguments cannot have parts whose values are not known now.
        if (sealed := find_sealed(value)) is not None:
            raise (
                make_secret_misuse(self._locate_argument(index))
                if isinstance(sealed, SecretRef)
                else sealed.defer()
            )
        if isinstance(value, Marked | Composite) and (marks := marks_of(value)):
            return unmark_deep(value), marks
        return value, UNMARKED

    def _make_unsuitable_fault(self, index: int, param: Param, reason: str) -> EvalError:
        return EvalError(
            self._locate_argument(index),
            f"The argument {param.name} of {self.function.name}() does not fit",
            make_sentence(reason),
            f"Usage: {self.function.usage()}.",
        )

    def _call_function(self, arguments: list[Val], hide: bool) -> Val:
        name = self.function.name
        try:
            return self.function.call(*arguments)
        except LimitFault as fault:
            location, reason = self._locate_argument(fault.argument), make_sentence(fault.message)
            raise LimitError(location, f"{name}() exceeds a limit", reason) from None
        except FunctionFault as fault:
            message, index = fault.message, fault.argument
        except (ConvertFault, ValueError) as fault:
            message, index = str(fault), None
        detail = HIDDEN_REASON if hide else make_sentence(message)
        raise EvalError(self._locate_argument(index), f"{name}() cannot be computed", detail)

    def _check_result(self, result: Val) -> None:
        """Raise LimitError if the result is too large."""
        size, limit, noun = 0, LIMITS.elements, "elements"
        if isinstance(result, str):
            size, limit, noun = len(result), LIMITS.characters, "characters"
        elif isinstance(result, SEQUENCES):
            size = len(result.items)
        elif isinstance(result, FIELDS):
            size = len(result.fields)
        if size > limit:
            raise LimitError(
                self.node,
                f"The result of {self.function.name}() has {size:,} {noun}",
                f"The limit is {limit:,}.",
            )


def _compute_unification_cost(arguments: Sequence[Val]) -> int:
    """Steps for converting arguments of different types to a common type."""
    values = [
        value for argument in arguments if isinstance(value := unmark(argument)[0], Composite)
    ]
    is_uniform = len({value.type for value in values}) < 2
    return 0 if is_uniform else sum(map(compute_type_cost, values))


def _compute_look_cost(value: Val, function: Function) -> int:
    """Steps for looking at an argument or a result."""
    if isinstance(value, str):
        # Beyond ASCII, a character is a grapheme cluster, which takes longer to find.
        characters_per_step = (
            function.characters if value.isascii() else min(function.characters, 1)
        )
        return int(len(value) / characters_per_step)
    if not isinstance(value, Composite):
        return 0
    if not function.deep:
        return function.cost * len(value.items if isinstance(value, SEQUENCES) else value.fields)
    return compute_type_cost(value) if function.cost == CONVERSION else function.cost * value.work
