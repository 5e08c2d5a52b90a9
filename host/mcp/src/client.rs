//! What we are to a server: a client that lists and calls tools, and does nothing for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

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

/// Our side of a session. Requests of the server are refused by what the trait does by default.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    changes: Changes,
}

impl Client {
    pub(crate) fn new(changes: Changes) -> Self {
        Self { changes }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), ours)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.one_more();
    }
}
