//! Photographs of Unsplash. If the service fails, the caller generates images instead.

use wattle_plugin::Failure;
use wattle_plugin::http::{self, Request, Response};
use wattle_plugin::prelude::{Deserialize, code, log, settings};

use crate::html::{Sources, is_link};
use crate::image::plan::Planned;
use crate::image::{ImageAsset, ImageSource};

/// Default of the setting `unsplash_base_url`.
const BASE_URL: &str = "https://api.unsplash.com";

/// Credentials of the service. The host inserts the secret.
const AUTHORIZATION: &str = "Client-ID {{secret:UNSPLASH_ACCESS_KEY}}";

/// Timeout of a request.
const TIMEOUT_MS: u32 = 15_000;

/// Status of a denied request, and of a request above the rate limit.
const FORBIDDEN: u16 = 403;

/// Prefix of a 403 response to a request above the rate limit.
const RATE_LIMIT: &str = "Rate Limit Exceeded";

/// The used fields of a search response. The service may send `null` for each.
#[derive(Deserialize)]
struct SearchResponse {
    results: Vec<Photo>,
}

#[derive(Deserialize)]
struct Photo {
    width: Option<u32>,
    height: Option<u32>,
    urls: Urls,
    links: Option<Links>,
    user: Option<User>,
}

#[derive(Deserialize)]
struct Urls {
    regular: Option<String>,
    full: Option<String>,
    raw: Option<String>,
}

#[derive(Deserialize)]
struct Links {
    html: Option<String>,
    download_location: Option<String>,
}

#[derive(Deserialize)]
struct User {
    name: Option<String>,
    username: Option<String>,
}

/// The reason why there is no photograph.
enum Miss {
    /// The rate limit is exceeded.
    RateLimited,
    /// Any other reason, as text.
    Other(String),
}

/// Searches a photograph for each plan, all in parallel; `None` where there is none.
///
/// # Errors
///
/// Returns `cancelled`, after which no request may be sent.
pub(crate) fn search(plans: &[Planned]) -> Result<Vec<Option<ImageAsset>>, Failure> {
    if !settings::get("unsplash_enabled")?.unwrap_or(true) {
        return Ok(plans.iter().map(|_| None).collect());
    }
    let base = settings::text_or("unsplash_base_url", BASE_URL)?;
    let base = base.trim_end_matches('/');
    let sources = Sources::read()?;
    let answers = http::send_all(plans.iter().map(|planned| request(base, planned)).collect());
    let mut images = Vec::with_capacity(plans.len());
    let (mut used, mut is_limited) = (Vec::new(), false);
    for (answer, planned) in answers.into_iter().zip(plans) {
        let found = match answer {
            Err(failure) if failure.code == code::CANCELLED => return Err(failure),
            Err(failure) => Err(Miss::Other(failure.message)),
            Ok(response) => read(response, planned, &sources),
        };
        images.push(match found {
            Ok((image, download)) => {
                used.extend(download);
                Some(image)
            }
            Err(miss) => {
                is_limited |= matches!(miss, Miss::RateLimited);
                log::warn!("no photograph for block `{}`: {}", planned.block_id, miss.reason());
                None
            }
        });
    }
    // After a refusal for too many requests, no further ones are sent.
    if !is_limited {
        tell_used(base, &used)?;
    }
    Ok(images)
}

impl Miss {
    fn reason(&self) -> &str {
        match self {
            Self::RateLimited => "the service wants fewer requests",
            Self::Other(reason) => reason,
        }
    }
}

fn request(base: &str, planned: &Planned) -> Request {
    signed(Request::get(format!("{base}/search/photos")))
        .query("query", &planned.query)
        .query("page", "1")
        .query("per_page", "1")
        .query("orientation", "landscape")
        .query("content_filter", "high")
}

fn signed(request: Request) -> Request {
    request
        .header("authorization", AUTHORIZATION)
        .header("accept-version", "v1")
        .timeout_ms(TIMEOUT_MS)
}

/// Returns the image, and the URL to which its use is reported.
fn read(
    response: Response,
    planned: &Planned,
    sources: &Sources,
) -> Result<(ImageAsset, Option<String>), Miss> {
    let is_limited = response.status == 429
        || response.status == FORBIDDEN && response.text().trim_start().starts_with(RATE_LIMIT);
    if is_limited {
        return Err(Miss::RateLimited);
    }
    let other = |failure: Failure| Miss::Other(failure.message);
    let response: SearchResponse = response.ok().map_err(other)?.json().map_err(other)?;
    let photo = response.results.into_iter().next();
    let photo = photo.ok_or_else(|| Miss::Other("nothing was found".to_owned()))?;
    photo
        .asset(planned, sources)
        .ok_or_else(|| Miss::Other("it has no address for pages".to_owned()))
}

impl Photo {
    fn asset(self, planned: &Planned, sources: &Sources) -> Option<(ImageAsset, Option<String>)> {
        let Urls { regular, full, raw } = self.urls;
        let mut addresses = [regular, full, raw].into_iter().flatten();
        let address = addresses.find(|address| sources.is_image(address))?;
        let mut image = ImageAsset::of(planned, ImageSource::Unsplash, address);
        let names =
            self.user.map(|user| [user.name, user.username]).into_iter().flatten().flatten();
        let mut names = names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        image.credit = Some(match names.next() {
            Some(name) => format!("Photo by {name} on Unsplash"),
            None => "Photo on Unsplash".to_owned(),
        });
        let (page, download) =
            self.links.map_or((None, None), |links| (links.html, links.download_location));
        image.source_page = page.filter(|page| is_link(page));
        (image.width, image.height) = (self.width, self.height);
        Some((image, download))
    }
}

/// Reports the used photographs to the service, as its rules demand. The service counts them for
/// their authors; the guide does not depend on it.
///
/// # Errors
///
/// Returns `cancelled`.
fn tell_used(base: &str, used: &[String]) -> Result<(), Failure> {
    // The key is sent only to the service, and never to a host that a response names.
    let is_own =
        |address: &&String| address.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
    let requests: Vec<Request> =
        used.iter().filter(is_own).map(|address| signed(Request::get(address.as_str()))).collect();
    if requests.is_empty() {
        return Ok(());
    }
    for answer in http::send_all(requests) {
        match answer.and_then(Response::ok) {
            Err(failure) if failure.code == code::CANCELLED => return Err(failure),
            Err(failure) => log::debug!("tell that a photograph is used: {failure}"),
            Ok(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
