//! HTTPS, with certificates that are replaced while the server runs.

use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use reqwest::{Certificate, Client, ClientBuilder, Version};
use tokio::time::timeout;
use wattle::server::Server;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::workspace::Workspace;

const SOON: Duration = Duration::from_mins(1);

/// Generates a certificate for `localhost`.
fn make() -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

fn write(workspace: &Workspace, (cert, key): &(String, String)) {
    workspace.write("cert.pem", cert);
    workspace.write("key.pem", key);
}

async fn setup() -> Setup {
    Setup::bare().await.with("[server.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n")
}

/// Returns the HTTP version of a response to a client that trusts one certificate.
async fn get(
    server: &TestServer,
    cert: &str,
    change: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Option<Version> {
    let address = server.running.addr;
    let certificate = Certificate::from_pem(cert.as_bytes()).unwrap();
    let client = Client::builder().no_proxy().resolve("localhost", address);
    let client = change(client.tls_certs_only([certificate])).build().unwrap();
    let answer = client.get(format!("https://localhost:{}/healthz", address.port())).send().await;
    answer.ok().filter(|answer| answer.status() == 200).map(|answer| answer.version())
}

#[tokio::test]
async fn certificates_are_replaced_while_the_server_runs() {
    let (first, second) = (make(), make());
    let setup = setup().await;
    write(&setup.workspace, &first);
    let server = setup.start().await;
    assert!(server.running.url().starts_with("https://"));
    assert_eq!(get(&server, &first.0, |it| it).await, Some(Version::HTTP_2));
    assert_eq!(get(&server, &first.0, ClientBuilder::http1_only).await, Some(Version::HTTP_11));
    assert_eq!(get(&server, &second.0, |it| it).await, None, "another certificate");
    let plain = Client::builder().no_proxy().build().unwrap();
    let plain = plain.get(format!("http://{}/healthz", server.running.addr)).send().await;
    assert!(plain.is_err(), "no HTTP without TLS");

    // Certificate and key do not match while the files are replaced one after the other.
    server.setup.workspace.write("cert.pem", &second.0);
    let replaced = async {
        // The server checks the files each second, so at least two checks happen in this time.
        for _ in 0..30 {
            assert!(get(&server, &first.0, |it| it).await.is_some(), "the old one is kept");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        server.setup.workspace.write("key.pem", &second.1);
        while get(&server, &second.0, |it| it).await.is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(SOON, replaced).await.unwrap();
    assert_eq!(get(&server, &first.0, |it| it).await, None);
    server.running.shutdown().await;
}

#[tokio::test]
async fn commands_reach_a_server_over_tls() {
    let setup = setup().await;
    write(&setup.workspace, &make());
    let server = setup.start().await;
    let config = server.setup.config();
    let remote = wattle::client::find_server(&config).await.unwrap().expect("a running server");
    assert!(remote.address().starts_with("https://127.0.0.1:"));
    // A client that trusts another certificate does not accept the server.
    let mut config = config;
    server.setup.workspace.write("other.pem", make().0);
    config.server.tls.as_mut().unwrap().cert = "other.pem".into();
    assert!(wattle::client::find_server(&config).await.unwrap().is_none());
}

#[tokio::test]
async fn invalid_certificates_fail_the_start_with_the_setting() {
    let told = async |setup: &Setup| {
        let started = Box::pin(Server::start(setup.config(), setup.options())).await;
        started.err().expect("an error at start").to_string()
    };
    let setup = setup().await;
    let missing = told(&setup).await;
    assert!(missing.contains("`server.tls.cert`"), "{missing}");
    let (first, second) = (make(), make());
    write(&setup.workspace, &(first.0.clone(), second.1));
    let mixed = told(&setup).await;
    assert!(mixed.contains("`server.tls.key`") && mixed.contains("must be the key"), "{mixed}");
    write(&setup.workspace, &(first.1, first.0));
    let swapped = told(&setup).await;
    assert!(swapped.contains("`server.tls.cert`"), "{swapped}");
}

#[tokio::test]
async fn tls_does_not_replace_api_keys() {
    let setup = setup().await;
    write(&setup.workspace, &make());
    let setup = setup.replace("listen = \"127.0.0.1:0\"", "listen = \"0.0.0.0:0\"");
    let started = Box::pin(Server::start(setup.config(), setup.options())).await;
    let error = started.err().expect("an error at start").to_string();
    assert!(error.contains("0.0.0.0"), "{error}");
}
