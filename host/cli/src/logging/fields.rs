//! Fields of log records, escaped. Ids, file names and messages of services are in them.

use std::error::Error;
use std::fmt::{self, Debug, Display, Formatter};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{MakeVisitor as _, RecordFields, VisitOutput as _};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use wattle_run::text::Escaped;

/// Indentation of the lines of a message after its first one.
const INDENT: &str = "  ";

/// The default format of fields, with control characters and invisible characters escaped.
///
/// A record begins with its time at the start of a line. The further lines of a message, such as
/// hints, are indented, and a field is on one line. Therefore no text in a record looks like the
/// start of another record.
#[derive(Default)]
pub(super) struct EscapedFields(DefaultFields);

impl<'w> FormatFields<'w> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut visitor = self.0.make_visitor(writer);
        fields.record(&mut EscapingVisitor(&mut visitor));
        visitor.finish()
    }
}

/// Passes escaped values on to a visitor.
struct EscapingVisitor<'v>(&'v mut dyn Visit);

impl Visit for EscapingVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            // The visitor writes a string in quotes, with its control characters escaped.
            self.0.record_str(field, value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let text = format!("{value:?}");
            self.0.record_debug(field, &format_args!("{}", Message(&text)));
        } else {
            self.0.record_debug(field, &format_args!("{}", Escaped(format_args!("{value:?}"))));
        }
    }
}

/// Displays a message with its lines escaped and indented.
struct Message<'t>(&'t str);

impl Display for Message<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, line) in self.0.split('\n').enumerate() {
            if index > 0 {
                f.write_str("\n")?;
                f.write_str(if line.starts_with(INDENT) { "" } else { INDENT })?;
            }
            Escaped(line).fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// A writer that collects the log.
    #[derive(Clone, Default)]
    struct Collected(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Collected {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'w> MakeWriter<'w> for Collected {
        type Writer = Self;

        fn make_writer(&'w self) -> Self {
            self.clone()
        }
    }

    /// Returns what events write to the log.
    fn logged(events: impl FnOnce()) -> String {
        let collected = Collected::default();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(EscapedFields::default())
            .with_writer(collected.clone())
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .finish();
        tracing::subscriber::with_default(subscriber, events);
        let bytes = collected.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_field_is_one_line_without_control_characters() {
        let thread = "a\u{1b}[2J\nERROR forged\u{9b}\u{202e}";
        let log = logged(|| tracing::warn!(%thread, steps = 3, name = thread, "stopped"));
        assert_eq!(
            log,
            " WARN stopped thread=a\\u{1b}[2J\\nERROR forged\\u{9b}\\u{202e} steps=3 \
             name=\"a\\u{1b}[2J\\nERROR forged\\u{9b}\\u{202e}\"\n"
        );
    }

    #[test]
    fn further_lines_of_a_message_are_indented() {
        let path = "a\nERROR forged\u{7}";
        let log = logged(|| tracing::warn!("`{path}` is not loaded\n  hint: rename it"));
        assert_eq!(log, " WARN `a\n  ERROR forged\\u{7}` is not loaded\n  hint: rename it\n");
    }

    #[test]
    fn fields_of_spans_are_escaped() {
        let log = logged(|| {
            let span = tracing::info_span!("run", thread = %"a\nERROR forged");
            span.in_scope(|| tracing::info!("started"));
        });
        assert_eq!(log, " INFO run{thread=a\\nERROR forged}: started\n");
    }
}
