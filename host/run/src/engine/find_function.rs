//! Finds the tools and nodes of an app by the names that clients give.

use std::sync::Arc;

use wattle_graph::failure::{Failure, code};
use wattle_graph::id::PluginName;
use wattle_graph::suggest;

use crate::app::App;
use crate::grant::{ToolGrant, ToolSource};
use crate::ports::Plugin;
use crate::ports::sandbox::{NodeInfo, PluginInfo, ToolInfo};

/// A function of a plugin that clients can call.
pub(super) trait PluginFunction: Sized {
    /// Kind of the function, for messages.
    const KIND: &'static str;

    /// Returns the functions of a plugin that have this kind.
    fn of(plugin: &PluginInfo) -> &[Self];

    /// Returns the name of the function in its plugin.
    fn name(&self) -> &str;
}

impl PluginFunction for ToolInfo {
    const KIND: &'static str = "tool";

    fn of(plugin: &PluginInfo) -> &[Self] {
        &plugin.tools
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl PluginFunction for NodeInfo {
    const KIND: &'static str = "node";

    fn of(plugin: &PluginInfo) -> &[Self] {
        &plugin.nodes
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// A function of a plugin of an app.
pub(super) struct Found<'a, F> {
    /// Name of the plugin in the app.
    pub(super) plugin: &'a PluginName,
    /// The plugin.
    pub(super) code: &'a Arc<dyn Plugin>,
    /// Description of the function.
    pub(super) info: &'a F,
}

/// Finds a function by its reference, such as `date/parse`, or by a name that only one plugin of the
/// app has.
///
/// # Errors
///
/// `not-found` if the app has no such function; `invalid` for a name that several plugins have.
pub(super) fn find_function<'a, F: PluginFunction + 'a>(
    app: &'a App,
    reference: &str,
) -> Result<Found<'a, F>, Failure> {
    let (wanted, name) = match reference.parse::<ToolGrant>() {
        Ok(ToolGrant { source: ToolSource::Plugin(plugin), tool: Some(name) }) => {
            (Some(plugin), name)
        }
        _ => (None, reference.to_owned()),
    };
    let is_wanted = |name: &PluginName| wanted.as_ref().is_none_or(|wanted| wanted == name);
    let plugins = app.plugins.iter().filter(|&(plugin, _)| is_wanted(plugin));
    let mut found = plugins.filter_map(|(plugin, code)| {
        let info = F::of(code.info()).iter().find(|info| info.name() == name)?;
        Some(Found { plugin, code, info })
    });
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(Found { plugin: first, .. }), Some(Found { plugin: second, .. })) => {
            let text = format!(
                "several plugins of app `{}` have a {} `{name}`; name one, such as \
                 `{first}/{name}` or `{second}/{name}`",
                app.name,
                F::KIND
            );
            Err(Failure::new(code::INVALID, text))
        }
        (None, _) => Err(unknown_function::<F>(app, reference)),
    }
}

fn unknown_function<F: PluginFunction>(app: &App, reference: &str) -> Failure {
    let references = app.plugins.iter().flat_map(|(plugin, code)| {
        let functions = F::of(code.info()).iter();
        functions.map(move |info| format!("{plugin}/{}", info.name()))
    });
    let references: Vec<String> = references.collect();
    let kind = F::KIND;
    let what = format!("{kind}s of app `{}`", app.name);
    let hint = suggest::hint(reference, &what, references.iter().map(String::as_str));
    Failure::new(code::NOT_FOUND, format!("there is no {kind} `{reference}`; {hint}"))
}
