//! The model for the application `travel`: it calls the tools in sequence until the page exists. It
//! derives the completed steps from the conversation and from the system prompt.

mod request;

use serde_json::{Value, json};

use self::request::TravelRequest;
use super::{Dialogue, Move};
use crate::standin::question::{Ask, Question, Speaker, Turn};

const PARSE: &str = "parse_youtube_input";
const CRAWL: &str = "crawl_youtube_videos";
const BUILD: &str = "build_travel_blocks";
const RESOLVE: &str = "resolve_spot_coordinates";
const SEARCH: &str = "search_image";
const GENERATE: &str = "generate_image";
const PAGE: &str = "generate_handbook_html";

/// All tools, in the order of a guide.
const NAMES: [&str; 7] = [PARSE, CRAWL, BUILD, RESOLVE, SEARCH, GENERATE, PAGE];

/// The text before the names of completed steps in the system prompt.
const FINISHED: &str = "Finished steps:";

/// Number of failures of a tool in one turn of the user after which the model gives up.
const MAX_FAILURES: usize = 2;

/// The response to a message without a URL.
const ASKING: &str =
    "Please send me the address of a YouTube video, and I will make a travel guide of it.";

/// Decides the next step in conversations with the tools of a guide.
pub(super) fn decide(dialogue: &Dialogue<'_>) -> Option<Move> {
    if !dialogue.offers(PAGE) || !dialogue.offers(PARSE) {
        return None;
    }
    let story = Story::read(dialogue.question);
    if let Some(next) = story.after_failure() {
        return Some(next);
    }
    let image = if story.request.generated { GENERATE } else { SEARCH };
    let steps = [PARSE, CRAWL, BUILD, RESOLVE, image, PAGE];
    let next = steps.into_iter().find(|step| !story.is_done(step));
    Some(match next {
        None => Move::Say(story.closing()),
        Some(PARSE) if story.request.url.is_none() => Move::Say(ASKING.to_owned()),
        Some(CRAWL) if story.output(PARSE)["count"] == 0 => Move::Say(ASKING.to_owned()),
        Some(step) => story.call(step),
    })
}

/// The progress of a guide.
struct Story<'q> {
    request: TravelRequest<'q>,
    /// Completed steps according to the system prompt; empty if they belong to another video.
    finished: Vec<&'q str>,
    /// Tool calls for the video, oldest first.
    made: Vec<Made<'q>>,
}

struct Made<'q> {
    tool: &'q str,
    answer: &'q str,
    /// Whether the call follows the last user message.
    is_new: bool,
}

impl Made<'_> {
    fn failed(&self) -> bool {
        self.answer.starts_with("error:") || self.answer.is_empty()
    }
}

