//! `travel`: a conversation that makes a travel guide, a web page, from the address of a video.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::host::Host;
use crate::say;

const SESSIONS: &str = "/apps/travel/api/sessions";

/// What the user writes.
const MESSAGE: &str =
    "Make a travel guide with AI pictures of https://www.youtube.com/watch?v=dQw4w9WgXcQ";

/// Characters of arguments and outputs that are shown.
const SHOWN_CHARS: usize = 150;

/// Makes a guide and shows each step as it comes; saves the page.
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

    say("\n== what was called outside for it");
    for (what, times) in called(host).await? {
        say(&format!("  {times:>2} x {what}"));
    }
    Ok(())
}

/// Prints an answer while it streams.
async fn follow(host: &Host, body: &Value) -> Result<()> {
    let mut response = host.open("/apps/travel/api/chat", body).await?;
    let (mut open, mut words) = (String::new(), String::new());
    while let Some(piece) = response.chunk().await? {
        // The demo's texts are ASCII, so no character is cut.
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

/// The page with all of its pictures inside, so that the file can be opened from anywhere.
async fn with_pictures(host: &Host, page: &str) -> Result<String> {
    let mut whole = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("src=\"") {
        let (picture, after) = after.split_once('"').context("an address without an end")?;
        // Those of the host are paths; those of services have whole addresses.
        let own = if picture.starts_with('/') { host.address.as_str() } else { "" };
        let picture = format!("{own}{}", picture.replace("&amp;", "&"));
        let data = STANDARD.encode(host.bytes(&picture).await?);
        whole.push_str(&format!("{before}src=\"data:image/png;base64,{data}\""));
        rest = after;
    }
    Ok(whole + rest)
}

/// Requests of the guide, by path or model, and how many of each.
async fn called(host: &Host) -> Result<BTreeMap<String, usize>> {
    let journal = host.journal().await?;
    let mut counts = BTreeMap::new();
    for entry in journal.as_array().context("no journal")? {
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
