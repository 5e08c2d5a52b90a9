//! `travel`: a conversation that makes a travel guide, a web page, from the URL of a video.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::host::Host;
use crate::say;

const SESSIONS: &str = "/apps/travel/api/sessions";

/// The message of the user.
const MESSAGE: &str =
    "Make a travel guide with AI pictures of https://www.youtube.com/watch?v=dQw4w9WgXcQ";

/// Maximum number of characters that are shown of arguments and outputs.
const SHOWN_CHARS: usize = 150;

/// Makes a guide, shows each step while it streams, and saves the page.
pub(crate) async fn show(host: &Host) -> Result<()> {
    let session = host.post(SESSIONS, &json!({})).await?;
    let session = session["id"].as_str().context("no session")?;
    say(&format!("\n> {MESSAGE}"));
    let parts = json!([{ "type": "text", "text": MESSAGE }]);
    let message = json!({ "id": "demo-1", "role": "user", "parts": parts });
    let body = json!({ "sessionId": session, "messages": [message] });
    follow(host, &body).await?;

    let made = host.get(&format!("{SESSIONS}/{session}")).await?;
    ensure!(made["status"] == "COMPLETED", "no guide: {made}");
    let guide = format!("/apps/travel/api/guide/{session}");
    let page = with_pictures(host, &host.text(&guide).await?).await?;
    let file = host.folder()?.join("guide.html");
    std::fs::write(&file, page)?;
    say(&format!("\nthe guide \"{}\"", made["title"].as_str().unwrap_or_default()));
    say(&format!("  on the server: {}{guide}", host.address));
    say(&format!("  saved as {}", file.display()));

    say("\n== requests to outside services");
    for (what, times) in called(host).await? {
        say(&format!("  {times:>2} x {what}"));
    }
    Ok(())
}

/// Prints a streamed response.
async fn follow(host: &Host, body: &Value) -> Result<()> {
    let mut response = host.open("/apps/travel/api/chat", body).await?;
    let (mut open, mut words) = (String::new(), String::new());
    while let Some(piece) = response.chunk().await? {
        // The texts of the demo are ASCII, so no chunk ends within a character.
        open.push_str(&String::from_utf8_lossy(&piece));
        while let Some((event, rest)) = open.split_once("\n\n") {
            if let Some(chunk) = event.strip_prefix("data: ").filter(|data| *data != "[DONE]") {
                show_chunk(&serde_json::from_str(chunk)?, &mut words)?;
            }
            open = rest.to_owned();
        }
    }
    Ok(())
}

fn show_chunk(chunk: &Value, words: &mut String) -> Result<()> {
    match chunk["type"].as_str().unwrap_or_default() {
        "text-delta" => words.push_str(chunk["delta"].as_str().unwrap_or_default()),
        "text-end" => say(&std::mem::take(words)),
        "tool-input-available" => {
            let tool = chunk["toolName"].as_str().unwrap_or_default();
            say(&format!("  {tool} {}", short(&chunk["input"])));
        }
        "tool-output-available" => say(&format!("    -> {}", short(&chunk["output"]))),
        "tool-output-error" | "error" => bail!("the guide failed: {chunk}"),
        _ => {}
    }
    Ok(())
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN_CHARS {
        return text;
    }
    text.chars().take(SHOWN_CHARS).chain("...".chars()).collect()
}

/// Returns the page with all images inlined, so that the saved file needs no server.
async fn with_pictures(host: &Host, page: &str) -> Result<String> {
    let mut whole = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("src=\"") {
        let (picture, after) = after.split_once('"').context("a `src` attribute without an end")?;
        // Images of the host have paths; images of services have full URLs.
        let own = if picture.starts_with('/') { host.address.as_str() } else { "" };
        let picture = format!("{own}{}", picture.replace("&amp;", "&"));
        let data = STANDARD.encode(host.bytes(&picture).await?);
        whole.push_str(&format!("{before}src=\"data:image/png;base64,{data}\""));
        rest = after;
    }
    Ok(whole + rest)
}

/// Returns the number of requests for the guide, by path or model.
async fn called(host: &Host) -> Result<BTreeMap<String, usize>> {
    let journal = host.journal().await?;
    let mut counts = BTreeMap::new();
    for entry in journal.as_array().context("the request log is not an array")? {
        let path = entry["path"].as_str().unwrap_or_default();
        let model = entry["model"].as_str().unwrap_or_default();
        let services = ["/v2/", "/search", "/photos/"];
        let what = if services.iter().any(|start| path.starts_with(start)) {
            path
        } else if path.starts_with("/v1beta/") || model.starts_with("deepseek") {
            model
        } else {
            continue;
        };
        *counts.entry(what.to_owned()).or_default() += 1;
    }
    Ok(counts)
}
