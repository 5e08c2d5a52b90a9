//! Pages of lists.

use crate::failure::Failure;
use crate::web::request::Request;

/// Budget for the items of a list in a response, in bytes of JSON. The whole response has at most 4
/// MiB, unless the operator grants more, so 256 KiB remain for its other fields.
pub const PAGE_BYTES: usize = (4 << 20) - (256 << 10);

/// The page of a list that a request asks for, by the query parameters `limit` and `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageQuery {
    /// Maximum number of items.
    pub limit: u32,
    /// Number of items before the page.
    pub offset: u32,
}

impl Request {
    /// Returns the page of a list that the request asks for: at least one and at most `most` items,
    /// by default `default`.
    ///
    /// ```
    /// use wattle_plugin::web::{PageQuery, Request};
    ///
    /// let request = Request::new("GET", "/api/items").with_query("limit", "500");
    /// assert_eq!(request.page(50, 200)?, PageQuery { limit: 200, offset: 0 });
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid` with status 400 if `limit` or `offset` is not a whole number.
    pub fn page(&self, default: u32, most: u32) -> Result<PageQuery, Failure> {
        let limit = self.number("limit")?.unwrap_or(default).clamp(1, most.max(1));
        Ok(PageQuery { limit, offset: self.number("offset")?.unwrap_or(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::PageQuery;
    use crate::failure::Failure;
    use crate::web::request::Request;

    fn page(limit: Option<&str>, offset: Option<&str>) -> Result<PageQuery, Failure> {
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
            assert_eq!(page(query.0, query.1), Ok(PageQuery { limit, offset }), "{query:?}");
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
