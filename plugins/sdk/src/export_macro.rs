//! The macro `export!`.

/// Exports the nodes, tools, reducers and web handlers of a plugin. Each list is optional, and an
/// item must not be repeated in a list. The component exports only the interfaces whose lists are
/// present. In native builds, `WATTLE_HANDLERS` has the entries of the handlers, for
/// [`testing::check_openapi`](crate::testing::check_openapi).
///
/// ```
/// use wattle_plugin::prelude::*;
///
/// /// Ends the run.
/// #[node]
/// fn stop(_context: &Context, _input: Empty) -> Result<Outcome<()>, Failure> {
///     Ok(Outcome::nothing().goto(END))
/// }
///
/// /// Keeps the larger number.
/// #[reducer]
/// fn max(current: Option<i64>, updates: Vec<i64>) -> Result<i64, Failure> {
///     let largest = updates.into_iter().chain(current).max();
///     largest.ok_or_else(|| Failure::internal("reduce `max`: there is nothing to reduce"))
/// }
///
/// /// Reports that the plugin is available.
/// #[handler(GET, "/health")]
/// fn health(_request: &Request) -> Result<Response, Failure> {
///     Ok(Response::text(200, "ok"))
/// }
///
/// wattle_plugin::export! {
///     nodes: [stop],
///     reducers: [max],
///     handlers: [health],
/// }
/// # fn main() {
/// # assert_eq!(max(Some(3), vec![1, 7]), Ok(7));
/// # }
/// ```
#[macro_export]
macro_rules! export {
    ($($kind:ident: [$($item:path),* $(,)?]),+ $(,)?) => {
        $(
            const _: () = {
                $crate::__export_kind!($kind [$($item),*]);
            };
            $crate::__export_entries!($kind [$($item),*]);
        )+
    };
}

/// Defines `WATTLE_HANDLERS`, with which native tests describe the endpoints of a plugin. The name
/// is in the module of the plugin, so it is not one that plugins use.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_entries {
    (handlers [$($item:path),*]) => {
        #[cfg(not(target_arch = "wasm32"))]
        #[allow(dead_code, reason = "for tests")]
        pub(crate) const WATTLE_HANDLERS: &[$crate::export::HandlerEntry] =
            &[$(<$item as $crate::export::Handler>::ENTRY),*];
    };
    ($other:ident [$($item:path),*]) => {};
}

/// Exports one interface. Only a guest has the exports, because a native library does not need
/// their symbols. Native builds check the entries nevertheless.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_kind {
    (nodes [$($item:path),*]) => {
        #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "for guests"))]
        const ENTRIES: &[$crate::export::NodeEntry] =
            &[$(<$item as $crate::export::Node>::ENTRY),*];

        #[cfg(target_arch = "wasm32")]
        struct Exports;

        #[cfg(target_arch = "wasm32")]
        impl $crate::bindings::node::exports::wattle::plugin::node::Guest for Exports {
            fn describe()
            -> ::std::vec::Vec<$crate::bindings::node::exports::wattle::plugin::node::NodeInfo>
            {
                $crate::export::describe(ENTRIES)
            }

            fn run(
                context: $crate::bindings::node::exports::wattle::plugin::node::TaskContext,
                input: ::std::string::String,
            ) -> ::std::result::Result<
                $crate::bindings::node::exports::wattle::plugin::node::Outcome,
                $crate::bindings::imports::wattle::plugin::types::Failure,
            > {
                $crate::export::run_named(ENTRIES, context, &input)
            }
        }

        #[cfg(target_arch = "wasm32")]
        $crate::bindings::node::export_node!(Exports with_types_in $crate::bindings::node);
    };
    (tools [$($item:path),*]) => {
        #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "for guests"))]
        const ENTRIES: &[$crate::export::ToolEntry] =
            &[$(<$item as $crate::export::Tool>::ENTRY),*];

        #[cfg(target_arch = "wasm32")]
        struct Exports;

        #[cfg(target_arch = "wasm32")]
        impl $crate::bindings::tool::exports::wattle::plugin::tool::Guest for Exports {
            fn list()
            -> ::std::vec::Vec<$crate::bindings::tool::exports::wattle::plugin::tool::ToolInfo>
            {
                $crate::export::list_tools(ENTRIES)
            }

            fn call(
                context: $crate::bindings::tool::exports::wattle::plugin::tool::CallContext,
                arguments: ::std::string::String,
            ) -> ::std::result::Result<
                $crate::bindings::tool::exports::wattle::plugin::tool::ToolOutput,
                $crate::bindings::imports::wattle::plugin::types::Failure,
            > {
                $crate::export::tool_named(ENTRIES, context, &arguments)
            }
        }

        #[cfg(target_arch = "wasm32")]
        $crate::bindings::tool::export_tool!(Exports with_types_in $crate::bindings::tool);
    };
    (reducers [$($item:path),*]) => {
        #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "for guests"))]
        const ENTRIES: &[$crate::export::ReducerEntry] =
            &[$(<$item as $crate::export::Reducer>::ENTRY),*];

        #[cfg(target_arch = "wasm32")]
        struct Exports;

        #[cfg(target_arch = "wasm32")]
        impl $crate::bindings::reducer::exports::wattle::plugin::reducer::Guest for Exports {
            fn reducers() -> ::std::vec::Vec<
                $crate::bindings::reducer::exports::wattle::plugin::reducer::ReducerInfo,
            > {
                $crate::export::list_reducers(ENTRIES)
            }

            fn reduce(
                reducer: ::std::string::String,
                current: ::std::option::Option<::std::string::String>,
                updates: ::std::vec::Vec<::std::string::String>,
            ) -> ::std::result::Result<
                ::std::string::String,
                $crate::bindings::imports::wattle::plugin::types::Failure,
            > {
                $crate::export::reduce_named(ENTRIES, &reducer, current.as_deref(), &updates)
            }
        }

        #[cfg(target_arch = "wasm32")]
        $crate::bindings::reducer::export_reducer!(
            Exports with_types_in $crate::bindings::reducer
        );
    };
    (handlers [$($item:path),*]) => {
        #[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "for guests"))]
        const ENTRIES: &[$crate::export::HandlerEntry] =
            &[$(<$item as $crate::export::Handler>::ENTRY),*];

        #[cfg(target_arch = "wasm32")]
        struct Exports;

        #[cfg(target_arch = "wasm32")]
        impl $crate::bindings::web::exports::wattle::plugin::web::Guest for Exports {
            fn routes()
            -> ::std::vec::Vec<$crate::bindings::web::exports::wattle::plugin::web::Route>
            {
                $crate::export::list_routes(ENTRIES)
            }

            fn handle(
                request: $crate::bindings::web::exports::wattle::plugin::web::Request,
            ) -> ::std::result::Result<
                $crate::bindings::web::exports::wattle::plugin::web::Response,
                $crate::bindings::imports::wattle::plugin::types::Failure,
            > {
                $crate::export::handle(ENTRIES, request)
            }
        }

        #[cfg(target_arch = "wasm32")]
        $crate::bindings::web::export_web!(Exports with_types_in $crate::bindings::web);
    };
    ($other:ident [$($item:path),*]) => {
        ::std::compile_error!(
            "`export!` accepts `nodes`, `tools`, `reducers` and `handlers`"
        );
    };
}
