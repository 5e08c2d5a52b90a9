//! Names of fields as statements write them, as tables: which are fields, which are texts, which
//! are replaced.

use wattle_plugin::sql::Dialect;

use crate::candidate;
use crate::statement::{Refusal, check};
use crate::testing::knowledge;

const BOTH: [Dialect; 2] = [Dialect::Sqlite, Dialect::Postgres];

/// The names that are refused because they stand in double quotes.
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

/// The statement with the candidates that the next attempt gets.
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
fn s4_31_a_text_in_double_quotes_is_no_field() {
    for (text, names) in [
        (
            "WITH x AS (SELECT id FROM orders WHERE status = \"completed\")
             SELECT COUNT(*) AS n FROM x",
            vec!["completed"],
        ),
        (
            "WITH x AS (SELECT id FROM orders WHERE status IN (\"completed\", 'paid', \"paid\"))
             SELECT COUNT(*) AS n FROM x",
            vec!["completed", "paid"],
        ),
        (
            "WITH x AS (SELECT id FROM orders WHERE status LIKE \"%o%\") SELECT * FROM x",
            vec!["%o%"],
        ),
        (
            "WITH x AS (SELECT id FROM orders WHERE ordered_at BETWEEN \"2024-01-01\" AND
             \"2024-12-31\") SELECT COUNT(*) AS n FROM x",
            vec!["2024-01-01", "2024-12-31"],
        ),
        (
            "WITH x AS (SELECT SUM(CASE WHEN status = \"completed\" THEN 1 ELSE 0 END) AS n
             FROM orders) SELECT n FROM x",
            vec!["completed"],
        ),
        (
            "WITH x AS (SELECT CASE WHEN total_amount > 5 THEN \"high\" ELSE \"low\" END AS level
             FROM orders) SELECT level FROM x",
            vec!["high", "low"],
        ),
        (
            "WITH v(status) AS (VALUES (\"completed\"))
             SELECT COUNT(*) AS n FROM orders JOIN v ON v.status = orders.status",
            vec!["completed"],
        ),
        (
            "WITH x AS (SELECT strftime(\"%Y\", ordered_at) AS y FROM orders) SELECT y FROM x",
            vec!["%Y"],
        ),
        (
            "WITH x AS (SELECT SUM(\"total_amout\") AS n FROM orders) SELECT n FROM x",
            vec!["total_amout"],
        ),
        (
            "WITH x AS (SELECT id FROM orders WHERE \"orders.status\" = 'paid') SELECT * FROM x",
            vec!["orders.status"],
        ),
        (
            "WITH x AS (SELECT id FROM orders WHERE customer_id IN
             (SELECT id FROM customers WHERE city = \"北京\")) SELECT COUNT(*) AS n FROM x",
            vec!["北京"],
        ),
        (
            "WITH x AS (SELECT id FROM orders WHERE status = \"completed\" UNION ALL
             SELECT id FROM orders WHERE status = \"paid\") SELECT COUNT(*) AS n FROM x",
            vec!["completed", "paid"],
        ),
        (
            "WITH x AS (SELECT id FROM orders ORDER BY \"amount\" DESC LIMIT 5) SELECT * FROM x",
            vec!["amount"],
        ),
    ] {
        for dialect in BOTH {
            assert_eq!(texts(text, &dialect), names, "{dialect:?} {text}");
        }
    }
}

