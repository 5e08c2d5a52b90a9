//! TLS with certificates that are reloaded when their files change.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::limits::{CERTIFICATE_BYTES, CERTIFICATE_PERIOD};
use crate::config::TlsConfig;
use crate::error::Error;

/// Application protocols (ALPN) in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificates of a server.
pub(super) struct Certificates {
    cert: PathBuf,
    key: PathBuf,
    /// Stamp of the certificate file and the key file, taken before the files were first read.
    initial_stamp: Stamp,
    current: RwLock<Arc<CertifiedKey>>,
}

/// Modification time and size of both files; `None` for a file that does not exist.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Certificates {
    /// Reads the certificate and its key.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] with the reason.
    pub(super) fn open(config: &TlsConfig, base: &Path) -> Result<Arc<Self>, Error> {
        let (cert, key) = (base.join(&config.cert), base.join(&config.key));
        // The stamp is taken before the files are read, so that a change in between is detected.
        let initial_stamp = stamp(&cert, &key);
        let current = read(&cert, &key).map_err(setup)?;
        Ok(Arc::new(Self { cert, key, initial_stamp, current: RwLock::new(Arc::new(current)) }))
    }

    /// Reloads the certificate when its files change. If the new files are unusable, the old
    /// certificate remains in use. Never completes.
    pub(super) async fn reload_on_change(&self) {
        let mut known = self.initial_stamp;
        loop {
            tokio::time::sleep(CERTIFICATE_PERIOD).await;
            let stamp = stamp(&self.cert, &self.key);
            if stamp == known {
                continue;
            }
            known = stamp;
            match read(&self.cert, &self.key) {
                Ok(reloaded) => {
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) =
                        Arc::new(reloaded);
                    let cert = self.cert.display();
                    tracing::info!(%cert, "new connections use the new certificate");
                }
                Err(message) => tracing::error!("{message}; the old certificate stays in use"),
            }
        }
    }
}

fn stamp(cert: &Path, key: &Path) -> Stamp {
    [cert, key].map(|file| {
        let metadata = std::fs::metadata(file).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("cert", &self.cert).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Returns a TLS acceptor that always uses the current certificate.
pub(super) fn acceptor(certificates: &Arc<Certificates>) -> Result<TlsAcceptor, Error> {
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(error.to_string()))?;
    let mut config = config.with_no_client_auth().with_cert_resolver(certificates.clone());
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns the crypto provider. The provider is selected explicitly, because other crates enable a
/// second provider.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

fn setup(message: String) -> Error {
    Error::Setup { what: "TLS", message }
}

fn read(cert: &Path, key: &Path) -> Result<CertifiedKey, String> {
    let unusable = |what: &str, file: &Path, reason: &dyn fmt::Display| {
        format!("`server.tls.{what}` (`{}`) cannot be used: {reason}", file.display())
    };
    let text = bytes(cert).map_err(|error| unusable("cert", cert, &error))?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable("cert", cert, &error))?;
    if chain.is_empty() {
        return Err(unusable("cert", cert, &"it has no `BEGIN CERTIFICATE` block"));
    }
    let text = bytes(key).map_err(|error| unusable("key", key, &error))?;
    let private =
        PrivateKeyDer::from_pem_slice(&text).map_err(|error| unusable("key", key, &error))?;
    CertifiedKey::from_der(chain, private, &provider()).map_err(|error| {
        unusable("key", key, &format!("{error}; it must be the key of `server.tls.cert`"))
    })
}

fn bytes(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(file)?.take(CERTIFICATE_BYTES + 1).read_to_end(&mut bytes)?;
    if read as u64 > CERTIFICATE_BYTES {
        let message = format!("it has more than {CERTIFICATE_BYTES} bytes");
        return Err(std::io::Error::other(message));
    }
    Ok(bytes)
}
