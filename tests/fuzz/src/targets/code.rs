//! Files of the cache of compiled code. The first byte of the input selects how an intact file is
//! changed: by edits, at its beginning, or at its end. The code of a changed file is not loaded.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::{LoadEffort, Sandbox as _};
use wattle_sandbox::{CodeCacheConfig, SandboxConfig, WasmSandbox};

use super::{edited, folder};
use crate::guest;

/// Returns an intact file with the changes of an input.
type Change = fn(&[u8], &[u8]) -> Vec<u8>;

/// The ways to change a file.
const KINDS: &[Change] = &[edited, begun, ended];

/// The key of the cache.
const KEY: [u8; 32] = [7; 32];

/// Maximum number of concurrent instances. One execution needs one.
const INSTANCES: u32 = 4;

/// Loads a component whose file in the cache is changed.
pub fn run(bytes: &[u8]) {
    static WORLD: OnceLock<World> = OnceLock::new();
    let Some((kind, change)) = bytes.split_first() else { return };
    let world = WORLD.get_or_init(|| crate::wait(World::new()));
    let changed = KINDS[usize::from(*kind) % KINDS.len()](&world.sound, change);
    let is_loaded = crate::wait(world.is_loaded(&changed));
    assert_eq!(is_loaded, changed == world.sound, "loaded: {is_loaded}");
}

/// Replaces the beginning of a file: its digest, the length of its outline, and the outline.
fn begun(sound: &[u8], begin: &[u8]) -> Vec<u8> {
    let rest = sound.get(begin.len()..).unwrap_or_default();
    [begin, rest].concat()
}

/// Cuts a file at the place that the first four bytes select, and appends the others.
fn ended(sound: &[u8], change: &[u8]) -> Vec<u8> {
    let Some((place, end)) = change.split_first_chunk::<4>() else { return sound.to_vec() };
    let place = u32::from_le_bytes(*place) as usize % sound.len();
    [&sound[..place], end].concat()
}

/// A sandbox with a cache, and a component whose code the cache has.
struct World {
    sandbox: Arc<WasmSandbox>,
    /// The folder of the cache. It exists only during an execution.
    folder: PathBuf,
    guest: Bytes,
    /// The file with the code of the component.
    file: PathBuf,
    /// The content of the file.
    sound: Vec<u8>,
}

impl World {
    async fn new() -> Self {
        let folder = folder();
        let cache = CodeCacheConfig { directory: folder.path().to_owned(), key: KEY };
        let config = SandboxConfig {
            cache: Some(cache),
            max_instances: INSTANCES,
            ..SandboxConfig::default()
        };
        let sandbox = WasmSandbox::new(&config).expect("the sandbox starts");
        let guest = guest::component("reducer");
        let loaded = sandbox.load(&name(), guest.clone()).await;
        drop(loaded.unwrap_or_else(|error| panic!("{error}")));
        let mut files = fs::read_dir(folder.path()).expect("the folder can be read");
        let file = files.next().expect("the code is cached").expect("the folder can be read");
        let sound = fs::read(file.path()).expect("the file can be read");
        let world =
            Self { sandbox, folder: folder.path().to_owned(), guest, file: file.path(), sound };
        folder.close().expect("the folder can be removed");
        assert!(world.is_loaded(&world.sound).await, "the intact file is not loaded");
        world
    }

    /// Returns true if the sandbox loads the code in a file with this content.
    async fn is_loaded(&self, content: &[u8]) -> bool {
        fs::create_dir(&self.folder).expect("the folder can be created");
        fs::write(&self.file, content).expect("there is room");
        // This effort does not compile the component.
        let name = name();
        let loaded = self.sandbox.load_within(&name, self.guest.clone(), LoadEffort::Cached);
        let loaded = loaded.await.unwrap_or_else(|error| panic!("{error}"));
        fs::remove_dir_all(&self.folder).expect("the folder can be removed");
        loaded.is_some()
    }
}

fn name() -> PluginName {
    PluginName::new("guest").expect("the name is valid")
}
