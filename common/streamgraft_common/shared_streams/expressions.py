"""The language of subscriptions and filters: text → syntax tree."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.exceptions import UnexpectedEOF, VisitError

MAX_LENGTH = 4096
"""Characters of an expression."""
MAX_DEPTH = 64
"""Parentheses and negations within each other."""

_GRAMMAR = r"""
?start: either
?either: both ("||" both)*
?both: unary ("&&" unary)*
?unary: "!" unary -> negated | test
?test: operand COMPARISON literal -> compared
    | scalar "in" NAME -> contained
    | "(" either ")"
operand: NAME ["[" INDEX "]"] ["%" INTEGER]
?literal: scalar | "[" scalar ("," scalar)* "]" -> several
?scalar: INTEGER -> integer | FLOAT -> decimal | STRING -> text
INDEX: /\d{1,9}/
INTEGER: /[+-]?\d+/
FLOAT.2: /[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+/
STRING: /"([^"\\\x00-\x1f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/
COMPARISON: "==" | "!=" | "<=" | ">=" | "<" | ">"
NAME: /(?!in\b)[A-Za-z_]\w*/
%ignore /\s+/
"""

Scalar = int | float | str
Comparison = Literal["==", "!=", "<", "<=", ">", ">="]
_LARGEST = 2**63 - 1


class ExpressionError(ValueError):
    """An expression that is not valid; `column` is the place in its text, from 1 on."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(f"column {column}: {problem}")
        self.column = column
        self.problem = problem


@dataclass(frozen=True)
class Compared:
    """`name[index] % modulus comparison value`; index and modulus may be absent."""

    name: str
    comparison: Comparison
    value: Scalar | tuple[Scalar, ...]
    index: int | None = None
    modulus: int | None = None
    column: int = 0


@dataclass(frozen=True)
class Contained:
    """`value in name`: a list has the value."""

    value: Scalar
    name: str
    column: int = 0


@dataclass(frozen=True)
class Negated:
    """`!operand`."""

    operand: "Expression"


@dataclass(frozen=True)
class Both:
    """`first && second && …`."""

    operands: tuple["Expression", ...]


@dataclass(frozen=True)
class Either:
    """`first || second || …`."""

    operands: tuple["Expression", ...]


Expression = Compared | Contained | Negated | Both | Either


@dataclass(frozen=True)
class _Operand:
    name: str
    index: int | None
    modulus: int | None
    column: int


class _Builder(Transformer[Token, Any]):
    """From lark's tree to ours."""

    def integer(self, items: list[Token]) -> int:
        value = int(items[0])
        if not -_LARGEST - 1 <= value <= _LARGEST:
            raise ExpressionError(_column(items[0]), f"{items[0]} does not fit into 64 bits")
        return value

    def decimal(self, items: list[Token]) -> float:
        value = float(items[0])
        if value in (float("inf"), float("-inf")):
            raise ExpressionError(_column(items[0]), f"{items[0]} is too large")
        return value

    def text(self, items: list[Token]) -> str:
        return str(json.loads(items[0]))

    def several(self, items: list[Scalar]) -> tuple[Scalar, ...]:
        return tuple(items)

    def operand(self, items: list[Token | None]) -> _Operand:
        name, index, modulus = items
        assert name is not None
        if modulus is not None and self.integer([modulus]) <= 0:
            raise ExpressionError(_column(modulus), "a modulus is above 0")
        return _Operand(
            str(name),
            None if index is None else int(index),
            None if modulus is None else int(modulus),
            _column(name),
        )

    def compared(self, items: list[Any]) -> Compared:
        operand, comparison, value = items
        if operand.modulus is not None and not isinstance(value, int):
            raise ExpressionError(
                operand.column, "what follows a modulus is compared to an integer"
            )
        if isinstance(value, tuple) and (
            comparison not in ("==", "!=") or operand.index is not None
        ):
            raise ExpressionError(_column(comparison), "lists are compared by == and != only")
        place = operand.index, operand.modulus, operand.column
        return Compared(operand.name, cast(Comparison, str(comparison)), value, *place)

    def contained(self, items: list[Any]) -> Contained:
        value, name = items
        return Contained(value, str(name), _column(name))

    def negated(self, items: list[Any]) -> Negated:
        return Negated(items[0])

    def both(self, items: list[Any]) -> Both:
        return Both(tuple(items))

    def either(self, items: list[Any]) -> Either:
        return Either(tuple(items))


_PARSER = Lark(_GRAMMAR, parser="lalr", maybe_placeholders=True)


@lru_cache(4096)
def parse(text: str) -> Expression:
    """Return the syntax tree of an expression. Raises ExpressionError."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(MAX_LENGTH + 1, f"it has more than {MAX_LENGTH} characters")
    depth = max((_depth(text[:at]) for at, sign in enumerate(text, 1) if sign in "(!"), default=0)
    if depth > MAX_DEPTH:
        raise ExpressionError(1, f"it has more than {MAX_DEPTH} parentheses within each other")
    try:
        expression: Expression = _Builder().transform(_PARSER.parse(text))
        return expression
    except VisitError as error:
        if isinstance(error.orig_exc, ExpressionError):
            raise error.orig_exc from None
        raise
    except UnexpectedInput as error:
        raise _explained(text, error) from None


def _depth(text: str) -> int:
    return text.count("(") + text.count("!") - text.count("!=") - text.count(")")


def _explained(text: str, error: UnexpectedInput) -> ExpressionError:
    end = isinstance(error, UnexpectedEOF) or (
        isinstance(error, UnexpectedToken) and error.token.type == "$END"
    )
    if end:
        return ExpressionError(len(text) + 1, "it ends where something is still to come")
    if isinstance(error, UnexpectedCharacters):
        return ExpressionError(error.column, f"{text[error.pos_in_stream or 0]!r} is not expected")
    assert isinstance(error, UnexpectedToken)
    return ExpressionError(_column(error.token), f"{str(error.token)!r} is not expected here")


def _column(token: Token) -> int:
    """Return the place of a token in the text, from 1 on."""
    return (token.start_pos or 0) + 1
