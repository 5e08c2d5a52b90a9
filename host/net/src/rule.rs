//! Finds the rules of a grant that allow a hop.

use std::collections::BTreeSet;

use reqwest::Url;
use url::Host;
use wattle_graph::failure::{Failure, code};
use wattle_run::grant::{GrantSides, Grants, HttpRule};
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::ports::Caller;

use crate::address_class::{AddressClass, classify, is_address_allowed};
use crate::request_url;

/// What the rules that match a hop allow together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// Whether private addresses are allowed.
    pub(crate) private: bool,
    /// Names of the secrets that the request may contain.
    pub(crate) secrets: BTreeSet<String>,
}

/// Returns what the rules allow for a hop. Returns a failure with code `denied` if no rule matches
/// or the address of the URL is blocked. The failure names the rule to add, unless no rule can
/// allow the address.
pub(crate) fn authorize(
    caller: &Caller,
    grants: &Grants,
    method: &str,
    url: &Url,
) -> Result<Permissions, Failure> {
    let rules = grants.http.iter();
    let mut matching = rules.filter(|rule| matches(rule, method, url)).peekable();
    let literal = request_url::literal_address(url);
    if matching.peek().is_none() {
        return Err(match literal.filter(|&address| !is_address_allowed(address, true)) {
            Some(address) => blocked_address(caller, grants, method, url, address),
            None => missing_rule(caller, grants, method, url),
        });
    }
    let mut permissions = Permissions::default();
    for rule in matching {
        permissions.private |= rule.private;
        permissions.secrets.extend(rule.secrets.iter().cloned());
    }
    match literal {
        Some(address) if !is_address_allowed(address, permissions.private) => {
            Err(blocked_address(caller, grants, method, url, address))
        }
        _ => Ok(permissions),
    }
}

/// Checks that grants allow a request. Adapters that return a prepared response without sending the
/// request use this check.
///
/// # Errors
///
/// Returns a failure with code `denied` if the grants do not allow the request, or with code
/// `invalid` if the URL is invalid or not supported. A failure with code `denied` names the rule to
/// add, unless no rule can allow the address.
pub fn check_request(
    caller: &Caller,
    grants: &Grants,
    request: &HttpRequest,
) -> Result<(), Failure> {
    let url = request_url::parse(&request.url)?;
    authorize(caller, grants, &request.method, &url).map(drop)
}

/// Returns the failure of a request that no rule matches.
fn missing_rule(caller: &Caller, grants: &Grants, method: &str, url: &Url) -> Failure {
    let missing = grants.missing_side(
        |needs| needs.http.iter().any(|rule| has_method(rule, method)),
        |granted| granted.http.iter().any(|rule| matches(rule, method, url)),
    );
    let other = rule_for_other_origin(rules_that_decide(grants), url);
    let is_private = other.is_some_and(|rule| rule.private);
    let change = format!("add `http = [{}]`", suggested_rule(url, method, None, is_private));
    let reason = match other {
        Some(rule) => {
            let change = grants.change_in_files(&caller.app, &caller.plugin, &change, missing);
            format!(": its rule for `{}` has {}; {change}", rule.host, difference(rule, url))
        }
        None => format!("; {}", grants.remedy(caller, &change, missing)),
    };
    let (plugin, origin) = (&caller.plugin, request_url::origin(url));
    let message =
        format!("plugin `{plugin}` is not allowed to send `{method}` to `{origin}`{reason}");
    Failure::new(code::DENIED, message)
}

