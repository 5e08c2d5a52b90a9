//! Names as statements write them, in tables: which are fields, which are texts, and which are
//! replaced.

use wattle_plugin::sql::Dialect;

use crate::candidate;
use crate::statement::{Refusal, check};
use crate::testing::knowledge;

const BOTH: [Dialect; 2] = [Dialect::Sqlite, Dialect::Postgres];

/// Returns the names that are refused because they are in double quotes.
fn texts(text: &str, dialect: &Dialect) -> Vec<String> {
    match check(text, dialect, &knowledge(), &[]) {
        Err(Refusal::QuotedTexts { texts, .. }) => texts,
        other => panic!("{text}: {other:?}"),
    }
}

fn accepts(text: &str, dialect: &Dialect) {
    let found = check(text, dialect, &knowledge(), &[]);
    assert!(found.is_ok(), "{dialect:?} {text}: {found:?}");
}

/// Checks the statement with the candidates that the next attempt gets.
fn repaired(text: &str) -> Result<String, Refusal> {
    let knowledge = knowledge();
    let missing = match check(text, &Dialect::Sqlite, &knowledge, &[]) {
        Err(Refusal::UnknownFields(fields)) => fields,
        other => panic!("{text}: {other:?}"),
    };
    let candidates = candidate::for_fields(&missing, &knowledge);
    check(text, &Dialect::Sqlite, &knowledge, &candidates).map(|checked| checked.sql)
}

#[test]
fn s4_31_a_text_in_double_quotes_is_not_a_field() {
    for case in [
        "WITH x AS (SELECT id FROM orders WHERE status = \"completed\")
         SELECT COUNT(*) AS n FROM x => completed",
        "WITH x AS (SELECT id FROM orders WHERE status IN (\"completed\", 'paid', \"paid\"))
         SELECT COUNT(*) AS n FROM x => completed, paid",
        "WITH x AS (SELECT id FROM orders WHERE status LIKE \"%o%\") SELECT * FROM x => %o%",
        "WITH x AS (SELECT id FROM orders WHERE ordered_at BETWEEN \"2024-01-01\" AND
         \"2024-12-31\") SELECT COUNT(*) AS n FROM x => 2024-01-01, 2024-12-31",
        "WITH x AS (SELECT SUM(CASE WHEN status = \"completed\" THEN 1 ELSE 0 END) AS n
         FROM orders) SELECT n FROM x => completed",
        "WITH x AS (SELECT CASE WHEN total_amount > 5 THEN \"high\" ELSE \"low\" END AS level
         FROM orders) SELECT level FROM x => high, low",
        "WITH v(status) AS (VALUES (\"completed\"))
         SELECT COUNT(*) AS n FROM orders JOIN v ON v.status = orders.status => completed",
        "WITH x AS (SELECT strftime(\"%Y\", ordered_at) AS y FROM orders) SELECT y FROM x => %Y",
        "WITH x AS (SELECT SUM(\"total_amout\") AS n FROM orders) SELECT n FROM x => total_amout",
        "WITH x AS (SELECT id FROM orders WHERE \"orders.status\" = 'paid') SELECT * FROM x \
         => orders.status",
        "WITH x AS (SELECT id FROM orders WHERE customer_id IN
         (SELECT id FROM customers WHERE city = \"北京\")) SELECT COUNT(*) AS n FROM x => 北京",
        "WITH x AS (SELECT id FROM orders WHERE status = \"completed\" UNION ALL
         SELECT id FROM orders WHERE status = \"paid\") SELECT COUNT(*) AS n FROM x \
         => completed, paid",
        "WITH x AS (SELECT id FROM orders ORDER BY \"amount\" DESC LIMIT 5) SELECT * FROM x \
         => amount",
    ] {
        let (text, names) = case.rsplit_once(" => ").unwrap();
        for dialect in BOTH {
            assert_eq!(texts(text, &dialect).join(", "), names, "{dialect:?} {text}");
        }
    }
}

