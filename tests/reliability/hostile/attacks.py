"""Folders that want too much: name -> its files, and words of the diagnostic that ends it.

No words: the folder is legal, however odd, and must be understood. All of them must cost little.
"""

from __future__ import annotations

from collections.abc import Mapping

Files = Mapping[str, str | bytes]
Attack = tuple[Files, str]

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["a:9092"]\n}\n'
STEPS, LARGE, DEEP = "too many steps", "is too large", "Nested too deeply"
LIMIT = "() exceeds a limit"
"""What a call of a function says."""
MANY = 10_000
MEGABYTE = "a" * 1_000_000


def main(text: str) -> Files:
    return {"main.kf.hcl": text}


def local(expression: str, **files: str | bytes) -> Files:
    """A folder with one local value, and files that it reads."""
    return main(f"locals {{\n  a = {expression}\n}}\n") | files


def chain(first: str, step: str, count: int, last: str = "") -> str:
    """Local values s0, s1, …, each made of the one before, which `@` stands for."""
    lines = [f"s0 = {first}"]
    lines += (f"s{n + 1} = {step.replace('@', f'local.s{n}')}" for n in range(count))
    lines.append(last.replace("@", f"local.s{count}"))
    return "locals {\n" + "\n".join(lines) + "\n}\n"


def nested(opening: str, inside: str, closing: str, depth: int) -> str:
    return opening * depth + inside + closing * depth


def topic(body: str, name: str = "t") -> str:
    return f'resource "kafka_topic" "{name}" {{\n{body}\n}}\n'


def numbered(text: str, count: int = MANY, around: str = "@") -> str:
    """The text `count` times; `#` is a number, `>` the next one and `~` the first again at the
    end."""
    lines = (
        text.replace("#", str(n)).replace(">", str(n + 1)).replace("~", str((n + 1) % count))
        for n in range(count)
    )
    return around.replace("@", "\n".join(lines)) + "\n"


LOCALS = "locals {\n@\n}\n"

# ── nesting ─────────────────────────────────────────────────────────────────────────────

_NESTINGS = {
    "lists": ("[", "1", "]"),
    "objects": ("{a=", "1", "}"),
    "parentheses": ("(", "1", ")"),
    "calls": ("abs(", "1", ")"),
    "tries": ("try(", "1", ")"),
    "loops": ("[for x in [1] : ", "x", "]"),
    "loops that make objects": ('{for x in ["a"] : x => ', "x", "}"),
    "templates": ('"a${', "1", '}"'),
    "conditions": ("true ? 1 : (", "1", ")"),
    "operators": ("(1 + ", "1", ")"),
    "indexes": ("[0][", "0", "]"),
}
NESTING: Mapping[str, Attack] = {
    **{
        f"{count} {name}": (local(nested(*parts, count)), words)
        for name, parts in _NESTINGS.items()
        for count, words in ((40, ""), (101, DEEP), (20_000, DEEP))
    },
    "20000 signs": (local("-" * 20_000 + "1"), DEEP),
    "heredocs": (local(nested("<<E\n${", "1", "}\nE\n", 200)), DEEP),
    "directives": (local('"' + nested("%{if true}", "1", "%{endif}", 90) + '"'), DEEP),
    "types": (main(f'variable "v" {{\n  type = {nested("list(", "any", ")", 200)}\n}}\n'), DEEP),
    "blocks": (main(topic(nested("lifecycle {\n", "", "}\n", 200))), DEEP),
    "dynamic blocks": (
        main(topic(nested('dynamic "x" {\nfor_each = [1]\ncontent {\n', "", "}\n}\n", 200))),
        DEEP,
    ),
    "JSON": (local(f'jsondecode("{nested("[", "", "]", 90_000)}")'), "cannot be computed"),
    "YAML": (local(f'yamldecode("{nested("[", "", "]", 90_000)}")'), "cannot be computed"),
    "a template in a string": (
        local(f'templatestring("{nested("$${", "1", "}", 2_000)}", {{}})'),
        "is not a template",
    ),
    "values of values": (main(chain("1", "[@]", 500)), LARGE),
    "sensitive values of values": (main(chain("1", "[sensitive(@)]", 500)), LARGE),
    "a deep value in a conversion": (
        main(chain("1", "[@]", 97, f"deep = tolist({nested('[', '@', ']', 90)})")),
        "too many levels",
    ),
    "a deep value in a comparison": (
        main(chain("1", "[@]", 97, f"deep = {nested('[', '@', ']', 90)} == [@]")),
        "too many levels",
    ),
    "values through modules": (
        {
            "main.kf.hcl": 'module "m" {\n  source = "./m0"\n  x = []\n}\n',
            **{
                f"m{n}/main.kf.hcl": 'variable "x" {}\n'
                f'module "m" {{\n  source = "../m{n + 1}"\n'
                f"  x = {nested('[', 'var.x', ']', 50)}\n}}\n"
                for n in range(5)
            },
            "m5/main.kf.hcl": 'variable "x" {}\n',
        },
        LARGE,
    ),
    "800 modules": (
        {
            "main.kf.hcl": 'module "m" {\n  source = "./m0"\n}\n',
            **{
                f"m{n}/main.kf.hcl": f'module "m" {{\n  source = "../m{n + 1}"\n}}\n'
                for n in range(800)
            },
            "m800/main.kf.hcl": "locals {\n  a = 1\n}\n",
        },
        "",
    ),
    "JSON syntax": (
        {"main.kf.json": '{"locals":{"a":' + nested("[", "", "]", 50_000) + "}}"},
        DEEP,
    ),
}

