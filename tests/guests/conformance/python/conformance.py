"""The conformance plugin in Python. `../src/lib.rs` is the same plugin in Rust."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import services  # noqa: F401 - declares the first nodes.
from mashumaro.jsonschema.annotations import Minimum
from wattle import (
    Context,
    Failure,
    Outcome,
    Request,
    Response,
    StreamFormat,
    ToolInfo,
    ToolOutput,
    blob,
    clock,
    emit,
    handler,
    http,
    interrupt,
    llm,
    log,
    manifest,
    memory,
    node,
    random,
    reducer,
    runs,
    settings,
    sql,
    tool,
    tools,
)

Text = Annotated[str, "The text."]
AnyValue = Annotated[Any, "Any value."]


@node
def words(text: Text) -> {"words": Annotated[int, "Number of words."]}:
    """Counts the words of a text."""
    words = len(text.split())
    log.info("counted", words=words)
    emit.custom("counted", {"words": words})
    emit.progress("counted", 0.5)
    return {"words": words}


@node
def echo(value: AnyValue) -> {"value": AnyValue}:
    """Writes the value that it reads."""
    return {"value": value}


@dataclass
class Config:
    ignore: Annotated[list[str], "Words to leave out."] = field(default_factory=list)


@node(config=Config)
def keep(
    context: Context, words: Annotated[list[str], "The words."]
) -> {"kept": Annotated[list[str], "The words that matter."]}:
    """Keeps the words that matter."""
    ignore = context.config(Config).ignore
    return {"kept": [word for word in words if word not in ignore]}


@node
def approve(text: Text) -> {"decision": Annotated[str, "`call` or `ignore`."]}:
    """Asks whether a text may be published."""
    is_approved = interrupt.ask({"ticket": text}, schema=bool)
    return {"decision": "call" if is_approved else "ignore"}


@dataclass
class Guess:
    number: Annotated[int, "A number."]


@node
def ask(
    question: Annotated[str, "The question."],
) -> {
    "answer": Annotated[str, "The text."],
    "number": Annotated[int, "The number of the document."],
}:
    """Asks a model for a text and for a document."""
    text = llm.Request("chat").system("Answer in one word.").user(question).complete().text()
    request = llm.Request("chat", temperature=0, max_output_tokens=100)
    guess = request.user(question).schema(Guess, "guess").complete().structured_as(Guess)
    return {"answer": text, "number": guess.number}


@node
def stream(
    question: Annotated[str, "The question."],
) -> {
    "streamed": Annotated[str, "The text of the pieces."],
    "answer": Annotated[str, "The text of the completion."],
}:
    """Reads a completion in pieces and emits them."""
    events = llm.Request("chat").user(question).stream()
    streamed = ""
    for event in events:
        if event.kind == "text":
            streamed += event.text
        elif event.kind == "restart":
            streamed = ""
        emit.custom("piece", _piece(event))
    return {"streamed": streamed, "answer": events.finish().text()}


def _piece(event: llm.StreamEvent) -> Any:
    if event.kind in ("text", "reasoning"):
        return {event.kind: event.text}
    if event.kind == "tool_call_delta":
        return [event.index, event.name, event.arguments]
    return event.kind if event.kind == "restart" else event.value


@node
def fetch(
    url: Annotated[str, "The URL."],
) -> {
    "status": Annotated[int, "The status of the response."],
    "call": Annotated[int, "The number in the response."],
}:
    """Sends a request."""
    request = http.Request.post(url, idempotency_key="key", timeout_ms=5_000)
    response = request.query("page", "1 2").header("x-mark", "a").json({"n": 1}).send()
    return {"status": response.status, "call": response.json()["call"]}


@node
def batch(
    question: Annotated[str, "The question."],
    url: Annotated[str, "The URL."],
) -> {
    "answers": Annotated[list[Any], "Texts and failures."],
    "responses": Annotated[list[Any], "Bodies and failures."],
}:
    """Calls models and sends requests in batches, whose first requests are invalid."""
    unknown = llm.Request("chat", extra={"candidate": "first"}).user(question)
    completions = llm.complete_all([unknown, llm.Request("chat").user(question)])
    missing = http.Request.post(url, body=blob.BlobRef("none"))
    responses = http.send_all([missing, http.Request.post(url)])
    return {
        "answers": [_result(it, lambda completion: completion.text()) for it in completions],
        "responses": [_result(it, lambda response: response.json()) for it in responses],
    }


def _result(result: Any, output: Callable[[Any], Any]) -> Any:
    if isinstance(result, Failure):
        return {"code": result.code, "message": result.message}
    return {"output": output(result)}


@node
def book(
    name: Annotated[str, "The name."],
) -> {"rows": Annotated[list[Any], "The row."]}:
    """Writes a row in a transaction and reads it."""
    transaction = sql.database("shop").begin()
    insert = "INSERT INTO item (name, price, sold, note) VALUES ($1, $2, $3, $4) RETURNING id"
    returned = transaction.execute(insert, [name, 2.5, True, None]).returned
    select = "SELECT id, name, price, sold, note FROM item WHERE id = $1"
    rows = transaction.query(select, [returned.one().get("id", int)])
    transaction.commit()
    return {"rows": rows.to_json()}


@node
def remember(
    fact: Annotated[str, "The fact."],
) -> {
    "found": Annotated[list[Any], "The documents."],
    "namespaces": Annotated[list[list[str]], "Namespaces with documents."],
    "bytes": Annotated[str, "The stored bytes as text."],
    "refused": Annotated[str, "Code of the failure for a namespace without a grant."],
}:
    """Stores a document and bytes, and finds them."""
    namespace = ["users", "7"]
    memory.put(namespace, "fact", {"text": fact})
    read = memory.get(namespace, "fact")
    searched = memory.Search(["users"], query="tea").run()
    found = [item.value for item in [read, *searched] if item is not None]
    namespaces = memory.list_namespaces(["users"], limit=10)
    stored = blob.get(blob.put(fact.encode(), "text/plain")).decode()
    try:
        memory.put(["others"], "fact", {})
        refused = ""
    except Failure as failure:
        refused = failure.code
    return {"found": found, "namespaces": namespaces, "bytes": stored, "refused": refused}


@node
def both(text: Text) -> {"results": Annotated[list[Any], "Outputs and failures."]}:
    """Calls tools at once: with arguments, with invalid ones, and one that does not exist."""
    calls = [
        tools.Call("count_words", {"text": text}, call_id="a"),
        tools.Call("count_words", {}, call_id="b"),
        tools.Call("count_letters", {}, call_id="c"),
    ]
    results = tools.call_all(calls)
    return {"results": [_result(it, lambda output: output.structured) for it in results]}


@node
def list_tools() -> {"tools": Annotated[list[Any], "The tools."]}:
    """Lists the tools that the plugin may call."""
    return {"tools": [_description(it) for it in tools.list()]}


def _description(info: ToolInfo) -> Any:
    return {
        "name": info.name,
        "description": info.description,
        "arguments_schema": info.arguments_schema,
        "accepts_invalid": info.accepts_invalid,
        "read_only": info.hints().read_only,
        "reference": info.reference(),
    }


@node
def buy(
    amount: Annotated[int, "In cents."],
) -> {"receipt": Annotated[str, "What the tool says."]}:
    """Calls a tool that asks a person."""
    output = tools.Call("pay", {"amount": amount}, call_id="p").call()
    return {"receipt": output.text_content()}


@node
def spread(numbers: Annotated[list[int], "The numbers."]) -> Outcome[None]:
    """Sends a task for each number."""
    outcome = Outcome()
    for number in numbers:
        outcome.send("square", {"number": number})
    return outcome


@node
def square(
    number: Annotated[int, "The number."],
) -> {"squares": Annotated[list[int], "The square."]}:
    """Squares a number."""
    return {"squares": [number * number]}


@node
def total(
    squares: Annotated[list[int], "The squares."],
) -> Outcome[{"squares": Annotated[list[int], "Their sum."]}]:
    """Replaces the squares by their sum and ends."""
    return Outcome({"squares": [sum(squares)]}).overwrite("squares").goto("END")


@node
def fail(
    code: Annotated[str, "The code."],
    message: Annotated[str, "The message."],
    retryable: Annotated[bool, "Whether another attempt may help."],
    details: Annotated[Any, "The details."],
) -> None:
    """Fails as asked."""
    raise Failure(code, message, retryable=retryable, details=details)


@node
def measure() -> {
    "same": Annotated[bool, "Whether the bytes are those before the question."],
    "color": Annotated[str, "A setting."],
}:
    """Reads the clock and random bytes, and asks for the bytes."""
    now = clock.now_ms()
    date = clock.to_zone(now, "Asia/Shanghai").civil.date()
    bytes = random.bytes(8).hex()
    answer = interrupt.ask({"now": now, "date": date, "bytes": bytes}, schema=str)
    return {"same": answer == bytes, "color": settings.require("color", str)}


@tool(read_only=True)
def count_words(text: Text) -> dict[str, int]:
    """Counts the words of a text."""
    return {"words": len(text.split())}


@dataclass
class Decision:
    approved: Annotated[bool, "Whether the person agrees."]


@tool
def pay(amount: Annotated[int, Minimum(1), "In cents."]) -> ToolOutput:
    """Pays an amount, if a person approves."""
    if not interrupt.ask({"amount": amount}, schema=Decision).approved:
        return ToolOutput.error("the payment was not approved")
    return ToolOutput.text("paid").with_update("paid", amount)


@reducer(name="max")
def larger(current: int | None, updates: list[int]) -> int:
    """Keeps the larger number."""
    return max(updates if current is None else [current, *updates])


@dataclass
class Order:
    text: Text


@handler("POST", "/orders/{shop}", body=Order)
def order(request: Request) -> Response:
    """Counts the words of an order."""
    ended = runs.Start("words", {"text": request.json(Order).text}).start_and_wait()
    shop = request.param("shop")
    # The handler also notes the shop at the thread and lists the orders of the shop.
    runs.update_thread(ended.run.thread_id, {"shop": shop})
    page = runs.ThreadSearch("words", metadata={"shop": shop}).run()
    orders = [thread.metadata for thread in page.threads]
    body = {"orders": orders, "shop": shop, "words": ended.state["words"]}
    response = Response.json(201, body)
    return response.with_header("x-mark", "a")


@handler("GET", "/orders/{shop}")
def urgency(request: Request) -> Response:
    """Says how urgent an order is."""
    urgent = request.query("urgent")
    if urgent is None:
        raise Failure.invalid("`urgent` is missing").with_status(422)
    return Response.text(200, f"{request.param('shop')}: {urgent}")


@handler("GET", "/orders/{shop}/events")
def follow(request: Request) -> Response:
    """Streams the events of an order."""
    return Response.hand_off(request.param("shop"), StreamFormat.SSE)


manifest('llm = ["chat"]\n')
