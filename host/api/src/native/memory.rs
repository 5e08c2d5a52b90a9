//! The long-term memory of a tenant: the tenant of the request, or one that the operator names.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use wattle_graph::failure::code;
use wattle_run::engine::Engine;
use wattle_run::ports::memory::{
    ListNamespaces, MemoryScope, MemorySearch, PutItem, check_key, parse_filter,
};

use crate::body::JsonBody;
use crate::document::Page;
use crate::document::memory::{
    ClearedMemoryDocument, MemoryDocument, MemorySearchDocument, PutMemoryDocument,
};
use crate::guard::tenant_name::check_tenant;
use crate::native::tenant_scope::RequestRole;
use crate::native::thread_filter::invalid;
use crate::native::threads::page_size;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Reads a document of the long-term memory.
#[utoipa::path(get, path = "/api/v1/memory/items", tag = "memory",
    params(
        ("tenant" = Option<String>, Query, description = "tenant of the memory; operator only"),
        ("namespace" = Vec<String>, Query, description = "parts of the namespace, in order"),
        ("key" = String, Query, description = "key of the document")),
    responses(
        (status = 200, body = MemoryDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_memory_item(
    State(engine): State<Engine>,
    role: RequestRole,
    RawQuery(query): RawQuery,
) -> Result<Json<MemoryDocument>, Problem> {
    let mut query = QueryParams::new(query);
    let scope = query.memory_scope(role)?;
    let (namespace, key) = query.item_key()?;
    let ports = engine.ports();
    let found = ports.memory.get(&scope, &namespace, &key, ports.clock.now_ms()).await?;
    found.map(|item| Json(item.into())).ok_or_else(|| {
        let hint = "it was deleted, has expired or never existed; search documents with \
                    `POST /api/v1/memory/search`";
        Problem::not_found("document", &key, hint)
    })
}

/// Writes a document of the long-term memory, or replaces it.
#[utoipa::path(put, path = "/api/v1/memory/items", tag = "memory",
    params(("tenant" = Option<String>, Query, description = "tenant of the memory; operator only")),
    request_body = PutMemoryDocument,
    responses(
        (status = 204),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn put_memory_item(
    State(engine): State<Engine>,
    role: RequestRole,
    RawQuery(query): RawQuery,
    JsonBody(put): JsonBody<PutMemoryDocument>,
) -> Result<StatusCode, Problem> {
    let mut query = QueryParams::new(query);
    let scope = query.memory_scope(role)?;
    query.reject_unknown()?;
    engine.put_document(&scope, PutItem::from(put)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a document of the long-term memory. Also succeeds if the document does not exist.
#[utoipa::path(delete, path = "/api/v1/memory/items", tag = "memory",
    params(
        ("tenant" = Option<String>, Query, description = "tenant of the memory; operator only"),
        ("namespace" = Vec<String>, Query, description = "parts of the namespace, in order"),
        ("key" = String, Query, description = "key of the document")),
    responses((status = 204)))]
pub async fn delete_memory_item(
    State(engine): State<Engine>,
    role: RequestRole,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Problem> {
    let mut query = QueryParams::new(query);
    let scope = query.memory_scope(role)?;
    let (namespace, key) = query.item_key()?;
    engine.ports().memory.delete(&scope, &namespace, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Searches the long-term memory. With `query`, documents with the most matching words come first;
/// without `query`, the most recently updated documents come first.
#[utoipa::path(post, path = "/api/v1/memory/search",
    extensions(("x-wattle-access" = json!({ "scope": "read" }))), tag = "memory",
    params(("tenant" = Option<String>, Query, description = "tenant of the memory; operator only")),
    request_body = MemorySearchDocument,
    responses(
        (status = 200, body = Page<MemoryDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn search_memory(
    State(engine): State<Engine>,
    role: RequestRole,
    RawQuery(query): RawQuery,
    JsonBody(document): JsonBody<MemorySearchDocument>,
) -> Result<Json<Page<MemoryDocument>>, Problem> {
    let mut parameters = QueryParams::new(query);
    let scope = parameters.memory_scope(role)?;
    parameters.reject_unknown()?;
    let (offset, limit) = (document.offset, page_size(document.limit));
    let filter = document.filter.as_ref().map(parse_filter).transpose()?.unwrap_or_default();
    let MemorySearchDocument { prefix, query, .. } = document;
    let search = MemorySearch { prefix, filter, query, limit: limit + 1, offset, peek: false };
    search.check()?;
    let ports = engine.ports();
    let found = ports.memory.search(&scope, &search, ports.clock.now_ms()).await?;
    Ok(Json(page(found.into_iter().map(Into::into).collect(), limit, offset)))
}

/// Lists the namespaces that contain documents of the long-term memory, sorted by name.
#[utoipa::path(get, path = "/api/v1/memory/namespaces", tag = "memory",
    params(
        ("tenant" = Option<String>, Query, description = "tenant of the memory; operator only"),
        ("prefix" = Option<Vec<String>>, Query,
            description = "first parts of the namespaces, repeated in order; `*` matches any"),
        ("suffix" = Option<Vec<String>>, Query,
            description = "last parts of the namespaces, repeated in order; `*` matches any"),
        ("max_depth" = Option<usize>, Query, description = "cut namespaces to this many parts"),
        ("limit" = Option<usize>, Query, description = "maximum number of items, up to 500"),
        ("offset" = Option<usize>, Query, description = "number of items to skip")),
    responses((status = 200, body = Page<Vec<String>>)))]
pub async fn list_memory_namespaces(
    State(engine): State<Engine>,
    role: RequestRole,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<Vec<String>>>, Problem> {
    let mut query = QueryParams::new(query);
    let scope = query.memory_scope(role)?;
    let (limit, offset) = (page_size(query.number("limit")?), query.number("offset")?);
    let offset = offset.unwrap_or_default();
    let (prefix, suffix) = (query.repeated("prefix"), query.repeated("suffix"));
    let max_depth = query.number("max_depth")?;
    query.reject_unknown()?;
    let list = ListNamespaces { prefix, suffix, max_depth, limit: limit + 1, offset };
    list.check()?;
    let ports = engine.ports();
    let found = ports.memory.namespaces(&scope, &list, ports.clock.now_ms()).await?;
    Ok(Json(page(found, limit, offset)))
}

/// Deletes all documents whose namespace begins with a prefix, such as the data of one user.
#[utoipa::path(delete, path = "/api/v1/memory/namespaces", tag = "memory",
    params(
        ("tenant" = Option<String>, Query, description = "tenant of the memory; operator only"),
        ("prefix" = Vec<String>, Query,
            description = "first parts of the namespaces, repeated in order")),
    responses((status = 200, body = ClearedMemoryDocument)))]
pub async fn clear_memory(
    State(engine): State<Engine>,
    role: RequestRole,
    RawQuery(query): RawQuery,
) -> Result<Json<ClearedMemoryDocument>, Problem> {
    let mut query = QueryParams::new(query);
    let scope = query.memory_scope(role)?;
    let prefix = query.repeated("prefix");
    query.reject_unknown()?;
    if prefix.is_empty() {
        let detail = "the query requires at least one `prefix`: the whole memory cannot be deleted \
                      at once";
        return Err(Problem::new(code::INVALID, detail));
    }
    let deleted = engine.ports().memory.clear(&scope, &prefix).await?;
    Ok(Json(ClearedMemoryDocument { deleted }))
}

/// Returns a page of at most `limit` items. The caller reads one item more than `limit`, which
/// shows that a next page exists.
fn page<T>(mut items: Vec<T>, limit: usize, offset: usize) -> Page<T> {
    let next_offset = (items.len() > limit).then(|| offset.saturating_add(limit));
    items.truncate(limit);
    Page { items, next_offset, next_cursor: None }
}

/// Query parameters. A name can occur several times.
struct QueryParams(Vec<(String, String)>);

impl QueryParams {
    fn new(query: Option<String>) -> Self {
        let query = query.unwrap_or_default();
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// Returns the memory of the tenant of a request, or of the tenant that the operator names.
    fn memory_scope(&mut self, role: RequestRole) -> Result<MemoryScope, Problem> {
        let named = self.single("tenant")?;
        named.as_deref().map(check_tenant).transpose()?;
        match (&role.tenant, &named) {
            (Some(own), Some(named)) if own != named && !role.is_operator => {
                let detail = format!("the request does not belong to tenant `{named}`");
                Err(Problem::new(code::DENIED, detail))
            }
            _ => Ok(MemoryScope::Tenant(named.or(role.tenant))),
        }
    }

    /// Returns the namespace and key of a document. Fails on any other parameter.
    fn item_key(mut self) -> Result<(Vec<String>, String), Problem> {
        let namespace = self.repeated("namespace");
        let key = self.single("key")?.unwrap_or_default();
        self.reject_unknown()?;
        check_key(&namespace, &key)?;
        Ok((namespace, key))
    }

    fn repeated(&mut self, name: &str) -> Vec<String> {
        let values = self.0.extract_if(.., |(known, _)| known == name);
        values.map(|(_, value)| value).collect()
    }

    fn single(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let mut values = self.repeated(name);
        let value = values.pop();
        if values.is_empty() {
            return Ok(value);
        }
        Err(invalid(&format!("`{name}` must not be repeated")))
    }

    fn number(&mut self, name: &str) -> Result<Option<usize>, Problem> {
        let value = self.single(name)?;
        let number = value.map(|value| value.parse()).transpose();
        number.map_err(|_| invalid(&format!("`{name}` is not a whole number")))
    }

    fn reject_unknown(&self) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(invalid(&format!("unknown parameter `{name}`"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str) -> Result<(Vec<String>, String), String> {
        let item = QueryParams::new(Some(query.to_owned())).item_key();
        item.map_err(|problem| problem.detail.clone())
    }

    #[test]
    fn item_key_is_repeated_namespace_and_one_key() {
        let item = check("namespace=users&key=a%2Fb%00&namespace=4+2").unwrap();
        assert_eq!(item, (vec!["users".into(), "4 2".into()], "a/b\0".into()));
        for (query, expected) in [
            ("", "namespace"),
            ("namespace=users", "key"),
            ("namespace=users&key=a&key=b", "must not be repeated"),
            ("namespace=users&key=a&x=b", "unknown parameter `x`"),
            ("namespace=&key=a", "empty"),
        ] {
            let detail = check(query).unwrap_err();
            assert!(detail.contains(expected), "{query}: {detail}");
        }
    }

    #[test]
    fn only_the_operator_can_name_another_tenant() {
        let tenant = |own: Option<&str>, query: &str| {
            let own = own.map(ToOwned::to_owned);
            let role = RequestRole { is_operator: own.is_none(), tenant: own };
            let scope = QueryParams::new(Some(query.to_owned())).memory_scope(role);
            scope.map(|scope| scope.tenant().cloned()).map_err(|problem| problem.code.clone())
        };
        let acme = || Ok(Some("acme".to_owned()));
        assert_eq!(tenant(None, ""), Ok(None));
        assert_eq!(tenant(None, "tenant=acme"), acme());
        assert_eq!(tenant(Some("acme"), ""), acme());
        assert_eq!(tenant(Some("acme"), "tenant=acme"), acme());
        assert_eq!(tenant(Some("acme"), "tenant=other"), Err("denied".to_owned()));
        assert_eq!(tenant(None, "tenant=a/b"), Err("invalid".to_owned()));
        let role = RequestRole { tenant: Some("default".to_owned()), is_operator: true };
        let scope = QueryParams::new(Some("tenant=acme".to_owned())).memory_scope(role);
        assert!(scope.is_ok_and(|it| it.tenant().map(String::as_str) == Some("acme")));
    }
}
