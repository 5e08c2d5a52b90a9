//! Reads and writes documents of the long-term memory of the caller's tenant.

use crate::gate::effect::{Effect, EffectContext};
use crate::gate::unwind::CallError;
use crate::hostcall::memory::{
    DeleteDocument, GetDocument, ListMemoryNamespaces, PutDocument, SearchDocuments,
};
use crate::ports::memory::{Item, MemoryScope, check_key};

impl Effect for GetDocument {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<Option<Item>, CallError> {
        check_key(&self.namespace, &self.key)?;
        let memory = &context.ports.memory;
        Ok(memory.get(&scope(context), &self.namespace, &self.key, now_ms(context)).await?)
    }
}

impl Effect for PutDocument {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<(), CallError> {
        self.0.check()?;
        let quotas = &context.env.quotas;
        Ok(quotas.put_document(context.ports, &scope(context), self.0.clone()).await?)
    }
}

impl Effect for DeleteDocument {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<(), CallError> {
        check_key(&self.namespace, &self.key)?;
        Ok(context.ports.memory.delete(&scope(context), &self.namespace, &self.key).await?)
    }
}

impl Effect for SearchDocuments {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<Vec<Item>, CallError> {
        self.0.check()?;
        Ok(context.ports.memory.search(&scope(context), &self.0, now_ms(context)).await?)
    }
}

impl Effect for ListMemoryNamespaces {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<Vec<Vec<String>>, CallError> {
        self.0.check()?;
        Ok(context.ports.memory.namespaces(&scope(context), &self.0, now_ms(context)).await?)
    }
}

/// Returns the memory that a guest can access: the memory of its tenant.
fn scope(context: &EffectContext<'_>) -> MemoryScope {
    MemoryScope::Tenant(context.caller.tenant.clone())
}

fn now_ms(context: &EffectContext<'_>) -> i64 {
    context.ports.clock.now_ms()
}
