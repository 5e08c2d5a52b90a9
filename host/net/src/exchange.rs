//! One request with its redirects.
//!
//! The host checks the rule, the address, the request rate and the secrets of every hop, as if the
//! guest had requested the hop. Placeholders are replaced only in what the guest wrote. A
//! placeholder in the URL of a redirect is not replaced, so that a server cannot obtain a secret
//! with it.

use std::collections::BTreeSet;
use std::error::Error as _;

use reqwest::header::{CONTENT_LENGTH, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::credentials::MASK;
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::limit::NetLimits;
use wattle_run::ports::{BlobStore, Caller};

use crate::body::{self, RequestBody};
use crate::clients::Clients;
use crate::header::{self, Headers};
use crate::request_url;
use crate::resolver::BlockedAddress;
use crate::rule;
use crate::secret::{self, Position, SecretInjector};

/// A request of a guest with its redirects and its retry after a rejected token.
pub(crate) struct Exchange<'a> {
    clients: &'a Clients,
    caller: &'a Caller,
    grants: &'a Grants,
    limits: &'a NetLimits,
    injector: SecretInjector<'a>,
}

/// The next request of an exchange.
#[derive(Clone)]
struct Hop {
    method: Method,
    url: Url,
    /// Whether the guest wrote the URL. Placeholders in the URL of a redirect are not replaced.
    is_guest_url: bool,
    headers: Headers,
    body: RequestBody,
    /// The names of the managed tokens in the body. A long body is scanned once for all hops.
    body_tokens: BTreeSet<String>,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(clients: &'a Clients, caller: &'a Caller, grants: &'a Grants) -> Self {
        let (limits, injector) = (&grants.limits.net, SecretInjector::new(clients.secrets()));
        Self { clients, caller, grants, limits, injector }
    }

    /// Sends the request. If the response rejects a managed token, refreshes the rejected tokens
    /// and sends the request once more: a service that rejects a token has not executed the
    /// request.
    pub(crate) async fn run(
        mut self,
        request: &HttpRequest,
        blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        let first = self.initial_hop(request, blobs).await?;
        let response = self.follow(first.clone()).await?;
        if self.invalidate_rejected_tokens(&response).await {
            self.follow(first).await
        } else {
            Ok(response)
        }
    }

    /// Returns the hop that the guest requested.
    async fn initial_hop(
        &self,
        request: &HttpRequest,
        blobs: &dyn BlobStore,
    ) -> Result<Hop, Failure> {
        let mut hop = Hop {
            method: parse_method(&request.method)?,
            url: request_url::parse(&request.url)?,
            is_guest_url: true,
            headers: Headers::parse(request)?,
            body: RequestBody::Empty,
            body_tokens: BTreeSet::new(),
        };
        // The check precedes the load of the body, so that a denied request does not read a blob.
        rule::authorize(self.caller, self.grants, hop.method.as_str(), &hop.url)?;
        hop.body = RequestBody::load(&request.body, self.limits.request_bytes, blobs).await?;
        let (text, secrets) = (hop.body.text().unwrap_or_default(), self.clients.secrets());
        let (owner, is_long) = (self.caller.owner, is_long_parse(text.len()));
        let scan = || secrets.token_names_in(text);
        hop.body_tokens = block_in_place_in_turn(owner, is_long, scan).await;
        Ok(hop)
    }

    /// Sends a hop and follows redirects. If `limits.redirects` is 0, returns the redirect as the
    /// response.
    async fn follow(&mut self, mut hop: Hop) -> Result<HttpResponse, Failure> {
        let mut followed = 0;
        loop {
            let (url, response) = self.send(&hop).await?;
            let next = match location(&response) {
                Some(location) if self.limits.redirects > 0 => request_url::join(&url, location)?,
                _ => return self.read_response(&url, response).await,
            };
            if followed == self.limits.redirects {
                return Err(too_many_redirects(self.limits.redirects));
            }
            followed += 1;
            hop.redirect(next, response.status());
        }
    }

