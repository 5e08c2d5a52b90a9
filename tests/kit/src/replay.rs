//! Transcripts of services, replayed: a report of an odd service becomes a text file.
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
//! Lines before the first `>>>` are comments and keys, those after `===` what must come of it: keys, and conditions on
//! the document that comes of it, which begin with `/`. What the keys mean is up to the test. `>>>` begins an
//! exchange: a method, a path below the case's address, and for JSON-RPC the method of the message; in a transcript
//! of a program, the latter alone. Conditions on the body follow. `<<<` begins the answer: its status and headers,
//! then its body up to the next mark. In a transcript of a program every line of the body is a message.
//!
//! * `>>>` is asked exactly once, `>>>?` at most once, `>>>*` any number of times.
//! * `~~~` in a body ends a piece of it, which is sent alone; the line break before the mark is no part of it.
//!   `~~~ drop` ends the connection there, and in a transcript of a program `~~~ exit` ends that.
//! * `$id` in a body is the id of the message that is answered, `$call` that of the last call of a tool. In a
//!   transcript of a program `answer` is an answer to a request of the program.
//! * `with: file` adds the exchanges of another file of the folder behind the case's own.
//!
//! The first exchange that fits and may still be asked is taken. A request that fits none is answered with
//! status 400 and reported by [`Player::problems`].

mod parse;
mod player;
mod server;

pub use self::parse::{Case, cases};
pub use self::player::{Answer, Piece, Player};
pub use self::server::Replays;
