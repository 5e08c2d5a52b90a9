//! `wattle:plugin/memory`: documents that outlive threads.

use serde::Deserialize;
use wattle_graph::failure::Failure;
use wattle_run::hostcall::HostCall;
use wattle_run::hostcall::memory::{
    DeleteDocument, GetDocument, ListMemoryNamespaces, PutDocument, SearchDocuments,
};
use wattle_run::limit;
use wattle_run::ports::memory::{Item, ListNamespaces, MemorySearch, PutItem, parse_filter};

use crate::bindings::wattle::plugin::memory as wit;
use crate::host_state::HostState;
use crate::import_error::ImportError;
use crate::json::{CallJson, extra_bytes, to_text};

const PUT: &str = PutDocument::FUNCTION;
const SEARCH: &str = SearchDocuments::FUNCTION;

/// Extension fields of a document to write (`extra`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct PutExtra {
    refresh_on_read: bool,
}

impl wit::Host for HostState {
    async fn get(
        &mut self,
        namespace: wit::Namespace,
        key: String,
    ) -> Result<Option<wit::Item>, ImportError> {
        Ok(self.call(GetDocument { namespace, key }).await?.map(from_item))
    }

    async fn put(
        &mut self,
        namespace: wit::Namespace,
        key: String,
        value: String,
        ttl_ms: Option<u64>,
    ) -> Result<(), ImportError> {
        self.put_with(namespace, key, value, ttl_ms, Vec::new()).await
    }

    async fn put_with(
        &mut self,
        namespace: wit::Namespace,
        key: String,
        value: String,
        ttl_ms: Option<u64>,
        extra: wit::Extra,
    ) -> Result<(), ImportError> {
        let (gate, bytes) = (self.gate(PUT)?, value.len() + extra_bytes(&extra));
        let convert = |json: CallJson<'_>| -> Result<PutDocument, Failure> {
            let value = json.parse(&value, "value", limit::MEMORY_DOCUMENT_BYTES)?;
            let PutExtra { refresh_on_read } = json.parse_extra(&extra)?;
            Ok(PutDocument(PutItem { namespace, key, value, ttl_ms, refresh_on_read }))
        };
        let document = self.convert(&gate, PUT, bytes, convert).await?;
        self.call(document).await
    }

    async fn delete(&mut self, namespace: wit::Namespace, key: String) -> Result<(), ImportError> {
        self.call(DeleteDocument { namespace, key }).await
    }

    async fn search(&mut self, request: wit::SearchRequest) -> Result<Vec<wit::Item>, ImportError> {
        let (gate, bytes) = (self.gate(SEARCH)?, request.filter.as_ref().map_or(0, String::len));
        let convert = |json: CallJson<'_>| into_search(request, json);
        let search = self.convert(&gate, SEARCH, bytes, convert).await?;
        let found = self.call(search).await?;
        Ok(found.into_iter().map(from_item).collect())
    }

    async fn list_namespaces(
        &mut self,
        prefix: wit::Namespace,
        max_depth: Option<u32>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<wit::Namespace>, ImportError> {
        let list = ListNamespaces {
            prefix,
            suffix: Vec::new(),
            max_depth: max_depth.map(|depth| depth as usize),
            limit: limit as usize,
            offset: offset as usize,
        };
        self.call(ListMemoryNamespaces(list)).await
    }
}

fn into_search(
    request: wit::SearchRequest,
    json: CallJson<'_>,
) -> Result<SearchDocuments, Failure> {
    // A filter compares values of a document, so a filter needs no more bytes than a document.
    let (filter, allowed) = (request.filter.as_deref(), limit::MEMORY_DOCUMENT_BYTES);
    let filter = json.parse_option(filter, "filter", allowed)?;
    Ok(SearchDocuments(MemorySearch {
        prefix: request.prefix,
        filter: filter.as_ref().map(parse_filter).transpose()?.unwrap_or_default(),
        query: request.query,
        limit: request.limit as usize,
        offset: request.offset as usize,
        peek: false,
    }))
}

fn from_item(item: Item) -> wit::Item {
    wit::Item {
        namespace: item.namespace,
        key: item.key,
        value: to_text(&item.value),
        created_ms: item.created_ms,
        updated_ms: item.updated_ms,
        score: item.score,
    }
}
