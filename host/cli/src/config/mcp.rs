//! `[mcp.<name>]`: MCP servers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;
use wattle_graph::definition::HumanDuration;
use wattle_mcp::config::{DEFAULT_OUTPUT_BYTES, DEFAULT_TIMEOUT};
use wattle_mcp::{HttpConfig, ServerConfig, StdioConfig, TransportConfig};

use crate::config::secret_placeholder::{FindSecret, expand_secrets};
use crate::config::{ByteSize, ConfigProblem};

/// One `[mcp.<name>]`: either `url` or `command`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpTable {
    /// URL of a server over streamable HTTP.
    pub url: Option<String>,
    /// Headers of every request; the placeholder `{{secret:NAME}}` is replaced.
    pub headers: BTreeMap<String, String>,
    /// Whether the server may have a private or loopback address. Default: false.
    pub private: bool,
    /// Program of a server over standard input and output.
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment of the program in addition to `PATH`; the placeholder `{{secret:NAME}}` is
    /// replaced.
    pub env: BTreeMap<String, String>,
    /// Timeout of a call. Default: 30 s.
    pub timeout: Option<HumanDuration>,
    /// Maximum size of the output of a call. Default: 1 MiB.
    pub output: Option<ByteSize>,
    /// Whether a session begins with the handshake of earlier protocol versions, even if the server
    /// supports the newest version.
    pub handshake: bool,
}

/// The context in which a table is converted to the settings of a server.
pub struct McpContext<'a> {
    /// Folder to which program paths are relative.
    pub base: &'a Path,
    /// Working directory of programs.
    pub data: &'a Path,
    /// Value of `PATH`, in which programs are looked up.
    pub path: Option<String>,
    /// Returns the value of a secret, or the reason why it is missing.
    pub secret: FindSecret<'a>,
}

impl McpTable {
    /// Checks rules that the types do not express.
    pub(super) fn check(&self, name: &str, problems: &mut Vec<ConfigProblem>) {
        let mut add = |message: &str, hint: &str| {
            problems.push(ConfigProblem {
                key: format!("mcp.{name}"),
                message: message.to_owned(),
                hint: Some(hint.to_owned()),
            });
        };
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
        if name.is_empty() || !name.chars().all(is_allowed) {
            add(
                "the name cannot be part of a tool's reference",
                "use letters, digits, `-` and `_`",
            );
        }
        match (&self.url, &self.command) {
            (Some(_), None) | (None, Some(_)) => {}
            _ => add("there must be either `url` or `command`", "write one of the two"),
        }
        let of_program = !self.args.is_empty() || !self.env.is_empty();
        let of_http = !self.headers.is_empty() || self.private;
        if self.url.is_some() && of_program {
            add("`args` and `env` belong to `command`", "remove them, or replace `url`");
        }
        if self.command.is_some() && of_http {
            add("`headers` and `private` belong to `url`", "remove them, or replace `command`");
        }
        if self.url.as_ref().is_some_and(|url| url.parse::<url::Url>().is_err()) {
            add("`url` is not a URL", "write for example `https://example.com/mcp`");
        }
    }

    /// Returns the settings of the server with its secrets. A server with a missing secret is
    /// listed, but every call fails.
    pub fn server(&self, context: &McpContext<'_>) -> ServerConfig {
        let mut secrets = Vec::new();
        let transport =
            self.transport(context, &mut secrets).unwrap_or_else(TransportConfig::Misconfigured);
        ServerConfig {
            transport,
            timeout: self.timeout.map_or(DEFAULT_TIMEOUT, |it| Duration::from_millis(it.as_ms())),
            output_bytes: self
                .output
                .map_or(DEFAULT_OUTPUT_BYTES, |size| usize::try_from(size.0).unwrap_or(usize::MAX)),
            handshake: self.handshake,
            secrets,
        }
    }

