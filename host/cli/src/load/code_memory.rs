//! Makes room for compiled code: unloads versions of apps that nothing uses.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use wattle_graph::id::PluginName;
use wattle_run::catalog::Catalog;
use wattle_run::ports::sandbox::{CODE_MEMORY, LoadEffort, LoadError};
use wattle_run::ports::{Plugin, Sandbox};

/// A sandbox that unloads older versions of the catalog as long as the code of a component does not
/// fit in memory. The versions are loaded again when a thread needs them.
pub(super) struct UnloadingSandbox {
    sandbox: Arc<dyn Sandbox>,
    catalog: Arc<Catalog>,
}

impl UnloadingSandbox {
    pub(super) fn new(sandbox: Arc<dyn Sandbox>, catalog: Arc<Catalog>) -> Self {
        Self { sandbox, catalog }
    }

    /// Returns true if a load that failed can be repeated, because there is more room.
    fn has_made_room(&self, error: &LoadError) -> bool {
        error.code == CODE_MEMORY && self.catalog.unload_unused_version()
    }
}

#[async_trait]
impl Sandbox for UnloadingSandbox {
    async fn load_within(
        &self,
        name: &PluginName,
        bytes: Bytes,
        effort: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        loop {
            match self.sandbox.load_within(name, bytes.clone(), effort).await {
                Err(error) if self.has_made_room(&error) => {}
                done => return done,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use wattle_graph::check::{AnyPlugin, check_toml};
    use wattle_graph::failure::Failure;
    use wattle_graph::id::{AppName, Digest, GraphName};
    use wattle_run::app::{App, GraphVersion};
    use wattle_run::export::{CodeFile, CodeSource};

    use super::*;

    /// A sandbox that loads nothing.
    struct Refusing {
        code: &'static str,
        attempts: AtomicUsize,
    }

    #[async_trait]
    impl Sandbox for Refusing {
        async fn load_within(
            &self,
            name: &PluginName,
            _: Bytes,
            _: LoadEffort,
        ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
            self.attempts.fetch_add(1, Ordering::SeqCst);
            let (message, hint) = (String::new(), String::new());
            Err(LoadError { plugin: name.clone(), code: self.code, message, hint })
        }
    }

    /// An archive of all versions.
    struct Archive;

    #[async_trait]
    impl CodeSource for Archive {
        async fn files(&self, _: &Arc<App>) -> Result<Vec<CodeFile>, Failure> {
            Ok(Vec::new())
        }

        fn is_archived(&self, _: &App) -> bool {
            true
        }

        fn archived_versions(&self, _: &AppName, _: &GraphName) -> BTreeSet<Digest> {
            BTreeSet::new()
        }

        async fn load_version(&self, _: &AppName, _: Digest) -> Result<bool, Failure> {
            Ok(false)
        }
    }

    /// Returns a version of an app.
    fn app(version: &str) -> App {
        let graph = "[graphs.g]\nentry = 'a'\nnodes.a = {}";
        let graph = check_toml("graph.toml", graph, &AnyPlugin).unwrap().remove(0);
        let digest = Digest::of(version.as_bytes());
        let graph = Arc::new(GraphVersion { graph, version: digest });
        let graphs = BTreeMap::from([(graph.graph.name.clone(), graph)]);
        App { digest, graphs, ..App::empty(AppName::new("asset").unwrap()) }
    }

    /// Returns how often a component is tried that is refused with `code`, on a host with two older
    /// versions of an app.
    async fn attempts(code: &'static str) -> usize {
        let catalog = Catalog::new();
        catalog.set_source(Arc::new(Archive));
        for version in ["1", "2", "3"] {
            catalog.install(app(version));
        }
        let refusing = Arc::new(Refusing { code, attempts: AtomicUsize::new(0) });
        let sandbox = UnloadingSandbox::new(refusing.clone(), catalog.clone());
        let name = PluginName::new("large").unwrap();
        let refused = sandbox.load_within(&name, Bytes::new(), LoadEffort::Cached).await;
        assert_eq!(refused.err().unwrap().code, code);
        assert!(catalog.app(&AppName::new("asset").unwrap()).is_some(), "new runs need it");
        refusing.attempts.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn versions_are_unloaded_as_long_as_code_does_not_fit() {
        assert_eq!(attempts(CODE_MEMORY).await, 3);
        assert_eq!(attempts("invalid").await, 1);
    }
}
