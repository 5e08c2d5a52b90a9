//! Tests of requirement S3-48 of the app `travel`: aliases of models, and retired models.

use serde_json::{Value, json};
use wattle_model::{ModelConfig, Routes, TenantRoutesConfig};
use wattle_run::ports::model::DiscardDeltas;
use wattle_run::ports::{Caller, Model};

use crate::support::{
    Blobs, ask, assert_no_key, bodies, caller, chat, complete, error_status, json_response, routes,
    server, table,
};

/// Returns a route to `deepseek-chat`, which `aliases` may replace.
fn retired(base: &str, aliases: &Value, route: &Value) -> Value {
    let provider = json!({ "extra": { "top_k": 1, "thinking": { "type": "enabled" } } });
    let mut config = table("openai", base, &provider, route);
    config["routes"]["chat"]["model"] = json!("deepseek-chat");
    config["aliases"] = aliases.clone();
    config
}

fn flash() -> Value {
    let extra = json!({ "thinking": { "type": "disabled" }, "top_p": 0.5 });
    json!({ "deepseek-chat": { "model": "deepseek-v4-flash", "extra": extra } })
}

#[tokio::test]
async fn s3_48_alias_is_called_with_its_extra_fields() {
    let server = server(vec![json_response(&chat("hi"))]).await;
    let route = json!({ "extra": { "top_p": 0.9 } });
    let routes = routes(retired(&server.uri(), &flash(), &route));
    let completion = complete(&routes, &ask("hi")).await.unwrap();
    let sent = bodies(&server).await.remove(0);
    assert_eq!(sent["model"], "deepseek-v4-flash");
    assert_eq!(sent["thinking"], json!({ "type": "disabled" }), "the alias wins");
    assert_eq!((&sent["top_k"], &sent["top_p"]), (&json!(1), &json!(0.9)), "the route wins");
    assert_eq!(completion.attempts[0].model, "deepseek-chat", "as the route names it");
    let info = routes.route(&caller(), "chat").unwrap();
    assert_eq!(info.model, "deepseek-chat");
    assert_eq!(
        routes.substitutions(),
        ["route `chat` calls `deepseek-v4-flash` for `deepseek-chat`, as configured in \
          `[model.aliases]`"]
    );
}

#[tokio::test]
async fn s3_48_alias_applies_to_fallbacks_and_tenants_of_one_provider() {
    let server = server(vec![error_status(503), json_response(&chat("hi"))]).await;
    let mut aliases = flash();
    aliases["deepseek-chat"]["provider"] = json!("second");
    let fallbacks = json!([{ "provider": "second", "model": "deepseek-chat" }]);
    let mut config = retired(&server.uri(), &aliases, &json!({ "fallbacks": fallbacks }));
    config["providers"]["second"] = config["providers"]["first"].clone();
    let config: ModelConfig = serde_json::from_value(config).unwrap();
    let routes = Routes::new(config, &|_| Some("key".to_owned())).unwrap();
    let routes =
        routes.with_tenants(TenantRoutesConfig { file: None, reachable: |_| true }).unwrap();
    complete(&routes, &ask("hi")).await.unwrap();

    let acme = Caller { tenant: Some("acme".to_owned()), ..caller() };
    let own = json!({ "provider": "second", "model": "deepseek-chat", "enable_thinking": true });
    routes.set_route(&acme, "chat", own).await.unwrap();
    routes.complete(&acme, &ask("hi"), &Blobs::default(), &DiscardDeltas).await.unwrap();

    let sent = bodies(&server).await;
    let models: Vec<&Value> = sent.iter().map(|body| &body["model"]).collect();
    assert_eq!(models, ["deepseek-chat", "deepseek-v4-flash", "deepseek-v4-flash"]);
    assert_eq!(sent[2]["thinking"], json!({ "type": "enabled" }), "the tenant overrides it");

    // The candidates share a model, and one of them calls it by its alias.
    let models = ["deepseek-chat", "deepseek-v4-flash"];
    assert_eq!(routes.configured_models("chat"), models);
    assert!(routes.configured_models("missing").is_empty());
}