/// PostgreSQL refuses these itself.
#[test]
fn s4_31_sqlite_would_interpret_these_as_texts() {
    for case in [
        // Names that a CTE or a subquery does not have.
        "WITH x AS (SELECT status FROM orders)
         SELECT COUNT(*) AS n FROM x WHERE status = \"completed\" => completed",
        "WITH x AS (SELECT total_amount FROM orders) SELECT SUM(\"total\") AS n FROM x => total",
        "WITH x AS (SELECT 1) SELECT COUNT(*) AS n FROM (SELECT * FROM orders) AS o
         WHERE o.status = \"completed\" => completed",
        "WITH v(a) AS (VALUES (1)) SELECT \"column1\" FROM v => column1",
        // Names that are aliases of something else.
        "WITH x AS (SELECT id, status AS completed FROM orders WHERE status = \"completed\")
         SELECT COUNT(*) AS n FROM x => completed",
        "WITH x AS (SELECT status AS completed, COUNT(*) AS n FROM orders GROUP BY status
         HAVING status = \"completed\") SELECT * FROM x => completed",
        "WITH x AS (SELECT SUM(CASE WHEN status = \"completed\" THEN 1 END) AS completed
         FROM orders) SELECT completed FROM x => completed",
        "WITH x AS (SELECT \"orders\" AS n FROM orders) SELECT n FROM x => orders",
        // A CTE has no row id.
        "WITH x AS (SELECT id FROM orders) SELECT MAX(\"rowid\") AS n FROM x => rowid",
        // Names that a later CTE does not have.
        "WITH a AS (SELECT COUNT(*) AS n FROM b WHERE status = \"completed\"),
         b AS (SELECT * FROM c), c AS (SELECT status FROM orders) SELECT n FROM a => completed",
        "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE \"last\" > i)
         SELECT * FROM n => last",
    ] {
        let (text, name) = case.rsplit_once(" => ").unwrap();
        assert_eq!(texts(text, &Dialect::Sqlite), [name], "{text}");
    }
}

/// The projection has an alias of the same name, which SQLite would use.
#[test]
fn s4_31_a_name_that_is_compared_like_a_text_is_a_text() {
    for (rest, name) in [
        ("WHERE status IN (\"completed\")", "completed"),
        ("WHERE status = (\"completed\")", "completed"),
        ("WHERE status = \"completed\" COLLATE NOCASE", "completed"),
        ("WHERE (status, id) = (\"completed\", 1)", "completed"),
        ("WHERE (status, id) IN ((\"completed\", 1), ('paid', 2))", "completed"),
        ("WHERE status IS NOT DISTINCT FROM \"completed\"", "completed"),
        ("WHERE status LIKE \"completed\" OR status GLOB 'a*'", "completed"),
        ("WHERE order_no GLOB \"completed\"", "completed"),
        ("JOIN customers c ON status = \"completed\"", "completed"),
        ("GROUP BY status HAVING status <> \"completed\"", "completed"),
        ("ORDER BY CASE status WHEN \"completed\" THEN 0 ELSE 1 END", "completed"),
        ("WHERE ordered_at BETWEEN '2023-01' AND \"2024-01\"", "2024-01"),
        ("WHERE strftime('%Y-%m', ordered_at) >= \"2024-01\"", "2024-01"),
        ("GROUP BY month HAVING month < \"2024-01\"", "2024-01"),
        ("GROUP BY \"月份\" HAVING \"月份\" >= \"2024-01\"", "2024-01"),
    ] {
        let text = format!(
            "WITH x AS (SELECT strftime('%Y-%m', ordered_at) AS month,
             strftime('%Y-%m', ordered_at) AS \"月份\", 1 AS completed, SUM(total_amount) AS
             \"2024-01\" FROM orders {rest}) SELECT * FROM x"
        );
        assert_eq!(texts(&text, &Dialect::Sqlite), [name], "{text}");
    }
}

/// A hint about single quotes would lead to another number.
#[test]
fn s4_31_aliases_of_a_projection_are_compared() {
    for rest in [
        "HAVING \"本月\" <> \"上月\"",
        "HAVING (\"本月\") = \"上月\"",
        "HAVING \"状态\" <> \"城市\"",
        "HAVING this_month <> \"上月\"",
        "HAVING \"本月\" = COUNT(*) OR \"上月\" = ROUND(SUM(total_amount), 2)",
        "HAVING \"本月\" <> \"上月\" * 2 AND \"本月\" = COALESCE(SUM(total_amount), 0)",
        "HAVING \"本月\" > \"上月\" AND total_amount > \"本月\"",
        "HAVING total_amount <> \"上月\" AND o.customer_id = \"本月\"",
        "HAVING \"本月\" BETWEEN \"上月\" AND 100",
        "HAVING \"本月\" IN (\"上月\", 5) AND COALESCE(\"本月\", 0) > 5",
        "HAVING CASE \"本月\" WHEN \"上月\" THEN 0 ELSE 1 END = 1",
        "HAVING \"2024-02\" <> \"2024-01\" AND \"2024-02\" > \"2024-01\"",
        "HAVING `状态` = `城市` AND [本月] <> [上月] AND status <> `城市`",
        "ORDER BY CASE WHEN \"本月\" > \"上月\" THEN 0 ELSE 1 END",
    ] {
        let text = format!(
            "WITH x AS (SELECT status AS \"状态\", city AS \"城市\",
             SUM(CASE WHEN status = 'paid' THEN 1 END) AS \"本月\", COUNT(*) AS \"上月\",
             COUNT(*) AS this_month, MAX(o.id) AS \"2024-01\", MIN(o.id) AS \"2024-02\"
             FROM orders o JOIN customers c ON c.id = o.customer_id AND \"状态\" = 'paid'
             GROUP BY status, city {rest}) SELECT * FROM x"
        );
        accepts(&text, &Dialect::Sqlite);
    }
}

