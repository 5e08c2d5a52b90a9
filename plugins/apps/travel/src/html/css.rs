//! Cleans styles: limits what a stylesheet loads, and keeps it from ending early inside of a page.
//!
//! A style runs no code in current browsers, but it loads: other stylesheets, which are removed,
//! and images, which follow the rule of the page's images. `cssparser` reads the tokens of a style
//! as browsers do and decodes the escapes in names; `u\72l(` loads like `url(`. A token that is kept
//! is written as it is in the style, because `cssparser` would write numbers and strings in another
//! form.

use std::iter::{self, Peekable};
use std::str::Chars;

use cssparser::{CowRcStr, Parser, ParserInput, Token};

use crate::html::url::{self, Pictures};

/// Rules that end with a semicolon and load or redefine something.
const RULES: &str = "charset import namespace";

/// Functions whose argument is a URL.
const ADDRESSES: &str = "src url";

/// Functions that show an image whose URL may be a plain string, or another element as an image.
const IMAGES: &str = "-moz-element -webkit-canvas -webkit-cross-fade -webkit-image-set \
    alphaimageloader cross-fade element image image-set paint";

/// Names by which old browsers ran scripts.
const SCRIPTS: &str = "-moz-binding behavior expression";

/// Replaces removed text, and still separates the text around it.
const GAP: char = ' ';

/// Replaces a removed URL, function or name.
const NONE: &str = "none";

/// The escape of `<`, which HTML does not interpret.
const LESS_THAN: &str = "\\3c ";

/// Maximum number of digits of an escape.
const ESCAPE_DIGITS: usize = 6;

/// Removes what is not permitted from a stylesheet, or from the declarations of a `style`
/// attribute. The result may be put between `<style>` and `</style>`. A clean style is not changed.
pub(super) fn clean(css: &str, pictures: &Pictures) -> String {
    let mut cleaner = Cleaner { rest: css, clean: String::new(), pictures };
    while let Some((token, source)) = cleaner.take() {
        cleaner.put(&token, source);
    }
    cleaner.clean
}

struct Cleaner<'a> {
    rest: &'a str,
    clean: String,
    pictures: &'a Pictures,
}

impl<'a> Cleaner<'a> {
    /// Takes the next token with its source. A parser would skip the block that a token opens, or
    /// read it by recursion, so each token has a parser of its own.
    fn take(&mut self) -> Option<(Token<'a>, &'a str)> {
        let mut input = ParserInput::new(self.rest);
        let mut parser = Parser::new(&mut input);
        let token = parser.next_including_whitespace_and_comments().ok()?.clone();
        let length = match token {
            // A removed name is also removed after this sign.
            Token::Hash(_) | Token::IDHash(_) => 1,
            _ => parser.position().byte_index(),
        };
        let (source, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some((token, source))
    }

    /// Writes what is permitted of a token.
    fn put(&mut self, token: &Token<'_>, source: &str) {
        match token {
            // A comment may hide anything.
            Token::Comment(_) | Token::Delim('\\') => self.clean.push(GAP),
            Token::QuotedString(_) if !is_closed(source) => self.clean.push(GAP),
            Token::BadString(_) => {
                // The line break that ends the string is removed with it.
                self.rest = self.rest.strip_prefix(char::is_whitespace).unwrap_or(self.rest);
                self.clean.push(GAP);
            }
            Token::AtKeyword(name) if is_on(RULES, name) => self.skip_rule(),
            Token::Ident(name) if is_on(SCRIPTS, name) => self.clean.push_str(NONE),
            Token::Function(name) if is_on(SCRIPTS, name) => {
                self.clean.push_str(NONE);
                self.clean.push('(');
            }
            Token::Function(name) if is_on(ADDRESSES, name) => {
                let address = self.argument();
                self.address(address.as_deref());
            }
            Token::Function(name) if is_on(IMAGES, name) => {
                self.argument();
                self.clean.push_str(NONE);
            }
            Token::UnquotedUrl(address) if is_closed(source) => self.address(Some(address)),
            Token::UnquotedUrl(_) | Token::BadUrl(_) => self.clean.push_str(NONE),
            // Nothing but a comparison may look like a tag.
            Token::Delim('<') if self.rest.starts_with([' ', '=']) => self.clean.push('<'),
            _ => self.keep(source),
        }
    }

    /// Skips a rule with its semicolon.
    fn skip_rule(&mut self) {
        self.clean.push(GAP);
        while !self.rest.starts_with(['{', '}'])
            && self.take().is_some_and(|(token, _)| token != Token::Semicolon)
        {}
    }

    /// Takes the arguments of a function with its closing parenthesis. Returns them if they are one
    /// string.
    fn argument(&mut self) -> Option<CowRcStr<'a>> {
        let mut text = None;
        let mut tokens = 0_usize;
        let mut open = 1_usize;
        while let Some((token, _)) = self.take() {
            match token {
                Token::WhiteSpace(_) => continue,
                Token::CloseParenthesis if open == 1 => return text.filter(|_| tokens == 1),
                Token::CloseParenthesis => open -= 1,
                Token::Function(_) | Token::ParenthesisBlock => open += 1,
                Token::QuotedString(string) => text = Some(string),
                _ => {}
            }
            tokens += 1;
        }
        None
    }

