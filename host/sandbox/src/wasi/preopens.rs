//! The preopened folders of a guest, which are the granted folders.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens;

use crate::host_state::HostState;

impl preopens::Host for HostState {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut directories = Vec::with_capacity(self.folders.len());
        for folder in &self.folders {
            let directory = self.table.push(Descriptor::Dir(folder.dir.clone()))?;
            directories.push((directory, folder.guest.clone()));
        }
        Ok(directories)
    }
}
