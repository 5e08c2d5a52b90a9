//! Query parameters in the forms of both official LangGraph clients. A list is a repeated parameter
//! or a JSON array. A boolean is `true` or `false`, also with a capital letter, or `1` or `0`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::Value;

use crate::error::ApiError;

/// The query parameters of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryParams(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for QueryParams {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl QueryParams {
    fn parse(text: &str) -> Self {
        Self(url::form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns the value of a key; the first value if the key is repeated.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns a boolean; `false` if the key is missing.
    ///
    /// # Errors
    ///
    /// 422 if the value is not a boolean.
    pub(crate) fn get_bool(&self, key: &str) -> Result<bool, ApiError> {
        Ok(self.get_bool_opt(key)?.unwrap_or(false))
    }

    /// Returns a boolean; `None` if the key is missing.
    ///
    /// # Errors
    ///
    /// 422 if the value is not a boolean.
    pub(crate) fn get_bool_opt(&self, key: &str) -> Result<Option<bool>, ApiError> {
        match self.get(key) {
            None | Some("") => Ok(None),
            Some("0" | "false" | "False") => Ok(Some(false)),
            Some("1" | "true" | "True") => Ok(Some(true)),
            Some(other) => {
                let why = format!("`{key}` must be `true` or `false`, not `{other}`");
                Err(ApiError::unprocessable(why))
            }
        }
    }

    /// Returns a number; `None` if the key is missing.
    ///
    /// # Errors
    ///
    /// 422 if the value is not a number.
    pub(crate) fn get_usize(&self, key: &str) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.get(key).filter(|text| !text.is_empty()) else { return Ok(None) };
        let number = text.parse();
        number
            .map(Some)
            .map_err(|_| ApiError::unprocessable(format!("`{key}` must be a number, not `{text}`")))
    }

    /// Returns all values of a key, including the items of JSON lists.
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(name, _)| name == key).map(|(_, value)| value);
        // Some clients send an empty value for an empty list.
        values.filter(|value| !value.is_empty()).flat_map(|value| split_json_list(value)).collect()
    }

    /// Returns `path` with these parameters as its query. Parameters with empty values are left
    /// out.
    pub(crate) fn path_with_query(&self, path: &str) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.0.iter().filter(|(_, value)| !value.is_empty()));
        match query.finish() {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }
}

fn split_json_list(value: &str) -> Vec<String> {
    match serde_json::from_str(value) {
        Ok(Value::Array(items)) => {
            items.into_iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        }
        _ => vec![value.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_parameters_of_both_official_clients_are_parsed() {
        let python = QueryParams::parse("wait=true&stream_mode=values&stream_mode=custom&limit=7");
        let js = QueryParams::parse("wait=1&stream_mode=%5B%22values%22%2C%22custom%22%5D");
        for query in [&python, &js] {
            assert_eq!(query.get_bool("wait"), Ok(true));
            assert_eq!(
                (query.get_bool("other"), query.get_bool_opt("other")),
                (Ok(false), Ok(None))
            );
            assert_eq!(query.list("stream_mode"), ["values", "custom"]);
        }
        assert_eq!(python.get_usize("limit"), Ok(Some(7)));
        assert!(python.get_bool("limit").is_err());
        assert!(python.get_usize("wait").is_err());
    }

    #[test]
    fn path_with_query_omits_parameters_with_empty_values() {
        let query =
            QueryParams::parse("stream_mode=values&stream_mode=custom&cancel_on_disconnect=&x=%20");
        assert_eq!(
            query.path_with_query("stream"),
            "stream?stream_mode=values&stream_mode=custom&x=+"
        );
        assert_eq!(QueryParams::parse("stream_mode=").path_with_query("stream"), "stream");
        assert_eq!(QueryParams::parse("stream_mode=").list("stream_mode"), Vec::<String>::new());
    }
}