    /// Writes a URL if it is permitted.
    fn address(&mut self, address: Option<&str>) {
        let is_allowed = |address: &String| {
            self.pictures.allow(address) || address.starts_with('#') && url::is_link(address)
        };
        match address.map(url::tidy).filter(is_allowed) {
            Some(address) => self.clean.push_str(&format!("url(\"{address}\")")),
            None => self.clean.push_str(NONE),
        }
    }

    /// Writes a token as it is in the style, with an escape for each `<`.
    fn keep(&mut self, source: &str) {
        let mut rest = source.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                '\\' => self.escape(&mut rest),
                '<' => self.clean.push_str(LESS_THAN),
                _ => self.clean.push(character),
            }
        }
    }

    /// Writes the escape whose backslash has been read.
    fn escape(&mut self, rest: &mut Peekable<Chars<'_>>) {
        let digits = iter::from_fn(|| rest.next_if(char::is_ascii_hexdigit));
        let digits: String = digits.take(ESCAPE_DIGITS).collect();
        if digits.is_empty() {
            match rest.next() {
                Some('<') => self.clean.push_str(LESS_THAN),
                Some(character) => self.clean.extend(['\\', character]),
                // At the end of a style, a backslash is read as this character.
                None => self.clean.push_str("\\fffd "),
            }
            return;
        }
        // One white space ends an escape. With it, no later character can be read as a digit.
        if rest.next_if(char::is_ascii_whitespace) == Some('\r') {
            rest.next_if_eq(&'\n');
        }
        self.clean.push_str(&format!("\\{digits} "));
    }
}

/// Returns true if a list of names has a name, compared as browsers do it.
fn is_on(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns true if a string or an unquoted URL ends before the style does.
fn is_closed(source: &str) -> bool {
    let end = source.chars().next().filter(|first| matches!(first, '"' | '\'')).unwrap_or(')');
    source.strip_suffix(end).is_some_and(|inside| {
        let backslashes = inside.len() - inside.trim_end_matches('\\').len();
        !inside.is_empty() && backslashes.is_multiple_of(2)
    })
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
            ("a{b:url(https://a/b.png", "a{b:none"),
            ("a{b:url(https://a/b.png\\)", "a{b:none"),
            ("a{b:url('https://a/b.png' 'c')}", "a{b:none}"),
            ("a{b:src('https://a/b.png') src(https://a/b.png)}", {
                "a{b:url(\"https://a/b.png\") none}"
            }),
            ("a#url(//evil){}", "a#none{}"),
            ("@import url(a;b);c{}", " c{}"),
            ("<!--url(//evil)-->", "\\3c !--none-->"),
            ("expression\\", "expression\\fffd "),
        ] {
            assert_eq!(clean(css), expected, "{css}");
        }
    }

    #[test]
    fn names_and_strings_over_line_breaks_stay_whole() {
        for (css, expected) in [
            ("x\\78\r\nurl(//evil)", "x\\78 url(//evil)"),
            ("a{b:'\\\r\nurl(//evil)'}", "a{b:'\\\r\nurl(//evil)'}"),
        ] {
            assert_eq!(clean(css), expected, "{css}");
        }
    }

    #[test]
    fn nesting_is_not_limited() {
        let deep = "a([{".repeat(100_000);
        assert_eq!(clean(&deep), deep);
        assert_eq!(clean(&format!("image({deep}")), "none");
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

    fn is_name(character: char) -> bool {
        character.is_ascii_alphanumeric() || matches!(character, '-' | '_') || !character.is_ascii()
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
                let is_name = last.is_some_and(|c| is_name(c) || c == '@');
                let is_string = read[..at].contains(['"', '\'']);
                prop_assert!(is_own || is_name || is_string, "{}", once);
            }
        }
    }
}
