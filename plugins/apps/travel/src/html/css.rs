//! Cleans styles: limits what a stylesheet loads, and keeps it from ending early inside of a page.
//!
//! A style runs no code in current browsers, but it loads: other stylesheets, which are removed,
//! and images, which follow the rule of the page's images. Names are compared as browsers read
//! them, with their escapes; `u\72l(` loads like `url(`.

use std::iter::Peekable;
use std::str::Chars;

use crate::html::url::{self, Pictures};

/// Rules that end with a semicolon and load or redefine something.
const RULES: [&str; 3] = ["@import", "@charset", "@namespace"];

/// Functions whose argument is a URL.
const ADDRESSES: [&str; 2] = ["url", "src"];

/// Functions that show an image whose URL may be a plain string, or another element as an image.
const IMAGES: [&str; 10] = [
    "-moz-element",
    "-webkit-canvas",
    "-webkit-cross-fade",
    "-webkit-image-set",
    "alphaimageloader",
    "cross-fade",
    "element",
    "image",
    "image-set",
    "paint",
];

/// Names by which old browsers ran scripts.
const SCRIPTS: [&str; 3] = ["expression", "behavior", "-moz-binding"];

/// Replaces removed text, and still separates the text around it.
const GAP: char = ' ';

/// Replaces a removed URL, function or name.
const NONE: &str = "none";

/// Maximum number of digits of an escape.
const ESCAPE_DIGITS: usize = 6;

/// Removes what is not permitted from a stylesheet, or from the declarations of a `style`
/// attribute. The result may be put between `<style>` and `</style>`. A clean style is not changed.
pub(super) fn clean(css: &str, pictures: &Pictures) -> String {
    let mut cleaner = Cleaner { rest: css.chars().peekable(), clean: String::new(), pictures };
    while cleaner.step() {}
    cleaner.clean
}

struct Cleaner<'a> {
    rest: Peekable<Chars<'a>>,
    clean: String,
    pictures: &'a Pictures,
}

/// A name as written, and as browsers read it.
struct Name {
    raw: String,
    read: String,
}

