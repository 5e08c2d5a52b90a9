//! An HTTP client, rules, and servers with prepared responses.

use std::sync::LazyLock;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use wattle_graph::failure::Failure;
use wattle_net::{NetConfig, OutboundHttp, Secrets};
use wattle_run::caller_id::CallerId;
use wattle_run::grant::{Grants, HttpRule};
use wattle_run::hostcall::http::{HttpBody, HttpRequest, HttpResponse};
use wattle_run::limit::{Limits, NetLimits};
use wattle_run::ports::blob::{BlobInfo, BlobRef};
use wattle_run::ports::{BlobStore, Caller, Net};
use wiremock::MockServer;

/// The values of the secrets `KEY` and `OTHER`.
pub(crate) const KEY: &str = "k&y with/odd+signs";
pub(crate) const OTHER: &str = "other-secret-value";

/// A store that returns the same blob for every reference.
pub(crate) struct OneBlob(pub(crate) Bytes);

#[async_trait]
impl BlobStore for OneBlob {
    async fn put(&self, _: Bytes, _: &str) -> Result<BlobRef, Failure> {
        Err(Failure::internal("not here"))
    }

    async fn get(&self, _: BlobRef, _: u64, _: Option<u64>) -> Result<Bytes, Failure> {
        Ok(self.0.clone())
    }

    async fn stat(&self, blob: BlobRef) -> Result<BlobInfo, Failure> {
        Ok(BlobInfo { blob, size: self.0.len() as u64, media_type: String::new() })
    }
}

pub(crate) fn caller() -> Caller {
    Caller {
        app: "demo".to_owned().try_into().unwrap(),
        plugin: "demo".to_owned().try_into().unwrap(),
        tenant: None,
        owner: CallerId::default(),
    }
}

pub(crate) fn net() -> OutboundHttp {
    let values = [("KEY", KEY), ("OTHER", OTHER)];
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
    let secrets = Secrets::new(values.collect()).unwrap();
    OutboundHttp::new(&NetConfig::default(), secrets).unwrap()
}

/// Returns a rule for a host on the loopback interface, with every method and the secret `KEY`.
pub(crate) fn rule(host: &str, port: u16) -> HttpRule {
    HttpRule {
        host: host.into(),
        scheme: "http".into(),
        port: Some(port),
        methods: ["GET", "HEAD", "POST", "PUT"].map(str::to_owned).to_vec(),
        secrets: ["KEY".to_owned()].into(),
        private: true,
    }
}

pub(crate) fn rule_for(server: &MockServer) -> HttpRule {
    rule("127.0.0.1", server.address().port())
}

/// Returns grants with rules for HTTP only.
pub(crate) fn grants(rules: &[HttpRule]) -> Grants {
    Grants { http: rules.to_vec(), ..Grants::default() }
}

pub(crate) fn get(url: impl Into<String>) -> HttpRequest {
    HttpRequest {
        method: "GET".into(),
        url: url.into(),
        headers: Vec::new(),
        body: HttpBody::Empty,
        timeout_ms: None,
        idempotency_key: None,
        delay_ms: None,
    }
}

pub(crate) async fn send(
    rules: &[HttpRule],
    request: &HttpRequest,
) -> Result<HttpResponse, Failure> {
    send_within(rules, &NetLimits::default(), request).await
}

pub(crate) async fn send_within(
    rules: &[HttpRule],
    limits: &NetLimits,
    request: &HttpRequest,
) -> Result<HttpResponse, Failure> {
    static BLOB: LazyLock<OneBlob> = LazyLock::new(|| OneBlob(Bytes::from_static(b"blob bytes")));
    let limits = Limits { net: limits.clone(), ..Limits::default() };
    net().send(&caller(), &Grants { limits, ..grants(rules) }, request, &*BLOB).await
}

/// Starts a server that reads the first bytes of one request, writes `bytes` and then runs `then`.
/// Returns its port.
pub(crate) async fn raw_server<F, R>(bytes: Vec<u8>, then: F) -> u16
where
    F: FnOnce(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4];
        stream.read_exact(&mut head).await.unwrap();
        // The client may disconnect early.
        let _ = stream.write_all(&bytes).await;
        then(stream).await;
    });
    port
}

/// Asserts that neither `Display`, `Debug` nor the JSON of a failure contains a secret, plain or
/// percent-encoded.
pub(crate) fn assert_no_secret(failure: &Failure) {
    let shown = format!("{failure} {failure:?} {}", serde_json::to_string(failure).unwrap());
    for form in [KEY, OTHER, "k%26y", "k&y"] {
        assert!(!shown.contains(form), "{shown}");
    }
}