# ── what doubles ────────────────────────────────────────────────────────────────────────

_SHARED = {
    "jsonencode(@)": "characters",
    "yamlencode(@)": LIMIT,
    'format("%v", @)': LIMIT,
    "toset(@)": STEPS,
    "tomap({ a = @ })": STEPS,
    "distinct(@)": STEPS,
    "flatten(@)": LIMIT,
    "setproduct(@, @)": STEPS,
    "setunion(@, @)": STEPS,
    "matchkeys(@, @, @)": STEPS,
    "[for x in range(100000) : @ == @]": STEPS,
    "[for x in range(100000) : coalesce(@, [])]": STEPS,
    "[for x in range(100000) : true ? @ : []]": STEPS,
    "[for x in range(100000) : concat(tolist([@]), tolist([[1]]))]": STEPS,
    '[for x in range(100000) : lookup(tomap({ a = [1] }), "b", @)]': STEPS,
    "[for x in range(100000) : jsonencode(sensitive(@))]": "characters",
}
DOUBLING: Mapping[str, Attack] = {
    "strings": (main(chain('"aaaaaaaaaa"', '"${@}${@}"', 40)), "is too long"),
    "lists": (main(chain('["a"]', "concat(@, @)", 40)), "elements"),
    "lists in lists": (main(chain('["a"]', "[@, @]", 40)), LARGE),
    "objects in objects": (main(chain('"a"', "{ a = @, b = @ }", 40)), LARGE),
    "numbers": (main(chain("99999999", "@ * @", 40)), "cannot be computed"),
    "one expression": (
        local("[for b in [[1, 1]] : " + nested("[for b in [[b, b]] : ", "b", "]", 40) + "]"),
        LARGE,
    ),
    "modules": (
        {
            "main.kf.hcl": 'module "m" {\n  source = "./m0"\n  x = ["a"]\n}\n',
            **{
                f"m{n}/main.kf.hcl": 'variable "x" {}\n'
                f'module "m" {{\n  source = "../m{n + 1}"\n  x = [var.x, var.x]\n}}\n'
                for n in range(40)
            },
            "m40/main.kf.hcl": 'variable "x" {}\n',
        },
        LARGE,
    ),
    "an output": (
        main(chain('["a"]', "[@, @]", 18) + 'output "o" {\n  value = [local.s18, local.s18]\n}\n'),
        LARGE,
    ),
    "for_each": (
        main(
            PROVIDER
            + chain('"a"', "{ a = @, b = @ }", 18)
            + topic("for_each = local.s18\nname = each.key\nconfig = each.value")
        ),
        STEPS,
    ),
    **{
        f"shared parts: {call}": (main(chain('["a"]', "[@, @]", 18, f"last = {call}")), words)
        for call, words in _SHARED.items()
    },
}

