//! Prompts are files of their own below `prompts`. A placeholder such as `{{today}}` takes a value.

use wattle_plugin::prelude::Failure;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// The template with its placeholders filled. Values are not searched for placeholders.
///
/// # Errors
///
/// A placeholder without a value, or a value without a placeholder: the file and the code that
/// uses it no longer fit together.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> Result<String, Failure> {
    let mut text = String::with_capacity(template.len());
    let mut used = vec![false; values.len()];
    let mut rest = template.trim_end();
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (name, after) = after
            .split_once(CLOSE)
            .ok_or_else(|| Failure::internal("a placeholder of a prompt does not end"))?;
        let at = values.iter().position(|(known, _)| *known == name.trim()).ok_or_else(|| {
            Failure::internal(format!("a prompt has the placeholder `{name}` without a value"))
        })?;
        text.push_str(before);
        text.push_str(values[at].1);
        used[at] = true;
        rest = after;
    }
    text.push_str(rest);
    match used.iter().position(|used| !used) {
        Some(at) => {
            Err(Failure::internal(format!("a prompt has no placeholder `{}`", values[at].0)))
        }
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn placeholders_take_their_values_and_values_are_left_alone() {
        let filled = fill("a {{x}} b {{ y }}, {{x}}\n", &[("x", "{{y}}"), ("y", "2")]);
        assert_eq!(filled.unwrap(), "a {{y}} b 2, {{y}}");
        assert_eq!(fill("plain\n", &[]).unwrap(), "plain");
    }

    #[test]
    fn a_prompt_that_does_not_fit_its_values_is_refused() {
        for (template, values) in
            [("{{x}}", &[][..]), ("plain", &[("x", "1")][..]), ("{{x", &[("x", "1")][..])]
        {
            assert_eq!(fill(template, values).unwrap_err().code, "internal", "{template}");
        }
    }
}
