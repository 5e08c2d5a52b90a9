//! Which models are called for images, how often, and when the calls end.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use wattle_plugin::prelude::{Failure, code};
use wattle_plugin::testing::FakeHost;

use super::{BUDGET_MS, Made, Planned, generate};
use crate::testing::image_route;

type Pictures = Result<Vec<(String, Vec<u8>)>, Failure>;

fn plans(count: usize) -> Vec<Planned> {
    let plan = |number| Planned {
        block_id: format!("b{number}"),
        block_title: "Title".to_owned(),
        query: "query".to_owned(),
        prompt: format!("a photograph of {number}"),
        alt: "view".to_owned(),
    };
    (0..count).map(plan).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "the return type of a script, which may fail")]
fn picture() -> Pictures {
    Ok(vec![("image/png".to_owned(), b"png".to_vec())])
}

/// A host, and its models in the order in which they were called.
struct Slow {
    host: Rc<FakeHost>,
    asked: Rc<RefCell<Vec<u64>>>,
}

/// Returns a host whose models take `ms` milliseconds for a response.
fn slow(ms: u32, answer: impl Fn(u64) -> Pictures + 'static) -> Slow {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&asked);
    let host = Rc::new_cyclic(|host: &Weak<FakeHost>| {
        let clock = Weak::clone(host);
        image_route(FakeHost::new()).images(move |request| {
            if let Some(host) = clock.upgrade() {
                host.advance_ms(ms);
            }
            let model = request.extra["candidate"].as_u64().unwrap();
            noted.borrow_mut().push(model);
            answer(model)
        })
    });
    Slow { host, asked }
}

impl Slow {
    fn run(&self, count: usize) -> Made {
        self.host.run(|| generate(&plans(count))).unwrap()
    }

    fn asked(&self) -> Vec<u64> {
        self.asked.borrow().clone()
    }
}

#[test]
fn s3_33_s3_46_a_model_has_two_attempts_of_90_seconds() {
    let host = slow(1_000, |_| picture());
    assert_eq!(host.run(2).images.len(), 2);
    for request in host.host.image_requests() {
        assert_eq!(request.extra["retries"], 1);
        assert_eq!(request.extra["timeout_ms"], 90_000);
    }
    assert_eq!(host.asked(), [0, 0]);
}

#[test]
fn s3_32_the_model_that_succeeded_last_is_called_first() {
    let host = slow(1_000, |model| match model {
        0 => Err(Failure::not_found("no such model")),
        _ => picture(),
    });
    let made = host.run(3);
    assert_eq!((made.images.len(), made.error), (3, None));
    assert_eq!(host.asked(), [0, 1, 1, 1]);
}

#[test]
fn s3_31_images_are_generated_for_five_minutes() {
    let host = slow(100_000, |_| picture());
    assert_eq!(host.run(6).images.len(), 3, "{BUDGET_MS}");
    let host = slow(200_000, |_| Err(Failure::unavailable("busy")));
    let made = host.run(6);
    assert_eq!((made.images.len(), made.error.as_deref()), (0, Some("busy")));
    assert_eq!(host.asked(), [0, 1]);
}

#[test]
fn s3_31_two_timeouts_in_a_row_end_the_generation() {
    let host = slow(1, |_| Err(Failure::timeout("no answer in time")));
    let made = host.run(6);
    assert!(made.images.is_empty() && made.error.is_some());
    assert_eq!(host.asked(), [0, 1]);
    let host = slow(1, |model| match model {
        0 => Err(Failure::timeout("no answer in time")),
        _ => picture(),
    });
    assert_eq!(host.run(3).images.len(), 3);
    assert_eq!(host.asked(), [0, 1, 1, 1]);
}

#[test]
fn missing_route_is_reported_and_no_plan_sends_no_request() {
    let made = FakeHost::new().run(|| generate(&plans(2))).unwrap();
    assert!(made.images.is_empty() && made.error.unwrap().contains("handbook_image"));
    assert!(FakeHost::new().run(|| generate(&[])).unwrap().error.is_none());
}

#[test]
fn cancelled_run_calls_no_further_model() {
    let host = slow(1, |_| Err(Failure::new(code::CANCELLED, "stopped")));
    assert_eq!(host.host.run(|| generate(&plans(2))).unwrap_err().code, code::CANCELLED);
    assert_eq!(host.asked(), [0]);
}
