//! The vocabulary of the sample shop: words of questions, and the fields of its tables.

/// A value of a field, with other words for it.
pub(super) struct Term {
    pub(super) field: &'static str,
    /// Type of the entity.
    pub(super) kind: &'static str,
    pub(super) value: &'static str,
    /// Other words for the value, in lower case.
    pub(super) words: &'static [&'static str],
}

const fn term(
    field: &'static str,
    kind: &'static str,
    value: &'static str,
    words: &'static [&'static str],
) -> Term {
    Term { field, kind, value, words }
}

/// Values that questions name.
pub(super) const TERMS: &[Term] = &[
    term("customers.city", "city", "北京", &["beijing"]),
    term("customers.city", "city", "上海", &["shanghai"]),
    term("customers.city", "city", "广州", &["guangzhou"]),
    term("customers.city", "city", "深圳", &["shenzhen"]),
    term("customers.city", "city", "杭州", &["hangzhou"]),
    term("customers.city", "city", "成都", &["chengdu"]),
    term("customers.city", "city", "武汉", &["wuhan"]),
    term("customers.city", "city", "西安", &["xi'an", "xian"]),
    term("customers.city", "city", "南京", &["nanjing"]),
    term("customers.city", "city", "重庆", &["chongqing"]),
    term("customers.city", "city", "苏州", &["suzhou"]),
    term("customers.city", "city", "天津", &["tianjin"]),
    term("customers.segment", "segment", "企业客户", &["enterprise customers"]),
    term("customers.segment", "segment", "个人客户", &["individual customers"]),
    term("customers.segment", "segment", "经销商", &["dealers"]),
    term("customers.name", "customer", "远航科技有限公司", &["远航科技"]),
    term("customers.name", "customer", "Acme Trading Ltd", &["acme trading ltd", "acme"]),
    term("customers.name", "customer", "王小明", &[]),
    term("orders.status", "status", "pending", &["待付款", "未付款"]),
    term("orders.status", "status", "paid", &["已付款", "已支付"]),
    term("orders.status", "status", "shipped", &["已发货"]),
    term("orders.status", "status", "completed", &["已完成", "完成的"]),
    term("orders.status", "status", "cancelled", &["已取消", "取消的"]),
    term("orders.status", "status", "refunded", &["已退款", "退款的"]),
    term("orders.channel", "channel", "官网", &["website"]),
    term("orders.channel", "channel", "小程序", &["mini program"]),
    term("orders.channel", "channel", "门店", &["in store", "in-store"]),
    term("orders.channel", "channel", "电商平台", &["marketplace"]),
    term("products.category", "category", "手机", &["phones"]),
    term("products.category", "category", "电脑", &["computers"]),
    term("products.category", "category", "家电", &["appliances"]),
    term("products.category", "category", "配件", &["accessories"]),
    term("products.category", "category", "家居", &["furniture"]),
    term("products.category", "category", "图书", &["books"]),
];

/// The things that a question counts or lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Orders,
    Customers,
    Products,
}

/// Words for each subject.
pub(super) const SUBJECTS: &[(Subject, &[&str])] = &[
    (Subject::Orders, &["订单", "order"]),
    (Subject::Customers, &["客户", "顾客", "customer"]),
    (Subject::Products, &["商品", "产品", "product"]),
];

/// Words that request a number of things.
pub(super) const COUNT: &[&str] =
    &["多少", "几个", "几笔", "数量", "总数", "how many", "number of"];

/// Words for metrics.
pub(super) const METRICS: &[(&str, &[&str])] = &[
    ("avg_amount", &["客单价", "平均订单金额", "平均金额", "average order"]),
    ("sales", &["销售额", "营业额", "营收", "成交额", "下单金额", "总金额", "revenue", "sales"]),
    ("units", &["销量", "多少件", "units sold"]),
    ("order_count", &["订单数", "订单量"]),
    ("customer_count", &["客户数"]),
];

/// Words for dimensions.
pub(super) const DIMENSIONS: &[(&str, &[&str])] = &[
    ("month", &["每月", "按月", "每个月", "月度", "各月", "by month", "monthly", "per month"]),
    ("year", &["每年", "按年", "各年", "by year", "per year"]),
    ("customers.city", &["各城市", "按城市", "每个城市", "哪个城市", "城市", "by city", "cities"]),
    ("customers.province", &["各省", "按省", "省份", "by province"]),
    ("customers.segment", &["客户类型", "by segment"]),
    ("products.category", &["品类", "类别", "by category", "categories"]),
    ("orders.channel", &["渠道", "by channel", "channels"]),
    ("orders.status", &["各状态", "按状态", "订单状态", "by status"]),
];

/// Words of a ranking.
pub(super) const RANKING: &[&str] = &["最高", "最多", "最大", "排名", "排行", "前", "top "];

/// Words that identify a question about the data.
pub(super) const BUSINESS: &[&str] = &[
    "订单",
    "客户",
    "顾客",
    "商品",
    "产品",
    "销售",
    "销量",
    "库存",
    "营业额",
    "营收",
    "成交",
    "客单价",
    "下单",
    "order",
    "customer",
    "product",
    "sales",
    "revenue",
    "stock",
];

/// Words that may refer to the data.
pub(super) const VAGUE: &[&str] = &["数据", "情况", "统计", "报表", "report"];

/// Beginnings of messages that refer to an earlier one.
pub(super) const FOLLOWING: &[&str] =
    &["那", "再", "只看", "其中", "换成", "改成", "按", "what about", "and ", "only "];

/// A phrase for which the stand-in writes a wrong column, as real models do.
pub(super) const MISLEADING: &str = "下单金额";

/// Returns true if one of the words occurs. The text is in lower case.
pub(super) fn has(lower: &str, words: &[&str]) -> bool {
    words.iter().any(|word| lower.contains(word))
}

/// Returns the position of the first word that occurs.
pub(super) fn place(lower: &str, words: &[&str]) -> Option<usize> {
    words.iter().filter_map(|word| lower.find(word)).min()
}
