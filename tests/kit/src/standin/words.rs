//! The vocabulary of trading in Chinese and English, for the parser of trades.

/// The meaning of a known word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A purchase.
    Buy,
    /// A sale.
    Sell,
    /// A holding.
    Hold,
    /// The following number is a price.
    PriceKey,
    /// The preceding number is a price.
    PriceMark,
    /// The following number is a quantity.
    QuantityKey,
    /// The following number is neither: an amount, a fee, a market value.
    OtherKey,
    /// The following values apply to all preceding items.
    Each,
    /// A new item may follow.
    And,
    /// A word without meaning.
    Noise,
}

/// Chinese words, which occur anywhere in a sequence of characters. The longest one matches.
#[rustfmt::skip]
const CHINESE: &[(Meaning, &[&str])] = &[
    (Meaning::Buy, &[
        "买入了", "买入", "买进", "买了", "加仓", "建仓", "入手了", "入手", "购入", "抄底", "买",
    ]),
    (Meaning::Sell, &[
        "卖出了", "卖出", "卖了", "卖掉", "减仓", "清仓", "抛售", "抛了", "抛出", "卖",
    ]),
    (Meaning::Hold, &[
        "目前持有", "持有", "持仓股", "持仓",
    ]),
    (Meaning::PriceKey, &[
        "买入成本", "持仓成本", "摊薄成本", "成本价格", "成本价", "成本", "买入均价", "持仓均价",
        "成交均价", "平均价", "均价", "买入价格", "买入价", "卖出价格", "卖出价", "买价", "卖价",
        "成交价格", "成交价", "价格是", "价格为", "价格", "单价", "股价", "每股",
    ]),
    (Meaning::PriceMark, &[
        "的价格", "港币", "港元", "美元", "美金", "人民币", "元每股", "元/股", "/股",
    ]),
    (Meaning::QuantityKey, &[
        "持仓数量", "成交数量", "持股数量", "数量", "持股数", "股数", "持股",
    ]),
    (Meaning::OtherKey, &[
        "总市值", "市值", "现价", "市价", "最新价", "浮动盈亏", "盈亏", "收益率", "收益",
        "涨跌幅", "涨跌", "成交金额", "成交额", "总金额", "金额", "总额", "总价", "手续费",
        "佣金", "印花税", "合计", "总计", "共计", "一共花了", "一共", "总共", "共花了", "花了",
        "编号", "序号",
    ]),
    (Meaning::Each, &[
        "各自", "各",
    ]),
    (Meaning::And, &[
        "以及", "和",
    ]),
    (Meaning::Noise, &[
        "帮我", "记录", "一笔", "股票代码", "股票名称", "股票", "证券名称", "证券代码", "代码",
        "名称", "大概", "左右", "刚刚", "另外", "然后", "还有", "全部", "已成交", "成交", "交易",
        "操作", "方向", "时间", "日期", "富途牛牛", "富途", "老虎证券", "盈透", "长桥", "账户",
        "目前", "我的",
    ]),
];

/// English words and phrases in lower case, which match as whole words. The longest one matches.
#[rustfmt::skip]
const ENGLISH: &[(Meaning, &[&str])] = &[
    (Meaning::Buy, &[
        "bought", "buy", "buying", "purchased", "purchase", "acquired", "added", "long",
    ]),
    (Meaning::Sell, &[
        "sold", "sell", "selling", "dumped", "short", "trimmed",
    ]),
    (Meaning::Hold, &[
        "hold", "holding", "holdings", "holds", "own", "owns", "position", "positions",
        "portfolio",
    ]),
    (Meaning::PriceKey, &[
        "at", "price", "cost", "cost basis", "avg", "average", "average cost", "avg cost",
        "average price", "avg price", "cost price", "costprice", "unit price",
    ]),
    (Meaning::PriceMark, &[
        "per share", "a share", "usd", "hkd", "cny", "rmb", "dollars", "dollar", "bucks", "yuan",
    ]),
    (Meaning::QuantityKey, &[
        "quantity", "qty",
    ]),
    (Meaning::OtherKey, &[
        "total", "amount", "fee", "fees", "commission", "profit", "loss", "pnl", "market value",
        "value", "last price", "current price", "in total",
    ]),
    (Meaning::Each, &[
        "each",
    ]),
    (Meaning::And, &[
        "and", "plus",
    ]),
    (Meaning::Noise, &[
        "i", "we", "my", "me", "the", "of", "for", "on", "in", "a", "an", "have", "has", "had",
        "some", "about", "with", "from", "to", "is", "was", "were", "are", "stock", "stocks",
        "share", "shares", "just", "then", "also", "s", "x", "please", "record", "trade",
        "trades", "ticker", "name", "date", "action", "side", "filled", "executed", "order", "by",
        "off", "as", "this", "that", "it", "etf", "more", "another", "currently", "per",
    ]),
];

/// Returns the longest Chinese word at `start` and its length in characters.
pub(super) fn chinese_at(chars: &[char], start: usize) -> Option<(Meaning, usize)> {
    CHINESE
        .iter()
        .flat_map(|(meaning, words)| words.iter().map(move |word| (*meaning, *word)))
        .filter(|(_, word)| is_at(chars, start, word))
        .map(|(meaning, word)| (meaning, word.chars().count()))
        .max_by_key(|(_, length)| *length)
}

/// Returns the longest English word or phrase at `start`, in lower-case characters.
pub(super) fn english_at(lower: &[char], start: usize) -> Option<(Meaning, usize)> {
    ENGLISH
        .iter()
        .flat_map(|(meaning, words)| words.iter().map(move |word| (*meaning, *word)))
        .filter(|(_, word)| {
            is_at(lower, start, word)
                && !lower.get(start + word.len()).is_some_and(char::is_ascii_alphanumeric)
        })
        .map(|(meaning, word)| (meaning, word.len()))
        .max_by_key(|(_, length)| *length)
}

/// Returns whether a unit is the board lot and not the share, and its length.
///
/// The unit directly follows a number. Returns `None` if there is no unit of shares.
pub(super) fn share_unit_at(lower: &[char], start: usize) -> Option<(bool, usize)> {
    const UNITS: &[(&str, bool)] = &[
        ("shares", false),
        ("share", false),
        ("shs", false),
        ("lots", true),
        ("lot", true),
        ("股", false),
        ("份", false),
        ("手", true),
    ];
    UNITS.iter().find_map(|(word, is_lot)| {
        let length = word.chars().count();
        let goes_on =
            word.is_ascii() && lower.get(start + length).is_some_and(char::is_ascii_alphanumeric);
        (is_at(lower, start, word) && !goes_on).then_some((*is_lot, length))
    })
}

/// Returns true if `word` is at `start`.
pub(super) fn is_at(chars: &[char], start: usize, word: &str) -> bool {
    word.chars().enumerate().all(|(offset, c)| chars.get(start + offset) == Some(&c))
}
