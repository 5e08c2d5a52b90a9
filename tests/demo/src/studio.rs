//! The studio: a thread for each of its views. A run with a subgraph, runs that failed or were
//! forked, a call in doubt, a thread on an older version, questions, and what an operator looks
//! after.

mod operation;
mod question;
mod run;
mod subgraph;
mod time_travel;

use anyhow::Result;

use self::operation::{LIMITED_THREAD, REFUSED_THREAD};
use self::run::text;
use self::subgraph::SUBGRAPH_THREAD;
use self::time_travel::{CUT_THREAD, FAILED_THREAD, FORKED_THREAD, OLDER_THREAD, TWIN_THREAD};
use crate::host::Host;
use crate::say;

/// A view of the studio.
pub(crate) struct View {
    /// What it shows.
    pub(crate) what: &'static str,
    /// Its path below the address of the host.
    pub(crate) path: String,
}

/// The ids in the addresses of the views.
#[derive(Default)]
struct Ids {
    /// The run that failed.
    failed: String,
    /// The run of its fork.
    twin: String,
    /// The run with a subgraph.
    reported: String,
    /// A run and its fork on the same thread.
    forked: [String; 2],
    /// The older version of the app.
    older: String,
    /// The newer version of the app.
    newer: String,
    /// The run with a call in doubt.
    cut: String,
    /// The run that reached a limit.
    limited: String,
    /// The run with a denied call.
    refused: String,
    /// The thread of the run with a webhook.
    webhook: String,
}

/// Prepares the threads. Kills the host and starts it again, with a newer version of the app.
pub(crate) async fn show(host: &mut Host) -> Result<Vec<View>> {
    let failed = time_travel::failed(host).await?;
    let twin = time_travel::twin(host).await?;
    let reported = subgraph::reported(host).await?;
    let forked = time_travel::forked(host).await?;
    question::ask(host).await?;
    let older = time_travel::older(host).await?;
    let cut = time_travel::in_doubt(host).await?;
    // A host counts denied calls of plugins from its start.
    let refused = operation::refused(host).await?;
    let limited = operation::limited(host).await?;
    let webhook = operation::webhook(host).await?;
    operation::later(host).await?;
    let cron = operation::cron(host).await?;
    subgraph::slow_reply(host).await?;
    let newer = host.get("/api/v1/apps/tour/graphs/tour").await?;
    let newer = text(&newer["version"])?.to_owned();
    say("the app `tour` has a thread for each view; `asset` and `notes` wait for an answer, too");
    say(&format!("a run of `tour` starts tomorrow, and the cron {cron} starts one each Monday"));
    let ids = Ids { failed, twin, reported, forked, older, newer, cut, limited, refused, webhook };
    Ok(views(&ids))
}

fn views(ids: &Ids) -> Vec<View> {
    let mut views = Vec::from(run_views(ids));
    views.extend(time_travel_views(ids));
    views.extend(operation_views(ids));
    views.extend(app_views());
    views
}

fn run_views(Ids { reported, .. }: &Ids) -> [View; 6] {
    let reported = run_path(SUBGRAPH_THREAD, reported);
    [
        view("all applications", String::new()),
        view("the threads of all applications", "threads".to_owned()),
        view("the runs of all threads", "runs".to_owned()),
        view(
            "the graph of a run, with a subgraph and parallel tasks",
            format!("{reported}?view=graph"),
        ),
        view("the timeline of this run, with tokens, cost and a replayed completion", reported),
        view("the questions of three applications", "inbox".to_owned()),
    ]
}

fn time_travel_views(Ids { failed, twin, forked, older, newer, cut, .. }: &Ids) -> [View; 7] {
    let [first, second] = forked;
    [
        view("a run that failed", run_path(FAILED_THREAD, failed)),
        view(
            "the run and its fork with another answer of the model",
            format!("compare?left={FAILED_THREAD}~{failed}&right={TWIN_THREAD}~{twin}"),
        ),
        view(
            "a run and its fork at the checkpoint of the input",
            format!("compare?left={FORKED_THREAD}~{first}&right={FORKED_THREAD}~{second}"),
        ),
        view("a call in doubt, because the host was killed", run_path(CUT_THREAD, cut)),
        view("a thread on an older version", format!("threads/{OLDER_THREAD}")),
        view("its state", format!("threads/{OLDER_THREAD}/checkpoints/latest")),
        view(
            "the older and the newer version of its graph",
            format!("apps/tour/graphs/tour?version={older}&against={newer}"),
        ),
    ]
}

fn operation_views(Ids { limited, refused, webhook, .. }: &Ids) -> [View; 8] {
    [
        view("the statistics of the host", "operations".to_owned()),
        view(
            "the limits that runs reached, and their failures",
            "operations?part=limits".to_owned(),
        ),
        view("a run that reached a limit", run_path(LIMITED_THREAD, limited)),
        view("a run whose model call was denied", run_path(REFUSED_THREAD, refused)),
        view("a run whose webhook cannot be delivered", format!("threads/{webhook}")),
        view("the attempts of this webhook", "operations?part=webhooks".to_owned()),
        view("the run of tomorrow in the queue", "operations?part=queue".to_owned()),
        view("the cron with its next run", "operations?part=crons".to_owned()),
    ]
}

fn app_views() -> [View; 6] {
    [
        view("the app `tour`", "apps/tour".to_owned()),
        view(
            "its playground; the reply to `Tell me slowly` streams slowly",
            "apps/tour/play?graph=tour".to_owned(),
        ),
        view("the plugins", "plugins".to_owned()),
        view(
            "the plugin `std` in `tour`, with the denied call and the line to add",
            "plugins/std?app=tour".to_owned(),
        ),
        view("the playground of the plugin `date`", "plugins/date/play".to_owned()),
        view("the model routes", "models".to_owned()),
    ]
}

fn view(what: &'static str, path: String) -> View {
    View { what, path: format!("/studio/{path}") }
}

/// Returns the path of a run below the studio.
fn run_path(thread: &str, run: &str) -> String {
    format!("threads/{thread}/runs/{run}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a view is that of a route, whose parameters begin with `$`.
    fn is_of_route(view: &View, route: &str) -> bool {
        let path = view.path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').collect();
        let wanted: Vec<&str> = "/studio".split('/').chain(route.split('/').skip(1)).collect();
        let mut pairs = parts.iter().zip(&wanted);
        parts.len() == wanted.len() && pairs.all(|(part, it)| it.starts_with('$') || part == it)
    }

    #[test]
    fn each_page_of_the_studio_has_a_link() {
        let features = crate::root().join("host/studio/src/router/features.ts");
        let features = std::fs::read_to_string(features).unwrap();
        let paths = features.split("path: \"").skip(1).filter_map(|rest| rest.split('"').next());
        let pages: Vec<&str> = paths.collect();
        assert!(pages.contains(&"/plugins/$plugin/play"), "{pages:?}");
        let views = views(&Ids::default());
        for page in pages {
            assert!(views.iter().any(|view| is_of_route(view, page)), "no link leads to {page}");
        }
    }
}
