//! `GET /api/chat/downloads/{file}`: a result as CSV, for its owner.

use wattle_plugin::prelude::{Failure, Request, Response, handler};
use wattle_plugin::web::{refuse, respond, status};

use crate::owner::Owner;
use crate::store::downloads;
use crate::web::ErrorEnvelope;

/// Sends a file. A request with its `etag` gets status 304.
#[handler(GET, "/api/chat/downloads/{file}", bytes = "text/csv", returns(304),
    error = ErrorEnvelope)]
pub(crate) fn download(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorEnvelope>(request, || {
        let owner = Owner::of_request(request)?;
        let file: String = request.param("file")?;
        // A file of another owner gets the same response as a missing file.
        let missing = || refuse(status::NOT_FOUND, "文件不存在或已过期");
        if !is_name(&file) {
            return Err(missing());
        }
        let blob = downloads::find(&file, &owner)?.ok_or_else(missing)?;
        Ok(Response::blob(blob)
            .with_header("content-disposition", format!("attachment; filename=\"{file}\"")))
    })
}

/// Returns true for a file name that the app creates, which is never a path.
fn is_name(file: &str) -> bool {
    file.strip_suffix(".csv").is_some_and(|stem| {
        !stem.is_empty() && stem.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, params, sql};
    use wattle_plugin::web::Body;

    use super::download;
    use crate::testing::business;

    fn get(file: &str) -> wattle_plugin::web::Response {
        let blob = format!("blob:{}", "0".repeat(64));
        let host = business(move |statement| {
            assert!(statement.text.contains("s.admin_id = $3"), "{}", statement.text);
            let is_known = statement.parameters[0] == "a-1.csv".into();
            let rows = if is_known { vec![params![&blob]] } else { Vec::new() };
            Ok(sql::Rows::new(["blob"], rows).into())
        });
        let request = Request::new("GET", "/").with_param("file", file);
        host.run(|| download(&request)).unwrap()
    }

    #[test]
    fn file_is_sent_as_an_attachment() {
        let response = get("a-1.csv");
        assert!(matches!(response.body, Body::Blob(_)));
        let header =
            ("content-disposition".to_owned(), "attachment; filename=\"a-1.csv\"".to_owned());
        assert_eq!(response.headers, [header]);
    }

    #[test]
    fn other_names_are_not_found() {
        for file in ["b-1.csv", "..", "../a-1.csv", "a-1.csv/..", ".csv", "a-1.txt", "a\".csv"] {
            assert_eq!(get(file).status, 404, "{file}");
        }
    }
}
