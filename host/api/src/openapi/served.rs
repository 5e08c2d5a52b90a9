//! The OpenAPI document as the host serves it.

use std::sync::{Arc, Weak};

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Mutex;
use wattle_graph::failure::code;
use wattle_run::app::App;
use wattle_run::blocking::block_in_place_in_turn;
use wattle_run::caller_id::CallerId;

use super::apps;
use crate::problem::Problem;
use crate::response::SharedBytes;

/// The OpenAPI document of the host and the endpoints of apps. The document is serialized once for
/// the loaded apps, and all responses share the text.
pub(crate) struct ServedDocument {
    /// The document of the host.
    host: Value,
    /// The newest text. While one request serializes a new one, other requests wait.
    cache: Mutex<Option<CachedText>>,
}

struct CachedText {
    /// The apps whose endpoints the text describes. A reloaded app is a new `App`, so the text is
    /// then out of date.
    apps: Vec<Weak<App>>,
    text: Bytes,
}

impl CachedText {
    fn is_of(&self, apps: &[Arc<App>]) -> bool {
        let is_same = |(cached, app): (&Weak<App>, &Arc<App>)| {
            std::ptr::eq(cached.as_ptr(), Arc::as_ptr(app))
        };
        self.apps.len() == apps.len() && self.apps.iter().zip(apps).all(is_same)
    }
}

impl ServedDocument {
    /// Creates the document of a host.
    pub(crate) fn new(host: Value) -> Self {
        Self { host, cache: Mutex::default() }
    }

    /// Responds with the document of the host and these apps.
    pub(crate) async fn respond(&self, apps: &[Arc<App>]) -> Response {
        match self.text(apps).await {
            Ok(text) => {
                let json = HeaderValue::from_static("application/json");
                let mut response = ([(header::CONTENT_TYPE, json)], text).into_response();
                response.extensions_mut().insert(SharedBytes);
                response
            }
            Err(error) => {
                let detail = format!("the OpenAPI document cannot be written: {error}");
                Problem::new(code::INTERNAL, detail).into_response()
            }
        }
    }

    async fn text(&self, apps: &[Arc<App>]) -> serde_json::Result<Bytes> {
        let mut cache = self.cache.lock().await;
        if let Some(cached) = cache.as_ref().filter(|cached| cached.is_of(apps)) {
            return Ok(cached.text.clone());
        }
        // The work counts for no caller, because all callers share the text.
        let serialize = || {
            let mut document = self.host.clone();
            apps::add(&mut document, apps)?;
            serde_json::to_vec(&document)
        };
        let text = Bytes::from(block_in_place_in_turn(CallerId::default(), true, serialize).await?);
        let apps = apps.iter().map(Arc::downgrade).collect();
        *cache = Some(CachedText { apps, text: text.clone() });
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::id::AppName;

    use super::*;

    #[tokio::test]
    async fn document_is_serialized_once_for_the_loaded_apps() {
        let app = |name: &str| Arc::new(App::empty(AppName::new(name).unwrap()));
        let document = ServedDocument::new(json!({ "openapi": "3.1.0" }));
        let apps = [app("a"), app("b")];
        let first = document.text(&apps).await.unwrap();
        assert_eq!(first, r#"{"openapi":"3.1.0"}"#);
        let second = document.text(&apps).await.unwrap();
        assert_eq!(second.as_ptr(), first.as_ptr());
        for others in [&[app("a"), apps[1].clone()][..], &apps[..1]] {
            let text = document.text(others).await.unwrap();
            assert_ne!(text.as_ptr(), first.as_ptr());
        }
        let response = document.respond(&apps).await;
        assert!(response.extensions().get::<SharedBytes>().is_some());
    }
}
