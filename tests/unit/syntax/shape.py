"""Nodes as short text, so that tests can say in one line what a text became."""

from __future__ import annotations

from kafkaform.syntax import nodes
from kafkaform.syntax.parse import parse_expression, parse_template


def shape(node: nodes.Expression) -> str:
    """Operators in parentheses, templates as <part|part>, `!` after one that unwraps."""
    match node:
        case nodes.Lit(value=value):
            return repr(value)
        case nodes.Template(parts=parts, unwraps=unwraps):
            return f"<{'|'.join(map(shape, parts))}>" + "!" * unwraps
        case nodes.TemplateIf(condition=condition, then=then, otherwise=otherwise):
            return f"if {shape(condition)} {shape(then)} else {shape(otherwise)}"
        case nodes.TemplateFor(key=key, value=value, collection=collection, body=body):
            return f"for {key} {value} in {shape(collection)} {shape(body)}"
        case nodes.Tuple(items=items):
            return f"[{', '.join(map(shape, items))}]"
        case nodes.Object(items=pairs):
            return f"{{{', '.join(f'{shape(p.key)}: {shape(p.value)}' for p in pairs)}}}"
        case nodes.ForTuple():
            head = f"for {node.key} {node.value} in {shape(node.collection)}"
            tail = f" if {shape(node.condition)}" if node.condition else ""
            return f"[{head}: {shape(node.result)}{tail}]"
        case nodes.ForObject():
            head = f"for {node.key} {node.value} in {shape(node.collection)}"
            tail = f" if {shape(node.condition)}" if node.condition else ""
            group = "..." if node.group else ""
            return f"{{{head}: {shape(node.result_key)} => {shape(node.result)}{group}{tail}}}"
        case nodes.FunctionCall(name=name, args=args, expand=expand):
            return f"{name}({', '.join(map(shape, args))}{'...' if expand else ''})"
        case nodes.Root(name=name):
            return name
        case nodes.SplatItem():
            return "@"
        case nodes.Attr(target=target, name=name):
            return f"{shape(target)}.{name}"
        case nodes.Index(target=target, key=key):
            return f"{shape(target)}[{shape(key)}]"
        case nodes.LegacyIndex(target=target, index=index):
            return f"{shape(target)}.{index}"
        case nodes.AttrSplat(target=target, each=each):
            return f"{shape(target)}.*({shape(each)})"
        case nodes.FullSplat(target=target, each=each):
            return f"{shape(target)}[*]({shape(each)})"
        case nodes.Unary(operator=operator, operand=operand):
            return f"({operator}{shape(operand)})"
        case nodes.Binary(operator=operator, left=left, right=right):
            return f"({shape(left)} {operator} {shape(right)})"
        case nodes.Cond(condition=condition, then=then, otherwise=otherwise):
            return f"({shape(condition)} ? {shape(then)} : {shape(otherwise)})"
        case nodes.Paren(inner=inner):
            return f"P{shape(inner)}"


def expression(text: str) -> str:
    """The shape of a text that must parse as an expression."""
    node, diagnostics = parse_expression(text, "t.hcl")
    assert node is not None, diagnostics
    return shape(node)


def template(text: str) -> str:
    """The shape of a text that must parse as a template."""
    node, diagnostics = parse_template(text, "t.hcl")
    assert node is not None, diagnostics
    return shape(node)
