//! Messages for a run, without their pages, which no model reads.

use crate::message::UiMessage;
use crate::session::stored;

/// Removes the pages from messages.
pub(crate) fn lean(mut messages: Vec<UiMessage>) -> Vec<UiMessage> {
    let parts = messages.iter_mut().flat_map(|message| &mut message.parts);
    parts.filter_map(|part| part.get_mut("output")).for_each(stored::drop_page);
    messages
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::lean;
    use crate::message::{Role, UiMessage};

    #[test]
    fn pages_are_left_out() {
        let part = json!({"type": "tool-generate_handbook_html", "toolCallId": "c",
            "state": "output-available", "output": {"html": "<p>", "title": "t"}});
        let text = json!({"type": "text", "text": "hi"});
        let parts = vec![text.clone(), part];
        let said = UiMessage { id: "m".to_owned(), role: Role::Assistant, parts };
        let lean = lean(vec![said]);
        assert_eq!(lean[0].parts[0], text);
        assert_eq!(lean[0].parts[1]["output"], json!({"title": "t"}));
    }
}
