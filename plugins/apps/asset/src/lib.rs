//! AssetGraph: assets from a picture or text, confirmed by a person.
//!
//! # Layout
//!
//! * `state`: the types of the state channels.
//! * `node`: one node of the graph a file. Its prompts are files of `prompts` with its name.
//! * `web`: the app's HTTP endpoints, one a file.
//! * `lookup`: which security a name means: own table, Massive, light model. `listings` is the text
//!   of the table.
//! * `confirm`: what a confirmed table must look like before it is written.
//! * `currency`, `ticker`, `lot`, `date`: rules of the trade. `ticker/exchange` has the names of
//!   exchanges, and which of them lists a number.
//! * `width`: ASCII characters in the width of Chinese ones.

mod confirm;
mod currency;
mod date;
mod listings;
mod lookup;
mod lot;
mod node;
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
