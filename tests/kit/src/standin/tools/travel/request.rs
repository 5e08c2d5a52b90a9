//! The request of the user, detected by words.

use crate::standin::question::{Question, Speaker};

/// Words for images.
const PICTURES: [&str; 4] = ["picture", "image", "photo", "illustration"];

/// Words for the page.
const PAGES: [&str; 4] = ["page", "html", "handbook", "design"];

/// Words for a repetition.
const AGAIN: [&str; 6] = ["again", "new", "other", "different", "instead", "redo"];

/// Words for generated images.
const MADE: [&str; 4] = ["ai", "generate", "generated", "draw"];

/// Maximum number of images that the tools accept.
const MAX_COUNT: u64 = 6;

/// The request of a user.
#[derive(Debug)]
pub(super) struct TravelRequest<'q> {
    /// The message with the newest URL, or the last message if there is no URL.
    pub(super) text: &'q str,
    /// A URL of a video in the message.
    pub(super) url: Option<&'q str>,
    /// The position of the first message with this URL in the conversation.
    pub(super) since: usize,
    /// Whether an earlier message has another video.
    pub(super) is_another_video: bool,
    /// Whether images are generated.
    pub(super) generated: bool,
    /// The requested number of images.
    pub(super) count: Option<u64>,
    /// Whether images are requested again.
    pub(super) pictures_again: bool,
    /// Whether the page is requested again.
    pub(super) page_again: bool,
}

impl<'q> TravelRequest<'q> {
    /// Parses all messages of the user.
    pub(super) fn read(question: &'q Question) -> Self {
        let turns = question.turns.iter().enumerate();
        let said: Vec<(usize, &str)> = turns
            .filter(|(_, turn)| turn.speaker == Speaker::User)
            .map(|(position, turn)| (position, turn.text.as_str()))
            .collect();
        let addressed: Vec<(usize, &str, &str)> = said
            .iter()
            .filter_map(|(position, text)| Some((*position, *text, url(text)?)))
            .collect();
        let newest = addressed.last().copied();
        // A repeated URL continues the guide of the first message with it.
        let same =
            addressed.iter().rev().take_while(|(.., url)| Some(*url) == newest.map(|it| it.2));
        let begun = same.last().copied();
        let last = said.last().map_or("", |(_, text)| *text);
        let since = begun.map_or(0, |(position, ..)| position);
        let words = words(last);
        let speaks =
            |of: &[&str]| words.iter().any(|word| of.iter().any(|it| word.starts_with(it)));
        let is_again =
            url(last).is_none() && words.iter().any(|word| AGAIN.contains(&word.as_str()));
        let about = said.iter().filter(|(position, _)| *position >= since).map(|(_, text)| *text);
        Self {
            text: newest.map_or(last, |(_, text, _)| text),
            url: newest.map(|(.., url)| url),
            since,
            is_another_video: addressed.iter().any(|(position, ..)| *position < since),
            generated: about.rev().find_map(wants_made).unwrap_or(false),
            count: count(&words),
            pictures_again: is_again && speaks(&PICTURES),
            page_again: is_again && (speaks(&PICTURES) || speaks(&PAGES)),
        }
    }
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Returns the first URL of a video in a text.
fn url(text: &str) -> Option<&str> {
    let is_video = |word: &&str| word.contains("youtube.com/") || word.contains("youtu.be/");
    let word = text.split_whitespace().find(is_video)?;
    Some(word.trim_matches(|c: char| "<>()[],.;\"'".contains(c)))
}

/// Returns whether a message requests generated images, or `None` if it does not mention images.
fn wants_made(text: &str) -> Option<bool> {
    let words = words(text);
    let speaks = words.iter().any(|word| PICTURES.iter().any(|it| word.starts_with(it)));
    speaks.then(|| words.iter().any(|word| MADE.contains(&word.as_str())))
}

/// Returns the number before a word for images, with at most one word in between.
fn count(words: &[String]) -> Option<u64> {
    let is_picture = |word: &String| PICTURES.iter().any(|it| word.starts_with(it));
    let index = words.iter().position(is_picture)?;
    let before = words[index.saturating_sub(2)..index].iter();
    let number = before.rev().find_map(|word| word.parse().ok())?;
    (1..=MAX_COUNT).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::{TravelRequest, count, words};
    use crate::standin::question::{Question, Speaker, Turn};

    fn request(texts: &[&'static str]) -> TravelRequest<'static> {
        let turn = |text: &&str| Turn::new(Speaker::User, (*text).to_owned(), Vec::new());
        let turns = texts.iter().map(turn).collect();
        let question = Box::leak(Box::new(Question { turns, ..Question::default() }));
        TravelRequest::read(question)
    }

    #[test]
    fn new_urls_begin_a_guide() {
        let first = request(&["hi", "see https://youtu.be/aaaaaaaaaaa."]);
        assert_eq!((first.url, first.since), (Some("https://youtu.be/aaaaaaaaaaa"), 1));
        let again =
            request(&["https://youtu.be/aaaaaaaaaaa", "go on", "https://youtu.be/aaaaaaaaaaa"]);
        assert_eq!((again.since, again.is_another_video), (0, false));
        let other = request(&["https://youtu.be/aaaaaaaaaaa", "https://youtu.be/bbbbbbbbbbb"]);
        assert_eq!((other.since, other.is_another_video), (1, true));
    }

    #[test]
    fn images_are_generated_only_on_request() {
        assert!(!request(&["Create a travel guide from this video: https://youtu.be/x"]).generated);
        assert!(request(&["https://youtu.be/x with AI pictures"]).generated);
        assert!(request(&["https://youtu.be/x", "generate images instead"]).generated);
        assert!(
            !request(&["https://youtu.be/x with AI pictures", "other photos please"]).generated
        );
        assert_eq!(count(&words("please make 3 new pictures")), Some(3));
        assert_eq!(count(&words("9 images")), None);
    }
}
