//! The names of tenants.

use wattle_graph::failure::code;

use crate::problem::Problem;

/// Maximum number of characters in the name of a tenant.
const MAX_TENANT_CHARS: usize = 64;

/// Checks that a string is a valid tenant name.
///
/// # Errors
///
/// `invalid` if the name is not valid.
pub fn check_tenant(name: &str) -> Result<(), Problem> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    // In a path segment, such as in links to blobs, `.` and `..` have another meaning.
    let is_dots = [".", ".."].contains(&name);
    let is_valid = !name.is_empty() && name.len() <= MAX_TENANT_CHARS && !is_dots;
    if is_valid && name.chars().all(is_plain) {
        return Ok(());
    }
    let detail = format!(
        "a tenant's name must be 1 to {MAX_TENANT_CHARS} ASCII letters, digits, `-`, `_`, `.` or \
         `@`, but not `.` or `..`"
    );
    Err(Problem::new(code::INVALID, detail))
}
