//! Web handlers that wait, or that call the host without end.

use std::hint::black_box;

use wattle_plugin::prelude::{Failure, Request, Response, clock, handler, http};
use wattle_plugin::runs::ThreadSearch;

/// Timeout of the request that `wait` sends, in milliseconds: the longest that the host allows.
const TIMEOUT_MS: u32 = 120_000;

/// Sends a GET request to the query parameter `url`, whose response is held back.
#[handler(GET, "/wait")]
pub(crate) fn wait(request: &Request) -> Result<Response, Failure> {
    let url = request.query("url").unwrap_or_default();
    let response = http::Request::get(url).timeout_ms(TIMEOUT_MS).send()?;
    Ok(Response::text(200, response.text()))
}

/// Reads the clock without end.
#[handler(GET, "/clock")]
pub(crate) fn read_clock(_request: &Request) -> Result<Response, Failure> {
    loop {
        black_box(clock::now_ms());
    }
}

/// Searches for threads without end.
#[handler(GET, "/threads")]
pub(crate) fn search(_request: &Request) -> Result<Response, Failure> {
    loop {
        ThreadSearch::all().text("no such thread").run()?;
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::http;
    use wattle_plugin::prelude::{Failure, Request};
    use wattle_plugin::testing::FakeHost;

    use super::wait;

    #[test]
    fn a_handler_waits_for_the_service_that_the_request_names() -> Result<(), Failure> {
        let host = FakeHost::new().http(|_| Ok(http::Response::new(200, "there")));
        let request = Request::new("GET", "/wait").with_query("url", "http://a");
        let response = host.run(|| wait(&request))?;
        assert_eq!(response.status, 200);
        assert_eq!(host.http_requests()[0].url, "http://a");
        Ok(())
    }
}
