//! Signed paths under which blobs are served over HTTP.
//!
//! A path names the blob and is signed with a key of the host for one tenant. A path of a blob that
//! was not linked cannot be forged, and the host needs no list of links.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use wattle_graph::id::Digest;

use crate::ports::blob::BlobRef;

/// Prefix of every path.
pub const LINK_PREFIX: &str = "/blobs/";

/// Bytes of a signature. 128 bits cannot be guessed.
const SIGNATURE_BYTES: usize = 16;

/// Context of the key, which separates these signatures from other uses of the secret.
const KEY_CONTEXT: &str = "wattle blob link 1";

/// Name in a path for requests without a tenant. No tenant can have this name.
const NO_TENANT: &str = "~";

/// Creates and verifies paths of blobs.
#[derive(Clone)]
pub struct BlobLinks {
    key: [u8; 32],
}

/// The content of a valid path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedLink {
    /// The blob.
    pub blob: BlobRef,
    /// The tenant for which the path was created.
    pub tenant: Option<String>,
}

impl BlobLinks {
    /// Creates links that are signed with a secret of the host. Another secret invalidates all
    /// earlier links.
    pub fn new(secret: &[u8]) -> Self {
        Self { key: blake3::derive_key(KEY_CONTEXT, secret) }
    }

    /// Returns the path of a blob for a tenant: `/blobs/<tenant>/<digest>.<signature>`.
    pub fn path(&self, tenant: Option<&str>, blob: BlobRef) -> String {
        let tenant = tenant.unwrap_or(NO_TENANT);
        let digest = URL_SAFE_NO_PAD.encode(blob.0.as_bytes());
        format!("{LINK_PREFIX}{tenant}/{digest}.{}", self.sign(tenant, &digest))
    }

    /// Verifies the part of a path after the prefix. Returns `None` if this host did not sign it.
    pub fn verify(&self, tenant: &str, name: &str) -> Option<VerifiedLink> {
        let (digest, signature) = name.split_once('.')?;
        if !constant_time_eq(self.sign(tenant, digest).as_bytes(), signature.as_bytes()) {
            return None;
        }
        let bytes: [u8; 32] = URL_SAFE_NO_PAD.decode(digest).ok()?.try_into().ok()?;
        let tenant = (tenant != NO_TENANT).then(|| tenant.to_owned());
        Some(VerifiedLink { blob: BlobRef(Digest::from_bytes(bytes)), tenant })
    }

    fn sign(&self, tenant: &str, digest: &str) -> String {
        // The name of a tenant contains no slash, so two different pairs never give the same text.
        let signed = blake3::keyed_hash(&self.key, format!("{tenant}/{digest}").as_bytes());
        URL_SAFE_NO_PAD.encode(&signed.as_bytes()[..SIGNATURE_BYTES])
    }
}

impl std::fmt::Debug for BlobLinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobLinks").finish_non_exhaustive()
    }
}

/// Compares bytes in a time that does not depend on where they differ.
fn constant_time_eq(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_link_is_valid_only_for_its_blob_and_tenant() {
        let (links, others) = (BlobLinks::new(b"secret"), BlobLinks::new(b"other"));
        let blob = BlobRef(Digest::of(b"picture"));
        for tenant in [None, Some("acme")] {
            let path = links.path(tenant, blob);
            let (owner, name) = path.strip_prefix(LINK_PREFIX).unwrap().split_once('/').unwrap();
            let linked = links.verify(owner, name).unwrap();
            assert_eq!(linked, VerifiedLink { blob, tenant: tenant.map(str::to_owned) });
            assert_eq!(others.verify(owner, name), None, "a link of another host");
            assert_eq!(links.verify("else", name), None, "a link for another tenant");
            assert_eq!(links.verify(owner, &name[1..]), None, "a link of another blob");
            assert_eq!(links.verify(owner, &name[..name.len() - 1]), None, "cut");
        }
    }
}