# ── counting ────────────────────────────────────────────────────────────────────────────

_CUBE = "[for x in range(1000) : [for y in range(1000) : [for z in range(1000) : z]]]"


def _variables(bomb: str) -> str:
    """Thirty variables, each of which could take all steps of a run."""
    return numbered(f'variable "v#" {{\n{bomb}\n}}', 30)


COUNTING: Mapping[str, Attack] = {
    "count": (main(PROVIDER + topic("count = 1e9\nname = 1")), LARGE),
    "for_each": (
        main(topic('for_each = toset([for i in range(1000000) : "${i}"])\nname = each.key')),
        LIMIT,
    ),
    "cubes": (local(_CUBE), STEPS),
    "empty collections": (
        main(numbered("a# = [for i in range(100000) : [{}, {}, {}, {}]]", 30, LOCALS)),
        STEPS,
    ),
    "copies of a string": (
        local(f'[for i in range(100000) : "{MEGABYTE}${{i}}"]'),
        STEPS,
    ),
    "copies of wide characters": (
        local(f'[for i in range(100000) : "{"😀" * 200_000}${{i}}"]'),
        STEPS,
    ),
    "faults": (main(numbered("a# = [for i in range(100000) : try([][i], 1)]", 4, LOCALS)), STEPS),
    "defaults of variables": (main(_variables(f"default = {_CUBE}")), STEPS),
    "defaults of types": (
        main(_variables(f"type = object({{ a = optional(any, {_CUBE}) }})\ndefault = {{}}")),
        STEPS,
    ),
    "validations": (
        main(
            _variables(
                f"default = 1\nvalidation {{\ncondition = var.v# == {_CUBE}\nerror_message = 1\n}}"
            )
        ),
        STEPS,
    ),
    "modules in modules": (
        {
            "main.kf.hcl": numbered('module "m#" {\n  source = "./l0"\n}', 10),
            **{
                f"l{n}/main.kf.hcl": numbered(f'module "m#" {{\n  source = "../l{n + 1}"\n}}', 10)
                for n in range(5)
            },
            "l5/main.kf.hcl": "locals {\n  x = 1\n}\n",
        },
        "too many modules",
    ),
    "instances of modules": (
        {
            "main.kf.hcl": 'module "m" {\n  source = "./m"\n  count = 100000\n}\n',
            "m/main.kf.hcl": "locals {\n  x = 1\n}\n",
        },
        STEPS,
    ),
    "values of instances of modules": (
        {
            "main.kf.hcl": 'module "m" {\n  source = "./m"\n  count = 100000\n}\n',
            "m/main.kf.hcl": numbered("x# = #", 1_000, LOCALS),
        },
        STEPS,
    ),
    "conversions for modules": (
        {
            "main.kf.hcl": 'locals {\n  b = range(90000)\n}\nmodule "m" {\n  source = "./m"\n'
            "  count = 5000\n  x = local.b\n}\n",
            "m/main.kf.hcl": 'variable "x" {\n  type = list(string)\n}\n',
        },
        STEPS,
    ),
    "dynamic blocks": (
        main(
            'provider "kafka" {\nbootstrap_servers = ["a:1"]\ndynamic "authorizer" {\n'
            "for_each = range(100000)\ncontent {\nsuper_users = []\n}\n}\n}\n" + topic('name = "a"')
        ),
        "can occur only once",
    ),
    "imports": (
        main(
            PROVIDER + 'import {\n  for_each = toset([for i in range(20000) : "k${i}"])\n'
            "  to = kafka_topic.t[each.key]\n  id = each.key\n}\n"
        ),
        "imported but not declared",
    ),
    "what is behind values": (
        main(
            PROVIDER
            + numbered("locals {\n  n> = try([][local.n#], kafka_topic.t#.name)\n}", 3_300)
            + "locals {\n  n0 = 1\n}\n"
            + numbered(topic('name = "#"', "t#"), 3_300)
        ),
        STEPS,
    ),
    "JSON syntax": (
        {"main.kf.json": '{"resource":{"kafka_topic":{"t":{"count":1e9,"name":"a"}}}}'},
        LARGE,
    ),
}
