//! The user of a request, whom a trusted proxy names in a header.
//!
//! The host does not authenticate users. It records the user name that a trusted proxy sends. A
//! request with the header from any other address is rejected, because ignoring the header would
//! hide a missing proxy in the configuration.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use wattle_graph::failure::code;

use crate::guard::limits::MAX_USER_BYTES;
use crate::problem::Problem;

/// The header that contains the user name, and the proxies that may send it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserHeader {
    /// Name of the header.
    pub name: HeaderName,
    /// Networks of the trusted proxies.
    pub proxies: Vec<IpNet>,
}

/// The name of the user, in the extensions of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User(pub(crate) String);

impl UserHeader {
    /// Returns the user of a request; `None` if the request names no user.
    ///
    /// # Errors
    ///
    /// `denied` if the request does not come from a trusted proxy, `invalid` for an invalid name.
    pub(super) fn read(&self, request: &Request) -> Result<Option<User>, Problem> {
        let mut values = request.headers().get_all(&self.name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        self.check_peer(request)?;
        if values.next().is_some() {
            return Err(self.invalid("has several values, but a request has at most one user"));
        }
        self.parse(value)
    }

    fn check_peer(&self, request: &Request) -> Result<(), Problem> {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|peer| peer.0.ip().to_canonical());
        if peer.is_some_and(|peer| self.proxies.iter().any(|network| network.contains(&peer))) {
            return Ok(());
        }
        let from = peer.map_or_else(|| "this process".to_owned(), |peer: IpAddr| peer.to_string());
        let name = &self.name;
        let detail = format!(
            "the header `{name}` is accepted from trusted proxies only, and the request comes from \
             {from}; omit the header, or add the proxy to `server.trusted_proxies`"
        );
        Err(Problem::new(code::DENIED, detail))
    }

    fn parse(&self, value: &HeaderValue) -> Result<Option<User>, Problem> {
        if value.is_empty() {
            return Ok(None);
        }
        if value.len() > MAX_USER_BYTES {
            return Err(self.invalid(&format!("has more than {MAX_USER_BYTES} bytes")));
        }
        match std::str::from_utf8(value.as_bytes()) {
            Ok(user) if !user.contains(char::is_control) => Ok(Some(User(user.to_owned()))),
            _ => Err(self.invalid("is not UTF-8 text on one line")),
        }
    }

    fn invalid(&self, what: &str) -> Problem {
        let detail = format!("the header `{}`, which names the user, {what}", self.name);
        Problem::new(code::INVALID, detail)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn read(peer: Option<&str>, values: &[&[u8]]) -> Result<Option<String>, String> {
        let proxies = ["10.1.0.0/16", "::1/128"].map(|network| network.parse().unwrap()).into();
        let header = UserHeader { name: HeaderName::from_static("x-user"), proxies };
        let mut request = Request::new(Body::empty());
        if let Some(peer) = peer {
            let peer: SocketAddr = peer.parse().unwrap();
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        for value in values {
            let value = HeaderValue::from_bytes(value).unwrap();
            request.headers_mut().append("x-user", value);
        }
        let user = header.read(&request).map_err(|problem| problem.code.clone())?;
        Ok(user.map(|user| user.0))
    }

    #[test]
    fn only_a_trusted_proxy_names_a_user() {
        let jane = Ok(Some("jane".to_owned()));
        for proxy in ["10.1.2.3:7", "[::ffff:10.1.2.3]:7", "[::1]:7"] {
            assert_eq!(read(Some(proxy), &[b"jane"]), jane, "{proxy}");
        }
        let denied = Err("denied".to_owned());
        for other in [Some("10.2.0.1:7"), Some("127.0.0.1:7"), Some("[2001:db8::1]:7"), None] {
            assert_eq!(read(other, &[b"jane"]), denied, "{other:?}");
            assert_eq!(read(other, &[b""]), denied, "{other:?}");
            assert_eq!(read(other, &[]), Ok(None), "{other:?}");
        }
    }

    #[test]
    fn user_name_is_one_line_of_limited_length() {
        let read = |values: &[&[u8]]| read(Some("[::1]:7"), values);
        assert_eq!(read(&["J\u{fc}rgen".as_bytes()]), Ok(Some("J\u{fc}rgen".to_owned())));
        assert_eq!(read(&[b""]), Ok(None));
        let longest = vec![b'x'; MAX_USER_BYTES];
        assert!(read(&[&longest]).is_ok());
        let invalid = Err("invalid".to_owned());
        assert_eq!(read(&[&[longest.as_slice(), b"x"].concat()]), invalid);
        for values in [[b"\xff\xfe".as_slice()].as_slice(), &[b"a\tb"], &[b"jane", b"joe"]] {
            assert_eq!(read(values), invalid, "{values:?}");
        }
        assert_eq!(read(&["a\u{85}b".as_bytes()]), invalid);
    }
}
