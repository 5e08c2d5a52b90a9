//! A session: a server whose app is loaded and run again after each change.

use std::convert::Infallible;

use notify::RecursiveMode;
use wattle_api::document::run::{RunDocument, StartDocument};
use wattle_graph::event::RunStatus;
use wattle_graph::id::AppName;

use crate::cases::runner::next_answers;
use crate::client::{Client, Preload, encode_segment};
use crate::command::dev::builder::Builder;
use crate::command::dev::input::{Input, Source};
use crate::command::{follow, trace};
use crate::error::Error;
use crate::load::watch::watch_config;
use crate::load::watcher::Watcher;
use crate::load::{Change, Severity};
use crate::output::Output;
use crate::server::RunningServer;

/// A session.
pub(super) struct Session<'s> {
    server: &'s RunningServer,
    client: Client,
    app: AppName,
    builder: Builder,
    source: Source,
    output: Output,
    /// The input that was run last.
    last: Option<Input>,
}

impl<'s> Session<'s> {
    /// Begins a session with a server.
    ///
    /// # Errors
    ///
    /// Those of the client.
    pub(super) async fn begin(
        server: &'s RunningServer,
        app: AppName,
        builder: Builder,
        source: Source,
        output: Output,
    ) -> Result<Self, Error> {
        let client = Client::open(server.config().clone(), Preload::Apps).await?;
        Output::note(&format!("wattle listens on {}", server.url()));
        server.warnings().iter().for_each(|warning| Output::warning(warning));
        server.changes.iter().for_each(print);
        Ok(Self { server, client, app, builder, source, output, last: None })
    }

    /// Runs the input once, and again after each change, until the future is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Unusable`] if the system cannot watch files. Problems of the app or of the input
    /// are printed.
    pub(super) async fn work(&mut self) -> Result<Infallible, Error> {
        let mut watcher = Watcher::new()?;
        let mut has_changed = true;
        loop {
            self.builder.watch(&mut watcher);
            watch_config(&mut watcher, self.server.config());
            if let Some(folder) = self.source.folder() {
                // A folder that does not exist cannot be watched. Reading the file reports the
                // problem.
                let _ = watcher.watch(folder, RecursiveMode::NonRecursive);
            }
            self.builder.build().await;
            let changes = self.server.reload().await;
            changes.iter().for_each(print);
            has_changed |= changes.iter().any(|change| can_change_run(&self.app, change));
            if let Err(error) = self.run(has_changed).await {
                Output::error(&error.to_string());
            }
            has_changed = false;
            watcher.changed().await;
        }
    }

    /// Runs the input, unless neither the app, nor its grants, nor the input has changed.
    async fn run(&mut self, has_changed: bool) -> Result<(), Error> {
        let catalog = self.server.engine.catalog();
        if catalog.app(&self.app).is_none() && !catalog.is_loading(&self.app) {
            // The app is not loaded. The reason was already printed, and a change of the app may
            // solve the problem.
            return Ok(());
        }
        let input = self.source.read()?;
        if !has_changed && self.last.as_ref() == Some(&input) {
            return Ok(());
        }
        self.last = Some(input.clone());
        self.follow(input).await
    }

    /// Runs the input, answers interrupts, and prints progress, outcome and trace.
    async fn follow(&self, input: Input) -> Result<(), Error> {
        let Input { graph, input, context, answers } = input;
        let start = StartDocument { graph, input, context, ..StartDocument::default() };
        let path = format!("/api/v1/apps/{}/runs", encode_segment(self.app.as_str()));
        let mut run: RunDocument = self.client.post(&path, &start).await?;
        let (mut after, mut answers) = (0, answers.iter());
        loop {
            follow::follow(&self.client, &run, after, false, self.output).await?;
            let path = format!("/api/v1/runs/{}/wait", encode_segment(&run.run));
            let ended: RunDocument = self.client.get(&path).await?;
            let asks = ended.status == RunStatus::Interrupted;
            let resume = asks.then(|| next_answers(&ended, &mut answers)).flatten();
            let Some(resume) = resume else { break };
            Output::note("answering as the case does");
            after = follow::last_event_seq(&self.client, &run.thread).await?;
            let path = format!("/api/v1/threads/{}/resume", encode_segment(&run.thread));
            run = self.client.post(&path, &resume).await?;
        }
        // An author needs the stack of an exception, which is in the details of a failure.
        trace::trace(&self.client, &run.thread, true, self.output).await.map(drop)
    }
}

/// Returns true if a change can make the runs of an app end differently. New grants can, without a
/// new version of the app.
fn can_change_run(app: &AppName, change: &Change) -> bool {
    match change {
        Change::App { name, .. } => name == app,
        // Without a plugin, the change only has notes.
        Change::Grants { name, plugins, .. } => name == app && !plugins.is_empty(),
        _ => false,
    }
}

fn print(change: &Change) {
    for (severity, text) in change.messages() {
        match severity {
            // The server logs the progress.
            Severity::Progress => {}
            Severity::Note => Output::note(&text),
            Severity::Warning => Output::warning(&text),
            Severity::Error => Output::error(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_about_grants_without_an_effect_do_not_run_the_input_again() {
        let [shop, other] = ["shop", "other"].map(|name| AppName::new(name).unwrap());
        let grants = |plugins: &[&str]| {
            let plugins = plugins.iter().map(|name| name.parse().unwrap()).collect();
            Change::Grants { name: shop.clone(), plugins, notes: vec!["no effect".into()] }
        };
        assert!(can_change_run(&shop, &grants(&["desk"])));
        assert!(!can_change_run(&shop, &grants(&[])));
        assert!(!can_change_run(&other, &grants(&["desk"])));
        assert!(can_change_run(&shop, &Change::App { name: shop.clone(), notes: Vec::new() }));
    }
}
