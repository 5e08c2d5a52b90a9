//! What we are to a server: a client that lists and calls tools, and answers nothing in a person's name.

#![expect(deprecated, reason = "servers of today log through the protocol and ask for roots")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
    ErrorCode, FormElicitationCapability, Implementation, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};

use crate::speaker::Speaker;

/// How we call ourselves.
const NAME: &str = "wattle";

/// Counts how often a server said that its tools are others now; clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Arc<AtomicU64>);

impl Changes {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Our side of a session. Every request of the server is refused.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    speaker: Speaker,
    changes: Changes,
}

impl Client {
    pub(crate) fn new(speaker: Speaker, changes: Changes) -> Self {
        Self { speaker, changes }
    }

    /// What this host does not offer. An answer made up here would pass for a person's.
    fn refuse(&self, what: &str) -> ErrorData {
        tracing::warn!(
            server = self.speaker.name(),
            "an MCP server asks for {what}, which this host does not offer"
        );
        let message = format!("this client does not offer {what}");
        ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        let mut offered = ClientCapabilities::default();
        offered.elicitation =
            Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        ClientConfig::new(offered, ours)
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(self.refuse("roots"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(self.refuse("answers of a person"))
    }

    async fn on_logging_message(
        &self,
        said: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = match &said.data {
            serde_json::Value::String(text) => self.speaker.quote(text),
            other => self.speaker.quote(&other.to_string()),
        };
        let server = self.speaker.name();
        match said.level {
            LoggingLevel::Debug => tracing::debug!(server, "{text}"),
            LoggingLevel::Info | LoggingLevel::Notice => tracing::info!(server, "{text}"),
            _ => tracing::warn!(server, "{text}"),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.one_more();
    }
}
