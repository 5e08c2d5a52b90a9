//! Writes the bindings of the C SDK.

use std::fs;

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let folder = wattle_bindings::folder();
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, bytes) in wattle_bindings::generate()? {
        let file = folder.join(name);
        fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
