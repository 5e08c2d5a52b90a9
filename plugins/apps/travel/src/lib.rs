//! Travel: a conversation that makes a travel guide, a web page, from a video. The README has the
//! terms, the files of each step, and an order for a first reading.
//!
//! In this crate, a *page* is the HTML document of a guide, and the *chat page* is the front end.
//!
//! # Layout
//!
//! * `block`, `video`, `image`: the parts of a guide.
//! * `channel`: the state channels, the agent that talks, and the state that tools see.
//! * `tool`: the tools, one a file.
//! * `geocode`: coordinates of places.
//! * `youtube`: URLs of videos.
//! * `html`: conversion of a model's HTML to the page.
//! * `preview`: the path of a page.
//! * `node`: the first node of the graph.
//! * `session`: sessions, steps, snapshots and messages in the database, synchronized with runs.
//! * `message`: messages of the chat page, and those of models.
//! * `web`: the HTTP endpoints, one resource a file.

mod block;
mod channel;
mod geocode;
mod html;
mod image;
mod message;
mod node;
mod preview;
#[cfg(test)]
mod prompt;
mod session;
#[cfg(test)]
mod testing;
mod tool;
mod video;
mod web;
mod youtube;

wattle_plugin::export! {
    nodes: [node::begin::begin],
    tools: [
        tool::parse_youtube_input::parse_youtube_input,
        tool::crawl_youtube_videos::crawl_youtube_videos,
        tool::build_travel_blocks::build_travel_blocks,
        tool::resolve_spot_coordinates::resolve_spot_coordinates,
        tool::search_image::search_image,
        tool::generate_image::generate_image,
        tool::generate_handbook_html::generate_handbook_html,
    ],
    handlers: [
        web::chat::chat,
        web::stream::stream,
        web::sessions::create,
        web::sessions::list,
        web::session::show,
        web::session::rename,
        web::session::delete,
        web::state::show,
        web::state::patch,
        web::cancel::cancel,
        web::guide::guide,
        web::guide::handbook,
    ],
}

/// Name of the graph in `graph.toml`.
const GRAPH: &str = "travel";

/// Name of the database, from the app's manifest.
const DATABASE: &str = "travel";