#[test]
fn s4_31_sqlite_does_not_know_aliases_of_a_projection_everywhere() {
    for text in [
        "WITH x AS (SELECT COUNT(*) AS \"订单数\", \"订单数\" * 2 AS n FROM orders) SELECT * FROM x",
        "WITH x AS (SELECT COUNT(*) AS \"订单数\", RANK() OVER (ORDER BY \"订单数\" DESC) AS place
         FROM orders GROUP BY status) SELECT * FROM x",
        "WITH x AS (SELECT COUNT(*) AS \"订单数\", RANK() OVER w AS place FROM orders
         GROUP BY status WINDOW w AS (ORDER BY ABS(\"订单数\") DESC)) SELECT * FROM x",
        "WITH x AS (SELECT customer_id AS \"订单数\", SUM(id) OVER w AS n FROM orders
         WINDOW w AS (PARTITION BY \"订单数\") ORDER BY \"订单数\") SELECT * FROM x",
    ] {
        let refused = check(text, &Dialect::Sqlite, &knowledge(), &[]);
        let early = vec!["订单数".to_owned()];
        let expected = Refusal::QuotedTexts { texts: Vec::new(), early, fields: Vec::new() };
        assert_eq!(refused, Err(expected), "{text}");
        let told = refused.unwrap_err().to_string();
        assert!(told.starts_with("sql_generation_early_name: "), "{told}");
    }
}

/// MySQL's quotes never contain a text, and SQLite interprets nothing in brackets as a text.
#[test]
fn s4_31_names_in_other_quotes_are_not_texts() {
    for (field, dialect) in [
        ("`total_amout`", Dialect::Sqlite),
        ("[total_amout]", Dialect::Sqlite),
        ("`total_amout`", Dialect::Postgres),
    ] {
        let text = format!("WITH x AS (SELECT SUM({field}) AS n FROM orders) SELECT n FROM x");
        let candidates = candidate::for_fields(&["total_amout".to_owned()], &knowledge());
        let refused = check(&text, &dialect, &knowledge(), &candidates);
        let fields = vec!["orders.total_amout".to_owned()];
        assert_eq!(refused, Err(Refusal::UnknownFields(fields)), "{dialect:?} {text}");
    }
}

#[test]
fn s4_31_fields_in_double_quotes_are_fields() {
    for text in [
        "WITH x AS (SELECT \"status\", o.\"id\" FROM orders o WHERE \"status\" = 'paid')
         SELECT * FROM x",
        "WITH x AS (SELECT total_amount AS \"金额\" FROM orders WHERE \"金额\" > 5000)
         SELECT \"金额\" FROM x",
        "WITH x AS (SELECT customer_id AS \"客户\", COUNT(*) AS \"订单数\" FROM orders
         GROUP BY \"客户\" HAVING \"订单数\" = 5 ORDER BY \"订单数\" DESC) SELECT \"客户\" FROM x",
        "WITH x AS (SELECT * FROM orders) SELECT \"status\" FROM x WHERE \"total_amount\" > 5",
        "WITH x AS (SELECT a.* FROM orders AS a JOIN customers AS b ON a.customer_id = b.id)
         SELECT \"status\" FROM x",
        "WITH v(a) AS (VALUES (1)) SELECT \"a\" FROM v",
        "WITH v AS (VALUES (1, 2)) SELECT \"column2\" FROM v",
        "WITH x AS (SELECT COUNT(*) FROM orders) SELECT \"COUNT(*)\" AS n FROM x",
        "WITH x AS (SELECT d.n FROM (SELECT COUNT(*) AS n FROM orders) AS d) SELECT \"n\" FROM x",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT \"n\" + 1 FROM t WHERE \"n\" < 5)
         SELECT SUM(\"n\") AS n_sum FROM t",
        "WITH x AS (SELECT c.id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o
         WHERE o.customer_id = c.id AND \"city\" = '北京')) SELECT COUNT(*) AS n FROM x",
        "WITH x AS (SELECT id AS n FROM orders UNION SELECT id FROM customers ORDER BY \"n\")
         SELECT \"n\" FROM x",
        "WITH x AS (SELECT \"rowid\" AS n FROM orders) SELECT n FROM x",
    ] {
        for dialect in BOTH {
            accepts(text, &dialect);
        }
    }
}

#[test]
fn s4_31_the_refusal_of_a_text_shows_the_literal() {
    let refused =
        |text: &str| check(text, &Dialect::Sqlite, &knowledge(), &[]).unwrap_err().to_string();
    let told = refused("WITH x AS (SELECT id FROM orders WHERE status = \"it's\") SELECT * FROM x");
    assert!(told.starts_with("sql_generation_quoted_text: "), "{told}");
    assert!(told.contains("\"it's\"") && told.contains("单引号（single quotes）"), "{told}");
    assert!(told.ends_with("'it''s'"), "{told}");
    let told = refused("WITH x AS (SELECT paid FROM orders WHERE status = \"a\") SELECT * FROM x");
    assert!(told.ends_with("'a'\nsql_generation_unknown_field: orders.paid"), "{told}");
}

#[test]
fn s4_31_only_a_certain_field_is_replaced() {
    for case in [
        "WITH x AS (SELECT SUM(total_amout) AS n FROM orders) SELECT n FROM x \
         => SUM(orders.total_amount)",
        "WITH x AS (SELECT b.total_amout FROM orders a JOIN orders b ON a.id = b.id)
         SELECT * FROM x => SELECT b.total_amount AS total_amout FROM",
        "WITH x AS (SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c
         WHERE c.id = o.customer)) SELECT COUNT(*) AS n FROM x => c.id = o.customer_id",
        // Either of the two tables may have the field.
        "WITH x AS (SELECT total_amout FROM orders a JOIN orders b ON a.id = b.id)
         SELECT * FROM x => refused",
        // A subquery or a CTE does not see the other relations of the `FROM`.
        "WITH x AS (SELECT o.id FROM orders o JOIN (SELECT c.total_amout FROM customers c) d
         ON 1 = 1) SELECT * FROM x => refused",
        "WITH x AS (SELECT id FROM orders), y AS (SELECT c.total_amout FROM customers c)
         SELECT * FROM x, y, orders => refused",
        // The table is not read at this position.
        "WITH x AS (SELECT id FROM orders)
         SELECT orders.citty FROM x JOIN customers c ON c.id = x.id => refused",
        "WITH x AS (SELECT [total_amout] FROM orders) SELECT * FROM x => refused",
        "WITH x AS (SELECT completed FROM orders o JOIN customers c ON c.id = o.customer_id)
         SELECT * FROM x => refused",
    ] {
        let (text, written) = case.rsplit_once(" => ").unwrap();
        let found = repaired(text);
        if written == "refused" {
            assert!(matches!(found, Err(Refusal::UnknownFields(_))), "{text}: {found:?}");
        } else {
            let found = found.unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
            assert!(found.contains(written), "{found}");
        }
    }
}

