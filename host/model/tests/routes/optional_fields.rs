//! Optional fields that services reject.

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::{ask, bodies, caller, chat, complete, json_response, routes, server, table};

fn rejection(message: &str) -> ResponseTemplate {
    let error = json!({ "message": message, "type": "invalid_request_error" });
    ResponseTemplate::new(400).set_body_json(json!({ "error": error }))
}

/// Returns which of these fields each request has.
fn sent<const N: usize>(bodies: &[Value], names: [&str; N]) -> Vec<[bool; N]> {
    bodies.iter().map(|body| names.map(|name| body.get(name).is_some())).collect()
}

#[tokio::test]
async fn rejected_fields_are_left_out_or_renamed_in_later_requests() {
    let server = server(vec![
        rejection(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        ),
        rejection(
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the \
             default (1) value is supported.",
        ),
        json_response(&chat("hi")),
    ])
    .await;
    let route = json!({ "temperature": 0.5, "max_output_tokens": 7 });
    let routes = routes(table("openai", &server.uri(), &json!({}), &route));
    assert!(routes.rejection_notes(&caller(), "chat").is_empty());
    for _ in 0..2 {
        complete(&routes, &ask("hi")).await.unwrap();
    }
    let bodies = bodies(&server).await;
    let names = ["max_tokens", "max_completion_tokens", "temperature"];
    let expected =
        [[true, false, true], [false, true, true], [false, true, false], [false, true, false]];
    assert_eq!(sent(&bodies, names), expected);
    assert_eq!(bodies[3]["max_completion_tokens"], 7);
    let expected = [
        "model `m-1` of `first`: requests have `max_completion_tokens` in place of `max_tokens`, \
         which the service rejects",
        "model `m-1` of `first`: requests have no `temperature`, which the service rejects",
    ];
    assert_eq!(routes.rejection_notes(&caller(), "chat"), expected);
    assert!(routes.rejection_notes(&caller(), "other").is_empty());
}

#[tokio::test]
async fn rejected_temperature_is_left_out_for_anthropic() {
    let content = json!([{ "type": "text", "text": "hi" }]);
    let answer = json!({ "model": "m", "content": content, "stop_reason": "end_turn" });
    let server = server(vec![
        rejection("`temperature` is deprecated for this model."),
        json_response(&answer),
    ])
    .await;
    let route = json!({ "temperature": 0.5 });
    let routes = routes(table("anthropic", &server.uri(), &json!({}), &route));
    for _ in 0..2 {
        complete(&routes, &ask("hi")).await.unwrap();
    }
    let bodies = bodies(&server).await;
    assert_eq!(sent(&bodies, ["temperature"]), [[true], [false], [false]]);
}

#[tokio::test]
async fn rejected_values_of_fields_are_failures() {
    for message in [
        "max_tokens is too large: 7. This model supports at most 5 completion tokens.",
        "temperature must be between 0 and 0.4",
        "Unsupported parameter: 'seed' is not supported with this model.",
    ] {
        let server = server(vec![rejection(message)]).await;
        let route = json!({ "temperature": 0.5, "max_output_tokens": 7 });
        let routes = routes(table("openai", &server.uri(), &json!({}), &route));
        let failure = complete(&routes, &ask("hi")).await.unwrap_err();
        assert_eq!(failure.code, "invalid", "{message}");
        assert_eq!(bodies(&server).await.len(), 1, "{message}");
    }
}