impl Cleaner<'_> {
    /// Processes the next piece. Returns false at the end.
    fn step(&mut self) -> bool {
        let Some(&next) = self.rest.peek() else {
            return false;
        };
        match next {
            '"' | '\'' => self.string(next),
            '/' => self.slash(),
            '<' => self.less_than(),
            '@' | '\\' => self.name(),
            _ if is_name(next) => self.name(),
            _ => {
                self.rest.next();
                self.clean.push(next);
            }
        }
        true
    }

    /// Replaces a comment by a gap, because it may hide anything.
    fn slash(&mut self) {
        self.rest.next();
        if self.rest.next_if_eq(&'*').is_none() {
            self.clean.push('/');
            return;
        }
        let mut before = ' ';
        for character in self.rest.by_ref() {
            if before == '*' && character == '/' {
                break;
            }
            before = character;
        }
        self.clean.push(GAP);
    }

    /// Keeps the sign only in a comparison, because nothing else may look like a tag.
    fn less_than(&mut self) {
        self.rest.next();
        let is_comparison = self.rest.peek().is_some_and(|c| matches!(c, ' ' | '='));
        self.clean.push_str(if is_comparison { "<" } else { "\\3c " });
    }

    fn string(&mut self, quote: char) {
        match self.quoted(quote) {
            Some(Name { raw, .. }) => self.clean.push_str(&format!("{quote}{raw}{quote}")),
            None => self.clean.push(GAP),
        }
    }

    /// Returns the content of a string; `None` if it does not end on its line.
    fn quoted(&mut self, quote: char) -> Option<Name> {
        self.rest.next();
        let mut inside = Name { raw: String::new(), read: String::new() };
        loop {
            match self.rest.next()? {
                end if end == quote => return Some(inside),
                '\n' | '\r' | '\u{c}' => return None,
                '\\' if self.rest.next_if_eq(&'\n').is_some() => inside.raw.push_str("\\\n"),
                '\\' => self.escape(&mut inside)?,
                '<' => inside.push_escaped('<'),
                character => inside.push(character),
            }
        }
    }

    /// Reads the text after a backslash. Returns `None` if it is not an escape.
    fn escape(&mut self, name: &mut Name) -> Option<()> {
        let mut digits = String::new();
        while digits.len() < ESCAPE_DIGITS
            && let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit)
        {
            digits.push(digit);
        }
        if digits.is_empty() {
            match self.rest.next_if(|c| !matches!(c, '\n' | '\r' | '\u{c}'))? {
                '<' => name.push_escaped('<'),
                character => {
                    name.raw.push('\\');
                    name.push(character);
                }
            }
            return Some(());
        }
        // One white space ends an escape. With it, no later character can be read as a digit.
        self.rest.next_if(|c| c.is_whitespace());
        let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
        name.raw.push_str(&format!("\\{digits} "));
        name.read.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
        Some(())
    }

    fn name(&mut self) {
        let mut name = Name { raw: String::new(), read: String::new() };
        if let Some(at) = self.rest.next_if_eq(&'@') {
            name.push(at);
        }
        loop {
            if self.rest.next_if_eq(&'\\').is_some() {
                if self.escape(&mut name).is_none() {
                    name.raw.push(GAP);
                    break;
                }
            } else if let Some(character) = self.rest.next_if(|c| is_name(*c)) {
                name.push(character);
            } else {
                break;
            }
        }
        self.put(&name);
    }

    fn put(&mut self, name: &Name) {
        let read = name.read.to_ascii_lowercase();
        if RULES.contains(&read.as_str()) {
            self.skip_rule();
        } else if SCRIPTS.contains(&read.as_str()) {
            self.clean.push_str(NONE);
        } else if ADDRESSES.contains(&read.as_str()) && self.rest.next_if_eq(&'(').is_some() {
            self.address();
        } else if IMAGES.contains(&read.as_str()) && self.rest.next_if_eq(&'(').is_some() {
            self.skip_arguments();
        } else {
            self.clean.push_str(&name.raw);
        }
    }

    /// Skips a rule with its semicolon.
    fn skip_rule(&mut self) {
        self.clean.push(GAP);
        while let Some(&next) = self.rest.peek() {
            match next {
                '{' | '}' => return,
                '"' | '\'' => drop(self.quoted(next)),
                _ => {
                    self.rest.next();
                    if next == ';' {
                        return;
                    }
                }
            }
        }
    }

    /// Skips the arguments of a function with its closing parenthesis.
    fn skip_arguments(&mut self) {
        self.clean.push_str(NONE);
        let mut open = 1_usize;
        while let Some(&next) = self.rest.peek() {
            if matches!(next, '"' | '\'') {
                drop(self.quoted(next));
                continue;
            }
            self.rest.next();
            match next {
                '(' => open += 1,
                ')' => open -= 1,
                '\\' => drop(self.rest.next()),
                _ => {}
            }
            if open == 0 {
                return;
            }
        }
    }

    /// Reads the argument of `url(` with its closing parenthesis, and writes it if it is permitted.
    fn address(&mut self) {
        let address = self.argument().map(|address| url::tidy(&address));
        let is_allowed = |address: &String| {
            self.pictures.allow(address) || address.starts_with('#') && url::is_link(address)
        };
        match address.filter(is_allowed) {
            Some(address) => self.clean.push_str(&format!("url(\"{address}\")")),
            None => self.clean.push_str(NONE),
        }
    }

    fn argument(&mut self) -> Option<String> {
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
        let mut argument = Name { raw: String::new(), read: String::new() };
        if let Some(&quote @ ('"' | '\'')) = self.rest.peek() {
            argument = self.quoted(quote)?;
        }
        loop {
            match self.rest.next()? {
                ')' => return Some(argument.read),
                '\\' => self.escape(&mut argument)?,
                character => argument.push(character),
            }
        }
    }
}

impl Name {
    fn push(&mut self, character: char) {
        self.raw.push(character);
        self.read.push(character);
    }

    /// Writes a character as an escape, which HTML does not interpret.
    fn push_escaped(&mut self, character: char) {
        self.raw.push_str(&format!("\\{:x} ", u32::from(character)));
        self.read.push(character);
    }
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_') || !character.is_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::Pictures;
    use crate::html::Sources;

    fn clean(css: &str) -> String {
        super::clean(css, &Pictures::any(&Sources::default()))
    }

    #[test]
    fn harmless_styles_are_unchanged() {
        for css in [
            "body{margin:0;font-family:\"Noto Sans\",'A',sans-serif}",
            "@media (max-width: 600px){.a>b::after{content:\"\\201C \"}}",
            "@media (width <= 600px) and (width < 3px){a{scroll-behavior:smooth}}",
            "a{background:url(\"https://images.unsplash.com/a?b=1&c=2\")}",
            "a{background:url(\"/blobs/~/abc.def\") center/cover}",
            "@keyframes x{from{opacity:0}to{opacity:1}} .a\\:b{width:calc(100% - 2px)}",
            "p{content:'it\\'s'}",
        ] {
            assert_eq!(clean(css), css);
        }
    }

