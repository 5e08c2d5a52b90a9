//! Converts the speech of a video to the blocks of a guide.

use serde_json::{Value, json};

/// The beginnings of sentences, and the types of their blocks.
const PATTERNS: [(&str, &str); 5] = [
    ("We visit ", "spot"),
    ("We eat ", "food"),
    ("We shop at ", "shopping"),
    ("We take ", "transport"),
    ("We remember ", "other"),
];

/// Blocks for a video with too few sentences.
const GENERAL: [(&str, &str); 4] = [
    ("transport", "Getting around"),
    ("food", "Where to eat"),
    ("shopping", "What to bring home"),
    ("other", "Before you go"),
];

/// Minimum and maximum number of blocks.
const COUNT: (usize, usize) = (4, 16);

/// Maximum length of a title, in bytes.
const MAX_TITLE: usize = 80;

/// Returns the blocks and, separately, the blocks that are spots.
pub(super) fn answer(text: &str) -> Value {
    let mut found = said(text);
    for (kind, title) in GENERAL {
        if found.len() >= COUNT.0 {
            break;
        }
        found.push((kind, title));
    }
    found.truncate(COUNT.1);
    let blocks: Vec<Value> =
        found.iter().zip(1_u32..).map(|(it, number)| block(*it, number)).collect();
    let spots: Vec<&Value> = blocks.iter().filter(|block| block["type"] == "spot").collect();
    json!({ "spot_blocks": spots, "blocks": blocks })
}

/// Returns type and title of all sentences, without duplicates and in order.
fn said(text: &str) -> Vec<(&'static str, &str)> {
    let mut places: Vec<(usize, &'static str, &str)> = Vec::new();
    for (begin, kind) in PATTERNS {
        for (place, _) in text.match_indices(begin) {
            let rest = &text[place + begin.len()..];
            let Some(end) = rest.find('.').filter(|end| *end <= MAX_TITLE) else { continue };
            let title = rest[..end].trim_start_matches("the ").trim();
            if !title.is_empty() && places.iter().all(|(_, _, known)| *known != title) {
                places.push((place, kind, title));
            }
        }
    }
    places.sort_by_key(|(place, ..)| *place);
    places.into_iter().map(|(_, kind, title)| (kind, title)).collect()
}

/// Returns a block as real models write it: with a generated id and untidy tags.
fn block((kind, title): (&str, &str), number: u32) -> Value {
    json!({
        "block_id": format!("block-{number}"),
        "type": kind,
        "title": title,
        "description": description(kind, title),
        "location": null,
        "smart_tags": [kind, " travel ", "travel"],
    })
}

fn description(kind: &str, title: &str) -> String {
    match kind {
        "spot" => format!("{title} is worth the way: come early, look around, take your time."),
        "food" => format!("{title} is what the video eats here. Go where the queue is."),
        "shopping" => format!("{title} is the place for small presents."),
        "transport" => format!("{title}: how the video gets from stop to stop."),
        _ => format!("{title}: good to know before you set out."),
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn sentences_become_blocks() {
        let found = answer(
            "We eat Soup.\\nYeah. We visit Tokyo Tower.\nWe visit Tokyo Tower. We visit Cut",
        );
        let titles: Vec<_> =
            found["blocks"].as_array().unwrap().iter().map(|b| &b["title"]).collect();
        assert_eq!(titles, ["Soup", "Tokyo Tower", "Getting around", "Where to eat"]);
        assert_eq!(found["spot_blocks"][0], found["blocks"][1]);
        assert_eq!(found["spot_blocks"].as_array().unwrap().len(), 1);
        assert_eq!(found["blocks"][1]["block_id"], "block-2");
    }
}
