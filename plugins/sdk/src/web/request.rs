//! HTTP requests of web handlers.

use std::num::ParseIntError;
use std::str::FromStr;

use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::json::{self, Extra};
use crate::web::status::BAD_REQUEST;

/// An HTTP request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Method in upper case, such as `GET`.
    pub method: String,
    /// Path relative to the mount of the app.
    pub path: String,
    /// Pattern of the matching route, such as `/api/items/{id}`.
    pub route: String,
    /// Path parameters, percent-decoded.
    pub params: Vec<(String, String)>,
    /// Query parameters in order, percent-decoded.
    pub query: Vec<(String, String)>,
    /// Headers with names in lower case. Does not contain credentials for the host's API.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Tenant of the request, if it has one.
    pub tenant: Option<String>,
    /// Extension fields.
    pub extra: Extra,
}

impl Request {
    /// Builds a request, for tests.
    pub fn new(method: impl Into<String>, path: impl Into<String>) -> Self {
        Self { method: method.into(), path: path.into(), ..Self::default() }
    }

    /// Adds a path parameter.
    pub fn with_param(mut self, name: &str, value: impl Into<String>) -> Self {
        self.params.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a query parameter.
    pub fn with_query(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a header.
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// Sets the body.
    pub fn with_body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Parses the JSON body as a type.
    ///
    /// # Errors
    ///
    /// `invalid` if the body is not JSON or does not fit the type. A handler that returns this
    /// failure responds with status 400.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        json::read("the request body", self.text()?)
            .map_err(|failure| failure.with_status(BAD_REQUEST))
    }

    /// Returns the body as text.
    ///
    /// # Errors
    ///
    /// `invalid` with status 400 if the body is not UTF-8.
    pub fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(&self.body).map_err(|error| {
            Failure::invalid(format!("the request body is not UTF-8: {error}"))
                .with_status(BAD_REQUEST)
        })
    }

    /// Parses a path parameter as a type.
    ///
    /// # Errors
    ///
    /// `invalid` with status 400 if the route has no such parameter, or if its value cannot be
    /// parsed.
    ///
    /// ```
    /// use wattle_plugin::web::Request;
    ///
    /// let request = Request::new("GET", "/items/7").with_param("id", "7");
    /// let id: u64 = request.param("id")?;
    /// assert_eq!(id, 7);
    /// assert_eq!(request.param::<u64>("name").unwrap_err().status(), Some(400));
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    pub fn param<T: FromStr>(&self, name: &str) -> Result<T, Failure> {
        let text = find(&self.params, name).ok_or_else(|| {
            let route = &self.route;
            Failure::invalid(format!("route `{route}` has no parameter `{name}`"))
                .with_status(BAD_REQUEST)
        })?;
        text.parse().map_err(|_| {
            Failure::invalid(format!("path parameter `{name}` has the invalid value `{text}`"))
                .with_status(BAD_REQUEST)
        })
    }

    /// Returns the first query parameter with a name.
    pub fn query(&self, name: &str) -> Option<&str> {
        find(&self.query, name)
    }

    /// Parses the first query parameter with a name as an integer. Returns `None` without one.
    ///
    /// # Errors
    ///
    /// `invalid` with status 400 if the value is not an integer of the type.
    ///
    /// ```
    /// use wattle_plugin::web::Request;
    ///
    /// let request = Request::new("GET", "/items").with_query("after", "7");
    /// assert_eq!(request.number::<i64>("after")?, Some(7));
    /// assert_eq!(request.number::<i64>("before")?, None);
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    pub fn number<T: FromStr<Err = ParseIntError>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                Failure::invalid(format!("`{name}` must be a whole number"))
                    .with_status(BAD_REQUEST)
            })
        };
        self.query(name).map(parse).transpose()
    }

    /// Returns true if a header with entity tags, such as `if-match` or `if-none-match`, has this
    /// one or `*`. The tag includes its quotes and contains no comma. A weak tag, such as that of a
    /// proxy which compressed a response, is the same tag in `if-none-match` only.
    ///
    /// ```
    /// use wattle_plugin::web::Request;
    ///
    /// let request = Request::new("GET", "/").with_header("if-none-match", r#""6", "7""#);
    /// assert!(request.has_tag("if-none-match", r#""7""#));
    /// ```
    pub fn has_tag(&self, header: &str, tag: &str) -> bool {
        let is_weak = header.eq_ignore_ascii_case("if-none-match");
        let tags = self.header(header).into_iter().flat_map(|tags| tags.split(','));
        tags.map(str::trim)
            .any(|it| it == "*" || it == tag || (is_weak && opaque(it) == opaque(tag)))
    }

    /// Returns the first header with a name, in upper or lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, &name.to_ascii_lowercase())
    }
}

/// Returns an entity tag without the prefix of a weak one.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::Request;

    #[test]
    fn query_parameters_and_headers_are_found() {
        let request = Request::new("GET", "/")
            .with_query("q", "a b")
            .with_query("q", "second")
            .with_header("Accept", "text/html");
        assert_eq!(request.query("q"), Some("a b"));
        assert_eq!(request.query("r"), None);
        assert_eq!(request.header("ACCEPT"), Some("text/html"));
    }

    #[test]
    fn tags_of_a_header_are_compared_whole() {
        for (tags, has_it) in [
            ("\"5\"", true),
            ("\"1\", \"5\"", true),
            ("*", true),
            ("\"15\"", false),
            ("5", false),
            ("W/\"5\"", false),
            ("", false),
        ] {
            let request = Request::new("GET", "/").with_header("if-match", tags);
            assert_eq!(request.has_tag("if-match", "\"5\""), has_it, "{tags}");
            assert!(!request.has_tag("if-none-match", "\"5\""), "{tags}");
        }
    }

    #[test]
    fn weak_tags_match_in_if_none_match() {
        for (tags, tag) in [("W/\"5\"", "\"5\""), ("\"1\", \"5\"", "W/\"5\"")] {
            for (header, has_it) in [("If-None-Match", true), ("if-match", false)] {
                let request = Request::new("GET", "/").with_header(header, tags);
                assert_eq!(request.has_tag(header, tag), has_it, "{header}: {tags}");
            }
        }
    }

    #[test]
    fn invalid_json_is_a_bad_request() {
        for body in [b"{".as_slice(), b"\xff"] {
            let failure = Request::new("POST", "/").with_body(body).json::<Value>().unwrap_err();
            assert_eq!(failure.status(), Some(400));
        }
    }
}
