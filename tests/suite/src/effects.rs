//! HTTP that counts effects, and can stop on either side of one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::Notify;
use wattle_graph::failure::Failure;
use wattle_run::grant::HttpRule;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::limit::NetLimits;
use wattle_run::ports::{BlobStore, Caller, Net};

/// Where a request stops for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has had no effect.
    Before,
    /// It has had its effect, and its answer is lost.
    After,
}

/// Counts each request by its idempotency key, as a careful service does: what arrives again under
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
    /// The request of this number from now on, from 1, stops.
    pub fn stop_at(&self, number: usize, side: Side) {
        self.with(|counted| counted.stop = Some((number, side)));
    }

    /// No request stops any more.
    pub fn go_on(&self) {
        self.with(|counted| counted.stop = None);
    }

    /// Waits until a request stops.
    pub async fn stopped(&self) {
        self.stopped.notified().await;
    }

    /// The addresses of all effects by key.
    pub fn made(&self) -> BTreeMap<String, String> {
        self.with(|counted| counted.made.clone())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Counted) -> T) -> T {
        work(&mut self.counted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a request, and says whether it stops.
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
        _: &[HttpRule],
        _: &NetLimits,
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
