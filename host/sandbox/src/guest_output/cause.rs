//! The cause of the end of a guest, in the forms in which language runtimes write it.

use serde::Serialize;

use crate::load::text::sanitize;

/// Maximum length of the text of a cause, in characters. A longer text is truncated. The failure
/// also has the end of the guest's output, which contains more of the text.
const MAX_TEXT_CHARS: usize = 1_000;

/// Maximum length of the name of a file, in characters.
const MAX_FILE_CHARS: usize = 200;

/// Beginning of the first line of a Python traceback.
const TRACEBACK: &str = "Traceback (most recent call last)";

/// Beginning of the line that Rust writes after a panic, which recommends `RUST_BACKTRACE`.
const NOTE: &str = "note: ";

/// Beginning of the line that the runtime of componentize-js writes when it ends a guest.
const ABORT: &str = "Redirecting call to abort()";

/// Text of the panic with which componentize-py ends a guest after it has written the exception of
/// the plugin.
const THROWN: &str = "Python function threw an unexpected exception";

/// Beginning of an exception of JavaScript in the panic of componentize-qjs.
const QUICKJS_MESSAGE: &str = "Exception { message: Some(\"";

/// Beginning of the stack of an exception of JavaScript in the panic of componentize-qjs.
const QUICKJS_STACK: &str = "stack: Some(\"";

/// Ends of the errors with which the runtime of componentize-js ends a guest if it cannot convert an
/// exception to the error type of the export. The runtime does not write the exception itself.
const NOT_CONVERTED: [&str; 2] =
    ["expected a string, received [undefined]", "expected a string, received [object]"];

/// Why a guest ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Cause {
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<u32>,
}

/// A location in a source file.
#[derive(Default)]
struct SourceLocation<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
}

impl Cause {
    /// Creates a cause from a message of the guest. The fields `file`, `line` and `column`, whose
    /// values are JSON, give the location. Other fields are ignored.
    pub(crate) fn from_fields(text: &str, fields: &[(String, String)]) -> Self {
        let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, json)| json);
        let number = |name: &str| field(name).and_then(|json| json.parse().ok());
        let file: Option<String> = field("file").and_then(|json| serde_json::from_str(json).ok());
        let location = SourceLocation {
            file: file.as_deref(),
            line: number("line"),
            column: number("column"),
        };
        Self::at(text, &location)
    }

    fn at(text: &str, location: &SourceLocation<'_>) -> Self {
        Self {
            text: sanitize(text.trim(), MAX_TEXT_CHARS),
            file: location.file.map(|file| sanitize(file, MAX_FILE_CHARS)),
            line: location.line,
            column: location.column,
        }
    }

    /// Returns advice for a cause that can conceal another one.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        NOT_CONVERTED.iter().any(|end| self.text.ends_with(end)).then_some(
            "if the plugin threw an exception, its text is lost, because it is not of the error \
             type of the export: catch it in the export, and throw a value of that type",
        )
    }

    /// Finds the cause at the end of an output. Understands the forms of Python, of JavaScript, of
    /// Rust and of C. If other output follows an error, the guest has handled the error, so the
    /// error is not the cause.
    ///
    /// Runtimes of Python and JavaScript are written in Rust. These runtimes panic with the error
    /// of the plugin as the message, or write the error and then panic.
    pub(crate) fn find(output: &str) -> Option<Self> {
        let lines: Vec<&str> = output.lines().collect();
        let panic = of_rust(&lines);
        let before = panic.as_ref().map(|(begin, _)| &lines[..*begin]);
        let message = panic.as_ref().map(|(begin, _)| &lines[*begin..]);
        let is_thrown = panic.as_ref().is_some_and(|(_, panic)| panic.text == THROWN);
        message
            .and_then(of_quickjs)
            .or_else(|| of_plugin(&lines))
            .or_else(|| of_plugin(before?))
            .or_else(|| of_python(before.filter(|_| is_thrown)?, true))
            .or_else(|| panic.map(|(_, cause)| cause))
            .or_else(|| of_c(&lines))
    }
}

