//! One request with its redirects.
//!
//! Every hop is checked as if the guest had requested it: rule, address, rate, secrets.
//! Placeholders are replaced only in what the guest wrote, never in the URL of a redirect, so that
//! a server cannot request a secret.

use std::error::Error as _;

use reqwest::header::{CONTENT_LENGTH, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::credentials::MASK;
use wattle_run::grant::HttpRule;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::limit::NetLimits;
use wattle_run::ports::{BlobStore, Caller};

use crate::header::{self, Headers};
use crate::outbound::OutboundNet;
use crate::payload::{self, Payload};
use crate::resolver::Refused;
use crate::rule;
use crate::secret::{self, Filler, Place};
use crate::target;

/// A request of a guest with its redirects and its retry after a rejected token.
pub(crate) struct Exchange<'a> {
    net: &'a OutboundNet,
    caller: &'a Caller,
    rules: &'a [HttpRule],
    limits: &'a NetLimits,
    filler: Filler<'a>,
}

/// The next request of an exchange.
#[derive(Clone)]
struct Hop {
    method: Method,
    url: Url,
    /// Whether the guest wrote the URL. Only then its placeholders are replaced.
    own: bool,
    headers: Headers,
    payload: Payload,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        net: &'a OutboundNet,
        caller: &'a Caller,
        rules: &'a [HttpRule],
        limits: &'a NetLimits,
    ) -> Self {
        Self { net, caller, rules, limits, filler: Filler::new(net.secrets()) }
    }

    /// Sends the request. If the response rejects a managed token, refreshes the rejected tokens
    /// and sends the request once more: a service that rejects a token has not executed the
    /// request.
    pub(crate) async fn run(
        mut self,
        request: &HttpRequest,
        blobs: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        let first = self.first(request, blobs).await?;
        let answer = self.follow(first.clone()).await?;
        if self.drop_refused(&answer).await { self.follow(first).await } else { Ok(answer) }
    }

    /// Returns the hop that the guest requested.
    async fn first(&self, request: &HttpRequest, blobs: &dyn BlobStore) -> Result<Hop, Failure> {
        let mut hop = Hop {
            method: method(&request.method)?,
            url: target::parse(&request.url)?,
            own: true,
            headers: Headers::of(request)?,
            payload: Payload::Empty,
        };
        // Checked before the body is loaded, so that a denied request does no work.
        rule::permit(self.caller, self.rules, hop.method.as_str(), &hop.url)?;
        hop.payload = Payload::load(&request.body, self.limits.request_bytes, blobs).await?;
        Ok(hop)
    }

    /// Sends a hop and follows redirects. If `limits.redirects` is 0, returns the redirect as the
    /// response.
    async fn follow(&mut self, mut hop: Hop) -> Result<HttpResponse, Failure> {
        let mut followed = 0;
        loop {
            let (url, response) = self.send(&hop).await?;
            let next = match location(&response) {
                Some(location) if self.limits.redirects > 0 => target::join(&url, location)?,
                _ => return self.answer(&url, response).await,
            };
            if followed == self.limits.redirects {
                return Err(too_many(self.limits.redirects));
            }
            followed += 1;
            hop.redirect(next, response.status());
        }
    }

    /// Sends one hop. Returns its URL with the secrets inserted, which guests must not see, and the
    /// response.
    async fn send(&mut self, hop: &Hop) -> Result<(Url, Response), Failure> {
        let method = hop.method.as_str();
        let permit = rule::permit(self.caller, self.rules, method, &hop.url)?;
        let caller = self.caller;
        let allowed = |name: &str| {
            let denied = || rule::secret_denied(caller, method, &hop.url, name);
            permit.secrets.contains(name).then_some(()).ok_or_else(denied)
        };
        self.bring_tokens(hop, &allowed).await?;
        let mut url = hop.url.clone();
        if let Some(query) = hop.url.query().filter(|_| hop.own) {
            let filled = self.filler.fill(query, Place::Query, &allowed)?;
            url.set_query(Some(&filled));
        }
        let headers = hop.headers.fill(&mut self.filler, &allowed)?;
        let body = hop.payload.fill(&mut self.filler, &allowed)?;
        self.net.rates().wait(&target::host(&url)).await;
        tracing::debug!(
            plugin = %self.caller.plugin, method, host = %target::host(&url), "outbound request"
        );
        let client = self.net.client(permit.private);
        let mut request = client.request(hop.method.clone(), url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.map_err(|error| self.failed(hop, &error))?;
        Ok((url, response))
    }

    /// Adds the managed tokens to `filler` whose placeholders occur in a hop. Fetches a token that
    /// is missing or expires soon.
    async fn bring_tokens(
        &mut self,
        hop: &Hop,
        allowed: &(dyn Fn(&str) -> Result<(), Failure> + Sync),
    ) -> Result<(), Failure> {
        let net = self.net;
        let query = hop.url.query().filter(|_| hop.own);
        let texts = query.into_iter().chain(hop.headers.texts()).chain(hop.payload.text());
        for name in texts.flat_map(secret::names) {
            let Some(token) = net.secrets().token(name) else { continue };
            // Checked before the fetch, so that a denied request does no work.
            allowed(name)?;
            if self.filler.brought(name).is_none() {
                self.filler.bring(name, token.value(net).await?);
            }
        }
        Ok(())
    }

    /// Discards the tokens that a response rejects. Returns true if there are any.
    async fn drop_refused(&mut self, answer: &HttpResponse) -> bool {
        let net = self.net;
        let mut refused = false;
        for name in self.filler.tokens() {
            let Some(token) = net.secrets().token(&name) else { continue };
            if token.is_refused_by(answer)
                && let Some(value) = self.filler.take(&name)
            {
                token.forget(&value).await;
                refused = true;
            }
        }
        refused
    }

    async fn answer(&self, url: &Url, mut response: Response) -> Result<HttpResponse, Failure> {
        let origin = target::origin(url);
        let broken = |error: reqwest::Error| {
            self.unavailable(&origin, &format!("did not complete its response: {}", root(&error)))
        };
        let status = response.status().as_u16();
        let mut headers = header::answer(response.headers(), &self.filler)?;
        let mut body = payload::read(&mut response, self.limits.response_bytes, &broken).await?;
        if let Some(scrubbed) = self.filler.scrub_body(&body) {
            body = scrubbed.into();
            headers.retain(|(name, _)| name != CONTENT_LENGTH.as_str());
        }
        let url = self.filler.scrub_encoded(url.as_str());
        let url = url.unwrap_or_else(|| format!("{origin}/{MASK}"));
        Ok(HttpResponse { status, headers, body, url })
    }

    /// Converts the error of a hop to a failure.
    fn failed(&self, hop: &Hop, error: &reqwest::Error) -> Failure {
        if let Some(refused) = refusal(error) {
            let method = hop.method.as_str();
            return rule::unreachable(self.caller, method, &hop.url, refused.address);
        }
        let origin = target::origin(&hop.url);
        if error.is_builder() {
            let message = format!("the request to `{origin}` cannot be sent: {}", root(error));
            return Failure::new(code::INVALID, self.filler.scrub(&message));
        }
        self.unavailable(&origin, &format!("cannot be reached: {}", root(error)))
    }

    fn unavailable(&self, origin: &str, what: &str) -> Failure {
        let message = self.filler.scrub(&format!("`{origin}` {what}"));
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
            self.payload = Payload::Empty;
            self.headers.drop_body();
        }
        if url.origin() != self.url.origin() {
            self.headers.drop_credentials();
        }
        self.url = url;
        self.own = false;
    }
}

/// Parses the method. Rejects CONNECT, which opens a tunnel, TRACE, which echoes the request with
/// its secrets, and lower-case letters.
fn method(text: &str) -> Result<Method, Failure> {
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

fn too_many(redirects: u32) -> Failure {
    let message = format!("the server redirects more than the allowed {redirects} times");
    Failure::new(code::LIMIT, message)
        .with_details(json!({ "limit": "redirects", "allowed": redirects }))
}

fn causes<'e>(
    error: &'e reqwest::Error,
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    // `cause.source()` would call the implementation for references, and borrow from `cause`.
    std::iter::successors(error.source(), |cause| (**cause).source())
}

fn refusal(error: &reqwest::Error) -> Option<&Refused> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Returns the innermost cause. Outer layers contain the URL, which can contain a secret.
pub(crate) fn root(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "no reason was given".to_owned(), ToString::to_string)
}