impl<'q> Story<'q> {
    fn read(question: &'q Question) -> Self {
        let request = TravelRequest::read(question);
        let turns = &question.turns;
        let last = turns.iter().rposition(|turn| turn.speaker == Speaker::User).unwrap_or(0);
        let since = turns.iter().enumerate().skip(request.since);
        let made = since.flat_map(|(position, turn)| {
            let later = &turns[position + 1..];
            let one = move |ask: &'q Ask| Made {
                tool: &ask.name,
                answer: answer_to(ask, later),
                is_new: position > last,
            };
            turn.asks.iter().map(one)
        });
        let finished = question.system.lines().rev().find_map(|line| line.strip_prefix(FINISHED));
        let finished = finished.filter(|_| !request.is_another_video).unwrap_or_default();
        Self {
            finished: finished.split(',').map(str::trim).collect(),
            made: made.collect(),
            request,
        }
    }

    fn is_done(&self, step: &str) -> bool {
        // One of the two image tools is sufficient.
        let is_same = |tool: &str| match step {
            SEARCH | GENERATE => tool == SEARCH || tool == GENERATE,
            step => tool == step,
        };
        if step == RESOLVE && self.has_no_spots() {
            return true;
        }
        let must_be_new = match step {
            SEARCH | GENERATE => self.request.pictures_again,
            PAGE => self.request.page_again,
            _ => false,
        };
        let mut made = self.made.iter().filter(|made| is_same(made.tool));
        // A guide can lack coordinates.
        let is_enough = |made: &Made<'_>| {
            (made.is_new || !must_be_new) && (!made.failed() || step == RESOLVE && made.is_new)
        };
        made.any(is_enough) || !must_be_new && self.finished.iter().any(|tool| is_same(tool))
    }

    fn has_no_spots(&self) -> bool {
        let built = self.output(BUILD);
        built["spotCount"] == 0 || built["spot_blocks"].as_array().is_some_and(Vec::is_empty)
    }

    /// Returns the newest successful output of a tool.
    fn output(&self, tool: &str) -> Value {
        let mut good = self.made.iter().rev().filter(|made| made.tool == tool && !made.failed());
        good.find_map(|made| serde_json::from_str(made.answer).ok()).unwrap_or_default()
    }

    /// Returns the step after a failure: the tool that the error names, or an apology.
    fn after_failure(&self) -> Option<Move> {
        let last = self.made.last().filter(|made| made.is_new && made.failed())?;
        let same = self.made.iter().filter(|made| made.is_new && made.tool == last.tool);
        let failures = same.filter(|made| made.failed()).count();
        if last.tool == RESOLVE {
            return None;
        }
        let named = NAMES.iter().find(|tool| **tool != last.tool && last.answer.contains(**tool));
        match named {
            Some(tool) if failures < MAX_FAILURES => {
                let tool = if *tool == SEARCH && self.request.generated { GENERATE } else { tool };
                Some(self.call(tool))
            }
            _ => {
                let reason = last.answer.trim_start_matches("error:").trim();
                Some(Move::Say(format!("I am sorry, `{}` did not work: {reason}", last.tool)))
            }
        }
    }

    fn call(&self, tool: &str) -> Move {
        let arguments = match tool {
            PARSE => json!({"userText": self.request.text}),
            CRAWL => match self.output(PARSE)["videoUrls"].as_array() {
                Some(urls) => json!({ "videoUrls": urls }),
                None => json!({"userText": self.request.text}),
            },
            SEARCH | GENERATE => match self.request.count {
                Some(count) => json!({ "count": count }),
                None => json!({}),
            },
            // The application has the blocks with their coordinates.
            PAGE => json!({"blocks": []}),
            _ => json!({}),
        };
        Move::Announce(
            announcement(tool).to_owned(),
            vec![(tool.to_owned(), arguments.to_string())],
        )
    }

    fn closing(&self) -> String {
        match self.output(PAGE)["preview_url"].as_str() {
            Some(url) => format!("Your travel guide is ready: [open it]({url})."),
            None => "Your travel guide is ready.".to_owned(),
        }
    }
}

fn answer_to<'q>(ask: &Ask, later: &'q [Turn]) -> &'q str {
    let answer = later.iter().find(|turn| turn.speaker == Speaker::Tool && turn.answers == ask.id);
    answer.map_or("", |turn| &turn.text)
}

