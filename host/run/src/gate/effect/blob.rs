//! Stores blobs under the quotas of their owners.

use crate::gate::effect::{Effect, EffectContext};
use crate::gate::unwind::CallError;
use crate::hostcall::blob::{PutBlob, StatBlob};
use crate::ports::blob::{BlobInfo, BlobRef, BlobStore as _};

impl Effect for PutBlob {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<BlobRef, CallError> {
        Ok(context.blobs().put(self.bytes.clone(), &self.media_type).await?)
    }
}

impl Effect for StatBlob {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<BlobInfo, CallError> {
        Ok(context.ports.blobs.stat(self.blob).await?)
    }
}
