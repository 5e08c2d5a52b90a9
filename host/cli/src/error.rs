//! Why a command could not do its work.

use std::path::PathBuf;

use wattle_api::problem::ProblemDocument;
use wattle_graph::failure::code;

use crate::config::ConfigProblem;
use crate::exit::Exit;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The named configuration file is missing.
    #[error("there is no configuration file `{}`", .0.display())]
    NoConfigFile(PathBuf),
    /// The configuration makes no sense.
    #[error("`{file}` is not valid\n{}", list(problems))]
    Config {
        /// The file.
        file: String,
        /// Everything that is wrong.
        problems: Vec<ConfigProblem>,
    },
    /// A part of the configuration that an adapter refused.
    #[error("cannot set up {what}: {message}")]
    Setup {
        /// Which part.
        what: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The store cannot be opened.
    #[error("cannot open the store: {0}")]
    Store(wattle_run::ports::store::StoreError),
    /// A file or folder cannot be used.
    #[error("cannot {operation} `{}`: {source}", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on `{address}`: {source}\n  hint: {}", listen_hint(source))]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// An address that others can reach, and no keys.
    #[error(
        "refusing to listen on `{address}`, which others can reach, without API keys\n  hint: make \
         one with `wattle key create`, or put keys into an environment variable and name it with \
         `keys_env` under `[auth]`, or listen on `127.0.0.1`"
    )]
    OpenAddress {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// Mounted apps claim the same paths.
    #[error("apps cannot be mounted\n{}", list(.0))]
    Mount(Vec<wattle_api::error::Error>),
    /// The server answered with a problem.
    #[error("{}{}", .0.detail, problem_hint(.0))]
    Problem(Box<ProblemDocument>),
    /// A server cannot be reached, or does not speak our language.
    #[error("cannot talk to the server at {address}: {message}")]
    Server {
        /// Where.
        address: String,
        /// What went wrong.
        message: String,
    },
    /// An argument makes no sense.
    #[error("{message}\n  hint: {hint}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Something named on the command line does not exist.
    #[error("{message}\n  hint: {hint}")]
    NotFound {
        /// What is missing.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Something that was checked is not right; the details were printed.
    #[error("{0}")]
    Failed(String),
}

fn listen_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "something else listens there; choose another port",
        std::io::ErrorKind::PermissionDenied => "ports below 1024 need special rights",
        _ => "set `server.listen` in wattle.toml, such as `127.0.0.1:8700`",
    }
}

/// What people at a terminal can do where the server speaks of its own requests.
const COMMANDS: [(&str, &str); 4] = [
    ("`GET /api/v1/threads`", "`wattle thread list` lists them here"),
    ("`GET /api/v1/apps`", "`wattle plugin list` lists the plugins of all apps here"),
    ("`GET /api/v1/plugins`", "`wattle plugin list` lists them here"),
    ("`GET /api/v1/keys`", "`wattle key list` lists them here"),
];

fn problem_hint(problem: &ProblemDocument) -> String {
    let hint = match problem.status {
        401 => Some("commands send the key that the environment variable `WATTLE_API_KEY` holds"),
        _ => COMMANDS.iter().find(|(request, _)| problem.detail.contains(request)).map(|it| it.1),
    };
    hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default()
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Error {
    /// An operation on a file that failed.
    pub fn file(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { operation, path, source }
    }

    /// The exit code that belongs to it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoConfigFile(_)
            | Self::Config { .. }
            | Self::OpenAddress { .. }
            | Self::Mount(_) => Exit::Config,
            Self::Usage { .. } => Exit::Usage,
            Self::NotFound { .. } => Exit::NotFound,
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
    fn problems_say_what_to_do_at_a_terminal() {
        assert!(shown(401, "send a known key").ends_with("`WATTLE_API_KEY` holds"));
        let unknown = shown(404, "there is no thread `x`; list threads with `GET /api/v1/threads`");
        assert!(unknown.ends_with("hint: `wattle thread list` lists them here"), "{unknown}");
        assert_eq!(shown(409, "the thread is busy"), "the thread is busy");
    }
}
