//! An HTTP port that counts effects and can stop before or after one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::Notify;
use wattle_graph::failure::Failure;
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::ports::{BlobStore, Caller, Net};

/// The point at which a request stops without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The request has had no effect.
    Before,
    /// The request has had its effect, and its response is lost.
    After,
}

/// Counts each request by its idempotency key, like a service with idempotency: a repetition under
/// the same key has no second effect.
#[derive(Default)]
pub struct Effects {
    counted: Mutex<Counted>,
    stopped: Notify,
}

#[derive(Default)]
struct Counted {
    made: BTreeMap<String, String>,
    stop: Option<(usize, Side)>,
}

impl Effects {
    /// Stops the request of this number, counted from now on and from 1.
    pub fn stop_at(&self, number: usize, side: Side) {
        self.with(|counted| counted.stop = Some((number, side)));
    }

    /// Lets all further requests pass.
    pub fn go_on(&self) {
        self.with(|counted| counted.stop = None);
    }

    /// Waits until a request stops.
    pub async fn stopped(&self) {
        self.stopped.notified().await;
    }

    /// Returns the URLs of all effects by key.
    pub fn made(&self) -> BTreeMap<String, String> {
        self.with(|counted| counted.made.clone())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Counted) -> T) -> T {
        work(&mut self.counted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a request and returns whether it stops.
    fn count(&self, request: &HttpRequest) -> bool {
        self.with(|counted| {
            let left = counted.stop.map(|(number, side)| (number - 1, side));
            counted.stop = left.filter(|(number, _)| *number > 0);
            let side = left.filter(|(number, _)| *number == 0).map(|(_, side)| side);
            if side != Some(Side::Before) {
                let key = request.idempotency_key.as_deref().unwrap_or(&request.url);
                counted.made.insert(key.to_owned(), request.url.clone());
            }
            side.is_some()
        })
    }
}

#[async_trait]
impl Net for Effects {
    async fn send(
        &self,
        _: &Caller,
        _: &Grants,
        request: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        if self.count(request) {
            self.stopped.notify_one();
            std::future::pending::<()>().await;
        }
        let (body, url) = (request.url.clone().into(), request.url.clone());
        Ok(HttpResponse { status: 200, headers: Vec::new(), body, url })
    }
}
