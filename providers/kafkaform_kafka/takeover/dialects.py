"""How each tool's own parser of YAML reads a plain scalar: YAML 1.1 says that `no` is false and
010 is 8, and the parsers follow it to different degrees.

Source: `github.com/ghodss/yaml` and `sigs.k8s.io/yaml` on go-yaml 2.4 (`resolve.go`), whose values
become JSON; jackson-dataformat-yaml 2.17 (`YAMLParser._decodeScalar`) on SnakeYAML's resolver.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from msgspec import Struct

Scalar = tuple[str, str]
"""Its kind (null, bool, int, float or text), and its value as the parser hands it on."""
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


def _spell(words: tuple[str, ...]) -> frozenset[str]:
    """The spellings that YAML 1.1 allows: true, True, TRUE."""
    return frozenset(text for word in words for text in (word, word.capitalize(), word.upper()))


_BOOLS: Mapping[str, str] = {
    **dict.fromkeys(_spell(_TRUE), "true"),
    **dict.fromkeys(_spell(_FALSE), "false"),
}
_GO_BOOLS: Mapping[str, str] = {
    **_BOOLS,
    **{"y": "true", "Y": "true", "n": "false", "N": "false"},
}
_RADIX = re.compile(r"([-+]?)0(b[01]+|x[0-9a-fA-F]+|o?[0-7]+)")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_GO_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_JAVA_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
)
_LONGEST_NUMBER = 80
_BASES = {"b": 2, "x": 16, "o": 8}


def _read_whole(text: str) -> str | None:
    """A whole number in decimal, hexadecimal, binary or octal digits."""
    if _DECIMAL.fullmatch(text):
        # Not through int(), which refuses texts of more than 4,300 digits.
        return "0" if text.strip("+-") == "0" else text.removeprefix("+")
    if len(text) > _LONGEST_NUMBER or (match := _RADIX.fullmatch(text)) is None:
        return None
    digits = match[2]
    base = _BASES.get(digits[0], 8)
    return str(int(match[1] + digits.lstrip("bxo"), base))


def _resolve_go(text: str) -> Scalar:
    if text in _NULLS:
        return "null", ""
    if text in _GO_BOOLS:
        return "bool", _GO_BOOLS[text]
    plain = text.replace("_", "")
    # `_` alone is a text for it, too.
    if plain and (whole := _read_whole(plain)) is not None:
        return "int", whole
    if _GO_FLOAT.fullmatch(plain):
        return "float", _write_json(float(plain))
    return "text", text


def _write_json(number: float) -> str:
    """A number as Go writes it into JSON: 1.0e+9 is 1000000000."""
    if number and not 1e-6 <= abs(number) < 1e21:
        return repr(number)
    plain = f"{Decimal(repr(number)):f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _resolve_java(text: str) -> Scalar:
    if text in _NULLS:
        return "null", ""
    if text in _BOOLS:
        return "bool", _BOOLS[text]
    if "o" not in text and not text.startswith("_"):
        whole = _read_whole(text.replace("_", ""))
        if whole is not None:
            return "int", whole
    if _JAVA_FLOAT.fullmatch(text):
        return "float", _write_double(float(text.replace("_", "")))
    # Times such as 1:30, numbers of base 60 in YAML 1.1, stay texts.
    return "text", text


def _write_double(number: float) -> str:
    """`Double.toString`: 1.0e+9 is 1.0E9."""
    if not math.isfinite(number):
        return repr(number)
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number) if "." in repr(number) else f"{number:.1f}"
    digits, _, exponent = f"{Decimal(repr(number)).normalize():E}".partition("E")
    return f"{digits if '.' in digits else f'{digits}.0'}E{int(exponent)}"


class Dialect(Struct, frozen=True):
    """How the parser of a tool reads plain scalars."""

    resolve: Callable[[str], Scalar]
    keeps_texts: bool = False
    """Where the tool asks for a text, it gets the scalar as it is written."""


DIALECTS: Mapping[str, Dialect] = {
    "strimzi": Dialect(_resolve_go),
    "topicctl": Dialect(_resolve_go),
    # Both look at a tree of JSON, in which the scalars have their types already.
    "jikkou": Dialect(_resolve_java),
    "julieops": Dialect(_resolve_java),
    # It binds fields and maps of texts directly, and Jackson then hands the characters on.
    "kafka-gitops": Dialect(_resolve_java, keeps_texts=True),
}
