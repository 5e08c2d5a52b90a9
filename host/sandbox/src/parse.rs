//! Converts requests of `wasi:http` without a guest, for the tests and the fuzzer.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use wasmtime_wasi_http::WasiBody;
use wattle_run::hostcall::http::HttpRequest;

use crate::wasi::http::message::{self, HeldBytes};

/// Converts a request to the call of the gate. Returns `None` if the guest gets an error instead,
/// such as for a body of more than `allowed_bytes` bytes.
pub async fn http_request(request: Request<Bytes>, allowed_bytes: u64) -> Option<HttpRequest> {
    let request = request.map(|bytes| -> WasiBody {
        Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
    });
    let mut held = HeldBytes::new(Arc::default(), allowed_bytes);
    message::into_call(request, None, allowed_bytes, &mut held).await.ok()
}
