//! Parses trades and holdings from the tokens of a text.
//!
//! The parser makes one pass and builds one item at a time. A token completes the current item or,
//! if the item already has such a value, starts the next one. An item without an action or a date
//! takes it from an earlier item.

use jiff::civil::Date;

use super::{
    lex::{self, Token},
    words::Meaning,
};

/// The action of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Buy,
    Sell,
    Hold,
}

/// A trade or holding. Values that the text does not have are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Item {
    pub(super) kind: Option<Kind>,
    pub(super) name: Option<String>,
    pub(super) code: Option<String>,
    pub(super) quantity: Option<f64>,
    /// Whether the quantity counts board lots instead of shares.
    pub(super) in_lots: bool,
    pub(super) price: Option<f64>,
    pub(super) date: Option<Date>,
    known_name: bool,
    /// Whether the quantity is a number without a unit, which the parser may later use as the
    /// price.
    guessed: bool,
    dated: bool,
    each: bool,
    /// Whether the item is a separate line, such as `2025-01-10 买入:`, that applies to all items
    /// after it.
    heading: bool,
    sentence: usize,
}

impl Item {
    fn has_subject(&self) -> bool {
        self.name.is_some() || self.code.is_some()
    }

    fn is_complete(&self) -> bool {
        self.has_subject() && self.quantity.is_some()
    }

    fn copy_subject(&mut self, other: &Self) {
        self.name.clone_from(&other.name);
        self.code.clone_from(&other.code);
    }
}

/// Returns all items of `text`, in order.
pub(super) fn read(text: &str, today: Option<Date>) -> Vec<Item> {
    let mut tokens = lex::tokens(text, today);
    tokens.retain(|token| *token != Token::Word(Meaning::Noise));
    let mut reader = Reader::default();
    for (index, token) in tokens.iter().enumerate() {
        reader.take(token, &tokens, index);
    }
    reader.next_item();
    inherit(reader.items)
}

#[derive(Default)]
struct Reader {
    items: Vec<Item>,
    current: Item,
    /// Whether a separator has occurred since the last other token.
    broken: bool,
    /// Whether this separator was a word like `和`.
    joined: bool,
    sentence: usize,
}

impl Reader {
    fn take(&mut self, token: &Token, tokens: &[Token], index: usize) {
        let follower = tokens.get(index + 1);
        match token {
            Token::Comma => self.broken = true,
            Token::Stop => self.end_sentence(),
            Token::Word(Meaning::And) => (self.broken, self.joined) = (true, true),
            Token::Word(Meaning::Buy) => self.take_kind(Kind::Buy, follower),
            Token::Word(Meaning::Sell) => self.take_kind(Kind::Sell, follower),
            Token::Word(Meaning::Hold) => self.take_kind(Kind::Hold, follower),
            Token::Word(Meaning::Each) => self.current.each = true,
            Token::Date(date) => self.take_date(*date, follower),
            Token::Code(code) => self.take_code(code),
            Token::Name { text, known } => self.take_name(text, *known),
            Token::Number(value) => self.take_number(role(tokens, index, *value)),
            Token::Word(_) | Token::ShareUnit { .. } | Token::Percent => return,
        }
        if !matches!(token, Token::Comma | Token::Stop | Token::Word(Meaning::And)) {
            (self.broken, self.joined) = (false, false);
        }
    }

    fn end_sentence(&mut self) {
        let item = &mut self.current;
        item.heading |=
            item.dated && !item.has_subject() && item.quantity.is_none() && item.price.is_none();
        self.broken = true;
        self.sentence += 1;
    }

    fn next_item(&mut self) {
        let blank = Item { sentence: self.sentence, ..Item::default() };
        self.items.push(std::mem::replace(&mut self.current, blank));
    }

    fn take_kind(&mut self, kind: Kind, follower: Option<&Token>) {
        let item = &self.current;
        if item.kind.is_some() {
            if item.has_subject() || item.quantity.is_some() {
                self.next_item();
            } else if kind == Kind::Hold {
                // `卖出持仓的腾讯` is a sale.
                return;
            }
        } else if self.broken && item.has_subject() {
            // `腾讯 100 股，买入` continues the item. These two cases start a new one.
            let names = matches!(follower, Some(Token::Name { .. } | Token::Code(_)));
            let counts = matches!(follower, Some(Token::Number(_) | Token::Date(_)));
            if names || (counts && item.is_complete()) {
                self.next_item();
            }
        }
        self.current.kind = Some(kind);
    }

