//! Indents JSON text while it is written, without parsing it into memory.

use std::io::{self, Write};

/// Spaces of one level.
const INDENT: &[u8] = b"  ";

/// A writer that indents valid JSON text like `serde_json::to_writer_pretty`.
pub(super) struct PrettyWriter<W> {
    out: W,
    depth: usize,
    position: Position,
}

/// The position of the writer in the JSON text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// After the beginning of an object or a list.
    Opened,
    /// Inside a string. The flag is true if a backslash escapes the next character.
    String(bool),
    /// At any other position.
    Other,
}

impl<W: Write> PrettyWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, depth: 0, position: Position::Other }
    }

    /// Ends the last line and flushes the output.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    fn new_line(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| self.out.write_all(INDENT))
    }

    fn write_byte(&mut self, byte: u8) -> io::Result<()> {
        if let Position::String(is_escaped) = self.position {
            self.position = match byte {
                _ if is_escaped => Position::String(false),
                b'\\' => Position::String(true),
                b'"' => Position::Other,
                _ => Position::String(false),
            };
            return self.out.write_all(&[byte]);
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => Ok(()),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.position != Position::Opened {
                    self.new_line()?;
                }
                self.position = Position::Other;
                self.out.write_all(&[byte])
            }
            b',' => {
                self.out.write_all(b",")?;
                self.new_line()
            }
            b':' => self.out.write_all(b": "),
            _ => {
                if self.position == Position::Opened {
                    self.new_line()?;
                }
                self.position = match byte {
                    b'{' | b'[' => Position::Opened,
                    b'"' => Position::String(false),
                    _ => Position::Other,
                };
                if self.position == Position::Opened {
                    self.depth += 1;
                }
                self.out.write_all(&[byte])
            }
        }
    }
}

impl<W: Write> Write for PrettyWriter<W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        part.iter().try_for_each(|byte| self.write_byte(*byte))?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pretty(text: &str) -> String {
        let mut out = Vec::new();
        let mut writer = PrettyWriter::new(&mut out);
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_is_indented_like_the_pretty_form_of_its_value() {
        for value in [
            json!(null),
            json!([]),
            json!({}),
            json!([[], {}, [1, [2.5, -3]], "a"]),
            json!({ "a": { "b": [true, { "c": {} }] }, "d": "x" }),
            json!({ "{\"": "}], \\\" : \\", "\n": "\\" }),
        ] {
            let wanted = format!("{}\n", serde_json::to_string_pretty(&value).unwrap());
            assert_eq!(pretty(&value.to_string()), wanted);
            assert_eq!(pretty(&wanted), wanted);
        }
    }

    #[test]
    fn white_space_outside_of_strings_is_replaced() {
        let text = pretty(" { \"a b\" :\t[ 1 ,\r\n2 ] } ");
        assert_eq!(text, "{\n  \"a b\": [\n    1,\n    2\n  ]\n}\n");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({ "a b": [1, 2] }));
    }
}
