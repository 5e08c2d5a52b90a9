//! `GET /api/chat/suggestions`: example questions for a page, from the settings.

use wattle_plugin::prelude::{Failure, JsonSchema, Request, Response, Serialize, handler};
use wattle_plugin::web::respond;

use crate::setting;
use crate::web::{Envelope, ErrorEnvelope, ok};

/// Example questions.
#[derive(Serialize, JsonSchema)]
struct Suggestions {
    suggestions: Vec<String>,
}

/// Lists the example questions.
#[handler(GET, "/api/chat/suggestions", returns = Envelope<Suggestions>, error = ErrorEnvelope)]
pub(crate) fn list(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || ok(&Suggestions { suggestions: setting::suggestions()? }))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, json};

    use super::list;
    use crate::testing::host;

    #[test]
    fn suggestions_are_those_of_the_settings() {
        let get = |host: wattle_plugin::testing::FakeHost| {
            let response = host.run(|| list(&Request::new("GET", "/"))).unwrap();
            response.json_body().unwrap()["data"].clone()
        };
        assert_eq!(get(host()), json!({"suggestions": []}));
        let host = host().setting("suggestions", json!(["有多少工单"]));
        assert_eq!(get(host), json!({"suggestions": ["有多少工单"]}));
    }
}