/// Shows the text, and the file and line if they are known.
impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " ({file}:{line})"),
            (Some(file), None) => write!(f, " ({file})"),
            (None, _) => Ok(()),
        }
    }
}

/// Reads the error of a plugin in a language whose runtime is written in Rust.
fn of_plugin(lines: &[&str]) -> Option<Cause> {
    of_python(lines, false).or_else(|| of_javascript(lines))
}

/// Returns true if only lines that a language runtime adds follow the cause.
fn is_end(rest: &[&str]) -> bool {
    let is_of_runtime = |line: &&str| line.starts_with(NOTE) || line.starts_with(ABORT);
    rest.iter().all(|line| line.trim().is_empty() || is_of_runtime(line))
}

/// Reads the last Python traceback: its innermost frame, and the first line below the frames, which
/// is the error message. If the error is known to have ended the guest, any further lines belong to
/// the message. Otherwise, further lines show that the guest handled the error and continued; the
/// function then returns `None`.
fn of_python(lines: &[&str], ended_guest: bool) -> Option<Cause> {
    let begin = lines.iter().rposition(|line| line.trim_start().starts_with(TRACEBACK))?;
    let stack = &lines[begin + 1..];
    let text = stack.iter().position(|line| !line.is_empty() && !line.starts_with(' '))?;
    if !ended_guest && !is_end(&stack[text + 1..]) {
        return None;
    }
    let frames = stack.iter().take_while(|line| line.starts_with(' '));
    let location = frames.filter_map(|line| python_frame(line)).last().unwrap_or_default();
    Some(Cause::at(stack[text], &location))
}

/// Parses `File "app.py", line 12, in run`.
fn python_frame(line: &str) -> Option<SourceLocation<'_>> {
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    Some(SourceLocation { file: Some(file), line: Some(digits.parse().ok()?), column: None })
}

/// Reads the message of the exception in a panic, and the innermost frame of its stack.
fn of_quickjs(lines: &[&str]) -> Option<Cause> {
    let exception = lines.iter().rfind(|line| line.contains(QUICKJS_MESSAGE))?;
    let (_, rest) = exception.split_once(QUICKJS_MESSAGE)?;
    let (text, rest) = debugged_text(rest)?;
    let stack = rest.split_once(QUICKJS_STACK).and_then(|(_, stack)| debugged_text(stack));
    let stack = stack.map(|(stack, _)| stack).unwrap_or_default();
    let location = stack.lines().find_map(javascript_frame).unwrap_or_default();
    Some(Cause::at(&text, &location))
}

/// Reads a string in the format of Rust's `Debug`, from the character after its opening quotation
/// mark. Returns the string, and the text after its closing quotation mark.
fn debugged_text(shown: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut letters = shown.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '"' => return Some((text, &shown[index + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                // `\u{1f}` stays escaped: `Debug` escapes only characters that cannot be shown.
                'u' => text.push_str("\\u"),
                other => text.push(other),
            },
            _ => text.push(letter),
        }
    }
    None
}

/// Reads the innermost frame of the last stack, and the line above the frames.
fn of_javascript(lines: &[&str]) -> Option<Cause> {
    let is_frame = |line: &&str| javascript_frame(line).is_some();
    let last = lines.iter().rposition(is_frame)?;
    if !is_end(&lines[last + 1..]) {
        return None;
    }
    let above = lines[..last].iter().rposition(|line| !is_frame(line));
    let first = above.map_or(0, |above| above + 1);
    let is_title = |line: &&&str| !line.trim().is_empty() && line.trim() != "Stack:";
    let text = lines[..first].iter().rev().find(is_title)?;
    Some(Cause::at(text, &javascript_frame(lines[first])?))
}

/// Parses `at run (app.js:12:5)` and `run@app.js:12:5`.
fn javascript_frame(line: &str) -> Option<SourceLocation<'_>> {
    let line = line.trim();
    let location = match line.strip_prefix("at ") {
        Some(frame) => frame.strip_suffix(')')?.split_once(" (")?.1,
        None => line.split_once('@').filter(|(function, _)| !function.contains(' '))?.1,
    };
    parse_location(location)
}