#[test]
fn s4_31_columns_of_a_cte_are_left_to_the_database() {
    let text = "WITH x AS (SELECT id FROM orders) SELECT total_amout FROM x";
    let candidates = candidate::for_fields(&["orders.total_amout".to_owned()], &knowledge());
    let checked = check(text, &Dialect::Sqlite, &knowledge(), &candidates).unwrap();
    assert_eq!((checked.sql.as_str(), checked.replacements.len()), (text, 0));
}

#[test]
fn s4_31_syntax_of_both_databases_is_accepted() {
    for text in [
        "-- it's\nWITH x AS (SELECT `id` FROM `orders`) SELECT COUNT(`id`) AS n FROM `x`",
        "WITH x AS (SELECT id /* \"it's\" */ FROM orders -- `end\n) SELECT COUNT(*) AS n FROM x --",
        "WITH x AS (SELECT id, SUM(total_amount) OVER w AS s FROM orders WINDOW w AS (PARTITION BY
         customer_id ORDER BY ordered_at ROWS BETWEEN 6 PRECEDING AND CURRENT ROW))
         SELECT * FROM x",
        "WITH x AS (SELECT COUNT(*) FILTER (WHERE status = 'paid') AS n FROM orders)
         SELECT n FROM x",
        "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 5)
         SELECT SUM(n) AS n_sum FROM t",
        "WITH x AS (SELECT name AS label FROM customers UNION ALL SELECT order_no FROM orders
         ORDER BY label) SELECT COUNT(*) AS n FROM x",
        "WITH x AS (SELECT c.name, (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id AND
         city <> 'x') AS n FROM customers c) SELECT * FROM x ORDER BY 2 DESC",
        "WITH x AS (SELECT id, status FROM orders JOIN customers USING (id)) SELECT * FROM x",
        "WITH x AS (SELECT quantity, amount FROM orders NATURAL JOIN order_items) SELECT * FROM x",
        "WITH x AS (SELECT \"O\".\"Status\" AS s FROM \"Orders\" AS \"O\") SELECT s FROM x",
        "WITH x AS (SELECT status, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY n DESC, 1)
         SELECT * FROM x",
        "WITH x AS (SELECT v.code, COUNT(*) AS n FROM (VALUES ('a', 1)) AS v(code, place)
         JOIN orders o ON o.status = v.code GROUP BY v.code) SELECT * FROM x",
        "WITH x AS (SELECT value FROM json_each('[1, 2]')) SELECT COUNT(value) AS n FROM x",
        "WITH x AS (SELECT j.value AS v FROM orders AS o JOIN json_each(o.order_no) AS j
         ON j.value <> o.status) SELECT COUNT(*) AS n FROM x",
        "WITH x AS (SELECT g.value AS v FROM generate_series(1, 3) AS g) SELECT v FROM x",
    ] {
        for dialect in BOTH {
            accepts(text, &dialect);
        }
    }
}