    /// Sends one hop. Returns its URL with the secrets inserted, which guests must not see, and the
    /// response.
    async fn send(&mut self, hop: &Hop) -> Result<(Url, Response), Failure> {
        let method = hop.method.as_str();
        let permissions = rule::authorize(self.caller, self.grants, method, &hop.url)?;
        let (caller, grants) = (self.caller, self.grants);
        let allowed = |name: &str| {
            let denied = || rule::secret_denied(caller, grants, method, &hop.url, name);
            permissions.secrets.contains(name).then_some(()).ok_or_else(denied)
        };
        self.fetch_tokens(hop, &allowed).await?;
        let mut url = hop.url.clone();
        if let Some(query) = hop.url.query().filter(|_| hop.is_guest_url) {
            let limit = header::VALUE_LIMIT;
            let filled = self.injector.inject(query, Position::Query, limit, &allowed)?;
            url.set_query(Some(&filled));
        }
        let headers = hop.headers.inject(&mut self.injector, &allowed)?;
        let (owner, is_long) = (caller.owner, is_long_parse(hop.body.text_bytes()));
        let (injector, limit) = (&mut self.injector, self.limits.request_bytes);
        let inject = || hop.body.inject(injector, limit, &allowed);
        let body = block_in_place_in_turn(owner, is_long, inject).await?;
        self.clients.rate_limiter().acquire(caller.owner, &request_url::host(&url)).await;
        tracing::debug!(
            plugin = %self.caller.plugin, method, host = %request_url::host(&url), "outbound request"
        );
        let client = self.clients.client(permissions.private);
        let mut request = client.request(hop.method.clone(), url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.map_err(|error| self.send_error(hop, &error))?;
        Ok((url, response))
    }

    /// Adds to `injector` the managed tokens whose placeholders occur in a hop. Fetches a token
    /// that is missing or expires soon.
    async fn fetch_tokens(
        &mut self,
        hop: &Hop,
        allowed: &(dyn Fn(&str) -> Result<(), Failure> + Sync),
    ) -> Result<(), Failure> {
        let clients = self.clients;
        let query = hop.url.query().filter(|_| hop.is_guest_url);
        let texts = query.into_iter().chain(hop.headers.raw_values());
        let names = texts.flat_map(secret::placeholder_names);
        let names: BTreeSet<&str> =
            names.chain(hop.body_tokens.iter().map(String::as_str)).collect();
        for name in names {
            let Some(token) = clients.secrets().token(name) else { continue };
            // The check precedes the fetch, so that a denied request does not fetch a token.
            allowed(name)?;
            if self.injector.token(name).is_none() {
                self.injector.add_token(name, token.value(clients).await?);
            }
        }
        Ok(())
    }

    /// Discards the managed tokens of this exchange that a response rejects. Returns true if the
    /// response rejects a token.
    async fn invalidate_rejected_tokens(&mut self, response: &HttpResponse) -> bool {
        let clients = self.clients;
        let mut refused = false;
        for name in self.injector.token_names() {
            let Some(token) = clients.secrets().token(&name) else { continue };
            if token.is_rejected_by(response)
                && let Some(value) = self.injector.remove_token(&name)
            {
                token.invalidate(&value).await;
                refused = true;
            }
        }
        refused
    }

    async fn read_response(
        &self,
        url: &Url,
        mut response: Response,
    ) -> Result<HttpResponse, Failure> {
        let origin = request_url::origin(url);
        let broken = |error: reqwest::Error| {
            self.unavailable(
                &origin,
                &format!("did not complete its response: {}", root_cause(&error)),
            )
        };
        let status = response.status().as_u16();
        let mut headers = header::response_headers(response.headers(), &self.injector)?;
        let (limit, mut memory) =
            (self.limits.response_bytes, self.clients.memory().response(self.caller.owner));
        let mut body = body::read_body(&mut response, limit, &mut memory, &broken).await?;
        let (owner, is_long) = (self.caller.owner, is_long_parse(body.len()));
        let redact = || self.injector.redact_body(&body);
        let redacted = block_in_place_in_turn(owner, is_long, redact).await;
        if let Some(scrubbed) = redacted {
            body = scrubbed.into();
            headers.retain(|(name, _)| name != CONTENT_LENGTH.as_str());
        }
        let url = self.injector.redact_encoded(url.as_str());
        let url = url.unwrap_or_else(|| format!("{origin}/{MASK}"));
        Ok(HttpResponse { status, headers, body, url })
    }

    /// Converts the error of a hop to a failure.
    fn send_error(&self, hop: &Hop, error: &reqwest::Error) -> Failure {
        if let Some(refused) = find_blocked_address(error) {
            let (caller, grants, method) = (self.caller, self.grants, hop.method.as_str());
            return rule::blocked_address(caller, grants, method, &hop.url, refused.address);
        }
        let origin = request_url::origin(&hop.url);
        if error.is_builder() {
            let message =
                format!("the request to `{origin}` cannot be sent: {}", root_cause(error));
            return Failure::new(code::INVALID, self.injector.redact(&message));
        }
        self.unavailable(&origin, &format!("cannot be reached: {}", root_cause(error)))
    }

    fn unavailable(&self, origin: &str, what: &str) -> Failure {
        let message = self.injector.redact(&format!("`{origin}` {what}"));
        Failure::new(code::UNAVAILABLE, message).retryable()
    }
}

impl Hop {
    /// Changes the hop to the target of a redirect, according to RFC 9110, section 15.4.
    fn redirect(&mut self, url: Url, status: StatusCode) {
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = RequestBody::Empty;
            self.body_tokens.clear();
            self.headers.drop_body_headers();
        }
        if url.origin() != self.url.origin() {
            self.headers.drop_credentials();
        }
        self.url = url;
        self.is_guest_url = false;
    }
}

/// Parses the method. Rejects CONNECT, which opens a tunnel, TRACE, which echoes the request with
/// its secrets, and lower-case letters.
fn parse_method(text: &str) -> Result<Method, Failure> {
    Method::from_bytes(text.as_bytes())
        .ok()
        .filter(|method| !matches!(*method, Method::CONNECT | Method::TRACE))
        .filter(|_| !text.chars().any(|c| c.is_ascii_lowercase()))
        .ok_or_else(|| {
            let message =
                format!("`{text}` is not a supported HTTP method; write for example `GET`");
            Failure::new(code::INVALID, message)
        })
}

/// Returns the target of a redirect.
fn location(response: &Response) -> Option<&str> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    response.headers().get(LOCATION).filter(|_| redirects)?.to_str().ok()
}

fn too_many_redirects(redirects: u32) -> Failure {
    let message = format!("the server redirects more than the allowed {redirects} times");
    Failure::new(code::LIMIT, message)
        .with_details(json!({ "limit": "redirects", "allowed": redirects }))
}

fn causes<'e>(
    error: &'e reqwest::Error,
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    // `cause.source()` would call the implementation of `Error` for references, whose result
    // borrows from `cause`.
    std::iter::successors(error.source(), |cause| (**cause).source())
}

fn find_blocked_address(error: &reqwest::Error) -> Option<&BlockedAddress> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Returns the innermost cause. Outer layers contain the URL, which can contain a secret.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "no reason was given".to_owned(), ToString::to_string)
}
