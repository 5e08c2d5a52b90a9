//! The token by which Feishu recognizes a repeated request.

use sha2::{Digest as _, Sha256};
use wattle_plugin::prelude::{ToolContext, random};

/// Returns a UUID for the record of a call. It is the same in every execution of the call, so that
/// neither a retry nor a crash creates a second record.
pub(crate) fn client_token(context: &ToolContext) -> String {
    let mut bytes = [0; 16];
    match &context.task_id {
        Some(task) => {
            let mut hash = Sha256::new();
            for part in [task, &context.call_id, &context.tool] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
            bytes.copy_from_slice(&hash.finalize()[..16]);
        }
        // Outside of a run, no call is executed twice.
        None => random::bytes(16).iter().zip(&mut bytes).for_each(|(from, to)| *to = *from),
    }
    uuid(bytes)
}

/// Formats bytes as a UUID of version 4, the only version that Feishu accepts.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::ToolContext;
    use wattle_plugin::testing::FakeHost;

    use super::{client_token, uuid};

    fn call(task: Option<&str>, call: &str) -> ToolContext {
        ToolContext {
            tool: "saveExpenseToLark".to_owned(),
            call_id: call.to_owned(),
            task_id: task.map(str::to_owned),
            ..ToolContext::default()
        }
    }

    #[test]
    fn each_call_has_its_own_stable_token() {
        let host = FakeHost::new();
        let token = |task, id| host.run(|| client_token(&call(task, id)));
        assert_eq!(token(Some("t-1"), "c-1"), token(Some("t-1"), "c-1"));
        assert_ne!(token(Some("t-1"), "c-1"), token(Some("t-1"), "c-2"));
        assert_ne!(token(Some("t-1"), "c-1"), token(Some("t-2"), "c-1"));
        assert_ne!(token(Some("t-1c"), "-1"), token(Some("t-1"), "c-1"));
        assert_ne!(token(None, "c-1"), token(None, "c-1"));
    }

    #[test]
    fn token_has_the_form_of_a_version_4_uuid() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
