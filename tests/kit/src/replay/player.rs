//! Selection of the response to a request.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::parse::{Case, Condition, Exchange, Selector, Test, Times};

/// A case that is being replayed.
#[derive(Debug)]
pub struct Player {
    name: String,
    exchanges: Vec<Exchange>,
    played: Mutex<Played>,
}

#[derive(Debug, Default)]
struct Played {
    /// Number of requests for each exchange.
    counts: Vec<usize>,
    /// Requests without a matching exchange.
    misfits: Vec<String>,
    /// The id of the last tool call.
    call: Value,
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// HTTP headers.
    pub headers: Vec<(String, String)>,
    /// The body in chunks.
    pub body: Vec<Piece>,
}

/// A chunk of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that are sent separately.
    Bytes(String),
    /// The end of the connection or of the program.
    End,
}

impl Player {
    /// Starts the replay of a case.
    pub fn new(case: &Case) -> Self {
        let counts = vec![0; case.exchanges.len()];
        let played = Mutex::new(Played { counts, ..Played::default() });
        Self { name: case.name.clone(), exchanges: case.exchanges.clone(), played }
    }

    /// Returns the response to an HTTP request.
    pub fn answer(
        &self,
        method: &str,
        path: &str,
        header: &dyn Fn(&str) -> Option<String>,
        body: &Value,
    ) -> Answer {
        let rpc = body.get("method").and_then(Value::as_str);
        let head: Vec<&str> = [method, path].into_iter().chain(rpc).collect();
        self.find(&head, header, body).unwrap_or_else(|reason| {
            // MCP clients try to open a stream of events with GET and end their session with
            // DELETE. Both are optional.
            if method == "GET" || method == "DELETE" {
                return Answer { status: 405, headers: Vec::new(), body: Vec::new() };
            }
            let text = format!("`{}` has no response to {}: {reason}", self.name, head.join(" "));
            self.played().misfits.push(format!("{text}: {body}"));
            let body = serde_json::json!({ "error": { "message": text } }).to_string();
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            Answer { status: 400, headers, body: vec![Piece::Bytes(body)] }
        })
    }

    /// Returns the messages that a program writes after a message. Empty if no exchange matches.
    pub fn lines(&self, message: &Value) -> Vec<Piece> {
        let method = message.get("method").and_then(Value::as_str).unwrap_or("answer");
        self.find(&[method], &|_| None, message).map(|answer| answer.body).unwrap_or_default()
    }

    /// Returns the requests without a matching exchange, and the required exchanges that were not
    /// requested.
    pub fn problems(&self) -> Vec<String> {
        let played = self.played();
        let unasked = self.exchanges.iter().zip(&played.counts);
        let unasked = unasked.filter(|(it, count)| it.times == Times::Once && **count == 0);
        let unasked = unasked.map(|(it, _)| format!("no request for {}", it.head.join(" ")));
        played.misfits.iter().cloned().chain(unasked).collect()
    }

    fn find(
        &self,
        head: &[&str],
        header: &dyn Fn(&str) -> Option<String>,
        body: &Value,
    ) -> Result<Answer, String> {
        let mut played = self.played();
        let id = body.get("id").cloned().unwrap_or_default();
        if body.get("method").is_some_and(|method| method == "tools/call") {
            played.call = id.clone();
        }
        let played = &mut *played;
        let mut reason = "no exchange with this method and path is left".to_owned();
        for (exchange, count) in self.exchanges.iter().zip(&mut played.counts) {
            let is_left = exchange.times == Times::Any || *count == 0;
            // An exchange without a JSON-RPC method matches every method.
            if !is_left || !head.iter().zip(&exchange.head).all(|(is, must)| is == must) {
                continue;
            }
            if head.len() < exchange.head.len() {
                continue;
            }
            if let Some(broken) = exchange.conditions.iter().find(|it| !it.holds(header, body)) {
                reason = format!("{broken:?} is not met");
                continue;
            }
            *count += 1;
            return Ok(exchange.answer(&id, &played.call));
        }
        Err(reason)
    }

    fn played(&self) -> std::sync::MutexGuard<'_, Played> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condition {
    pub(super) fn holds(&self, header: &dyn Fn(&str) -> Option<String>, body: &Value) -> bool {
        let value = match &self.selector {
            Selector::Pointer(pointer) => body.pointer(pointer).cloned(),
            Selector::Header(name) => header(name).map(Value::String),
        };
        match (&self.test, value) {
            (Test::Is(expected), Some(value)) => *expected == value,
            (Test::Has(part), Some(Value::String(text))) => text.contains(part),
            (Test::Has(part), Some(value)) => value.to_string().contains(part),
            (Test::Absent, value) => value.is_none(),
            (Test::Is(_) | Test::Has(_), None) => false,
        }
    }
}

impl Exchange {
    fn answer(&self, id: &Value, call: &Value) -> Answer {
        let (id, call) = (id.to_string(), call.to_string());
        let (mut body, mut piece) = (Vec::new(), String::new());
        for line in &self.body {
            match line.strip_prefix("~~~").map(str::trim) {
                Some(what) => {
                    // The line break before the mark belongs to the mark.
                    let text = std::mem::take(&mut piece);
                    let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
                    if !text.is_empty() {
                        body.push(Piece::Bytes(text));
                    }
                    if !what.is_empty() {
                        body.push(Piece::End);
                    }
                }
                None => {
                    piece.push_str(&line.replace("$id", &id).replace("$call", &call));
                    piece.push('\n');
                }
            }
        }
        if !piece.is_empty() {
            body.push(Piece::Bytes(piece));
        }
        Answer { status: self.status, headers: self.headers.clone(), body }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn player(text: &str) -> Player {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("case.txt");
        std::fs::write(&path, text).unwrap();
        Player::new(&Case::read(&path).unwrap())
    }

    #[test]
    fn the_first_matching_exchange_is_used_once() {
        let player = player(
            ">>> POST /x\n/a = 1\n<<< 201\n\none\n>>>* POST /x\n<<<\n\n{\"id\":$id,\n~~~\n\"b\":2}\n~~~ drop\n",
        );
        let ask = |body: Value| player.answer("POST", "/x", &|_| None, &body);
        assert_eq!(player.problems(), ["no request for POST /x"]);
        let pieces = |text: &[&str]| -> Vec<Piece> {
            text.iter().map(|text| Piece::Bytes((*text).to_owned())).collect()
        };
        assert_eq!(
            ask(json!({ "a": 1 })),
            Answer { status: 201, headers: vec![], body: pieces(&["one\n"]) }
        );
        let mut body = pieces(&["{\"id\":\"q\",", "\"b\":2}"]);
        body.push(Piece::End);
        assert_eq!(ask(json!({ "a": 1, "id": "q" })).body, body);
        assert!(player.problems().is_empty());
        let answer = player.answer("POST", "/y", &|_| None, &json!({}));
        assert_eq!((answer.status, player.problems().len()), (400, 1));
    }

    #[test]
    fn messages_are_matched_by_their_method() {
        let player = player(">>> tools/list\n<<<\n\n{\"id\":$id}\n>>>* ping\n<<<\n\n~~~ exit\n");
        let lines = player.lines(&json!({ "method": "tools/list", "id": 7 }));
        assert_eq!(lines, [Piece::Bytes("{\"id\":7}\n".into())]);
        assert_eq!(player.lines(&json!({ "method": "ping" })), [Piece::End]);
        assert!(player.lines(&json!({ "method": "other" })).is_empty());
    }
}
