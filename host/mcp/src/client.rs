//! The client side of a session: lists and calls tools, and passes elicitations to their calls.

#![expect(
    deprecated,
    reason = "current servers still use the deprecated methods for logging, roots and sampling"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationCapability,
    ErrorCode, FormElicitationCapability, Implementation, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParam, ProtocolVersion,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tracing::Level;
use wattle_graph::elicitation::ElicitedQuestion;
use wattle_run::meter::WorkOwner;

use crate::calls::{Calls, ElicitationAnswer};
use crate::elicitation::{ELICITATION_METHOD, form_question};
use crate::sanitizer::Sanitizer;

/// Client name in the handshake.
const NAME: &str = "wattle";

/// Counts the `tools/list_changed` notifications of a server. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolListGeneration(Arc<AtomicU64>);

impl ToolListGeneration {
    pub(crate) fn current(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn increment(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Set once a server has sent an elicitation that does not identify its call. Clones share the
/// flag.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnscopedElicitations(Arc<AtomicBool>);

impl UnscopedElicitations {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Client handler of a session. Passes elicitations to their calls and refuses all other requests
/// of the server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    sanitizer: Sanitizer,
    generation: ToolListGeneration,
    unscoped_elicitations: UnscopedElicitations,
    calls: Calls,
}

impl Client {
    pub(crate) fn new(
        sanitizer: Sanitizer,
        generation: ToolListGeneration,
        unscoped_elicitations: UnscopedElicitations,
    ) -> Self {
        Self { sanitizer, generation, unscoped_elicitations, calls: Calls::default() }
    }

    /// Returns a copy for another session.
    pub(crate) fn for_new_session(&self) -> Self {
        Self { calls: Calls::default(), ..self.clone() }
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns the owner of work to which the work on messages of the server is counted.
    pub(crate) fn work_owner(&self) -> WorkOwner {
        self.sanitizer.work_owner()
    }

    /// Refuses a request for a feature that this host does not offer. An invented result is not an
    /// option, because the server would take it for the decision of a person.
    fn refuse_feature(&self, what: &str) -> ErrorData {
        let line = format!("an MCP server asks for {what}, which this host does not offer");
        self.sanitizer.log(Level::WARN, &line);
        let message = format!("this client does not offer {what}");
        ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
    }

    /// Refuses an elicitation.
    fn refuse_elicitation(&self, reason: &str) -> ErrorData {
        let line = format!("an elicitation of an MCP server is refused: {reason}");
        self.sanitizer.log(Level::WARN, &line);
        ErrorData::internal_error(format!("this client refuses the elicitation: {reason}"), None)
    }

    /// Passes an elicitation to its call, once the call is known.
    async fn elicit(
        &self,
        question: ElicitedQuestion,
        context: &RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let origin = context.extensions.get::<InboundStreamOrigin>();
        let is_in_response = matches!(origin, Some(InboundStreamOrigin::OutboundRequest(_)));
        // An elicitation that arrives while no call is in progress does not show whether the server
        // identifies calls.
        if !is_in_response && !self.calls.are_idle() {
            self.unscoped_elicitations.set();
        }
        let asked = async {
            let asking = self
                .calls
                .find_call(origin)
                .await
                .map_err(|reason| self.refuse_elicitation(reason))?;
            let Some(ElicitationAnswer { answer, permit }) = asking.pass(question).await else {
                return Err(self.refuse_elicitation("its call has ended"));
            };
            self.calls.set_answer_permit(context.id.clone(), permit);
            answer
        };
        tokio::select! {
            answer = asked => answer,
            () = context.ct.cancelled() => Err(self.refuse_elicitation("the server has cancelled it")),
            () = self.calls.connection_lost().cancelled() => Err(self.refuse_elicitation("the connection is lost")),
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        let mut offered = ClientCapabilities::default();
        offered.elicitation =
            Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        // The handshake announces this protocol version. The stateless protocol has no handshake.
        let version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        ClientConfig::new(offered, ours).with_protocol_version(version)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(self.refuse_feature("sampling"))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(self.refuse_feature("roots"))
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        match form_question(&asked) {
            Some(question) => self.elicit(question, &context).await,
            None => Err(self.refuse_feature("elicitation by URL")),
        }
    }

    /// Handles requests that `rmcp` does not know or cannot parse.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == ELICITATION_METHOD {
            return Err(self
                .refuse_elicitation("its form has a field of a kind that this host cannot show"));
        }
        let method = self.sanitizer.quote(&request.method);
        Err(self.refuse_feature(&format!("`{method}`")))
    }

    async fn on_logging_message(
        &self,
        said: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let level = match said.level {
            LoggingLevel::Debug => Level::DEBUG,
            LoggingLevel::Info | LoggingLevel::Notice => Level::INFO,
            _ => Level::WARN,
        };
        self.sanitizer.log_document(level, &said.data);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.generation.increment();
    }
}