/// Reads the last panic: its location in the source, and its message in the lines below. Also
/// returns the number of lines before the panic.
fn of_rust(lines: &[&str]) -> Option<(usize, Cause)> {
    let begin = lines.iter().rposition(|line| line.contains("panicked at "))?;
    let (_, location) = lines[begin].split_once("panicked at ")?;
    let location = parse_location(location.strip_suffix(':')?)?;
    let below = &lines[begin + 1..];
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with(NOTE);
    let end = below.iter().position(|line| !is_text(line)).unwrap_or(below.len());
    let (text, rest) = below.split_at(end);
    is_end(rest).then(|| (begin, Cause::at(&text.join("\n"), &location)))
}

/// Parses the last `Assertion failed: rows > 0 (main.c: run: 12)` of wasi-libc.
fn of_c(lines: &[&str]) -> Option<Cause> {
    let begin = lines.iter().rposition(|line| line.starts_with("Assertion failed: "))?;
    let (line, rest) = lines[begin..].split_first()?;
    if !is_end(rest) {
        return None;
    }
    let (text, location) = line.strip_suffix(')')?.rsplit_once(" (")?;
    let (file, rest) = location.split_once(": ")?;
    let (_, number) = rest.rsplit_once(": ")?;
    let location =
        SourceLocation { file: Some(file), line: Some(number.parse().ok()?), column: None };
    Some(Cause::at(text, &location))
}