    /// Returns the transport of the server. Adds to `secrets` the values of the secrets that the
    /// headers or the environment variables of the server contain.
    ///
    /// # Errors
    ///
    /// A message, for example if the URL is invalid or a secret is missing.
    fn transport(
        &self,
        context: &McpContext<'_>,
        secrets: &mut Vec<SecretString>,
    ) -> Result<TransportConfig, String> {
        let secrets = RefCell::new(secrets);
        let secret = |name: &str| {
            let value = (context.secret)(name)?;
            secrets.borrow_mut().push(value.clone().into());
            Ok(value)
        };
        let expand_all = |texts: &BTreeMap<String, String>| {
            let fill = |(name, text): (&String, &String)| {
                let value = expand_secrets(text, &secret)?;
                Ok::<_, String>((name.clone(), SecretString::from(value)))
            };
            texts.iter().map(fill).collect::<Result<BTreeMap<_, _>, _>>()
        };
        if let Some(url) = &self.url {
            let url = url.parse().map_err(|_| "`url` is not a URL".to_owned())?;
            let headers = expand_all(&self.headers)?;
            return Ok(TransportConfig::Http(HttpConfig { url, headers, private: self.private }));
        }
        let mut env = expand_all(&self.env)?;
        if let Some(path) = &context.path {
            env.entry("PATH".to_owned()).or_insert_with(|| SecretString::from(path.clone()));
        }
        Ok(TransportConfig::Stdio(StdioConfig {
            program: resolve_program(self.command.as_deref().unwrap_or_default(), context.base),
            arguments: self.args.clone(),
            env,
            folder: context.data.to_owned(),
        }))
    }
}

/// Resolves a program. A path is relative to the folder of the configuration. A name without a path
/// is looked up in `PATH`.
fn resolve_program(program: &str, base: &Path) -> String {
    if program.contains('/') {
        return base.join(program).to_string_lossy().into_owned();
    }
    program.to_owned()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn secret(name: &str) -> Result<String, String> {
        match name {
            "X" => Ok("x-1".into()),
            _ => Err(format!("the secret `{name}` is not set")),
        }
    }

    fn problems(toml: &str) -> Vec<String> {
        let table: McpTable = toml::from_str(toml).unwrap();
        let mut problems = Vec::new();
        table.check("graph", &mut problems);
        problems.into_iter().map(|problem| problem.message).collect()
    }

    fn server(toml: &str) -> ServerConfig {
        let table: McpTable = toml::from_str(toml).unwrap();
        table.server(&McpContext {
            base: Path::new("/base"),
            data: Path::new("/data"),
            path: Some("/bin".into()),
            secret: &secret,
        })
    }

    #[test]
    fn a_server_has_either_a_url_or_a_command() {
        assert!(problems("url = 'https://a.example/mcp'\nprivate = true").is_empty());
        assert!(problems("command = 'node'\nargs = ['a.js']\nenv = { A = 'b' }").is_empty());
        assert_eq!(problems("").len(), 1);
        assert_eq!(problems("url = 'https://a'\ncommand = 'b'").len(), 1);
        assert_eq!(problems("url = 'nowhere'\nargs = ['a']").len(), 2);
    }

    #[test]
    fn tables_become_servers() {
        let http = server("url = 'https://a.example/mcp'\nheaders = { A = '{{secret:X}}' }");
        assert_eq!(http.timeout, DEFAULT_TIMEOUT);
        assert!(
            matches!(http.transport, TransportConfig::Http(it) if it.headers.len() == 1 && !it.private)
        );
        let secrets: Vec<&str> = http.secrets.iter().map(SecretString::expose_secret).collect();
        assert_eq!(secrets, ["x-1"]);
        let child = "command = './bin/serve'\ntimeout = '2s'\noutput = '4KiB'\nhandshake = true";
        let child = server(child);
        assert!(child.handshake && !http.handshake);
        let TransportConfig::Stdio(command) = child.transport else { panic!("no program") };
        assert_eq!(command.program, "/base/./bin/serve");
        assert_eq!(command.env.keys().collect::<Vec<_>>(), ["PATH"]);
        assert_eq!((child.timeout, child.output_bytes), (Duration::from_secs(2), 4096));
        let missing = server("url = 'https://a'\nheaders = { A = '{{secret:Y}}' }");
        assert!(
            matches!(missing.transport, TransportConfig::Misconfigured(reason) if reason.contains("`Y`"))
        );
    }
}
