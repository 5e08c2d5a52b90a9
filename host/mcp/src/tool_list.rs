//! The tool list of a server: cleaned, bounded, and cached as long as the server allows.

use std::collections::HashSet;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::model::{ListToolsResult, PaginatedRequestParams, Tool};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use wattle_graph::json_text;
use wattle_run::blocking::{are_large_values, block_in_place_in_turn, is_long_parse};
use wattle_run::json;
use wattle_run::ports::sandbox::{ToolHints, ToolInfo};
use wattle_run::text::is_invisible;

use crate::calls::MAX_LISTED_BYTES;
use crate::normalize::Normalizer;
use crate::sanitizer::{one_line, strip_control_chars};

/// Maximum length of the name of a tool, in bytes. The protocol recommends this limit.
const MAX_NAME_BYTES: usize = 128;

/// Maximum length of a description, in bytes. Every model call contains the descriptions of the
/// offered tools.
const MAX_DESCRIPTION_BYTES: usize = 4096;

/// Maximum number of tools of one server. A model cannot choose among more tools.
const MAX_TOOLS: usize = 1000;

/// Maximum size of the schema of a tool's arguments, in bytes. Every model call contains the
/// schemas of the offered tools.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// Maximum bytes of the descriptions and schemas of all tools of one server.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// Maximum pages of a list. Further pages are not read.
const MAX_PAGES: usize = 100;

/// Maximum bytes of the cursor of a page. All cursors of a list are kept to notice a repetition.
const MAX_CURSOR_BYTES: usize = 4096;

/// How long a list is cached if the server does not specify a TTL.
const DEFAULT_TTL: Duration = Duration::from_mins(1);

/// Lower bound of the TTL. The bound is needed because lists are read before every model call.
const MIN_TTL: Duration = Duration::from_secs(5);

/// Upper bound of the TTL.
const MAX_TTL: Duration = Duration::from_hours(1);

/// The cached tool list of a server.
#[derive(Clone, Debug)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<ToolInfo>,
    /// Number of `tools/list_changed` notifications before the list was requested.
    pub(crate) generation: u64,
    pub(crate) fresh_until: Instant,
    /// True if all pages were read.
    pub(crate) is_complete: bool,
    /// The time after which a later page timed out.
    pub(crate) timed_out_after: Option<Duration>,
}

impl ToolList {
    /// Adds the missing tools of an earlier list within the limits, since these tools may be on
    /// pages that were not read.
    pub(crate) fn fill_in(&mut self, earlier: Self) {
        let mut bytes: u64 = self.tools.iter().map(approx_bytes).sum();
        for tool in earlier.tools {
            if self.tools.iter().any(|known| known.name == tool.name) {
                continue;
            }
            bytes += approx_bytes(&tool);
            if self.tools.len() == MAX_TOOLS || bytes > MAX_LIST_BYTES {
                break;
            }
            self.tools.push(tool);
        }
    }
}

/// Reads all pages of the tool list with `read_page`, until `is_full` returns true after a page. If
/// the request for a later page fails, returns the tools of the earlier pages, and the error as the
/// second value. Later pages time out `time` after `began`.
pub(crate) async fn fetch<F>(
    normalizer: &Normalizer,
    read_page: impl Fn(PaginatedRequestParams) -> F,
    generation: u64,
    began: Instant,
    time: Duration,
    is_full: impl Fn() -> bool,
) -> Result<(ToolList, Result<(), ServiceError>), ServiceError>
where
    F: Future<Output = Result<ListToolsResult, ServiceError>>,
{
    let mut tools = Vec::new();
    let mut ttl = DEFAULT_TTL;
    let mut cursor = None;
    let mut bytes = 0;
    let mut has_room = true;
    let mut cursors = HashSet::new();
    let (mut rest, mut timed_out_after) = (Ok(()), None);
    for _ in 0..MAX_PAGES {
        let page = read_page(page_after(cursor));
        let page = if cursors.is_empty() {
            page.await
        } else {
            timeout_at(began + time, page).await.unwrap_or_else(|_elapsed| {
                timed_out_after = Some(Duration::from_millis(began.elapsed().as_millis() as u64));
                // Always the same time, so that the note about the missing pages is logged once.
                Err(ServiceError::Timeout { timeout: time })
            })
        };
        let page = match page {
            Ok(page) => page,
            Err(error) if cursors.is_empty() => return Err(error),
            Err(error) => {
                rest = Err(error);
                cursor = None;
                // The list is incomplete, so it is requested again soon.
                ttl = MIN_TTL;
                break;
            }
        };
        ttl = ttl_of(&page).unwrap_or(ttl);
        let (owner, is_long) = (normalizer.sanitizer().work_owner(), is_long(&page));
        let push = || push_tools(normalizer, &page, &mut tools, &mut bytes);
        has_room = block_in_place_in_turn(owner, is_long, push).await;
        cursor = page.next_cursor;
        let Some(next) = &cursor else { break };
        let is_long = next.len() > MAX_CURSOR_BYTES;
        if is_long || !cursors.insert(next.clone()) {
            let what = if is_long { "has a long cursor" } else { "repeats a cursor" };
            normalizer.note(&format!("the tool list {what}, so no further pages are read"));
            cursor = None;
            break;
        }
        if !has_room || is_full() {
            break;
        }
    }
    if cursor.is_some() || !has_room {
        normalizer.note(&format!(
            "the tool list is truncated: it has more than {MAX_TOOLS} tools, {MAX_PAGES} pages, \
             {MAX_LIST_BYTES} bytes or {MAX_LISTED_BYTES} bytes of memory"
        ));
    }
    let fresh_until = Instant::now() + ttl.clamp(MIN_TTL, MAX_TTL);
    let is_complete = rest.is_ok();
    Ok((ToolList { tools, generation, fresh_until, is_complete, timed_out_after }, rest))
}