    #[test]
    fn loads_and_scripts_are_removed() {
        for (css, expected) in [
            ("@import url(https://a/b.css);a{}", " a{}"),
            ("@im\\70ort 'x;y';a{}", " a{}"),
            ("@charset \"utf-7\";a{}", " a{}"),
            ("a{b:url(javascript:alert(1))}", "a{b:none)}"),
            ("a{b:url(http://a/b.png)}", "a{b:none}"),
            ("a{b:u\\72 l('//evil')}", "a{b:none}"),
            ("a{b:URL( 'data:text/html,x' )}", "a{b:none}"),
            ("a{b:url(https://a/b.png)}", "a{b:url(\"https://a/b.png\")}"),
            ("a{width:expression(alert(1));behavior:url(x)}", "a{width:none(alert(1));none:none}"),
            ("a{b:image-set('http://evil' 1x, url(//evil) 2x) c}", "a{b:none c}"),
            ("a{b:-WEBKIT-image-set(\"https://a\" 1x)}", "a{b:none}"),
            ("a{b:im\\61ge-set('//e)vil' type('x') 1x);c:d}", "a{b:none;c:d}"),
            ("a{b:cross-fade(url(https://a), 'x' 50%)}", "a{b:none}"),
            ("a{b:element(#x) image('//evil', red)}", "a{b:none none}"),
            ("a{b:image-set('//evil\n;c:d}", "a{b:none"),
            ("a{b:--image-set(1) elements(2) image -x-image(3)}", {
                "a{b:--image-set(1) elements(2) image -x-image(3)}"
            }),
            ("a{/* x */b:c}", "a{ b:c}"),
            ("u/**/rl(x)", "u rl(x)"),
            ("u@import x;rl(//evil)", "u rl(//evil)"),
            ("\\75/**/rl(//evil)", "\\75  rl(//evil)"),
            ("a{}/* open", "a{} "),
            ("a{b:\"open\n}", "a{b: }"),
            ("a{b:url(open", "a{b:none"),
        ] {
            assert_eq!(clean(css), expected, "{css}");
        }
    }

    #[test]
    fn unknown_images_are_not_loaded() {
        let known = Pictures::known(&Sources::default(), ["https://a/b.png"]);
        let css = "a{b:url(https://a/b.png) url(https://evil/) url(/blobs/~/a)}";
        assert_eq!(super::clean(css, &known), {
            "a{b:url(\"https://a/b.png\") none url(\"/blobs/~/a\")}"
        });
    }

    #[test]
    fn nothing_looks_like_a_tag() {
        for css in ["</style><script>", "a{b:'</style>'}", "\\</style>", "<!-- a -->", "a{}<"] {
            let cleaned = clean(css);
            let mut tags = cleaned
                .match_indices('<')
                .filter(|(at, _)| !cleaned[at + 1..].starts_with([' ', '=']));
            assert_eq!(tags.next(), None, "{css}: {cleaned}");
        }
    }

    /// Decodes the escapes of a style. An escape of another character than a letter or digit
    /// becomes `x`.
    fn unescaped(css: &str) -> String {
        let mut pieces = css.split('\\');
        let mut read = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let end = piece.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(piece.len());
            let code = u32::from_str_radix(&piece[..end], 16).ok().and_then(char::from_u32);
            read.push(code.filter(char::is_ascii_alphanumeric).unwrap_or('x'));
            let rest = if end == 0 {
                piece.char_indices().nth(1).map_or("", |(at, _)| &piece[at..])
            } else {
                &piece[end..]
            };
            read.push_str(rest.strip_prefix(' ').filter(|_| end > 0).unwrap_or(rest));
        }
        read
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 256,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn cleaning_is_idempotent(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "url(", "u", "rl(", ")", "\\", "\\75", "\\72 ", "/*", "*/", "\"", "'", "\n",
                    "@import", ";", "<", "</style>", "https://a/b", "javascript:x", " ", "{", "}",
                    "expression", "(", "3c", "@", "none", "src(", "#a", "=", "é",
                    "image-set(", "element", "'x'",
                ]),
                0..24,
            ),
            noise in any::<String>(),
        ) {
            let css = format!("{}{noise}", pieces.concat());
            let once = clean(&css);
            prop_assert_eq!(clean(&once), once.clone(), "{}", css);
            let read = unescaped(&once);
            for (at, _) in read.match_indices("url(") {
                // The URL is permitted, or the text ends a longer name or is in a string.
                let own = ["url(\"https://", "url(\"#"];
                let is_own = own.iter().any(|own| read[at..].starts_with(own));
                let last = read[..at].chars().next_back();
                let is_name = last.is_some_and(|c| super::is_name(c) || c == '@');
                let is_string = read[..at].contains(['"', '\'']);
                prop_assert!(is_own || is_name || is_string, "{}", once);
            }
        }
    }
}
