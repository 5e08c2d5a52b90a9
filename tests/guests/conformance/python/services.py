"""Nodes and a handler that call the host for settings, pictures, other graphs and tenants."""

from collections.abc import Callable
from typing import Annotated, Any

from wattle import (
    Context,
    Failure,
    Request,
    Response,
    blob,
    handler,
    llm,
    node,
    runs,
    settings,
    tenants,
)


@node
def read_settings() -> {
    "color": Annotated[str, "A setting."],
    "language": Annotated[str, "A setting with a default."],
    "missing": Annotated[str, "Code of the failure for a setting that is not set."],
    "all": Annotated[Any, "All settings."],
}:
    """Reads the settings of the app."""
    return {
        "color": settings.require("color", str),
        "language": settings.text_or("language", "en"),
        "missing": _code_of(lambda: settings.require("shape", str)),
        "all": settings.all(),
    }


def _code_of(call: Callable[[], Any]) -> str:
    """Returns the code of the failure of a call, or an empty text."""
    try:
        call()
    except Failure as failure:
        return failure.code
    return ""


@node
def draw(
    prompt: Annotated[str, "The prompt."],
) -> {
    "picture": Annotated[Any, "Type, size and bytes of the picture."],
    "is_linked": Annotated[bool, "Whether the picture comes with the link of its blob."],
    "refused": Annotated[str, "Code of the failure for a reference to no blob."],
}:
    """Generates a picture and reads it."""
    [image] = llm.generate_images(llm.ImageRequest("chat", prompt))
    info = blob.stat(image.blob)
    picture = {
        "media_type": info.media_type,
        "size": info.size,
        "start": blob.get_range(image.blob, 0, 5).decode(),
        "text": blob.get(image.blob).decode(),
    }
    is_linked = image.link() == blob.link(image.blob)
    refused = _code_of(lambda: blob.stat(blob.BlobRef("none")))
    return {"picture": picture, "is_linked": is_linked, "refused": refused}


@node
def delegate(
    text: Annotated[str, "The text."],
) -> {
    "outcomes": Annotated[list[Any], "States of graphs, and codes of failures."],
    "refused": Annotated[str, "Code of the failure for the list of threads."],
}:
    """Runs three graphs: one that completes, one that fails, and one that asks."""
    fault = {
        "code": "sold-out",
        "message": "there are no seats",
        "retryable": False,
        "details": {"seats": 0},
    }
    outcomes = [
        _outcome("words", {"text": text}),
        _outcome("fail", fault),
        _outcome("approve", {"text": text}),
    ]
    return {"outcomes": outcomes, "refused": _code_of(runs.ThreadSearch("words").run)}


def _outcome(graph: str, input: dict[str, Any]) -> Any:
    ended = runs.Start(graph, input).start_and_wait()
    failure = ended.outcome.failure
    return ended.state if failure is None else {"code": failure.code}


@node
def whose(
    context: Context,
) -> {
    "tenant": Annotated[str, "The tenant."],
    "refused": Annotated[str, "Code of the failure for a route of the tenant."],
}:
    """Names the tenant of the run."""
    refused = _code_of(lambda: tenants.get_route("chat"))
    return {"tenant": context.tenant or "", "refused": refused}


@handler("PUT", "/models/{route}")
def own_model(request: Request) -> Response:
    """Gives the tenant a model of its own, and takes it back."""
    route = request.param("route")
    tenants.set_route(route, request.json())
    own = tenants.get_route(route)
    tenants.remove_route(route)
    removed = tenants.get_route(route)
    return Response.json(200, {"own": own, "removed": removed, "tenant": request.tenant})
