//! Stores blobs under the quotas of their owners.

use crate::gate::effect::{Effect, Site};
use crate::gate::unwind::Stop;
use crate::hostcall::blob::{Put, Stat};
use crate::ports::blob::{BlobInfo, BlobRef, BlobStore as _};

impl Effect for Put {
    async fn perform(&self, site: &Site<'_>) -> Result<BlobRef, Stop> {
        Ok(site.blobs().put(self.bytes.clone(), &self.media_type).await?)
    }
}

impl Effect for Stat {
    async fn perform(&self, site: &Site<'_>) -> Result<BlobInfo, Stop> {
        Ok(site.ports.blobs.stat(self.blob).await?)
    }
}
