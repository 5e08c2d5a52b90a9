//! `AssetGraph`: extracts trades and holdings from an image or a text, lets a person confirm them,
//! and stores them. The README has the terms, and the files of each node.
//!
//! # Layout
//!
//! * `state`: types of the state channels.
//! * `node`: nodes of the graph, one per file. The prompts of a node are files of `prompts` with
//!   its name.
//! * `web`: HTTP endpoints of the app.
//! * `classify`: classifies an image or a text with one call of a model.
//! * `extract`: extracts rows with one call of a model.
//! * `picture`: the blob of the image.
//! * `lookup`: finds the security that a name or a ticker means, in the app's table, with the
//!   market data service Massive and with a light model. `listings` has the text of the table.
//! * `complete`: completes rows with the securities that `lookup` found.
//! * `missing`: finds empty required fields.
//! * `confirm`: checks of a confirmed table before it is written.
//! * `insert`: inserts confirmed rows in one transaction.
//! * `currency`, `ticker`, `lot`, `date`: rules for currencies, tickers, lot sizes and dates.
//!   `ticker/exchange` has the names of exchanges and the codes that they list.
//! * `number`: conversion of floats without a fraction to integers.
//! * `width`: conversion of full-width characters to ASCII.

mod classify;
mod complete;
mod confirm;
mod currency;
mod date;
mod extract;
mod insert;
mod listings;
mod lookup;
mod lot;
mod missing;
mod node;
mod number;
mod picture;
mod state;
#[cfg(test)]
mod testing;
mod ticker;
mod web;
mod width;

wattle_plugin::export! {
    nodes: [
        node::ingest::ingest,
        node::img_classify::img_classify,
        node::text_classify::text_classify,
        node::ext_op::ext_op,
        node::ext_hold::ext_hold,
        node::enrich::enrich,
        node::check_missing::check_missing,
        node::present_review::present_review,
        node::store_db::store_db,
    ],
    handlers: [
        web::invoke::invoke,
        web::invoke::stream,
        web::resume::resume,
        web::threads::show,
        web::assets::operations,
        web::assets::holdings,
        web::portfolios::list,
        web::portfolios::create,
    ],
}

/// Name of the graph in `graph.toml`.
const GRAPH: &str = "AssetGraph";

/// Name of the database, from the app's manifest.
const DATABASE: &str = "asset";
