//! Query parameters of lists and counts of threads: the conditions, and the page.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::form_urlencoded;
use utoipa::IntoParams;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, GraphName};
use wattle_run::limit::SEARCH_TEXT_BYTES;
use wattle_run::ports::store::{
    TenantFilter, ThreadCursor, ThreadQuery, ThreadSearch, ThreadStatus,
};

use crate::native::list_scope::ListScope;
use crate::native::threads::{invalid_query, page_size};
use crate::problem::Problem;

/// Names of the parameters of [`PageParams`].
const PAGE_PARAMS: [&str; 3] = ["limit", "offset", "cursor"];

/// The conditions of a list or a count of threads. All of them must hold.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ThreadConditions {
    /// Only threads of this app.
    #[param(value_type = Option<String>)]
    app: Option<AppName>,
    /// Only threads of this graph.
    #[param(value_type = Option<String>)]
    graph: Option<GraphName>,
    /// Only threads with this status: `idle`, `running`, `interrupted` or `error`.
    #[param(value_type = Option<String>)]
    status: Option<ThreadStatus>,
    /// Only threads of this tenant; `*` selects the threads of all tenants. Only the operator can
    /// name another tenant than the tenant of the request.
    tenant: Option<String>,
    /// Only threads whose newest run failed with this code.
    failure: Option<String>,
    /// Only threads that contain this text in their id, newest run, app, graph, failure or in a
    /// text of their metadata. Letters match in either case. At most 512 bytes.
    text: Option<String>,
    /// Only threads whose metadata contains the fields of this JSON object. Nested objects may
    /// have additional fields.
    metadata: Option<String>,
    /// Only threads that were created at or after this time, in milliseconds since 1970.
    created_from_ms: Option<i64>,
    /// Only threads that were created at or before this time, in milliseconds since 1970.
    created_to_ms: Option<i64>,
    /// Only threads whose last update is at or after this time, in milliseconds since 1970.
    updated_from_ms: Option<i64>,
    /// Only threads whose last update is at or before this time, in milliseconds since 1970.
    updated_to_ms: Option<i64>,
}

/// The page of a list of threads.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageParams {
    /// Maximum number of threads, up to 500; 50 by default.
    pub(crate) limit: Option<usize>,
    /// Number of threads to skip. Works only with the conditions `app`, `status` and `tenant`;
    /// prefer `cursor`.
    pub(crate) offset: usize,
    /// The `next_cursor` of the page before.
    pub(crate) cursor: Option<String>,
}

/// Parses the query of a list of threads.
///
/// # Errors
///
/// The errors of [`parse_query`].
pub(crate) fn parse_list(query: Option<&str>) -> Result<(ThreadConditions, PageParams), Problem> {
    parse_query(query, &PAGE_PARAMS)
}

/// Parses the query of a list: its conditions, and its page, whose parameters have the names
/// `page_params`.
///
/// # Errors
///
/// `invalid` for an unknown parameter, or for a parameter with an invalid value.
pub(crate) fn parse_query<C: DeserializeOwned, P: DeserializeOwned>(
    query: Option<&str>,
    page_params: &[&str],
) -> Result<(C, P), Problem> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let (page, conditions): (Vec<_>, Vec<_>) =
        pairs.partition(|(name, _)| page_params.contains(&name.as_ref()));
    Ok((deserialize(&conditions)?, deserialize(&page)?))
}

