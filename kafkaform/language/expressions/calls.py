"""Compile function calls: convert, check and unmark arguments before the function sees them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.text.display import make_sentence
from ...core.value import SecretRef
from ...syntax.nodes import Expression, FunctionCall
from ..functions.spec import Function, Param
from ..values.bounds import compute_conversion_cost, compute_type_cost, require_shallow
from ..values.conversion import CONVERSION, convert_value
from ..values.faults import (
    HIDDEN,
    ConvertFault,
    EvalError,
    FunctionFault,
    LimitError,
    LimitFault,
    Skipped,
    suggest_near,
)
from ..values.limits import LIMITS
from ..values.value import (
    FIELDS,
    SEQUENCES,
    UNMARKED,
    Composite,
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
from .operators import make_secret_misuse
from .special_forms import FORMS, compile_form

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
        return _make_skipping(node)
    if function is None:
        return make_failing(make_unknown_function_fault(node, context.functions))
    if not node.expand:
        fault = _check_arity(node, function, len(codes))
        if fault is not None:
            return make_failing(fault)
    caller = _Caller(function, node)
    if node.expand:
        fixed = codes[:-1]
        return lambda env: caller.run_call(
            [*[code(env) for code in fixed], *_expand_last(node, codes[-1], env)], env
        )
    return lambda env: caller.run_call([code(env) for code in codes], env)


def _make_skipping(node: FunctionCall) -> Code:
    # The check of names has reported it, unless it belongs to a provider that is skipped.
    def skip(_: Env) -> Val:
        raise Skipped(f"{node.name}()")

    return skip


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
    elif count > len(function.params) and function.rest is None:
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


class _Caller(Struct, frozen=True):
    """One call of a function in the text."""

    function: Function
    node: FunctionCall

    def run_call(self, given: list[Val], env: Env) -> Val:
        node, function = self.node, self.function
        if node.expand and (fault := _check_arity(node, function, len(given))) is not None:
            raise fault
        params = function.params
        if function.rest is not None:
            params += (function.rest,) * (len(given) - len(params))
        pairs = list(zip(params, given, strict=True))
        # Steps are taken before anything is computed: a call that is too much is never begun.
        cost = function.steps + sum(
            self._compute_cost(index, param, value) for index, (param, value) in enumerate(pairs)
        )
        env.budget.charge(cost, node)
        if function.unifies:
            env.budget.charge(_compute_unification_cost(given), node)
        marks, arguments = UNMARKED, []
        for index, (param, value) in enumerate(pairs):
            argument, own = self._prepare_argument(index, param, value)
            arguments.append(argument)
            marks |= own
        result = self._call_function(arguments, bool(marks))
        self._check_result(result)
        if marks and not function.passes and isinstance(result, SecretRef):
            raise self._make_shown_fault()
        env.budget.charge(_compute_look_cost(result, function), node)
        return add_marks(result, marks)

    def _compute_cost(self, index: int, param: Param, given: Val) -> int:
        """Steps for an argument: to convert it, to take its marks off, to look through it."""
        value = unmark(given)[0]
        if not isinstance(value, Composite):
            return 2 + _compute_look_cost(value, self.function)
        require_shallow(value, self._get_place(index))
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

    def _get_place(self, index: int | None) -> Expression:
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
            why = fault.message if marks_of(value) else str(fault)
            raise self._make_unsuitable_fault(index, param, why) from None
        if not param.null and isinstance(unmark(value)[0], Null):
            raise self._make_unsuitable_fault(index, param, "it is null")
        if isinstance(value, str) or param.marked:
            return value, UNMARKED
        if function.passes:
            return unmark(value)
        # A function that reads its arguments cannot have parts whose values are not known now.
        if (part := find_sealed(value)) is not None:
            raise (
                make_secret_misuse(self._get_place(index))
                if isinstance(part, SecretRef)
                else part.defer()
            )
        if isinstance(value, Marked | Composite) and (marks := marks_of(value)):
            return unmark_deep(value), marks
        return value, UNMARKED

    def _make_unsuitable_fault(self, index: int, param: Param, why: str) -> EvalError:
        return EvalError(
            self._get_place(index),
            f"The argument {param.name} of {self.function.name}() does not fit",
            make_sentence(why),
            f"Usage: {self.function.usage()}.",
        )

    def _make_shown_fault(self) -> EvalError:
        # A reference carries no marks, because it is not the secret: plans and states show it.
        return EvalError(
            self._get_place(0),
            f"{self.function.name}() cannot be called with a sensitive value",
            "Plans show where a secret comes from.",
            "Use a value that is not sensitive, or nonsensitive(…) if everyone is allowed to see "
            "it.",
        )

    def _call_function(self, arguments: list[Val], hide: bool) -> Val:
        name = self.function.name
        try:
            return self.function.call(*arguments)
        except LimitFault as fault:
            place, reason = self._get_place(fault.argument), make_sentence(fault.message)
            raise LimitError(place, f"{name}() exceeds a limit", reason) from None
        except FunctionFault as fault:
            message, index = fault.message, fault.argument
        except (ConvertFault, ValueError) as fault:
            message, index = str(fault), None
        detail = HIDDEN if hide else make_sentence(message)
        raise EvalError(self._get_place(index), f"{name}() cannot be computed", detail)

    def _check_result(self, result: Val) -> None:
        """Raise LimitError if the result is too large."""
        size, limit, what = 0, LIMITS.elements, "elements"
        if isinstance(result, str):
            size, limit, what = len(result), LIMITS.characters, "characters"
        elif isinstance(result, SEQUENCES):
            size = len(result.items)
        elif isinstance(result, FIELDS):
            size = len(result.fields)
        if size > limit:
            raise LimitError(
                self.node,
                f"The result of {self.function.name}() has {size:,} {what}",
                f"The limit is {limit:,}.",
            )


def _compute_unification_cost(given: Sequence[Val]) -> int:
    """Steps for converting arguments of different types to a common type."""
    values = [value for each in given if isinstance(value := unmark(each)[0], Composite)]
    same = len({value.type for value in values}) < 2
    return 0 if same else sum(map(compute_type_cost, values))


def _compute_look_cost(value: Val, function: Function) -> int:
    """Steps for looking at an argument or a result."""
    if isinstance(value, str):
        # Beyond ASCII, a character is a grapheme cluster, which takes longer to find.
        many = function.characters if value.isascii() else min(function.characters, 1)
        return int(len(value) / many)
    if not isinstance(value, Composite):
        return 0
    if not function.deep:
        return function.cost * len(value.items if isinstance(value, SEQUENCES) else value.fields)
    return compute_type_cost(value) if function.cost == CONVERSION else function.cost * value.work
