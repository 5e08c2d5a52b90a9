//! Implements `http` with the script.

use crate::failure::Failure;
use crate::http::{Request, Response};
use crate::testing::state::{play, with};

pub(crate) fn send(request: Request) -> Result<Response, Failure> {
    with(|state| state.notes.http.push(request.clone()))?;
    let mut response = play(|state| state.http.clone(), &request, "FakeHost::http")?;
    if response.url.is_empty() {
        response.url = request.url;
    }
    Ok(response)
}

pub(crate) fn send_all(requests: Vec<Request>) -> Vec<Result<Response, Failure>> {
    requests.into_iter().map(send).collect()
}
