//! An attacker who may write to the plugins folder of a host that watches it.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::sync::Arc;

use anyhow::{Result, ensure};

use super::app;
use super::host::Host;

/// Files that the attacker writes at once.
const FILES: usize = 200;

/// Writes many files that are not plugins, and overwrites a plugin chunk by chunk while the host
/// reads it. Then restores the folder.
pub(super) async fn many_and_half(host: Arc<Host>) -> Result<()> {
    let plugins = host.place.plugins();
    for number in 0..FILES {
        fs::write(plugins.join(format!("junk-{number}.wasm")), format!("text {number}"))?;
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
    let (status, problems) = host.get("/api/v1/problems").await?;
    ensure!(status == 200, "{status}: {problems}");
    for number in 0..FILES {
        fs::remove_file(plugins.join(format!("junk-{number}.wasm")))?;
    }
    app::put_app(&host.place);
    Ok(())
}