#[test]
fn s4_31_syntax_that_only_sqlite_has_is_accepted() {
    for text in [
        "WITH x AS (SELECT [id] FROM [orders]) SELECT COUNT([id]) AS n FROM [x]",
        "WITH x AS (SELECT id FROM orders WHERE order_no GLOB 'it''s*') SELECT id FROM x",
        "WITH x AS (SELECT \"value\", \"key\" FROM json_tree('{}')) SELECT \"value\" FROM x",
    ] {
        accepts(text, &Dialect::Sqlite);
    }
    let text = "WITH x AS (SELECT COUNT(\"val\") AS n FROM json_each('[1]')) SELECT n FROM x";
    assert_eq!(texts(text, &Dialect::Sqlite), ["val"]);
}

#[test]
fn s4_31_syntax_that_only_postgres_has_is_accepted() {
    for text in [
        "/* a /* it's */ ` */ WITH x AS (SELECT `id` FROM orders) SELECT id FROM x",
        "WITH x AS (SELECT id FROM orders WHERE order_no IN ($$it's$$, $a$`b`$a$, E'it\\'s'))
         SELECT COUNT(*) AS n FROM x",
        "WITH d AS (SELECT g AS day FROM generate_series(1, 3) AS g) SELECT day FROM d",
        "WITH d AS (SELECT m.month FROM generate_series('2024-01-01'::date, '2024-03-01'::date,
         INTERVAL '1 month') AS m(month)) SELECT month FROM d",
        "WITH s AS (SELECT u.status FROM unnest(ARRAY['paid', 'completed']) AS u(status))
         SELECT COUNT(*) AS n FROM orders o JOIN s ON s.status = o.status",
        "WITH x AS (SELECT part FROM orders o LEFT JOIN LATERAL
         unnest(string_to_array(o.order_no, '-')) AS part ON true) SELECT part FROM x",
        "WITH x AS (SELECT elem, place FROM orders o CROSS JOIN LATERAL
         jsonb_array_elements(o.order_no::jsonb) WITH ORDINALITY AS t(elem, place))
         SELECT * FROM x",
        "WITH x AS (SELECT r.a FROM json_to_recordset('[]') AS r(a int, b text)) SELECT a FROM x",
        "WITH x AS (SELECT c.name, l.total_amount FROM customers c CROSS JOIN LATERAL
         (SELECT o.total_amount FROM orders o WHERE o.customer_id = c.id LIMIT 3) l)
         SELECT * FROM x",
        "WITH x AS (SELECT (ordered_at AT TIME ZONE 'Asia/Shanghai')::date AS day, COUNT(*) AS n
         FROM orders GROUP BY day ORDER BY day) SELECT * FROM x",
        "WITH x AS (SELECT status, customer_id, COUNT(*) AS n FROM orders
         GROUP BY GROUPING SETS ((status), (customer_id))) SELECT * FROM x",
        "WITH x AS (SELECT DISTINCT ON (customer_id) id, customer_id FROM orders
         ORDER BY customer_id, ordered_at DESC) SELECT * FROM x",
        "WITH x AS (SELECT name FROM customers WHERE name ILIKE '%a%') SELECT name FROM x",
        "WITH x AS (SELECT status, COUNT(*) FROM orders GROUP BY status ORDER BY count DESC)
         SELECT * FROM x",
        "WITH x AS (SELECT ordered_at - make_interval(days => 3) AS d FROM orders)
         SELECT d FROM x",
        "WITH x AS (SELECT to_jsonb(o) AS doc, (string_to_array(o.order_no, '-'))[1] AS part
         FROM orders o) SELECT doc, part FROM x",
        "WITH x AS (SELECT (jsonb_each(o.order_no::jsonb)).key AS k FROM orders o) SELECT k FROM x",
        "WITH x AS (SELECT o.a FROM orders AS o(a, b)) SELECT a FROM x",
    ] {
        accepts(text, &Dialect::Postgres);
    }
}

