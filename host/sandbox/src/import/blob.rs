//! `wattle:plugin/blob`: content-addressed bytes.

use bytes::Bytes;
use wattle_run::hostcall::HostCall;
use wattle_run::hostcall::blob::{PutBlob, StatBlob};

use crate::bindings::wattle::plugin::blob;
use crate::host_state::HostState;
use crate::import::types::parse_blob_ref;
use crate::import_error::ImportError;

impl blob::Host for HostState {
    async fn put(&mut self, bytes: Vec<u8>, media_type: String) -> Result<String, ImportError> {
        let blob = self.call(PutBlob { bytes: Bytes::from(bytes), media_type }).await?;
        Ok(blob.to_string())
    }

    async fn get(
        &mut self,
        blob: String,
        offset: u64,
        length: Option<u64>,
    ) -> Result<Vec<u8>, ImportError> {
        let gate = self.gate("blob.get")?;
        let bytes = self.off_cpu(gate.blob_get(&blob, offset, length)).await?;
        Ok(bytes.into())
    }

    async fn link(&mut self, blob: String) -> Result<String, ImportError> {
        let gate = self.gate("blob.link")?;
        Ok(self.off_cpu(gate.blob_link(&blob)).await?)
    }

    async fn stat(&mut self, blob: String) -> Result<blob::Info, ImportError> {
        let gate = self.gate(StatBlob::FUNCTION)?;
        let blob = parse_blob_ref(&blob, StatBlob::FUNCTION);
        let blob = blob.map_err(|failure| gate.refuse(failure))?;
        let info = self.call(StatBlob { blob }).await?;
        Ok(blob::Info { blob: info.blob.to_string(), size: info.size, media_type: info.media_type })
    }
}