fn announcement(tool: &str) -> &'static str {
    match tool {
        PARSE => "Let me look at the address.",
        CRAWL => "I am reading the video.",
        BUILD => "I am putting the guide together.",
        RESOLVE => "I am looking up the places.",
        SEARCH => "I am looking for pictures.",
        GENERATE => "I am making pictures.",
        _ => "I am writing the page.",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{NAMES, decide};
    use crate::standin::question::{Ask, Offer, Question, Speaker, Turn};
    use crate::standin::tools::{Dialogue, Move};

    const URL: &str = "Create a travel guide from this video: https://youtu.be/dQw4w9WgXcQ";

    fn question(text: &str, finished: &str) -> Question {
        let offer = |name: &&str| Offer { name: (*name).to_owned(), schema: json!({}) };
        let tools = NAMES.iter().map(offer).collect();
        let system = format!("Do it.\nFinished steps: {finished}\nThank you.");
        let mut question = Question { system, tools, ..Question::default() };
        says(&mut question, text);
        question
    }

    fn says(question: &mut Question, text: &str) {
        question.turns.push(Turn::new(Speaker::User, text.to_owned(), Vec::new()));
    }

    fn decided(question: &Question) -> Move {
        decide(&Dialogue::new(question)).unwrap()
    }

    /// Responds to calls with the results of `answer` until the model has no more calls. Returns
    /// the calls and the last text.
    fn run(question: &mut Question, answer: impl Fn(&str) -> String) -> (Vec<String>, String) {
        let mut calls = Vec::new();
        loop {
            match decided(question) {
                Move::Say(words) => return (calls, words),
                Move::Announce(words, asked) => {
                    assert!(!words.is_empty());
                    let (name, arguments) = asked[0].clone();
                    let id = format!("c{}", question.turns.len());
                    let turn = Turn::new(Speaker::Assistant, words, Vec::new());
                    let ask = Ask { id: id.clone(), name: name.clone(), arguments };
                    calls.push(format!("{} {}", ask.name, ask.arguments));
                    question.turns.push(Turn { asks: vec![ask], ..turn });
                    question.turns.push(Turn::answer(id, answer(&name)));
                }
                Move::Call(asked) => panic!("silent calls: {asked:?}"),
            }
            assert!(calls.len() < 9, "{calls:?}");
        }
    }

    fn good(tool: &str) -> String {
        let url = "https://www.youtube.com/watch?v=dQw4w9WgXcQ";
        let answer: Value = match tool {
            "parse_youtube_input" => json!({"videoUrls": [url], "count": 1}),
            "build_travel_blocks" => json!({"spotCount": 3}),
            "generate_handbook_html" => json!({"preview_url": "/api/guide/s1"}),
            _ => json!({}),
        };
        answer.to_string()
    }

    fn tools(calls: &[String]) -> Vec<&str> {
        calls.iter().map(|call| call.split(' ').next().unwrap()).collect()
    }

    #[test]
    fn a_guide_is_made_step_by_step() {
        let mut talk = question(URL, "none");
        let (calls, words) = run(&mut talk, good);
        let expected: Vec<&str> = NAMES.into_iter().filter(|it| *it != "generate_image").collect();
        assert_eq!(tools(&calls), expected);
        assert!(calls[1].contains("\"https://www.youtube.com/watch?v=dQw4w9WgXcQ\""), "{calls:?}");
        assert_eq!(words, "Your travel guide is ready: [open it](/api/guide/s1).");
        says(&mut talk, "please make 3 new pictures with AI images");
        let (calls, _) = run(&mut talk, good);
        assert_eq!(
            calls,
            ["generate_image {\"count\":3}", "generate_handbook_html {\"blocks\":[]}"]
        );
        says(&mut talk, "thank you");
        assert_eq!(run(&mut talk, good).0.len(), 0);
        says(&mut talk, "now https://youtu.be/kyotoTempl1");
        assert_eq!(run(&mut talk, good).0.len(), 6);
    }

    #[test]
    fn completed_steps_are_not_repeated() {
        let mut talk = question(URL, "parse_youtube_input, crawl_youtube_videos");
        let (calls, _) = run(&mut talk, good);
        assert_eq!(tools(&calls)[0], "build_travel_blocks");
        let mut all = question(URL, &NAMES.join(", "));
        assert_eq!(run(&mut all, good), (Vec::new(), "Your travel guide is ready.".to_owned()));
    }

    #[test]
    fn without_spots_no_coordinates_are_resolved() {
        let none = |tool: &str| {
            if tool == "build_travel_blocks" { "{\"spotCount\":0}".to_owned() } else { good(tool) }
        };
        let (calls, _) = run(&mut question(URL, "none"), none);
        assert!(!tools(&calls).contains(&"resolve_spot_coordinates"));
    }

    #[test]
    fn a_missing_step_is_executed_and_other_failures_end_the_turn() {
        let mut talk = question(URL, "parse_youtube_input, search_image");
        let broken = |tool: &str| match tool {
            "crawl_youtube_videos" => "error: no video found".to_owned(),
            tool => good(tool),
        };
        let (calls, words) = run(&mut talk, broken);
        assert_eq!(tools(&calls), ["crawl_youtube_videos"]);
        assert_eq!(words, "I am sorry, `crawl_youtube_videos` did not work: no video found");
        let mut talk = question(URL, "parse_youtube_input, crawl_youtube_videos");
        let missing = |tool: &str| match tool {
            "build_travel_blocks" => "error: call crawl_youtube_videos first".to_owned(),
            tool => good(tool),
        };
        let (calls, _) = run(&mut talk, missing);
        let expected = ["build_travel_blocks", "crawl_youtube_videos", "build_travel_blocks"];
        assert_eq!(tools(&calls), expected);
    }

    #[test]
    fn a_message_without_a_url_gets_a_request_for_one() {
        let (calls, words) = run(&mut question("hello", "none"), good);
        assert!(calls.is_empty() && words.contains("address"), "{words}");
    }
}
