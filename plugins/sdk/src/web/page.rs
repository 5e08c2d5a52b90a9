//! Pages of lists.

use crate::failure::Failure;
use crate::web::request::Request;

/// A page of a list, from the query parameters `limit` and `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Maximum number of items.
    pub limit: u32,
    /// Number of items before the page.
    pub offset: u32,
}

impl Request {
    /// Returns the page of a list: at least one and at most `most` items, by default `default`.
    ///
    /// ```
    /// use wattle_plugin::web::{Page, Request};
    ///
    /// let request = Request::new("GET", "/api/items").with_query("limit", "500");
    /// assert_eq!(request.page(50, 200)?, Page { limit: 200, offset: 0 });
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid` with status 400 if `limit` or `offset` is not a whole number.
    pub fn page(&self, default: u32, most: u32) -> Result<Page, Failure> {
        let limit = self.number("limit")?.unwrap_or(default).clamp(1, most.max(1));
        Ok(Page { limit, offset: self.number("offset")?.unwrap_or(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::Page;
    use crate::failure::Failure;
    use crate::web::request::Request;

    fn page(limit: Option<&str>, offset: Option<&str>) -> Result<Page, Failure> {
        let mut request = Request::new("GET", "/");
        for (name, text) in [("limit", limit), ("offset", offset)] {
            request = text.into_iter().fold(request, |it, text| it.with_query(name, text));
        }
        request.page(50, 200)
    }

    #[test]
    fn pages_have_a_default_and_bounds() {
        for (query, limit, offset) in [
            ((None, None), 50, 0),
            ((Some("7"), Some("21")), 7, 21),
            ((Some("0"), None), 1, 0),
            ((Some("201"), None), 200, 0),
        ] {
            assert_eq!(page(query.0, query.1), Ok(Page { limit, offset }), "{query:?}");
        }
    }

    #[test]
    fn limits_and_offsets_are_whole_numbers() {
        for (limit, offset, name) in [
            (Some("many"), None, "limit"),
            (Some(""), None, "limit"),
            (Some("7"), Some("-1"), "offset"),
        ] {
            let failure = page(limit, offset).unwrap_err();
            assert_eq!(failure.status(), Some(400));
            assert_eq!(failure.message, format!("`{name}` must be a whole number"));
        }
    }
}
