//! Web handlers: one that runs a graph, one that can fail, and one that hands a stream off.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, StreamFormat, Value, handler, json, runs,
};

#[derive(Debug, Deserialize, JsonSchema)]
struct Order {
    /// The text.
    text: String,
}

/// Counts the words of an order.
// It also notes the shop at the thread and lists the orders of the shop.
#[handler(POST, "/orders/{shop}", body = Order)]
pub(crate) fn order(request: &Request) -> Result<Response, Failure> {
    let order: Order = request.json()?;
    let start = runs::Start::graph("words").input(json!({ "text": order.text }));
    let ended = start.start_and_wait()?;
    let shop: String = request.param("shop")?;
    runs::update_thread(&ended.run.thread_id, json!({ "shop": shop }))?;
    let of_shop = runs::ThreadSearch::all().graph("words").metadata(json!({ "shop": shop }));
    let orders: Vec<Value> =
        of_shop.run()?.threads.into_iter().map(|thread| thread.metadata).collect();
    let body = json!({ "orders": orders, "shop": shop, "words": ended.state["words"] });
    let response = Response::json(201, &body)?;
    Ok(response.with_header("x-mark", "a"))
}

/// Says how urgent an order is.
#[handler(GET, "/orders/{shop}")]
pub(crate) fn urgency(request: &Request) -> Result<Response, Failure> {
    let urgent = request.query("urgent");
    let urgent = urgent.ok_or_else(|| Failure::invalid("`urgent` is missing").with_status(422))?;
    let shop: String = request.param("shop")?;
    Ok(Response::text(200, format!("{shop}: {urgent}")))
}

/// Streams the events of an order.
#[handler(GET, "/orders/{shop}/events")]
pub(crate) fn follow(request: &Request) -> Result<Response, Failure> {
    let thread_id: String = request.param("shop")?;
    Ok(Response::hand_off(thread_id, StreamFormat::Sse))
}
