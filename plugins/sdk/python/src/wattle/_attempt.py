"""Attempts with the candidates of a route, until a completion passes the checks of a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

from wattle import code as codes
from wattle import log
from wattle._completion import Attempt, Completion, attempts_in
from wattle._whitespace import words_of
from wattle.failure import Failure, detail_of

TASK_FAILED = "task-failed"
"""Code of the failure of a `Task` for which no candidate made a completion that passes."""

REASONS = 12
"""Maximum number of reasons in a request. A model corrects a few at a time."""

REASON_CHARS = 300
"""Maximum number of characters of one reason. Some repeat the text that they are about."""

T = TypeVar("T")


class Refusal(Exception):
    """The reasons why the check of a `Task` refuses a completion. The model gets them."""

    reasons: list[str]
    """The reasons, one sentence each."""

    def __init__(self, *reasons: str) -> None:
        """Creates a refusal with its reasons, one sentence each."""
        super().__init__(*reasons)
        self.reasons = list(reasons)


@dataclass(frozen=True)
class Checked(Generic[T]):
    """A value that passed the checks of a `Task`."""

    value: T
    """The value that the check returned."""
    model: str
    """The model of the completion, as `provider:model`."""
    attempts: int
    """Number of attempts with this model."""

    def origin(self) -> str:
        """Returns the model with its attempts, as `provider:model (attempts=n)`."""
        return f"{self.model} (attempts={self.attempts})"


@dataclass
class GaveUp:
    """The failure of one candidate."""

    model: str
    """`provider:model`."""
    attempts: int
    """Number of attempts."""
    errors: list[str]
    """Reasons of the last attempt."""

    def sentence(self) -> str:
        """Describes the failure in one line."""
        return f"`{self.model}` (attempts={self.attempts}): {'; '.join(self.errors)}"


@dataclass
class Asked(Generic[T]):
    """What the attempts need of a task."""

    name: str
    """Name of the task."""
    models: list[str]
    """The name of each candidate before the host reports it."""
    allowed: int
    """Maximum number of attempts with each candidate."""
    complete: Callable[[int, int, list[str]], Completion]
    """Makes a request.

    Takes the number of the candidate, the number of retries of the host, and the reasons against
    the last completion.
    """
    read: Callable[[Completion], T]
    """Returns the value of a completion, or raises the `Refusal`."""
    reasons: list[str]
    """The reasons against the last completion, of any candidate."""


def run(asked: Asked[T]) -> Checked[T]:
    """Calls the candidates one after the other."""
    failed: list[GaveUp] = []
    for number in range(len(asked.models)):
        result = _call(asked, number)
        if isinstance(result, Checked):
            return result
        log.warn(f"task `{asked.name}`: {result.sentence()}")
        failed.append(result)
    sentences = " | ".join(it.sentence() for it in failed)
    raise Failure(
        TASK_FAILED,
        f"no model could do task `{asked.name}`: {sentences}",
        details={"task": asked.name, "models": [asdict(it) for it in failed]},
    )


def bounded(reasons: list[str]) -> list[str]:
    """Returns the first reasons, each on one line and of limited length."""
    return [" ".join(words_of(it))[:REASON_CHARS] for it in reasons[:REASONS]]


def _call(asked: Asked[T], number: int) -> Checked[T] | GaveUp:
    """Calls one candidate until a completion passes or no attempt is left."""
    attempts, model = 0, asked.models[number]
    while True:
        result = _settled(asked, number, asked.allowed - attempts - 1)
        tried = _reported(result)
        attempts += max(sum(it.tries for it in tried), 1)
        if tried:
            model = f"{tried[-1].provider}:{tried[-1].model}"
        is_over = False
        if isinstance(result, Failure):
            reasons = [line for line in result.message.split("\n") if words_of(line)]
            is_refused = result.refused_completion() is not None
            is_over = not is_refused and not _is_transient(result)
        else:
            try:
                return Checked(asked.read(result), model, attempts)
            except Refusal as refusal:
                reasons, is_refused = refusal.reasons, True
        if is_refused:
            asked.reasons = reasons
        if is_over or attempts >= asked.allowed:
            return GaveUp(model, attempts, bounded(reasons))


def _settled(asked: Asked[T], number: int, retries: int) -> Completion | Failure:
    """Makes a request. Raises `cancelled`, after which no request may be sent."""
    try:
        return asked.complete(number, retries, asked.reasons)
    except Failure as failure:
        if failure.code == codes.CANCELLED:
            raise
        return failure


def _reported(result: Completion | Failure) -> list[Attempt]:
    """Returns the attempts that the host reports with a completion or a failure."""
    if isinstance(result, Completion):
        return result.attempts()
    return attempts_in(detail_of(result, "attempts"))


def _is_transient(failure: Failure) -> bool:
    """Returns true if the same request can succeed now.

    If a provider demands a longer delay than the host accepts, the next candidate follows.
    """
    return failure.retryable and detail_of(failure, "retry_after_ms") is None
