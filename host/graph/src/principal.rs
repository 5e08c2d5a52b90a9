//! Principals: the authors of the requests that the event log records.
//!
//! An event that a request causes contains the principal of the request: an answer, an edit, a
//! fork, a settled call, a cancelled run, the start of a run. The seal covers the event, and with
//! it the principal.

use serde::{Deserialize, Serialize};

use crate::id::AppName;

/// The author of a request, as the host knows it.
///
/// No part of it comes from the body of a request, so a client cannot choose the recorded author.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Principal {
    /// Id of the API key of the request, never the key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The tenant of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The user that a trusted proxy names. If [`Self::local`] is set, the user of the operating
    /// system as `uid:<number>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The app whose web handler, while it served the principal's request, made the request that is
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// Whether a command opened the store directly, so that no server checked a key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

impl Principal {
    /// Returns the principal; `None` if all of its fields are empty.
    pub fn known(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn full() -> Principal {
        Principal {
            key: Some("k1".into()),
            tenant: Some("acme".into()),
            user: Some("jane@acme.example".into()),
            app: AppName::new("asset").ok(),
            local: false,
        }
    }

    #[test]
    fn unknown_fields_are_not_serialized() {
        let user = Principal { user: Some("jane".into()), ..Principal::default() };
        assert_eq!(serde_json::to_value(user).unwrap(), json!({ "user": "jane" }));
        assert_eq!(Principal::default().known(), None);
        assert_eq!(full().known(), Some(full()));
        let later: Principal = serde_json::from_value(json!({ "key": "k1", "role": 9 })).unwrap();
        assert_eq!(later, Principal { key: Some("k1".into()), ..Principal::default() });
    }
}
