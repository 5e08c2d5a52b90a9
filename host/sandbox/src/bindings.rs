//! Bindings that wasmtime generates from `wit/wattle`, for one world with every import and every
//! export.
//!
//! No component has all exports, so the generated world type is unused. The host looks each
//! exported function up separately, in `crate::compiled`.

#![allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated")]

wasmtime::component::bindgen!({
    path: "../../wit/wattle",
    inline: "
        package wattle:host;

        world plugin {
            include wattle:plugin/imports@0.1.0;
            export wattle:plugin/node@0.1.0;
            export wattle:plugin/tool@0.1.0;
            export wattle:plugin/reducer@0.1.0;
            export wattle:plugin/web@0.1.0;
        }
    ",
    world: "wattle:host/plugin",
    imports: {
        "wattle:plugin/clock": trappable,
        "wattle:plugin/random": trappable,
        "wattle:plugin/settings": trappable,
        default: async | trappable,
    },
    trappable_error_type: {
        "wattle:plugin/types.failure" => crate::import_error::ImportError,
    },
    with: {
        "wattle:plugin/llm.completion-stream": crate::handles::StreamHandle,
        "wattle:plugin/sql.transaction": crate::handles::TransactionHandle,
    },
});