/// Returns the tools of a page within the limits.
pub(crate) fn page_tools(normalizer: &Normalizer, page: &ListToolsResult) -> Vec<ToolInfo> {
    let (mut tools, mut bytes) = (Vec::new(), 0);
    push_tools(normalizer, page, &mut tools, &mut bytes);
    tools
}

/// Returns true if adding the tools of a page is long work.
fn is_long(page: &ListToolsResult) -> bool {
    let text = |tool: &Tool| tool.name.len() + tool.description.as_deref().map_or(0, str::len);
    page.tools.len() > MAX_TOOLS
        || is_long_parse(page.tools.iter().map(text).sum())
        || are_large_values(page.tools.iter().flat_map(|tool| tool.input_schema.values()))
}

/// Adds the tools of a page. Returns false if a limit is reached.
fn push_tools(
    normalizer: &Normalizer,
    page: &ListToolsResult,
    tools: &mut Vec<ToolInfo>,
    bytes: &mut u64,
) -> bool {
    for listed in &page.tools {
        let info = tool_info(normalizer, listed);
        *bytes += info.as_ref().map_or_else(|| left_out_bytes(listed), approx_bytes);
        if *bytes > MAX_LIST_BYTES || (info.is_some() && tools.len() == MAX_TOOLS) {
            return false;
        }
        tools.extend(info);
    }
    true
}

/// Returns what a tool that is left out counts for. A large tool counts like the largest one that
/// is kept, so that it leaves room for the other tools.
fn left_out_bytes(tool: &Tool) -> u64 {
    let fields = tool.input_schema.iter();
    let schema: u64 =
        fields.map(|(name, value)| name.len() as u64 + json::approx_bytes(value)).sum();
    (tool.name.len() as u64 + schema).min(MAX_SCHEMA_BYTES as u64)
}

/// Returns the approximate size of a tool in a list.
fn approx_bytes(tool: &ToolInfo) -> u64 {
    tool.description.len() as u64 + json::approx_bytes(&tool.arguments_schema)
}

fn page_after(cursor: Option<String>) -> PaginatedRequestParams {
    PaginatedRequestParams::default().with_cursor(cursor)
}

fn ttl_of(page: &ListToolsResult) -> Option<Duration> {
    page.ttl_ms.map(Duration::from_millis)
}

fn tool_info(normalizer: &Normalizer, tool: &Tool) -> Option<ToolInfo> {
    if !is_usable_name(&tool.name) {
        let name = one_line(&tool.name);
        normalizer.note(&format!("the tool `{name}` is left out: its name cannot be used"));
        return None;
    }
    let arguments_schema = Value::Object((*tool.input_schema).clone());
    if !json_text::has_at_most(&arguments_schema, MAX_SCHEMA_BYTES as u64) {
        let name = &tool.name;
        normalizer.note(&format!(
            "the tool `{name}` is left out: its schema has more than {MAX_SCHEMA_BYTES} bytes"
        ));
        return None;
    }
    let hints = tool.annotations.as_ref();
    Some(ToolInfo {
        name: tool.name.to_string(),
        description: clean_description(tool.description.as_deref().unwrap_or_default()),
        arguments_schema,
        accepts_invalid: false,
        hints: ToolHints {
            read_only: hints.and_then(|it| it.read_only_hint).unwrap_or(false),
            idempotent: hints.and_then(|it| it.idempotent_hint).unwrap_or(false),
        },
        reference: None,
        unavailable: None,
    })
}