/// Parses `src/lib.rs:12:5`.
fn parse_location(text: &str) -> Option<SourceLocation<'_>> {
    let (rest, column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some(SourceLocation {
        file: Some(file),
        line: Some(line.parse().ok()?),
        column: column.parse().ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(text: &str, file: &str, line: u32, column: Option<u32>) -> Cause {
        Cause { text: text.to_owned(), file: Some(file.to_owned()), line: Some(line), column }
    }

    #[test]
    fn causes_in_the_formats_of_languages_are_found() {
        for (output, expected) in [
            (
                "thread '<unnamed>' panicked at src/lib.rs:12:5:\nno rows\nin the table\n\
                 note: run with `RUST_BACKTRACE=1` environment variable\n",
                cause("no rows\nin the table", "src/lib.rs", 12, Some(5)),
            ),
            (
                "before\nTraceback (most recent call last):\n  File \"main.py\", line 3, in run\n    \
                 load()\n  File \"/app/rows.py\", line 12, in load\n    raise ValueError(\"no rows\")\n    \
                 ^^^^^^^^^^^^^^^^\nValueError: no rows\n",
                cause("ValueError: no rows", "/app/rows.py", 12, None),
            ),
            (
                "thread '<unnamed>' panicked at crates/runtime/src/interpreter.rs:88:9:\n\
                 TypeError: cannot read property 'rows' of undefined\n    at load (app.js:12:5)\n    \
                 at run (app.js:20:1)\n",
                cause("TypeError: cannot read property 'rows' of undefined", "app.js", 12, Some(5)),
            ),
            (
                "\nthread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:51:31:\n\
                 Failed to call 'call': Value(Exception(\nException { message: Some(\"no \\\"rows\\\"\"), \
                 stack: Some(\"    at load (/app.js:12:5)\\n    at call (/app.js:40:17)\\n\") })\n)\n\
                 note: run with `RUST_BACKTRACE=1` environment variable\n",
                cause("no \"rows\"", "/app.js", 12, Some(5)),
            ),
            (
                "Error: no rows\nStack:\n  load@app.js:12:5\n  run@app.js:20:1\n\n\
                 Redirecting call to abort() to mozalloc_abort\n\n",
                cause("Error: no rows", "app.js", 12, Some(5)),
            ),
            (
                "Assertion failed: rows > 0 (src/main.c: load: 12)\n",
                cause("Assertion failed: rows > 0", "src/main.c", 12, None),
            ),
        ] {
            assert_eq!(Cause::find(output), Some(expected), "{output}");
        }
    }

    #[test]
    fn exception_that_was_not_converted_has_advice() {
        for (text, has_advice) in [
            ("expected a string, received [undefined]", true),
            ("TypeError: expected a string, received [object]", true),
            ("expected a string, received [number]", false),
            ("there are no words", false),
        ] {
            let cause = Cause::from_fields(text, &[]);
            assert_eq!(cause.advice().is_some(), has_advice, "{text}");
        }
    }

    #[test]
    fn last_of_several_tracebacks_is_the_cause() {
        let stack = |name: &str| {
            format!("{TRACEBACK}:\n  File \"{name}.py\", line 1, in f\n    g()\nKeyError: {name}\n")
        };
        let chained = format!(
            "{}\nDuring handling of the above exception, another exception occurred:\n\n{}",
            stack("a"),
            stack("b")
        );
        assert_eq!(Cause::find(&chained), Some(cause("KeyError: b", "b.py", 1, None)));
    }

    #[test]
    fn handled_error_is_not_the_cause() {
        for error in [
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: a\n",
            "Error: no rows\n    at load (app.js:12:5)\n",
            "thread 'main' panicked at src/lib.rs:12:5:\nno rows\nnote: run with more\n",
            "Assertion failed: rows > 0 (src/main.c: load: 12)\n",
        ] {
            assert!(Cause::find(&format!("{error}\n")).is_some(), "{error}");
            assert_eq!(Cause::find(&format!("{error}10 rows were skipped\n")), None, "{error}");
        }
    }

    #[test]
    fn error_before_the_panic_of_its_runtime_is_the_cause() {
        let stack = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n";
        let panic = |text: &str| {
            format!(
                "\nthread '<unnamed>' panicked at runtime/src/lib.rs:600:17:\n{text}\n\
                 note: run with more\n"
            )
        };
        for (error, text) in [("KeyError: a\n", "broken"), ("KeyError: a\nb\n\nc\n", THROWN)] {
            let found = Cause::find(&format!("{stack}{error}{}", panic(text)));
            assert_eq!(found, Some(cause("KeyError: a", "a.py", 1, None)), "{error}");
        }
        let handled = format!("{stack}KeyError: a\n10 rows were skipped\n");
        let of_runtime = cause("broken", "runtime/src/lib.rs", 600, Some(17));
        assert_eq!(Cause::find(&(handled + &panic("broken"))), Some(of_runtime));
    }

    #[test]
    fn output_without_an_error_and_its_location_has_no_cause() {
        for output in [
            "",
            "10 rows at noon (local time)\n",
            "mail to a@example.com:25\n",
            "panicked at\n",
            "thread 'main' panicked at src/lib.rs:\n",
            "Traceback (most recent call last):\n",
            "Traceback (most recent call last):\n  File \"a.py\", line 1\n",
            "Assertion failed: x\n",
            "Exception { message: Some(\"cut\n",
            "    at run (app.js:1:1)\n",
        ] {
            assert_eq!(Cause::find(output), None, "{output}");
        }
    }

    #[test]
    fn cause_has_the_text_and_location_of_a_log_message() {
        let field = |name: &str, json: &str| (name.to_owned(), json.to_owned());
        let fields = [field("file", "\"src/lib.rs\""), field("line", "12"), field("more", "{}")];
        let found = Cause::from_fields("no rows", &fields);
        assert_eq!(found, cause("no rows", "src/lib.rs", 12, None));
        assert_eq!(found.to_string(), "no rows (src/lib.rs:12)");
        let broken = [field("file", "lib.rs"), field("line", "-1")];
        assert_eq!(Cause::from_fields("no rows", &broken), Cause::from_fields("no rows", &[]));
        assert_eq!(Cause::from_fields(&"x".repeat(2_000), &[]).text.len(), MAX_TEXT_CHARS);
    }
}