/// Deserializes some of the parameters of a query.
fn deserialize<T: DeserializeOwned>(pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Result<T, Problem> {
    let mut query = form_urlencoded::Serializer::for_suffix("/?".to_owned(), "/?".len());
    let uri = query.extend_pairs(pairs).finish().parse::<Uri>();
    let uri = uri.map_err(|error| invalid(&error.to_string()))?;
    Query::try_from_uri(&uri).map(|Query(parsed)| parsed).map_err(invalid_query)
}

impl ThreadConditions {
    /// Returns the search for these conditions, within the tenants of a scope.
    ///
    /// # Errors
    ///
    /// The errors of [`ListScope::tenant`]; `invalid` if a text is too long, or if `metadata` is
    /// not a JSON object.
    pub(crate) fn into_search(self, scope: ListScope) -> Result<ThreadSearch, Problem> {
        check_length("text", self.text.as_deref())?;
        check_length("failure", self.failure.as_deref())?;
        Ok(ThreadSearch {
            tenant: TenantFilter::named_or_any(scope.tenant(self.tenant.as_deref())?),
            app: self.app,
            graph: self.graph,
            status: self.status,
            failure: self.failure,
            text: self.text.filter(|text| !text.is_empty()),
            metadata: parse_metadata(self.metadata.as_deref())?,
            created_ms: range(self.created_from_ms, self.created_to_ms),
            updated_ms: range(self.updated_from_ms, self.updated_to_ms),
            ..ThreadSearch::default()
        })
    }
}

impl PageParams {
    /// Returns a search for this page.
    ///
    /// # Errors
    ///
    /// `invalid` if no list of this API returns such a cursor, or if the request also has an
    /// offset.
    pub(crate) fn of(&self, search: ThreadSearch) -> Result<ThreadSearch, Problem> {
        if self.offset > 0 && self.cursor.is_some() {
            return Err(invalid("`offset` and `cursor` exclude each other; send only `cursor`"));
        }
        let after = parse_cursor(self.cursor.as_deref(), ThreadCursor::parse)?;
        Ok(ThreadSearch { after, limit: page_size(self.limit), ..search })
    }
}

/// Returns the query of a page that begins at an offset. Returns `None` if the search has a cursor
/// or a condition that a list by offset does not support.
pub(crate) fn offset_query(search: &ThreadSearch, offset: usize) -> Option<ThreadQuery> {
    let ThreadSearch { app, status, tenant, limit, .. } = search;
    let is_plain = !search.compares_records()
        && search.after.is_none()
        && *tenant != TenantFilter::None
        && search.updated_ms == ThreadSearch::ANY_TIME;
    is_plain.then(|| ThreadQuery {
        app: app.clone(),
        status: *status,
        tenant: tenant.name().map(str::to_owned),
        limit: Some(*limit),
        offset,
        ..ThreadQuery::default()
    })
}

/// Returns the problem for an offset in a list that only a cursor continues.
pub(crate) fn no_offset() -> Problem {
    invalid(
        "`offset` works only with `app`, `status` and `tenant`; continue with the `next_cursor` of \
         the page before as `cursor`",
    )
}

/// Parses the cursor of a list.
///
/// # Errors
///
/// `invalid` if `parse` returns `None`: no page of the list has this cursor.
pub(crate) fn parse_cursor<T>(
    cursor: Option<&str>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let unknown = || invalid("`cursor` must be the `next_cursor` of another page of this list");
    cursor.map(|text| parse(text).ok_or_else(unknown)).transpose()
}

/// Checks the length of a text that is compared with records.
///
/// # Errors
///
/// `invalid` if the text is too long.
pub(crate) fn check_length(name: &str, text: Option<&str>) -> Result<(), Problem> {
    let bytes = text.map_or(0, str::len);
    if bytes <= SEARCH_TEXT_BYTES {
        return Ok(());
    }
    Err(invalid(&format!("`{name}` has {bytes} bytes; the limit is {SEARCH_TEXT_BYTES}")))
}

/// Parses the condition on metadata. The result is empty if there is none.
///
/// # Errors
///
/// `invalid` if the text is not a JSON object.
pub(crate) fn parse_metadata(text: Option<&str>) -> Result<BTreeMap<String, Value>, Problem> {
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    serde_json::from_str(text).map_err(|error| {
        let form = "`metadata` must be a JSON object, such as `{\"customer\": 7}`";
        invalid(&format!("{form}: {error}"))
    })
}

/// Returns the times between two limits, both included.
pub(crate) fn range(from_ms: Option<i64>, to_ms: Option<i64>) -> RangeInclusive<i64> {
    let (oldest, newest) = ThreadSearch::ANY_TIME.into_inner();
    from_ms.unwrap_or(oldest)..=to_ms.unwrap_or(newest)
}

/// Creates the problem for a query that is not valid.
pub(crate) fn invalid(detail: &str) -> Problem {
    Problem::new(code::INVALID, format!("the query is not valid: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T>(result: Result<T, Problem>) -> String {
        result.map(|_| ()).map_err(|problem| problem.0.detail).unwrap_err()
    }

    #[test]
    fn conditions_and_page_come_from_one_query() {
        let query = "text=%C3%9Cber+uns&limit=2&status=error&updated_to_ms=-5&cursor=x%26";
        let (conditions, page) = parse_list(Some(query)).unwrap();
        assert_eq!(conditions.text.as_deref(), Some("Über uns"));
        assert_eq!(conditions.status, Some(ThreadStatus::Error));
        assert_eq!(conditions.updated_to_ms, Some(-5));
        assert_eq!((page.limit, page.offset, page.cursor.as_deref()), (Some(2), 0, Some("x&")));
        assert!(parse_list(None).is_ok() && parse_list(Some("")).is_ok());
        for (query, expected) in [
            ("nobody=1", "unknown field `nobody`"),
            ("limit=x", "invalid digit"),
            ("status=odd", "unknown variant `odd`"),
            ("text=a&text=b", "duplicate field `text`"),
            ("created_from_ms=yesterday", "invalid digit"),
        ] {
            let detail = refusal(parse_list(Some(query)));
            assert!(detail.contains(expected), "{query}: {detail}");
        }
    }

    #[test]
    fn page_has_an_offset_or_a_cursor() {
        let page = |query| parse_list(Some(query)).unwrap().1.of(ThreadSearch::default());
        assert_eq!(page("limit=7").unwrap().limit, 7);
        assert_eq!(page("limit=1000000").unwrap().limit, 500);
        assert!(refusal(page("offset=1&cursor=NS5h")).contains("exclude each other"));
        assert!(refusal(page("cursor=5.a")).contains("`next_cursor`"));
        let after = page("cursor=NS5h").unwrap().after.unwrap();
        assert_eq!((after.updated_ms, after.thread.as_str()), (5, "a"));
    }

    #[test]
    fn offset_works_only_with_app_status_and_tenant() {
        let all = ThreadSearch::default;
        assert!(
            offset_query(&ThreadSearch { status: Some(ThreadStatus::Idle), ..all() }, 3).is_some()
        );
        for search in [
            ThreadSearch { text: Some("a".to_owned()), ..all() },
            ThreadSearch { updated_ms: i64::MIN..=0, ..all() },
            ThreadSearch { after: ThreadCursor::parse("NS5h"), ..all() },
            ThreadSearch { tenant: TenantFilter::None, ..all() },
        ] {
            assert!(offset_query(&search, 3).is_none(), "{search:?}");
        }
    }

    #[test]
    fn texts_are_bounded_and_metadata_is_an_object() {
        assert!(check_length("text", Some(&"x".repeat(SEARCH_TEXT_BYTES))).is_ok());
        let long = "x".repeat(SEARCH_TEXT_BYTES + 1);
        assert!(refusal(check_length("text", Some(&long))).contains("`text` has 513 bytes"));
        assert!(parse_metadata(None).unwrap().is_empty());
        assert_eq!(parse_metadata(Some("{\"a\":1}")).unwrap().len(), 1);
        for text in ["", "[]", "1", "{", "{\"a\":1}x"] {
            assert!(
                refusal(parse_metadata(Some(text))).contains("must be a JSON object"),
                "{text}"
            );
        }
    }
}
