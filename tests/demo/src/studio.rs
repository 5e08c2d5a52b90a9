//! The studio: a thread for each of its views. A run that failed and its fork, an interrupt, a call
//! in doubt, a thread on an older version, a cron and a webhook that cannot be delivered.

mod operation;
mod question;
mod run;
mod time_travel;

use anyhow::Result;

use self::run::text;
use self::time_travel::{CUT_THREAD, FAILED_THREAD, OLDER_THREAD, TWIN_THREAD};
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
    /// The older version of the app.
    older: String,
    /// The newer version of the app.
    newer: String,
    /// The run with a call in doubt.
    cut: String,
    /// The thread of the run with a webhook.
    webhook: String,
}

/// Prepares the threads. Kills the host and starts it again, with a newer version of the app.
pub(crate) async fn show(host: &mut Host) -> Result<Vec<View>> {
    let failed = time_travel::failed(host).await?;
    let twin = time_travel::twin(host).await?;
    question::ask(host).await?;
    let older = time_travel::older(host).await?;
    let cut = time_travel::in_doubt(host).await?;
    let webhook = operation::webhook(host).await?;
    let cron = operation::cron(host).await?;
    let newer = host.get("/api/v1/apps/tour/graphs/tour").await?;
    let newer = text(&newer["version"])?.to_owned();
    say(&format!("six threads of the app `tour`; the cron {cron} starts another one each Monday"));
    Ok(views(&Ids { failed, twin, older, newer, cut, webhook }))
}

fn views(Ids { failed, twin, older, newer, cut, webhook }: &Ids) -> Vec<View> {
    vec![
        view("a run that failed", run_path(FAILED_THREAD, failed)),
        view(
            "the run and its fork with another answer of the model",
            format!("compare?left={FAILED_THREAD}~{failed}&right={TWIN_THREAD}~{twin}"),
        ),
        view("a question in the inbox", "inbox".to_owned()),
        view("a call in doubt, because the host was killed", run_path(CUT_THREAD, cut)),
        view("a thread on an older version", format!("threads/{OLDER_THREAD}")),
        view("its state", format!("threads/{OLDER_THREAD}/checkpoints/latest")),
        view(
            "the older and the newer version of its graph",
            format!("apps/tour/graphs/tour?version={older}&against={newer}"),
        ),
        view("a run whose webhook cannot be delivered", format!("threads/{webhook}")),
        view("the attempts of this webhook", "operations?part=webhooks".to_owned()),
        view("the cron with its next run", "operations?part=crons".to_owned()),
        view("the statistics of the host", "operations".to_owned()),
        view("the runs of all threads", "runs".to_owned()),
        view("the playground of the app `tour`", "apps/tour/play".to_owned()),
        view("the plugins", "plugins".to_owned()),
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

    #[test]
    fn each_page_of_the_studio_has_a_link() {
        let features = crate::root().join("host/studio/src/router/features.ts");
        let features = std::fs::read_to_string(features).unwrap();
        let paths = features.split("path: \"").skip(1).filter_map(|rest| rest.split('"').next());
        // The other paths have parameters.
        let pages: Vec<&str> = paths.filter(|path| !path.contains('$')).collect();
        assert!(pages.contains(&"/operations"), "{pages:?}");
        let views = views(&Ids::default());
        for page in pages {
            let has_link = views.iter().any(|it| it.path.starts_with(&format!("/studio{page}")));
            assert!(has_link, "no link leads to {page}");
        }
    }
}
