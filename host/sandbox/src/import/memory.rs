//! `wattle:plugin/memory`: part of the contract that this host does not offer yet.

use crate::bindings::wattle::plugin::memory;
use crate::guest::Guest;
use crate::halt::Halt;

impl memory::Host for Guest {
    async fn get(
        &mut self,
        _namespace: memory::Namespace,
        _key: String,
    ) -> Result<Option<memory::Item>, Halt> {
        self.unsupported("memory.get")
    }

    async fn put(
        &mut self,
        _namespace: memory::Namespace,
        _key: String,
        _value: String,
        _ttl_ms: Option<u64>,
    ) -> Result<(), Halt> {
        self.unsupported("memory.put")
    }

    async fn delete(&mut self, _namespace: memory::Namespace, _key: String) -> Result<(), Halt> {
        self.unsupported("memory.delete")
    }

    async fn search(&mut self, _request: memory::SearchRequest) -> Result<Vec<memory::Item>, Halt> {
        self.unsupported("memory.search")
    }

    async fn list_namespaces(
        &mut self,
        _prefix: memory::Namespace,
        _max_depth: Option<u32>,
        _limit: u32,
        _offset: u32,
    ) -> Result<Vec<memory::Namespace>, Halt> {
        self.unsupported("memory.list-namespaces")
    }
}
