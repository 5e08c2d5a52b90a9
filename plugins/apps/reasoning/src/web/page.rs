//! `GET /` and `GET /ui`: the page on which people ask, with the audit trail beside it.
//!
//! The page is one document, so that it works below any prefix, with or without a `/` at the end.

use wattle_plugin::prelude::{Failure, Request, Response, handler, random};

const MARKUP: &str = include_str!("../../page/page.html");
const STYLE: &str = include_str!("../../page/page.css");

/// In the order in which they use each other.
const SCRIPTS: &[&str] = &[
    include_str!("../../page/dom.js"),
    include_str!("../../page/api.js"),
    include_str!("../../page/answer.js"),
    include_str!("../../page/audit.js"),
    include_str!("../../page/chat.js"),
];

/// Bytes of a nonce. The standard asks for 128 bits at least.
const NONCE_BYTES: u32 = 16;

/// Shows the page.
#[handler(GET, "/")]
pub(crate) fn page(_request: &Request) -> Result<Response, Failure> {
    Ok(answer(&nonce()))
}

/// Shows the page at an address that says what it is.
#[handler(GET, "/ui")]
pub(crate) fn ui(_request: &Request) -> Result<Response, Failure> {
    Ok(answer(&nonce()))
}

fn nonce() -> String {
    random::bytes(NONCE_BYTES).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// No cache may keep it: a nonce is good for one answer.
fn answer(nonce: &str) -> Response {
    Response::bytes("text/html; charset=utf-8", document(nonce))
        .with_header("cache-control", "no-store")
        .with_header("content-security-policy", policy(nonce))
        .with_header("referrer-policy", "same-origin")
        .with_header("x-content-type-options", "nosniff")
}

/// Its own script and style, its own endpoints, and nothing else. The empty icon is a `data:` URL,
/// so that browsers do not look for one. Markup cannot be made from strings at all.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

fn document(nonce: &str) -> String {
    MARKUP
        .replace("{{nonce}}", nonce)
        .replace("{{style}}", STYLE)
        .replace("{{script}}", &SCRIPTS.join("\n"))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::web::Body;

    use super::{SCRIPTS, STYLE, answer, document};

    #[test]
    fn the_page_is_whole_and_asks_for_nothing_elsewhere() {
        let page = document("abc");
        assert_eq!(page.matches("nonce=\"abc\"").count(), 2);
        assert!(!page.contains("{{"), "every piece is in its place");
        for elsewhere in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn scripts_stay_within_their_element_and_make_no_markup() {
        assert!(!STYLE.contains("</"));
        for script in SCRIPTS {
            for bad in ["</script", "<!--", "innerHTML", "insertAdjacentHTML", "Storage", "cookie"]
            {
                assert!(!script.contains(bad), "{bad}");
            }
        }
    }

    #[test]
    fn the_policy_allows_what_is_in_the_page() {
        let answer = answer("abc");
        let header = |name: &str| {
            let mut headers = answer.headers.iter();
            headers.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        let policy = header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'nonce-abc';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(header("cache-control"), Some("no-store"));
        assert!(
            matches!(&answer.body, Body::Bytes(bytes) if bytes.starts_with(b"<!doctype html>"))
        );
    }
}