#[test]
fn s3_48_error_for_an_invalid_alias_names_the_key() {
    let check = |aliases: Value, words: &[&str]| {
        let config = retired("https://example.com/v1", &aliases, &json!({}));
        let config: ModelConfig = serde_json::from_value(config).unwrap();
        let error = Routes::new(config, &|_| None).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    check(json!({ "a": { "model": "b" }, "b": { "model": "c" } }), &["aliases.\"a\"", "`b`"]);
    check(json!({ "a": { "model": "a" } }), &["aliases.\"a\"", "`a` is an alias itself"]);
    check(json!({ "a": { "model": " " } }), &["aliases.\"a\"", "`model` is empty"]);
    check(json!({ "a": { "model": "b", "provider": "x" } }), &["aliases.\"a\"", "`x`"]);
    let own = json!({ "deepseek-chat": { "model": "b", "extra": { "messages": [] } } });
    check(own, &["aliases.\"deepseek-chat\"", "`messages`", "`chat`", "`first`"]);
}

#[tokio::test]
async fn s3_48_environment_variable_replaces_the_model() {
    let server = server(vec![json_response(&chat("hi"))]).await;
    let route = json!({ "model_env": "CHAT_ORCHESTRATION_MODEL" });
    let config: ModelConfig =
        serde_json::from_value(retired(&server.uri(), &flash(), &route)).unwrap();
    for (value, model, told) in [
        (Some("new-1"), "new-1", 1),
        (Some("  "), "deepseek-v4-flash", 1),
        (None, "deepseek-v4-flash", 1),
    ] {
        let env = |name: &str| match name {
            "CHAT_ORCHESTRATION_MODEL" => value.map(str::to_owned),
            _ => Some("key".to_owned()),
        };
        let routes = Routes::new(config.clone(), &env).unwrap();
        complete(&routes, &ask("hi")).await.unwrap();
        assert_eq!(bodies(&server).await.pop().unwrap()["model"], model);
        assert_eq!(routes.substitutions().len(), told, "{:?}", routes.substitutions());
    }
}

#[tokio::test]
async fn s3_48_retired_model_names_the_route_and_the_setting() {
    let gone = server(vec![error_status(404)]).await;
    let fails = async |aliases: Value, route: Value, candidate: Option<u32>| {
        let mut request = ask("hi");
        request.tries.candidate = candidate;
        let routes = routes(retired(&gone.uri(), &aliases, &route));
        let failure = complete(&routes, &request).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("unavailable", false));
        assert_no_key(&failure);
        failure.message
    };
    let plain = fails(json!({}), json!({}), None).await;
    for word in [
        "`deepseek-chat` of provider `first` (route `chat`)",
        "change `model` under `[model.routes.chat]`,",
        "or add an entry for `deepseek-chat` to `[model.aliases]`",
    ] {
        assert!(plain.contains(word), "{plain}");
    }
    let by_env = fails(json!({}), json!({ "model_env": "CHAT_MODEL" }), None).await;
    assert!(by_env.contains("or the environment variable `CHAT_MODEL`"), "{by_env}");
    let aliased = fails(flash(), json!({}), None).await;
    let word = "`deepseek-v4-flash` (for `deepseek-chat`) of provider `first`";
    assert!(aliased.contains(word), "{aliased}");
    assert!(aliased.contains("the entry `deepseek-chat` under `[model.aliases]`"), "{aliased}");
    let fallbacks = json!({ "fallbacks": [{ "provider": "first", "model": "old" }] });
    let fallback = fails(json!({}), fallbacks, Some(1)).await;
    assert!(fallback.contains("`model` of fallback 1 under `[model.routes.chat]`"), "{fallback}");
}