/// Returns the failure of a request whose host resolves to a blocked address.
pub(crate) fn blocked_address(
    caller: &Caller,
    grants: &Grants,
    method: &str,
    url: &Url,
    address: std::net::IpAddr,
) -> Failure {
    let origin = request_url::origin(url);
    let message = if is_address_allowed(address, true) {
        // The grant decides, or the request of an app that the operator vouches for.
        let missing = grants.missing_side(|_| true, |_| false);
        let change = format!("write `http = [{}]`", suggested_rule(url, method, None, true));
        format!(
            "`{origin}` resolves to the private address {address}, which plugin `{}` is not \
             allowed to reach; to allow it, {}",
            caller.plugin,
            grants.remedy(caller, &change, missing)
        )
    } else {
        format!("`{origin}` resolves to the address {address}, which no plugin is allowed to reach")
    };
    Failure::new(code::DENIED, message)
}

/// Returns the failure of a request whose target must not receive a secret.
pub(crate) fn secret_denied(
    caller: &Caller,
    grants: &Grants,
    method: &str,
    url: &Url,
    name: &str,
) -> Failure {
    let has_secret = |rule: &HttpRule| rule.secrets.contains(name);
    let missing = grants.missing_side(
        |needs| needs.http.iter().any(has_secret),
        |granted| granted.http.iter().any(|rule| has_secret(rule) && matches(rule, method, url)),
    );
    let is_private = grants.http.iter().any(|rule| rule.private && matches(rule, method, url));
    let rule = suggested_rule(url, method, Some(name), is_private);
    let message = format!(
        "plugin `{}` is not allowed to send the secret `{name}` to `{}`; {}",
        caller.plugin,
        request_url::origin(url),
        grants.remedy(caller, &format!("write `http = [{rule}]`"), missing)
    );
    Failure::new(code::DENIED, message)
}

/// Returns the rule that would allow a hop, as TOML, with a secret of the hop. The rule allows
/// private addresses if `is_private` is true, or if the host of the URL is one.
fn suggested_rule(url: &Url, method: &str, secret: Option<&str>, is_private: bool) -> String {
    let scheme = match url.scheme() {
        "https" => String::new(),
        other => format!(", scheme = \"{other}\""),
    };
    let port = url.port().map(|port| format!(", port = {port}")).unwrap_or_default();
    let secrets = secret.map(|name| format!(", secrets = [\"{name}\"]")).unwrap_or_default();
    let private = if is_private || has_private_host(url) { ", private = true" } else { "" };
    format!(
        "{{ host = \"{}\"{scheme}{port}, methods = [\"{method}\"]{secrets}{private} }}",
        request_url::host(url)
    )
}

/// Returns true if the host of a URL is a private address or `localhost`. Other names are not
/// resolved.
fn has_private_host(url: &Url) -> bool {
    match request_url::literal_address(url) {
        Some(address) => classify(address) == AddressClass::Private,
        None => request_url::host(url) == "localhost",
    }
}

/// Returns the rules that decide which hosts a plugin may send requests to.
fn rules_that_decide(grants: &Grants) -> &[HttpRule] {
    match grants.sides.as_deref() {
        Some(GrantSides { granted: Some(granted), .. }) => &granted.http,
        Some(GrantSides { request: Some((_, needs)), granted: None }) => &needs.http,
        _ => &grants.http,
    }
}

/// Returns a rule for the host of a URL with another scheme or port. Returns `None` if a rule for
/// the host has the scheme and the port of the URL.
fn rule_for_other_origin<'r>(rules: &'r [HttpRule], url: &Url) -> Option<&'r HttpRule> {
    let mut of_host = rules.iter().filter(|rule| host_matches(&rule.host, url));
    let first = of_host.next()?;
    let has_origin = |rule: &HttpRule| rule.scheme == url.scheme() && has_port(rule, url);
    (!has_origin(first) && !of_host.any(has_origin)).then_some(first)
}

/// Returns the scheme or the port of a rule, or both, if the URL has others, for messages. Default
/// ports of different schemes are no difference.
fn difference(rule: &HttpRule, url: &Url) -> String {
    let scheme = (rule.scheme != url.scheme()).then(|| format!("the scheme `{}`", rule.scheme));
    let has_default_ports = port(rule) == default_port(&rule.scheme) && url.port().is_none();
    let other_port = port(rule).filter(|_| !has_port(rule, url) && !has_default_ports);
    let port = other_port.map(|port| format!("the port {port}"));
    let parts: Vec<String> = scheme.into_iter().chain(port).collect();
    parts.join(" and ")
}

