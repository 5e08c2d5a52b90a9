//! Transcripts of services as text files, and servers that replay them. A transcript turns a report
//! of an unusual service into a test.
//!
//! ```text
//! # What the case shows.
//! say: call add {"a":1}
//! >>> POST /chat/completions
//! /stream = true
//! /messages/1/content ~ "part of a text"
//! /tools absent
//! header authorization = "Bearer key"
//! <<< 200
//! content-type: text/event-stream
//!
//! data: {"choices":[{"delta":{"content":"caf
//! ~~~
//! é"}}]}
//!
//! ===
//! text: café
//! /state/result = {"total":3}
//! ```
//!
//! Lines before the first `>>>` are comments and keys. Lines after `===` are the expected outcome:
//! keys, and conditions on the resulting JSON value, which begin with `/`. The test defines the
//! meaning of keys. `>>>` begins an exchange with a method, a path below the URL of the case and,
//! for JSON-RPC, the method of the message. Conditions on the body follow. `<<<` begins the
//! response: its status and headers, then its body up to the next mark.
//!
//! A transcript of a program replays JSON-RPC messages over standard input and output. Its
//! exchanges have only the method of the message after `>>>`, and every line of a response body is
//! a message.
//!
//! * An exchange with `>>>` must be requested exactly once, with `>>>?` at most once, with `>>>*`
//!   any number of times.
//! * `~~~` in a body ends a chunk, which is sent separately, without the line break before the
//!   mark. `~~~ drop` ends the connection, and `~~~ exit` ends the program in a transcript of a
//!   program.
//! * `$id` in a response body is the id of the request message, `$call` the id of the last tool
//!   call. In a transcript of a program, the method `answer` matches a message without a method,
//!   which is a response to a request of the program.
//! * `with: file` appends the exchanges of another file of the folder.
//!
//! A request gets the response of the first matching exchange that is not used up. A request
//! without a match gets the status 400, and [`Player::problems`] reports it.

mod parse;
mod player;
mod server;

pub use self::parse::{Case, cases};
pub use self::player::{Answer, Piece, Player};
pub use self::server::Replays;
