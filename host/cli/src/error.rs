//! Errors of commands.

use std::path::PathBuf;

use wattle_api::problem::{Problem, ProblemDocument};
use wattle_graph::failure::code;

use crate::config::LocatedProblem;
use crate::exit::Exit;

/// The error of a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file of `--config` does not exist.
    #[error("there is no configuration file `{}`", .0.display())]
    NoConfigFile(PathBuf),
    /// The configuration is invalid.
    #[error("`{file}` is not valid\n{}", list(problems))]
    Config {
        /// Name of the configuration file.
        file: String,
        /// All problems of the configuration.
        problems: Vec<LocatedProblem>,
    },
    /// An adapter rejects its section of the configuration.
    #[error("cannot set up {what}: {message}")]
    Setup {
        /// The section of the configuration.
        what: &'static str,
        /// The reason.
        message: String,
    },
    /// A part of the system or a file of the data folder cannot be used.
    #[error("cannot set up {what}: {message}")]
    Unusable {
        /// What cannot be used.
        what: &'static str,
        /// The reason.
        message: String,
    },
    /// The store cannot be opened.
    #[error("cannot open the store: {0}")]
    Store(wattle_run::ports::store::StoreError),
    /// An operation on a file or folder failed.
    #[error("cannot {operation} `{}`: {source}", path.display())]
    File {
        /// The operation, such as `read`.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The server cannot listen on its address.
    #[error("cannot listen on `{address}`: {source}\n  hint: {}", listen_hint(source))]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// An address is reachable from other machines, and there are no API keys.
    #[error(
        "refusing to listen on `{address}`, which others can reach, without API keys\n  hint: \
         create one with `wattle key create`, or put keys into an environment variable and name it \
         with `keys_env` under `[auth]`, or listen on `127.0.0.1`"
    )]
    PublicAddressWithoutKeys {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// Two mounted apps claim the same path.
    #[error("apps cannot be mounted\n{}", list(.0))]
    Mount(Vec<wattle_api::error::Error>),
    /// The server responded with a problem document.
    #[error("{}", problem_text(.0))]
    Problem(Box<ProblemDocument>),
    /// This process has found the folder of an app and cannot load the app. The reason was printed.
    #[error("app `{app}` is not loaded, because of the problem above")]
    AppNotLoaded {
        /// The app.
        app: String,
        /// The response to a request for the app.
        problem: Box<ProblemDocument>,
    },
    /// The server cannot be reached, or its response is invalid.
    #[error("cannot talk to the server at {address}: {message}")]
    Server {
        /// URL of the server, or a phrase that describes it.
        address: String,
        /// The reason.
        message: String,
    },
    /// An argument is invalid.
    #[error("{message}\n  hint: {hint}")]
    Usage {
        /// What is invalid.
        message: String,
        /// Suggested correction.
        hint: String,
    },
    /// A resource in the arguments does not exist.
    #[error("{message}\n  hint: {hint}")]
    NotFound {
        /// The missing resource.
        message: String,
        /// Suggested next step.
        hint: String,
    },
    /// The command failed for another reason. The message explains the failure, or refers to
    /// details that were printed.
    #[error("{0}")]
    Failed(String),
}

fn listen_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "another process uses this port; choose another one",
        std::io::ErrorKind::PermissionDenied => "ports below 1024 require special privileges",
        _ => "set `server.listen` in wattle.toml, such as `127.0.0.1:8700`",
    }
}

/// Requests that messages of the API recommend, and the commands that replace them.
const COMMANDS: [(&str, &str); 5] = [
    ("`GET /api/v1/threads`", "list threads with `wattle thread list`"),
    (
        "`GET /api/v1/apps`",
        "list the plugins of all apps with `wattle plugin list`; `wattle serve` prints why an app \
         is not loaded",
    ),
    (
        "`GET /api/v1/problems`",
        "a warning above has the reason, or the log of `wattle serve` if it is running",
    ),
    ("`GET /api/v1/plugins`", "list plugins with `wattle plugin list`"),
    ("`GET /api/v1/keys`", "list keys with `wattle key list`"),
];

