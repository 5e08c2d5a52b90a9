//! Bindings generated from `wit/wattle`.
//!
//! The imports are generated once. Each exported interface has its own world. A component contains
//! the description of a world only if it uses the export macro of the world, so a plugin exports
//! only the interfaces that it lists in `export!`.
#![allow(
    missing_docs,
    unreachable_pub,
    unsafe_code,
    rust_2018_idioms,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]

/// All imports. A component imports only those that it uses.
pub mod imports {
    wit_bindgen::generate!({
        path: "../../wit/wattle",
        world: "imports",
    });
}

/// The export `node`.
pub mod node {
    wit_bindgen::generate!({
        path: "../../wit/wattle",
        inline: "
            package wattle:sdk-node;
            world sdk-node {
                export wattle:plugin/node@0.1.0;
            }
        ",
        with: { "wattle:plugin/types@0.1.0": crate::bindings::imports::wattle::plugin::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_node",
    });
}

/// The export `tool`.
pub mod tool {
    wit_bindgen::generate!({
        path: "../../wit/wattle",
        inline: "
            package wattle:sdk-tool;
            world sdk-tool {
                export wattle:plugin/tool@0.1.0;
            }
        ",
        with: { "wattle:plugin/types@0.1.0": crate::bindings::imports::wattle::plugin::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_tool",
    });
}

/// The export `reducer`.
pub mod reducer {
    wit_bindgen::generate!({
        path: "../../wit/wattle",
        inline: "
            package wattle:sdk-reducer;
            world sdk-reducer {
                export wattle:plugin/reducer@0.1.0;
            }
        ",
        with: { "wattle:plugin/types@0.1.0": crate::bindings::imports::wattle::plugin::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_reducer",
    });
}

/// The export `web`.
pub mod web {
    wit_bindgen::generate!({
        path: "../../wit/wattle",
        inline: "
            package wattle:sdk-web;
            world sdk-web {
                export wattle:plugin/web@0.1.0;
            }
        ",
        with: { "wattle:plugin/types@0.1.0": crate::bindings::imports::wattle::plugin::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_web",
    });
}