/// Returns true if a name has words with one space between them. Grants and people identify a tool
/// by its name, and names that differ in other whitespace, in control characters or in invisible
/// characters look the same.
fn is_usable_name(name: &str) -> bool {
    let is_invalid = |char: char| char.is_control() || char.is_whitespace() || is_invisible(char);
    name.len() <= MAX_NAME_BYTES
        && name.split(' ').all(|word| !word.is_empty() && !word.contains(is_invalid))
}

/// Removes control characters other than line breaks, and bounds the length.
fn clean_description(text: &str) -> String {
    let mut text = strip_control_chars(text);
    if text.len() > MAX_DESCRIPTION_BYTES {
        text.truncate(text.floor_char_boundary(MAX_DESCRIPTION_BYTES));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use serde_json::json;
    use tokio::time::sleep;

    use super::*;

    fn tool(value: Value) -> Option<ToolInfo> {
        tool_info(&Normalizer::new("graph"), &serde_json::from_value(value).unwrap())
    }

    #[test]
    fn tools_keep_their_hints() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } } });
        let info = tool(json!({
            "name": "graph.add", "description": "a\u{7}dds\n", "inputSchema": schema,
            "annotations": { "readOnlyHint": true, "idempotentHint": true },
        }))
        .unwrap();
        assert_eq!((info.name.as_str(), info.description.as_str()), ("graph.add", "adds\n"));
        assert_eq!(info.arguments_schema, schema);
        assert!(info.hints.read_only && info.hints.idempotent);
    }

    #[test]
    fn tools_with_invalid_names_are_omitted() {
        let long = "x".repeat(129);
        let spaced = ["", " ", " a", "a ", "a  b", "a\nb", "a\u{a0}b"];
        let unseen = ["a\u{7}", "a\u{200b}b", "a\u{202e}b", "\u{feff}a"];
        for name in spaced.into_iter().chain(unseen).chain([long.as_str()]) {
            assert_eq!(tool(json!({ "name": name, "inputSchema": {} })), None, "{name:?}");
        }
        for name in ["Create CIFS Share", "a/b", "a:b", "\u{e9}t\u{e9}", &"x".repeat(128)] {
            let info = tool(json!({ "name": name, "inputSchema": {} }));
            assert_eq!(info.map(|info| info.name).as_deref(), Some(name));
        }
        let bare = tool(json!({ "name": "x", "inputSchema": {} })).unwrap();
        assert_eq!(bare.hints, ToolHints::default());
    }

    #[test]
    fn single_and_total_size_of_schemas_are_limited() {
        let schema = |bytes: usize| json!({ "description": "x".repeat(bytes) });
        let tool = |bytes| json!({ "name": "x", "inputSchema": schema(bytes) });
        assert_eq!(self::tool(tool(MAX_SCHEMA_BYTES)), None);
        let page = json!({ "tools": vec![tool(MAX_SCHEMA_BYTES - 100); 20] });
        let (page, mut tools, mut bytes) = (serde_json::from_value(page).unwrap(), vec![], 0);
        assert!(!push_tools(&Normalizer::new("graph"), &page, &mut tools, &mut bytes));
        assert_eq!(tools.len() as u64, MAX_LIST_BYTES / MAX_SCHEMA_BYTES as u64);
        let page = json!({ "tools": vec![tool(1); MAX_TOOLS + 1] });
        let (page, mut tools, mut bytes) = (serde_json::from_value(page).unwrap(), vec![], 0);
        assert!(!push_tools(&Normalizer::new("graph"), &page, &mut tools, &mut bytes));
        assert_eq!(tools.len(), MAX_TOOLS);
    }

    #[test]
    fn tools_that_are_left_out_count() {
        let large = json!({ "description": "x".repeat(MAX_SCHEMA_BYTES) });
        let large = json!({ "name": "large", "inputSchema": large });
        let small = json!({ "name": "small", "inputSchema": {} });
        let most = MAX_LIST_BYTES as usize / MAX_SCHEMA_BYTES;
        for (count, kept) in [(most - 1, 1), (most + 1, 0)] {
            let mut listed = vec![large.clone(); count];
            listed.push(small.clone());
            let page = serde_json::from_value(json!({ "tools": listed })).unwrap();
            let (mut tools, mut bytes) = (vec![], 0);
            let has_room = push_tools(&Normalizer::new("graph"), &page, &mut tools, &mut bytes);
            assert_eq!((has_room, tools.len()), (kept == 1, kept), "{count}");
        }
    }

    /// Returns a page with one tool, and the cursor of the next page.
    fn page(number: usize) -> ListToolsResult {
        let tool = json!({ "name": format!("t{number}"), "inputSchema": {} });
        let page = json!({ "tools": [tool], "nextCursor": number.to_string() });
        serde_json::from_value(page).unwrap()
    }

    #[tokio::test]
    async fn no_page_is_read_after_the_session_is_full() {
        let (normalizer, read) = (Normalizer::new("graph"), Cell::new(0));
        let read_page = |_: PaginatedRequestParams| {
            read.set(read.get() + 1);
            ready(Ok::<_, ServiceError>(page(read.get())))
        };
        let (began, time, is_full) = (Instant::now(), Duration::from_mins(1), || read.get() == 3);
        let fetched = fetch(&normalizer, read_page, 0, began, time, is_full).await;
        let (list, rest) = fetched.unwrap();
        assert_eq!((list.tools.len(), read.get(), rest.is_ok()), (3, 3, true));
        let notes = normalizer.notes();
        assert!(
            notes.len() == 1 && notes[0].starts_with("the tool list is truncated"),
            "{notes:?}"
        );
    }

    /// The first page takes more than the time of later pages.
    #[tokio::test(start_paused = true)]
    async fn slow_first_page_is_kept_if_the_next_one_does_not_come() {
        let (began, read) = (Instant::now(), Cell::new(0));
        let read_page = |_: PaginatedRequestParams| {
            read.set(read.get() + 1);
            let number = read.get();
            async move {
                sleep(Duration::from_secs(4)).await;
                if number > 1 {
                    pending::<()>().await;
                }
                Ok::<_, ServiceError>(page(number))
            }
        };
        let (normalizer, time) = (Normalizer::new("graph"), Duration::from_secs(3));
        let fetched = fetch(&normalizer, read_page, 0, began, time, || false).await;
        let (list, rest) = fetched.unwrap();
        assert_eq!((list.tools.len(), list.is_complete, rest.is_err()), (1, false, true));
        assert_eq!(list.timed_out_after, Some(Duration::from_secs(4)));
    }

    #[test]
    fn pages_with_many_tools_values_or_bytes_are_long_work() {
        let is_long =
            |tools: Value| is_long(&serde_json::from_value(json!({ "tools": tools })).unwrap());
        let tool = |schema: Value| json!({ "name": "x", "inputSchema": schema });
        assert!(!is_long(json!([tool(json!({ "type": "object" }))])));
        assert!(is_long(json!(vec![tool(json!({})); MAX_TOOLS + 1])));
        assert!(is_long(json!([tool(json!({ "enum": vec![0; 1_000] }))])));
        let described = json!({ "name": "x", "description": "y".repeat(1 << 20),
            "inputSchema": {} });
        assert!(is_long(json!([described])));
    }

    #[test]
    fn earlier_list_supplies_missing_tools() {
        let listing = |tools: Vec<ToolInfo>| ToolList {
            tools,
            generation: 0,
            fresh_until: Instant::now(),
            is_complete: false,
            timed_out_after: None,
        };
        let named = |name: &str, description: &str| {
            let tool = json!({ "name": name, "description": description, "inputSchema": {} });
            self::tool(tool).unwrap()
        };
        let mut new = listing(vec![named("a", "new")]);
        new.fill_in(listing(vec![named("a", "old"), named("b", "old")]));
        assert_eq!(new.tools, [named("a", "new"), named("b", "old")]);
        let many = (0..MAX_TOOLS).map(|number| named(&format!("t{number}"), ""));
        new.fill_in(listing(many.collect()));
        assert_eq!(new.tools.len(), MAX_TOOLS);
    }

    #[test]
    fn descriptions_are_bounded() {
        let long = clean_description(&"\u{e9}".repeat(MAX_DESCRIPTION_BYTES));
        assert_eq!(long.len(), MAX_DESCRIPTION_BYTES);
    }
}