/// PostgreSQL refuses these by itself.
#[test]
fn s4_31_sqlite_would_take_these_for_texts() {
    for (text, name) in [
        // What a CTE or a subquery does not have.
        (
            "WITH x AS (SELECT status FROM orders)
             SELECT COUNT(*) AS n FROM x WHERE status = \"completed\"",
            "completed",
        ),
        ("WITH x AS (SELECT total_amount FROM orders) SELECT SUM(\"total\") AS n FROM x", "total"),
        (
            "WITH x AS (SELECT 1) SELECT COUNT(*) AS n FROM (SELECT * FROM orders) AS o
             WHERE o.status = \"completed\"",
            "completed",
        ),
        ("WITH v(a) AS (VALUES (1)) SELECT \"column1\" FROM v", "column1"),
        // The same name is given to something else.
        (
            "WITH x AS (SELECT id, status AS completed FROM orders WHERE status = \"completed\")
             SELECT COUNT(*) AS n FROM x",
            "completed",
        ),
        (
            "WITH x AS (SELECT status AS completed, COUNT(*) AS n FROM orders GROUP BY status
             HAVING status = \"completed\") SELECT * FROM x",
            "completed",
        ),
        (
            "WITH x AS (SELECT SUM(CASE WHEN status = \"completed\" THEN 1 END) AS completed
             FROM orders) SELECT completed FROM x",
            "completed",
        ),
        (
            "WITH x AS (SELECT COUNT(*) AS \"订单数\", \"订单数\" * 2 AS n FROM orders)
             SELECT * FROM x",
            "订单数",
        ),
        ("WITH x AS (SELECT \"orders\" AS n FROM orders) SELECT n FROM x", "orders"),
    ] {
        assert_eq!(texts(text, &Dialect::Sqlite), [name], "{text}");
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
fn s4_31_the_refusal_of_a_text_says_how_to_write_it() {
    let refused = |text: &str| {
        check(text, &Dialect::Sqlite, &knowledge(), &[]).unwrap_err().to_string()
    };
    let told = refused("WITH x AS (SELECT id FROM orders WHERE status = \"it's\") SELECT * FROM x");
    assert!(told.starts_with("sql_generation_quoted_text: "), "{told}");
    assert!(told.contains("\"it's\"") && told.contains("单引号（single quotes）"), "{told}");
    assert!(told.ends_with("'it''s'"), "{told}");
    let told = refused("WITH x AS (SELECT paid FROM orders WHERE status = \"a\") SELECT * FROM x");
    assert!(told.ends_with("'a'\nsql_generation_unknown_field: orders.paid"), "{told}");
}

#[test]
fn s4_31_a_field_is_replaced_where_it_surely_is_one() {
    for (text, written) in [
        (
            "WITH x AS (SELECT SUM(total_amout) AS n FROM orders) SELECT n FROM x",
            Some("SUM(orders.total_amount)"),
        ),
        (
            "WITH x AS (SELECT b.total_amout FROM orders a JOIN orders b ON a.id = b.id)
             SELECT * FROM x",
            Some("SELECT b.total_amount FROM"),
        ),
        (
            "WITH x AS (SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c
             WHERE c.id = o.customer)) SELECT COUNT(*) AS n FROM x",
            Some("c.id = o.customer_id"),
        ),
        // Of which of the two?
        (
            "WITH x AS (SELECT total_amout FROM orders a JOIN orders b ON a.id = b.id)
             SELECT * FROM x",
            None,
        ),
        // What is read beside a subquery or a CTE cannot be named in it.
        (
            "WITH x AS (SELECT o.id FROM orders o JOIN (SELECT c.total_amout FROM customers c) d
             ON 1 = 1) SELECT * FROM x",
            None,
        ),
        (
            "WITH x AS (SELECT id FROM orders), y AS (SELECT c.total_amout FROM customers c)
             SELECT * FROM x, y, orders",
            None,
        ),
        // The table is not read there.
        (
            "WITH x AS (SELECT id FROM orders)
             SELECT orders.citty FROM x JOIN customers c ON c.id = x.id",
            None,
        ),
        ("WITH x AS (SELECT [total_amout] FROM orders) SELECT * FROM x", None),
        (
            "WITH x AS (SELECT completed FROM orders o JOIN customers c ON c.id = o.customer_id)
             SELECT * FROM x",
            None,
        ),
    ] {
        let found = repaired(text);
        match written {
            Some(written) => {
                let found = found.unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
                assert!(found.contains(written), "{found}");
            }
            None => assert!(matches!(found, Err(Refusal::UnknownFields(_))), "{text}: {found:?}"),
        }
    }
}

#[test]
fn s4_31_what_a_cte_may_have_is_left_to_the_database() {
    let text = "WITH x AS (SELECT id FROM orders) SELECT total_amout FROM x";
    let candidates = candidate::for_fields(&["orders.total_amout".to_owned()], &knowledge());
    let checked = check(text, &Dialect::Sqlite, &knowledge(), &candidates).unwrap();
    assert_eq!((checked.sql.as_str(), checked.replacements.len()), (text, 0));
}
