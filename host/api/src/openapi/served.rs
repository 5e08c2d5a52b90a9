//! The OpenAPI document as clients get it.

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

/// The OpenAPI document of the host and the endpoints of apps. It is written once for the apps that
/// are loaded, and all responses share the text.
pub(crate) struct ServedDocument {
    /// The document of the host.
    host: Value,
    /// The text that was written last. Requests for a new one wait for the first of them.
    written: Mutex<Option<Written>>,
}

struct Written {
    /// The apps with these endpoints. An app that was loaded again is another one.
    apps: Vec<Weak<App>>,
    text: Bytes,
}

impl Written {
    fn has(&self, apps: &[Arc<App>]) -> bool {
        let is_same =
            |(known, app): (&Weak<App>, &Arc<App>)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(app));
        self.apps.len() == apps.len() && self.apps.iter().zip(apps).all(is_same)
    }
}

impl ServedDocument {
    /// Creates the document of a host.
    pub(crate) fn new(host: Value) -> Self {
        Self { host, written: Mutex::default() }
    }

    /// Responds with the document of the host and these apps.
    pub(crate) async fn answer(&self, apps: &[Arc<App>]) -> Response {
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
        let mut written = self.written.lock().await;
        if let Some(written) = written.as_ref().filter(|written| written.has(apps)) {
            return Ok(written.text.clone());
        }
        // No caller is the owner: the first request after an app was loaded writes for all.
        let write = || {
            let mut document = self.host.clone();
            apps::add(&mut document, apps)?;
            serde_json::to_vec(&document)
        };
        let text = Bytes::from(block_in_place_in_turn(CallerId::default(), true, write).await?);
        let apps = apps.iter().map(Arc::downgrade).collect();
        *written = Some(Written { apps, text: text.clone() });
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::id::AppName;

    use super::*;

    #[tokio::test]
    async fn document_is_written_once_for_the_apps_that_are_loaded() {
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
        let response = document.answer(&apps).await;
        assert!(response.extensions().get::<SharedBytes>().is_some());
    }
}
