//! Services that reject `stream_options`.
//!
//! In OpenAI's format, a stream has usage only if the request has `stream_options`. Some services
//! do not know this field and reject the request. The host then sends the request without the
//! field, and leaves the field out of later requests for the same model.

use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;

use crate::provider::error::rejection_words;
use crate::provider::rejections::Rejections;

/// The name of the field.
const FIELD: &str = "stream_options";

/// The models of one provider whose service rejects the field. A gateway has several services.
#[derive(Debug, Default)]
pub(super) struct StreamOptions {
    rejected_for: Rejections<()>,
}

impl StreamOptions {
    /// Returns whether requests for a model have the field.
    pub(super) fn are_sent(&self, model: &str) -> bool {
        self.rejected_for.accepted(|| Digest::of(model.as_bytes())).is_none()
    }

    /// Leaves the field out of later requests for a model, because a request without the field has
    /// succeeded.
    pub(super) fn leave_out(&self, provider: &str, model: &str) {
        if self.rejected_for.remember(Digest::of(model.as_bytes()), ()) {
            tracing::info!(
                provider,
                model,
                "requests have no `stream_options`, which the service rejects; usage of streams \
                 may be missing"
            );
        }
    }
}

/// Returns whether a service rejects a request and names the field.
pub(super) fn are_rejected(failure: &Failure) -> bool {
    rejection_words(failure).is_some_and(|words| words.contains(FIELD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::rejections::MAX_REJECTIONS;

    #[test]
    fn models_whose_requests_have_no_options_are_bounded() {
        let options = StreamOptions::default();
        assert!(options.are_sent("m"));
        options.leave_out("p", "m");
        assert!(!options.are_sent("m"));
        for number in 0..MAX_REJECTIONS {
            options.leave_out("p", &number.to_string());
        }
        assert!(options.are_sent("m"), "it is forgotten");
        assert!(!options.are_sent(&(MAX_REJECTIONS - 1).to_string()));
    }
}
