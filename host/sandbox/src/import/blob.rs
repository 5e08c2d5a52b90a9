//! `wattle:plugin/blob`: content-addressed bytes.

use bytes::Bytes;
use wattle_run::hostcall::blob::{Put, Stat};

use crate::bindings::wattle::plugin::blob;
use crate::guest::Guest;
use crate::halt::Halt;
use crate::import::types::blob_ref;

impl blob::Host for Guest {
    async fn put(&mut self, bytes: Vec<u8>, media_type: String) -> Result<String, Halt> {
        let blob = self.call(Put { bytes: Bytes::from(bytes), media_type }).await?;
        Ok(blob.to_string())
    }

    async fn get(
        &mut self,
        blob: String,
        offset: u64,
        length: Option<u64>,
    ) -> Result<Vec<u8>, Halt> {
        let gate = self.gate("blob.get")?;
        let bytes = self.outside(gate.blob_get(&blob, offset, length)).await?;
        Ok(bytes.into())
    }

    async fn link(&mut self, blob: String) -> Result<String, Halt> {
        let gate = self.gate("blob.link")?;
        Ok(self.outside(gate.blob_link(&blob)).await?)
    }

    async fn stat(&mut self, blob: String) -> Result<blob::Info, Halt> {
        let info = self.call(Stat { blob: blob_ref(&blob, "blob.stat")? }).await?;
        Ok(blob::Info { blob: info.blob.to_string(), size: info.size, media_type: info.media_type })
    }
}
