"""Answers of exports: results, failures, and exceptions as failures."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from componentize_py_types import Err

from wattle._wire._convert import raw_failure
from wattle.failure import Failure

T = TypeVar("T")

MAX_FRAMES = 20
"""Maximum number of frames in a traceback. The innermost ones tell the most."""

OWN_FILES: set[str] = set()
"""Files of the plugin itself."""

SDK = os.path.dirname(os.path.dirname(__file__))
"""Folder of the SDK, whose frames around the author's function are left out."""


def answer(work: Callable[[], T]) -> T:
    """Returns the result of an export, or raises its failure in the form of the host."""
    try:
        return work()
    except Failure as failure:
        raised = failure
    except BaseException as error:
        raised = failure_of(error)
    raise Err(raw_failure(raised))


def failure_of(error: BaseException) -> Failure:
    """Converts an exception to a failure with its traceback in the details.

    An exception that is no `Failure` is a defect of the plugin.
    """
    own = _without_sdk(error.__traceback__) or error.__traceback__
    told = traceback.TracebackException(type(error), error, own, limit=-MAX_FRAMES)
    # The author's line says more than one of a library that it calls.
    frames = [frame for frame in told.stack if frame.filename in OWN_FILES] or told.stack[-1:]
    _shorten(told)
    text = "".join(told.format_exception_only()).strip()
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    lines = "".join(told.format()).rstrip().split("\n")
    details = {"exception": type(error).__name__, "traceback": lines}
    return Failure.internal(f"{text}{place}", details=details)


def _without_sdk(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(SDK):
        frames = frames.tb_next
    return frames


def _shorten(told: traceback.TracebackException) -> None:
    """Removes the folders of the build from the names of files."""
    for frame in told.stack:
        for folder in sorted(sys.path, key=len, reverse=True):
            if folder and frame.filename.startswith(f"{folder}/"):
                frame.filename = frame.filename.removeprefix(f"{folder}/")
                break
    for cause in (told.__cause__, told.__context__):
        if cause is not None:
            _shorten(cause)