#[test]
fn s4_35_a_function_does_not_bypass_the_list_of_tables() {
    for (text, dialect, table) in [
        ("SELECT * FROM pragma_table_info('orders')", Dialect::Sqlite, "pragma_table_info"),
        ("SELECT * FROM secrets('x')", Dialect::Sqlite, "secrets"),
        ("SELECT * FROM sqlite_stmt()", Dialect::Sqlite, "sqlite_stmt"),
        ("SELECT * FROM main.json_each('[1]')", Dialect::Sqlite, "main.json_each"),
        ("SELECT * FROM pg_ls_dir('.')", Dialect::Postgres, "pg_ls_dir"),
        ("SELECT * FROM orders, LATERAL pg_stat_file('x') f", Dialect::Postgres, "pg_stat_file"),
        ("SELECT * FROM pg_catalog.pg_ls_dir('.')", Dialect::Postgres, "pg_catalog.pg_ls_dir"),
        ("SELECT * FROM other.f(1)", Dialect::Postgres, "other.f"),
        ("SELECT * FROM unnest(ARRAY(SELECT id FROM secrets)) u", Dialect::Postgres, "secrets"),
        ("SELECT * FROM orders, LATERAL (SELECT * FROM secrets) s", Dialect::Postgres, "secrets"),
    ] {
        let text = format!("WITH x AS (SELECT 1) {text}");
        let refused = check(&text, &dialect, &knowledge(), &[]);
        assert_eq!(refused, Err(Refusal::UnknownTables(vec![table.to_owned()])), "{text}");
    }
}

#[test]
fn s4_31_an_unsupported_form_of_from_is_named() {
    for (from, form) in [
        ("JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$')) AS j", "JSON_TABLE"),
        ("XMLTABLE('/r' PASSING '<r/>' COLUMNS a INT PATH '@a') AS t", "XMLTABLE"),
        ("TABLE(generate_series(1, 3)) AS t", "TABLE()"),
    ] {
        for dialect in BOTH {
            let text = format!("WITH x AS (SELECT a FROM {from}) SELECT a FROM x");
            let refused = check(&text, &dialect, &knowledge(), &[]).unwrap_err();
            assert_eq!(refused, Refusal::UnsupportedFrom(vec![form]), "{text}");
            let told = refused.to_string();
            assert!(told.starts_with("sql_generation_unsupported_from: "), "{told}");
        }
    }
}

#[test]
fn s4_31_unknown_fields_are_refused_in_every_clause() {
    for (text, field) in [
        ("SELECT citty FROM customers UNION ALL SELECT status FROM orders", "customers.citty"),
        ("SELECT SUM(amount) OVER (PARTITION BY stauts) FROM order_items", "order_items.stauts"),
        ("SELECT COUNT(*) FILTER (WHERE stauts = 'paid') FROM orders", "orders.stauts"),
        ("SELECT o.stauts FROM orders o, json_each(o.order_no)", "orders.stauts"),
        ("SELECT id FROM orders ORDER BY totl", "orders.totl"),
    ] {
        for dialect in BOTH {
            let text = format!("WITH x AS (SELECT 1) {text}");
            let refused = check(&text, &dialect, &knowledge(), &[]);
            assert_eq!(refused, Err(Refusal::UnknownFields(vec![field.to_owned()])), "{text}");
        }
    }
}