    fn take_date(&mut self, date: Option<Date>, follower: Option<&Token>) {
        let leads_on = matches!(
            follower,
            Some(
                Token::Name { .. }
                    | Token::Code(_)
                    | Token::Word(Meaning::Buy | Meaning::Sell | Meaning::Hold)
            )
        );
        let second = self.current.dated && self.current.has_subject();
        if second || (self.broken && self.current.is_complete() && leads_on) {
            self.next_item();
        }
        if !self.current.dated {
            self.current.date = date;
            self.current.dated = true;
        }
    }

    fn take_code(&mut self, code: &str) {
        let completes = self.current.code.is_none() && !self.joined;
        if self.current.has_subject() && (self.current.quantity.is_some() || !completes) {
            self.next_item();
        }
        self.current.code = Some(code.to_owned());
    }

    fn take_name(&mut self, text: &str, known: bool) {
        let item = &self.current;
        if item.has_subject() {
            let completes = item.name.is_none() && !self.joined;
            let corrects = known && !item.known_name && !self.joined;
            if item.quantity.is_some() || !(completes || corrects || !self.broken) {
                self.next_item();
            } else if !completes && !corrects {
                return;
            }
        }
        self.current.name = Some(text.to_owned());
        self.current.known_name = known;
    }

    fn take_number(&mut self, role: Role) {
        let item = &mut self.current;
        match role {
            Role::Quantity(value, in_lots) => {
                if item.guessed && item.price.is_none() {
                    item.price = item.quantity;
                } else if item.quantity.is_some() {
                    self.next_item();
                }
                self.current.quantity = Some(value);
                self.current.in_lots = in_lots;
                self.current.guessed = false;
            }
            Role::Price(value) => {
                if item.price.is_some() && self.broken && item.is_complete() {
                    self.next_item();
                }
                self.current.price.get_or_insert(value);
            }
            Role::Open(value) => {
                if item.quantity.is_some() && item.price.is_none() {
                    item.price = Some(value);
                    return;
                }
                if item.quantity.is_some() {
                    if !self.broken {
                        return;
                    }
                    self.next_item();
                }
                self.current.quantity = Some(value);
                self.current.guessed = true;
            }
            Role::Other => {}
        }
    }
}

/// The role of a number, determined by its neighbors.
enum Role {
    /// A quantity, and whether it counts lots.
    Quantity(f64, bool),
    Price(f64),
    /// An ambiguous number. The first one is the quantity, the second one the price.
    Open(f64),
    Other,
}

fn role(tokens: &[Token], index: usize, value: f64) -> Role {
    let before = |distance: usize| index.checked_sub(distance).and_then(|at| tokens.get(at));
    match (before(1), tokens.get(index + 1)) {
        (_, Some(Token::ShareUnit { lots })) => Role::Quantity(value, *lots),
        (_, Some(Token::Percent)) | (Some(Token::Word(Meaning::OtherKey)), _) => Role::Other,
        (Some(Token::Word(Meaning::PriceKey)), _) | (_, Some(Token::Word(Meaning::PriceMark))) => {
            match before(2) {
                // `总额 $32000`
                Some(Token::Word(Meaning::OtherKey)) => Role::Other,
                _ => Role::Price(value),
            }
        }
        (Some(Token::Word(Meaning::QuantityKey)), _) => Role::Quantity(value, false),
        // `USD 320`, but not `320 USD 100`.
        (Some(Token::Word(Meaning::PriceMark)), _)
            if !matches!(before(2), Some(Token::Number(_))) =>
        {
            Role::Price(value)
        }
        _ => Role::Open(value),
    }
}

/// Completes items from earlier ones, and drops those that are not items.
fn inherit(items: Vec<Item>) -> Vec<Item> {
    let mut whole: Vec<Item> = Vec::new();
    let mut kind = None;
    let mut dated: Option<Item> = None;
    for mut item in items {
        if item.dated {
            dated = Some(item.clone());
        } else if let Some(last) = &dated
            && (last.sentence == item.sentence || last.heading)
        {
            item.date = last.date;
        }
        let own_kind = item.kind.is_some();
        kind = item.kind.or(kind);
        item.kind = kind;
        if !item.has_subject()
            && own_kind
            && item.quantity.is_some()
            && let Some(before) = whole.last()
        {
            item.copy_subject(before);
        }
        if item.has_subject() {
            share_each(&mut whole, &item);
            whole.push(item);
        }
    }
    whole.retain(|item| item.quantity.is_some() || item.price.is_some());
    whole
}

/// Copies the values of the last item to preceding items without values, as in `腾讯和苹果各 100 股`.
fn share_each(whole: &mut [Item], last: &Item) {
    if !last.each {
        return;
    }
    for item in whole.iter_mut().rev().take_while(|item| item.quantity.is_none()) {
        item.quantity = last.quantity;
        item.in_lots = last.in_lots;
        item.price = item.price.or(last.price);
    }
}
