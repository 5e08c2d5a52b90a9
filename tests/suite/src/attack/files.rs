//! An attacker who may write to the plugins folder of a host that watches it.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, ensure};
use serde_json::Value;
use wattle_kit::large_code::component_with_large_code;
use wattle_kit::slow_component::slow_component;

use super::app::{self, APP, CODE_BYTES};
use super::host::Host;
use super::until;
use crate::guests;

/// Files that the attacker writes at once.
const FILES: usize = 200;

/// The beginning of their names.
const JUNK: &str = "junk-";

/// What the host says of a file with text.
const TEXT: &str = "it is a text file, not WebAssembly";

/// What the host says of a file with other bytes.
const NO_WASM: &str = "it does not begin with the header of a WebAssembly file";

/// Components that the attacker writes at once, each of which takes minutes to compile. They fill
/// the places of the host for such components.
const SLOW: u32 = 2;

/// The name of a component whose compiled code does not fit in the memory of the host.
const LARGE: &str = "large-code";

/// Modules of this component, each of which has 16 MiB of code.
const MODULES: u32 = CODE_BYTES / (16 << 20) + 1;

/// What the host says of this component.
const NO_ROOM: &str = "`limits.code_memory`";

/// Number of the next slow component. The host remembers those that it could not compile.
static NEXT_SLOW: AtomicU32 = AtomicU32::new(0);

/// The end of a WebAssembly file: a custom section, which makes a copy of a component another one.
const CUSTOM_SECTION: [u8; 5] = [0, 3, 1, b'n', 0];

/// A file or folder that the host could not load.
struct Refused {
    /// The last part of its path.
    name: String,
    message: String,
}

/// Returns what the host could not load.
async fn refused(host: &Host) -> Result<Vec<Refused>> {
    let (status, problems) = host.get("/api/v1/problems").await?;
    ensure!(status == 200, "{status}: {problems}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let refused = problems.as_array().into_iter().flatten().map(|problem| {
        let path = text(&problem["path"]);
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Refused { name, message: text(&problem["message"]) }
    });
    Ok(refused.collect())
}

/// Writes many files that are not plugins, and overwrites a plugin chunk by chunk while the host
/// reads it. The host refuses each file with its reason. Then restores the folder.
pub(super) async fn many_and_half(host: Arc<Host>) -> Result<()> {
    let plugins = host.workspace.plugins();
    for number in 0..FILES {
        fs::write(plugins.join(format!("{JUNK}{number}.wasm")), format!("text {number}"))?;
    }
    let whole = fs::read(plugins.join("misdeeds/misdeeds.wasm"))?;
    // Without a rename, the host can read the beginning of one file and the end of the other.
    let mut file = fs::File::create(plugins.join("misdeeds/misdeeds.wasm"))?;
    for piece in whole.chunks(whole.len() / 20 + 1) {
        file.write_all(piece)?;
        file.flush()?;
        tokio::task::yield_now().await;
    }
    file.rewind()?;
    file.write_all(b"no component at all")?;
    file.set_len(whole.len() as u64 / 2)?;
    drop(file);
    until("each file is refused with its reason", || async {
        let refused = refused(&host).await?;
        let is_junk = |it: &&Refused| it.name.starts_with(JUNK) && it.message.contains(TEXT);
        let is_half = |it: &Refused| it.name == APP && it.message.contains(NO_WASM);
        let is_so = refused.iter().filter(is_junk).count() == FILES && refused.iter().any(is_half);
        anyhow::Ok(is_so.then_some(()))
    })
    .await?;
    for number in 0..FILES {
        fs::remove_file(plugins.join(format!("{JUNK}{number}.wasm")))?;
    }
    app::put_app(&host.workspace);
    until("the app is loaded again", || async {
        let is_ours = |it: &Refused| it.name.starts_with(JUNK) || it.name == APP;
        let is_over = !refused(&host).await?.iter().any(is_ours);
        anyhow::Ok(is_over.then_some(()))
    })
    .await
}

/// Writes components that take minutes to compile. Meanwhile the host loads a plugin that compiles
/// quickly. Then removes all of them.
pub(super) async fn slow_components(host: Arc<Host>) -> Result<()> {
    let plugins = host.workspace.plugins();
    let first = NEXT_SLOW.fetch_add(SLOW, Ordering::SeqCst);
    let mut slow = Vec::new();
    for number in first..first + SLOW {
        let name = format!("slow-{number}");
        host.workspace.write(&format!("plugins/{name}.wasm"), slow_component(number));
        slow.push(name);
    }
    until("slow components are being loaded", || async {
        let (status, ready) = host.get("/readyz").await?;
        ensure!(status == 200, "{status}: {ready}");
        let loading = ready["loading"]["plugins"].as_array().cloned().unwrap_or_default();
        anyhow::Ok(slow.iter().any(|name| loading.iter().any(|it| it == name)).then_some(()))
    })
    .await?;
    let mut quick = guests::bytes("wattle-guest-tools").to_vec();
    quick.extend(CUSTOM_SECTION);
    host.workspace.write("plugins/quick.wasm", quick);
    until("another plugin is loaded", || async {
        let (status, found) = host.get("/api/v1/plugins/quick").await?;
        ensure!(matches!(status, 200 | 404 | 503), "{status}: {found}");
        anyhow::Ok((status == 200).then_some(()))
    })
    .await?;
    for name in slow.iter().map(String::as_str).chain(["quick"]) {
        fs::remove_file(plugins.join(format!("{name}.wasm")))?;
    }
    until("nothing is being loaded", || async {
        let (status, ready) = host.get("/readyz").await?;
        ensure!(status == 200, "{status}: {ready}");
        anyhow::Ok(ready["loading"].is_null().then_some(()))
    })
    .await
}

/// Writes a small component whose compiled code is larger than that of all components may be. The
/// host refuses it. Then removes the component and its code, so that the next strike compiles it
/// again. The cache of compiled code must be the host's own.
pub(super) async fn large_code(host: Arc<Host>) -> Result<()> {
    let cache = host.workspace.code_cache();
    ensure!(!cache.is_symlink(), "{} is shared with other hosts", cache.display());
    let bytes = component_with_large_code(MODULES);
    host.workspace.write(&format!("plugins/{LARGE}.wasm"), bytes);
    until("the component is refused for its code", || async {
        let is_large = |it: &Refused| it.name.starts_with(LARGE) && it.message.contains(NO_ROOM);
        anyhow::Ok(refused(&host).await?.iter().any(is_large).then_some(()))
    })
    .await?;
    fs::remove_file(host.workspace.plugins().join(format!("{LARGE}.wasm")))?;
    until("the component is forgotten", || async {
        let is_large = |it: &Refused| it.name.starts_with(LARGE);
        anyhow::Ok((!refused(&host).await?.iter().any(is_large)).then_some(()))
    })
    .await?;
    remove_large_code(&cache)
}

/// Removes code that is larger than that of all components may be from a cache.
fn remove_large_code(cache: &Path) -> Result<()> {
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        // The host can have renamed its temporary file meanwhile.
        if fs::metadata(&path).is_ok_and(|facts| facts.len() > u64::from(CODE_BYTES)) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
