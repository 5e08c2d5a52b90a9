"""Interrupts: a node asks a person or another party, and continues with the answer.

Until the answer arrives, the run is interrupted: the host unwinds the plugin and frees its memory.
When the answer arrives, the host executes the node again from its journal. Code after `ask`
therefore runs once, and calls before it take effect once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, overload

from wattle import _host, _schema

T = TypeVar("T")


@dataclass
class Question:
    """The question of an interrupt."""

    payload: Any
    """Payload to show to the person."""
    response_schema: Any = None
    """JSON Schema for the answer.

    The host rejects an answer that violates the schema, and the interrupt remains pending. `None`
    accepts any answer.
    """
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def answered_by(self, of: Any) -> Self:
        """Accepts only answers that match the schema of a type."""
        self.response_schema = _schema.codec(of).schema
        return self

    def ask(self) -> Any:
        """Raises the interrupt and returns its answer."""
        return _host.interface("interrupt").ask(self)


@overload
def ask(payload: Any, schema: type[T]) -> T: ...


@overload
def ask(payload: Any, schema: Any = None) -> Any: ...


def ask(payload: Any, schema: Any = None) -> Any:
    """Raises an interrupt and returns its answer as a type.

    The host rejects an answer that violates the schema of the type, and the interrupt remains
    pending. Without a type, any answer is accepted.
    """
    if schema is None:
        return Question(payload).ask()
    return _schema.decode("the answer", schema, Question(payload).answered_by(schema).ask())