fn matches(rule: &HttpRule, method: &str, url: &Url) -> bool {
    rule.scheme == url.scheme()
        && has_port(rule, url)
        && has_method(rule, method)
        && host_matches(&rule.host, url)
}

fn port(rule: &HttpRule) -> Option<u16> {
    rule.port.or_else(|| default_port(&rule.scheme))
}

fn has_port(rule: &HttpRule, url: &Url) -> bool {
    url.port_or_known_default() == port(rule)
}

fn has_method(rule: &HttpRule, method: &str) -> bool {
    rule.methods.iter().any(|allowed| allowed == method)
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    }
}

/// Returns true if the host pattern of a rule matches the host of a URL. `*.example.com` matches
/// every name below `example.com`; a pattern without a star matches only the equal name. Both sides
/// are normalized by the URL standard.
fn host_matches(pattern: &str, url: &Url) -> bool {
    if let Some(parent) = pattern.strip_prefix("*.") {
        let (Some(Host::Domain(name)), Ok(Host::Domain(parent))) =
            (url.host(), Host::parse(parent))
        else {
            return false;
        };
        return name
            .strip_suffix(parent.as_str())
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|label| !label.is_empty());
    }
    let written = match pattern.parse::<std::net::Ipv6Addr>() {
        Ok(address) => Ok(Host::Ipv6(address)),
        Err(_) => Host::parse(pattern.strip_suffix('.').unwrap_or(pattern)),
    };
    written.is_ok_and(|written| url.host().is_some_and(|host| host.to_owned() == written))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use wattle_run::caller_id::CallerId;
    use wattle_run::grant::RequestPlace;

    use super::*;

    fn caller() -> Caller {
        Caller {
            app: "demo".to_owned().try_into().unwrap(),
            plugin: "demo".to_owned().try_into().unwrap(),
            tenant: None,
            owner: CallerId::default(),
        }
    }

    fn rule(host: &str) -> HttpRule {
        HttpRule {
            host: host.into(),
            scheme: "https".into(),
            port: None,
            methods: vec!["GET".into()],
            secrets: BTreeSet::new(),
            private: false,
        }
    }

    fn grants(rules: &[HttpRule]) -> Grants {
        Grants { http: rules.to_vec(), ..Grants::default() }
    }

    fn allowed(rule: HttpRule, method: &str, url: &str) -> bool {
        authorize(&caller(), &grants(&[rule]), method, &request_url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn scheme_host_port_and_method_must_match() {
        let http = HttpRule { scheme: "http".into(), ..rule("example.com") };
        let port = HttpRule { port: Some(8443), ..rule("example.com") };
        let cases = [
            (rule("example.com"), "GET", "https://example.com/a?b", true),
            (rule("Example.COM"), "GET", "https://example.com:443/", true),
            (rule("example.com"), "GET", "https://EXAMPLE.com./", true),
            (rule("example.com"), "POST", "https://example.com/", false),
            (rule("example.com"), "GET", "http://example.com/", false),
            (rule("example.com"), "GET", "https://example.com:8443/", false),
            (rule("example.com"), "GET", "https://a.example.com/", false),
            (rule("example.com"), "GET", "https://example.com.evil.org/", false),
            (http, "GET", "http://example.com/", true),
            (port.clone(), "GET", "https://example.com:8443/", true),
            (port, "GET", "https://example.com/", false),
            (rule("*.example.com"), "GET", "https://a.b.example.com/", true),
            (rule("*.example.com"), "GET", "https://example.com/", false),
            (rule("*.example.com"), "GET", "https://evilexample.com/", false),
            (rule("*"), "GET", "https://example.com/", false),
            (rule("*.1.1.1"), "GET", "https://1.1.1.1/", false),
            (rule("b\u{fc}cher.example"), "GET", "https://xn--bcher-kva.example/", true),
            (rule("8.8.8.8"), "GET", "https://8.8.8.8/", true),
            (rule("8.8.8.8"), "GET", "https://0x08080808/", true),
            (rule("2606:4700:4700::1111"), "GET", "https://[2606:4700:4700::1111]/", true),
            (rule("127.0.0.1"), "GET", "https://127.0.0.1/", false),
            (HttpRule { private: true, ..rule("127.0.0.1") }, "GET", "https://127.1/", true),
            (
                HttpRule { private: true, ..rule("169.254.169.254") },
                "GET",
                "https://169.254.169.254/",
                false,
            ),
        ];
        for (rule, method, url, expected) in cases {
            assert_eq!(allowed(rule.clone(), method, url), expected, "{rule:?} {method} {url}");
        }
    }

    #[test]
    fn denied_request_fails_with_a_suggested_rule() {
        let deny = |url: &str, rules: &[HttpRule]| {
            authorize(&caller(), &grants(rules), "GET", &request_url::parse(url).unwrap())
                .unwrap_err()
                .message
        };
        let message = deny("https://api.example.com/v1?q=private", &[]);
        assert!(
            message.contains(
                "add `http = [{ host = \"api.example.com\", methods = [\"GET\"] }]` under \
             `[grants.\"demo/demo\"]` in wattle.toml"
            ),
            "{message}"
        );
        assert!(!message.contains("private"));
        let message = deny("http://localhost:9000/", &[]);
        assert!(message.contains("scheme = \"http\", port = 9000"), "{message}");
        let message = deny("https://10.0.0.1/", &[rule("10.0.0.1")]);
        assert!(message.contains("methods = [\"GET\"], private = true"), "{message}");
    }

    #[test]
    fn a_suggested_rule_allows_the_private_address_of_a_url() {
        let deny = |url: &str| {
            let url = request_url::parse(url).unwrap();
            authorize(&caller(), &grants(&[]), "GET", &url).unwrap_err().message
        };
        for host in ["127.0.0.1", "localhost", "10.0.0.1", "[::1]", "[fd12::1]", "2130706433"] {
            let message = deny(&format!("https://{host}/"));
            let rule = "methods = [\"GET\"], private = true }]` under";
            assert!(message.contains(rule), "{host}: {message}");
        }
        for host in ["8.8.8.8", "localhost.example", "[2606:4700:4700::1111]"] {
            let message = deny(&format!("https://{host}/"));
            assert!(message.contains("methods = [\"GET\"] }]` under"), "{host}: {message}");
        }
        for host in ["169.254.169.254", "0.0.0.0", "[::ffff:127.0.0.1]"] {
            let message = deny(&format!("https://{host}/"));
            assert!(message.ends_with("which no plugin is allowed to reach"), "{host}: {message}");
        }
    }

    #[test]
    fn denied_request_names_the_side_that_lacks_its_rule() {
        let deny = |requested: &[HttpRule], granted: &[HttpRule]| {
            let request = Some((RequestPlace::App, grants(requested)));
            let sides = Some(Arc::new(GrantSides { request, granted: Some(grants(granted)) }));
            let none = Grants { sides, ..Grants::default() };
            let url = request_url::parse("https://a.example.com/").unwrap();
            authorize(&caller(), &none, "GET", &url).unwrap_err().message
        };
        let (own, other) = ([rule("a.example.com")], [rule("b.example.com")]);
        let table = "]` under `[grants.\"demo/demo\"]` in wattle.toml";
        // The operator alone decides about hosts.
        assert!(deny(&other, &[]).ends_with(table));
        let unrequested = "]` under `[needs]` in app.toml, which does not request it";
        assert!(deny(&[], &own).ends_with(unrequested));
        assert!(deny(&[], &other).contains("]` both under `[needs]` in app.toml and under"));
    }

    #[test]
    fn denied_request_names_the_scheme_and_the_port_of_the_rule_for_its_host() {
        let deny = |url: &str, requested: &[HttpRule], granted: Option<&[HttpRule]>| {
            let request = Some((RequestPlace::App, grants(requested)));
            let sides = Some(Arc::new(GrantSides { request, granted: granted.map(grants) }));
            let none = Grants { sides, ..Grants::default() };
            let url = request_url::parse(url).unwrap();
            authorize(&caller(), &none, "GET", &url).unwrap_err().message
        };
        let port = HttpRule { port: Some(8443), private: true, ..rule("a.example.com") };
        // The operator vouches for the app, so its requests decide.
        for (url, rule, reason) in [
            ("http://a.example.com/", rule("a.example.com"), "the scheme `https`;"),
            ("https://a.example.com:8443/", rule("a.example.com"), "the port 443;"),
            ("https://a.example.com/", port.clone(), "the port 8443;"),
            ("http://a.example.com:8443/", port.clone(), "the scheme `https`;"),
            ("http://a.example.com:80/", port.clone(), "the scheme `https` and the port 8443;"),
            (
                "http://a.example.com:1/",
                rule("*.example.com"),
                "the scheme `https` and the port 443;",
            ),
        ] {
            let message = deny(url, std::slice::from_ref(&rule), None);
            let expected = format!(": its rule for `{}` has {reason} add `http", rule.host);
            assert!(message.contains(&expected), "{url}: {message}");
            assert!(message.ends_with("]` under `[needs]` in app.toml"), "{url}: {message}");
            assert_eq!(message.contains("private = true"), rule.private, "{url}: {message}");
        }
        let own = [rule("a.example.com")];
        let message = deny("http://a.example.com/", &own, Some(&own[..]));
        assert!(message.contains(": its rule for `a.example.com` has the scheme `https`;"));
        assert!(message.ends_with("under `[grants.\"demo/demo\"]` in wattle.toml"), "{message}");
        // Rules without the method, and for other hosts.
        let post = HttpRule { methods: vec!["POST".into()], ..rule("a.example.com") };
        for rules in [&[post, port][..], &[rule("b.example.com")]] {
            let message = deny("https://a.example.com/", rules, None);
            assert!(message.ends_with("in app.toml, which does not request it"), "{message}");
            assert!(!message.contains("its rule"), "{message}");
        }
    }

    #[test]
    fn permissions_of_matching_rules_are_merged() {
        let secret = HttpRule { secrets: ["A".to_owned()].into(), ..rule("*.example.com") };
        let private = HttpRule { private: true, ..rule("a.example.com") };
        let other = HttpRule { secrets: ["B".to_owned()].into(), ..rule("b.example.com") };
        let url = request_url::parse("https://a.example.com/").unwrap();
        let permissions =
            authorize(&caller(), &grants(&[secret, private, other]), "GET", &url).unwrap();
        assert_eq!(permissions, Permissions { private: true, secrets: ["A".to_owned()].into() });
    }

    proptest! {
        #[test]
        fn rule_allows_only_hosts_that_match_its_pattern(
            a in "[a-z]{1,8}(\\.[a-z]{1,8}){1,3}", b in "[a-z]{1,8}(\\.[a-z]{1,8}){1,3}",
        ) {
            let url = format!("https://{b}/");
            prop_assert_eq!(allowed(rule(&a), "GET", &url), a == b);
            let below = b.ends_with(&format!(".{a}"));
            prop_assert_eq!(allowed(rule(&format!("*.{a}")), "GET", &url), below);
        }

        #[test]
        fn nothing_is_allowed_without_rules(host in "[a-z0-9.]{1,20}") {
            if let Ok(url) = request_url::parse(&format!("https://{host}/")) {
                prop_assert!(authorize(&caller(), &grants(&[]), "GET", &url).is_err());
            }
        }
    }
}
