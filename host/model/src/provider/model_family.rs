//! Families of models.
//!
//! A gateway offers models of several families under one address, and names them in its own way:
//! `us.anthropic.claude-opus-5`, `databricks-claude-opus-5`, `anthropic--claude-opus-5`.

/// Words that name a family, wherever they are in the name of a model.
const FAMILIES: [&str; 20] = [
    "claude",
    "command",
    "deepseek",
    "gemini",
    "gemma",
    "glm",
    "gpt",
    "grok",
    "jamba",
    "kimi",
    "llama",
    "magistral",
    "minimax",
    "ministral",
    "mistral",
    "mixtral",
    "nova",
    "palmyra",
    "phi",
    "qwen",
];

/// Returns the family of a model in lower case: the path before the name, and the first word of
/// [`FAMILIES`] in the name, or else the first word after regions and vendors. `gemini-3-pro` and
/// `gemini-flash-latest` are of one family, `us.anthropic.claude-opus-5` and
/// `us.meta.llama4-maverick` of two.
pub(super) fn family(model: &str) -> String {
    let model = model.to_ascii_lowercase();
    let (path, name) = model.split_at(path_len(&model));
    format!("{path}{}", family_word(name).unwrap_or_else(|| first_word(without_vendors(name))))
}

/// Returns the family of a model in states that do not have the model: its name up to the end of
/// the first word after the path.
pub(super) fn family_without_model(model: &str) -> &str {
    let start = path_len(model);
    let word = model[start..].find(|letter: char| !letter.is_alphabetic());
    &model[..word.map_or(model.len(), |length| start + length)]
}

fn path_len(model: &str) -> usize {
    model.rfind('/').map_or(0, |slash| slash + 1)
}

/// Returns the first word of [`FAMILIES`] in a name.
fn family_word(name: &str) -> Option<&'static str> {
    let is_word = |start: usize, word: &str| {
        !name[..start].ends_with(char::is_alphabetic)
            && !name[start + word.len()..].starts_with(char::is_alphabetic)
    };
    let start = |word: &str| {
        let mut starts = name.match_indices(word).map(|(start, _)| start);
        starts.find(|start| is_word(*start, word))
    };
    let found = FAMILIES.into_iter().filter_map(|word| Some((start(word)?, word)));
    found.min().map(|(_, word)| word)
}

/// Returns a name without the regions and vendors before it, each of which ends with a dot. A dot
/// before a digit is part of a version, and a dot behind a version begins a file extension.
fn without_vendors(mut name: &str) -> &str {
    while let Some((first, rest)) = name.split_once('.')
        && first.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '-')
        && rest.starts_with(char::is_alphabetic)
        && rest != "gguf"
    {
        name = rest;
    }
    name
}

/// Returns a name up to the end of its first word.
fn first_word(name: &str) -> &str {
    let start = name.find(char::is_alphabetic).unwrap_or(0);
    let word = name[start..].find(|letter: char| !letter.is_alphabetic());
    &name[..word.map_or(name.len(), |length| start + length)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_is_found_behind_regions_vendors_and_prefixes() {
        for (model, expected) in [
            ("gemini-3-flash-preview", "gemini"),
            ("gemini-flash-latest", "gemini"),
            ("anthropic/claude-opus-4", "anthropic/claude"),
            ("gpt-5.1", "gpt"),
            ("o3", "o"),
            ("qwen3-max", "qwen"),
            ("qwen2.5-coder", "qwen"),
            ("deepseek-reasoner", "deepseek"),
            ("deepseek-r1-distill-llama-70b", "deepseek"),
            ("us.anthropic.claude-opus-5-v1:0", "claude"),
            ("eu.anthropic.claude-haiku-5", "claude"),
            ("us.meta.llama4-maverick", "llama"),
            ("us-gov.amazon.nova-pro-v1:0", "nova"),
            ("us.writer.camel-x5", "camel"),
            ("databricks-claude-opus-5", "claude"),
            ("databricks-gpt-5", "gpt"),
            ("databricks-dbrx", "databricks"),
            ("anthropic--claude-4-sonnet", "claude"),
            ("ft:gpt-4o-mini:org::id", "gpt"),
            ("Claude-Sonnet-5", "claude"),
            ("[vip]kimi-k3", "kimi"),
            ("meta-llama-3.1-8b.Q4_K_M.gguf", "llama"),
            ("smol.gguf", "smol"),
            ("01-yi", "01-yi"),
            ("command", "command"),
            ("commander-7", "commander"),
            ("publishers/anthropic/models/claude-opus-5", "publishers/anthropic/models/claude"),
            ("é.é", "é"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(family(model), expected, "{model}");
        }
    }

    #[test]
    fn family_of_older_states_is_the_first_word_after_the_path() {
        for (model, expected) in [
            ("gemini-flash-latest", "gemini"),
            ("anthropic/claude-opus-4", "anthropic/claude"),
            ("us.anthropic.claude-opus-5", "us"),
            ("o3", "o"),
            ("", ""),
        ] {
            assert_eq!(family_without_model(model), expected);
        }
    }
}
