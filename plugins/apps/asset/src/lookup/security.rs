//! Securities, as every source of a lookup returns them.

use crate::ticker;

/// Maximum number of securities that are read of one result of a service.
pub(super) const RESULTS: u32 = 3;

/// A security. If no source knows it, only its ticker is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Security {
    pub(crate) ticker: String,
    /// Chinese name, otherwise the English one, otherwise empty.
    pub(crate) name: String,
    /// Currency that a service named.
    pub(crate) currency: Option<String>,
}

impl Security {
    /// Converts a result of a service. Returns `None` if it has no ticker, or words in place of a
    /// ticker.
    pub(super) fn from_service(
        ticker: &str,
        names: [Option<&str>; 2],
        currency: Option<String>,
    ) -> Option<Self> {
        let ticker = ticker::given(ticker).code()?;
        let name = names.into_iter().flatten().map(str::trim).find(|name| !name.is_empty());
        Some(Self { ticker, name: name.unwrap_or_default().to_owned(), currency })
    }

    /// Returns true if the security has this ticker, ignoring case.
    pub(super) fn is(&self, ticker: &str) -> bool {
        self.ticker.eq_ignore_ascii_case(ticker)
    }
}