/// Returns the message of a problem, and a hint. A request that the message recommends is left out
/// if a command replaces it.
fn problem_text(problem: &ProblemDocument) -> String {
    let detail = problem.detail.as_str();
    if problem.status == 401 {
        let hint = "set the environment variable `WATTLE_API_KEY` to an API key";
        return format!("{detail}\n  hint: {hint}");
    }
    match COMMANDS.iter().find(|(request, _)| detail.contains(request)) {
        Some((request, hint)) => {
            format!("{}\n  hint: {hint}", before_recommendation(detail, request))
        }
        None => match graph_hint(problem) {
            Some(hint) => format!("{detail}\n  hint: {hint}"),
            None => detail.to_owned(),
        },
    }
}

/// Returns the message before the part that recommends a request. This part is the end of the
/// message, after a semicolon or the question whether a similar name was meant.
fn before_recommendation<'d>(detail: &'d str, request: &str) -> &'d str {
    let before = detail.split(request).next().unwrap_or_default();
    let semicolon = before.rfind("; ");
    let question = before.rfind("? ").map(|at| at + 1);
    semicolon.max(question).map_or(detail, |end| &detail[..end])
}

/// Returns the hint for a request that names an app with several graphs and none of the graphs.
fn graph_hint(problem: &ProblemDocument) -> Option<String> {
    let details = problem.details.as_ref().filter(|_| problem.code == code::INVALID)?;
    let (app, graph) = (details["app"].as_str()?, details["graphs"][0].as_str()?);
    Some(format!("name app and graph, such as `{app}/{graph}`"))
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Error {
    /// Returns a function that turns an I/O error of a file operation into an [`Error`].
    pub fn file(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { operation, path, source }
    }

    /// Returns the problem document that `--json` prints. A missing resource has the code that the
    /// API uses for it, so that the output does not depend on whether a server is running. Returns
    /// `None` for the errors of the command itself, which are printed as text.
    pub fn problem(&self) -> Option<Box<ProblemDocument>> {
        match self {
            Self::Problem(problem) | Self::AppNotLoaded { problem, .. } => Some(problem.clone()),
            Self::NotFound { message, hint } => {
                Some(Problem::new(code::NOT_FOUND, format!("{message}; {hint}")).0)
            }
            _ => None,
        }
    }

    /// Returns the exit code of the error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoConfigFile(_)
            | Self::Config { .. }
            | Self::Setup { .. }
            | Self::PublicAddressWithoutKeys { .. }
            | Self::Mount(_) => Exit::Config,
            Self::Usage { .. } => Exit::Usage,
            Self::NotFound { .. } | Self::AppNotLoaded { .. } => Exit::NotFound,
            Self::Problem(problem) => match problem.code.as_str() {
                code::NOT_FOUND | code::EXPIRED => Exit::NotFound,
                code::INVALID => Exit::Usage,
                _ => Exit::Failed,
            },
            _ => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(status: u16, detail: &str) -> String {
        let problem = serde_json::json!({ "type": "", "title": "", "status": status,
            "detail": detail, "code": "any", "instance": "" });
        Error::Problem(Box::new(serde_json::from_value(problem).unwrap())).to_string()
    }

    #[test]
    fn only_errors_of_the_configuration_have_its_exit_code() {
        let message = || "no".to_owned();
        let setup = Error::Setup { what: "webhooks", message: message() };
        let unusable = Error::Unusable { what: "signals", message: message() };
        assert_eq!((setup.exit(), unusable.exit()), (Exit::Config, Exit::Failed));
    }

    #[test]
    fn problems_have_hints_for_the_command_line() {
        assert!(shown(401, "send a known key").ends_with("`WATTLE_API_KEY` to an API key"));
        for (detail, expected) in [
            (
                "there is no thread `x`; it never existed; list threads with `GET /api/v1/threads`",
                "there is no thread `x`; it never existed\n  hint: list threads with `wattle \
                 thread list`",
            ),
            (
                "there is no app `shp`; did you mean `shop`? see `GET /api/v1/apps` for others",
                "there is no app `shp`; did you mean `shop`?\n  hint: list the plugins of all apps \
                 with `wattle plugin list`; `wattle serve` prints why an app is not loaded",
            ),
            (
                "app `shop` is unavailable; the operator sees the reason at `GET /api/v1/problems`",
                "app `shop` is unavailable\n  hint: a warning above has the reason, or the log of \
                 `wattle serve` if it is running",
            ),
        ] {
            assert_eq!(shown(404, detail), expected);
        }
        assert_eq!(shown(409, "the thread is busy"), "the thread is busy");
    }
}
