//! Matches paths against declared routes: `/items/{id}`, and `/files/{*path}` for the rest of a
//! path.

use wattle_run::ports::sandbox::WebRoute;

/// Names and values of parameters, in the order of the path.
type Params = Vec<(String, String)>;

/// The result of a route lookup.
#[derive(Debug, PartialEq)]
pub enum RouteMatch<'r> {
    /// A route with the values of its parameters, percent-decoded.
    Route(&'r WebRoute, Params),
    /// Routes match the path, but not the method. Contains the methods of these routes.
    MethodNotAllowed(Vec<String>),
    /// No route matches the path.
    NotFound,
}

/// Returns the route of a request. If several routes match, a literal segment takes precedence over
/// a parameter. A `GET` route also serves `HEAD`.
pub fn find<'r>(routes: &'r [WebRoute], method: &str, path: &str) -> RouteMatch<'r> {
    let mut best: Option<(Vec<SegmentKind>, &WebRoute, Params)> = None;
    let mut other_methods: Vec<String> = Vec::new();
    for route in routes {
        let Some(params) = matches(&route.path, path) else { continue };
        let has_method = route.method == method || (method == "HEAD" && route.method == "GET");
        if !has_method {
            other_methods.push(route.method.clone());
            continue;
        }
        let rank = segment_kinds(&route.path);
        if best.as_ref().is_none_or(|(known, ..)| rank < *known) {
            best = Some((rank, route, params));
        }
    }
    match best {
        Some((_, route, params)) => RouteMatch::Route(route, params),
        None if other_methods.is_empty() => RouteMatch::NotFound,
        None => {
            other_methods.sort();
            other_methods.dedup();
            RouteMatch::MethodNotAllowed(other_methods)
        }
    }
}

/// Returns true if a pattern matches a path.
pub fn matches_path(pattern: &str, path: &str) -> bool {
    matches(pattern, path).is_some()
}

/// Returns true if at least one path matches both patterns.
pub fn overlap(first: &str, second: &str) -> bool {
    let (mut first, mut second) = (segments(first), segments(second));
    loop {
        match (first.next(), second.next()) {
            (None, None) => return true,
            (Some(one), Some(two)) => {
                let kinds = [segment_kind(one), segment_kind(two)];
                if kinds.contains(&SegmentKind::Wildcard) {
                    return true;
                }
                if kinds == [SegmentKind::Literal; 2] && one != two {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// The kind of a segment, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SegmentKind {
    Literal,
    Param,
    Wildcard,
}

fn segments(path: &str) -> std::str::Split<'_, char> {
    path.strip_prefix('/').unwrap_or(path).split('/')
}

fn segment_kind(segment: &str) -> SegmentKind {
    match segment.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
        Some(name) if name.starts_with('*') => SegmentKind::Wildcard,
        Some(_) => SegmentKind::Param,
        None => SegmentKind::Literal,
    }
}

fn segment_kinds(pattern: &str) -> Vec<SegmentKind> {
    segments(pattern).map(segment_kind).collect()
}

fn matches(pattern: &str, path: &str) -> Option<Params> {
    let mut params = Vec::new();
    let mut rest = segments(path);
    for expected in segments(pattern) {
        let name = expected.trim_matches(|c| matches!(c, '{' | '}' | '*'));
        let mut param =
            |value: &str| decode(value).map(|value| params.push((name.to_owned(), value)));
        match segment_kind(expected) {
            SegmentKind::Literal => (decode(rest.next()?)? == expected).then_some(())?,
            SegmentKind::Param => param(rest.next().filter(|value| !value.is_empty())?)?,
            SegmentKind::Wildcard => {
                let all: Vec<&str> = rest.by_ref().collect();
                param(&all.join("/"))?;
            }
        }
    }
    rest.next().is_none().then_some(params)
}

/// Decodes percent encoding. Returns `None` if the result is not UTF-8.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match tail {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match code {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(routes: &[&str], request: &str, expected: &str) {
        let routes: Vec<WebRoute> = routes
            .iter()
            .map(|route| route.split_once(' ').unwrap())
            .map(|(method, path)| WebRoute {
                method: method.into(),
                path: path.into(),
                openapi: None,
            })
            .collect();
        let (method, path) = request.split_once(' ').unwrap();
        let found = match find(&routes, method, path) {
            RouteMatch::Route(route, params) => {
                let params: Vec<_> = params.iter().map(|(k, v)| format!(" {k}={v}")).collect();
                format!("{} {}{}", route.method, route.path, params.concat())
            }
            RouteMatch::MethodNotAllowed(methods) => format!("only {}", methods.join(",")),
            RouteMatch::NotFound => "nothing".into(),
        };
        assert_eq!(found, expected, "{request}");
    }

    #[test]
    fn find_prefers_literal_segments_and_decodes_parameters() {
        let routes =
            ["GET /items/{id}", "GET /items/new", "POST /items", "GET /f/{*path}", "GET /"];
        check(&routes, "GET /items/7", "GET /items/{id} id=7");
        check(&routes, "GET /items/new", "GET /items/new");
        check(&routes, "GET /items/a%2Fb%20c", "GET /items/{id} id=a/b c");
        check(&routes, "HEAD /items/7", "GET /items/{id} id=7");
        check(&routes, "GET /items", "only POST");
        check(&routes, "DELETE /items/7", "only GET");
        check(&routes, "GET /items/", "nothing");
        check(&routes, "GET /items/7/x", "nothing");
        check(&routes, "GET /f/a/b.txt", "GET /f/{*path} path=a/b.txt");
        check(&routes, "GET /", "GET /");
        check(&routes, "GET /items/%ff", "nothing");
    }

    #[test]
    fn patterns_with_a_common_path_overlap() {
        assert!(overlap("/a/{x}", "/a/b"));
        assert!(overlap("/a/{x}", "/{y}/b"));
        assert!(overlap("/a/{*rest}", "/a/b/c"));
        assert!(!overlap("/a/b", "/a/c"));
        assert!(!overlap("/a", "/a/{x}"));
    }
}
