//! Child programs for tests: a free port, a ready line, and death with the test.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    net::TcpListener,
    ops::Range,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, ChildStdin, Command},
    sync::watch,
};

use crate::error::Error;

/// How long a program may take until it is ready. A debug build of the host compiles all components of
/// the demo first, which takes a minute on a busy machine.
const READY_LIMIT: Duration = Duration::from_mins(4);

/// What Uvicorn, a web server for Python, prints in front of its address.
const UVICORN: &str = "Uvicorn running on ";

/// Lines of output kept for a failing test to show; older ones are dropped.
const KEPT_LINES: usize = 1_000;

/// A port of 127.0.0.1 that was free a moment ago.
///
/// Another process may take it before it is used: start the program again with another port
/// then. Prefer `--port 0` wherever a program prints the port it got.
///
/// # Errors
///
/// [`Error::Listen`] if the machine has no free port.
pub fn free_port() -> Result<u16, Error> {
    let address = "127.0.0.1:0";
    TcpListener::bind(address)
        .and_then(|listener| listener.local_addr())
        .map(|bound| bound.port())
        .map_err(|source| Error::Listen { address: address.to_owned(), source })
}

/// Ports below those that Linux and macOS assign to sockets that ask for any port.
const LASTING_PORTS: Range<u16> = 20_000..30_000;

/// How many ports are tried.
const PORT_ATTEMPTS: u32 = 100;

/// A free port of 127.0.0.1 for a program that ends and starts again on it. No socket that asks for
/// any port gets this one meanwhile.
///
/// # Errors
///
/// [`Error::Listen`] if none of a hundred ports is free.
pub fn lasting_port() -> Result<u16, Error> {
    let mut attempt = 0;
    loop {
        let random = RandomState::new().build_hasher().finish();
        let offset = random % u64::from(LASTING_PORTS.end - LASTING_PORTS.start);
        let port = LASTING_PORTS.start + u16::try_from(offset).unwrap_or_default();
        attempt += 1;
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(_) if attempt < PORT_ATTEMPTS => {}
            Err(source) => {
                return Err(Error::Listen { address: format!("127.0.0.1:{port}"), source });
            }
        }
    }
}

/// A running child program, killed when dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    /// Kept apart from the child, which would close it as soon as its end is waited for.
    stdin: Option<ChildStdin>,
    output: Output,
}

impl Program {
    /// Starts `command` with its output captured and an open, silent standard input.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if it cannot be started.
    pub fn start(mut command: Command) -> Result<Self, Error> {
        let name = command.as_std().get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| Error::Program { program: name.clone(), source })?;
        let stdin = child.stdin.take();
        let output = Output::default();
        if let Some(stdout) = child.stdout.take() {
            output.follow(stdout);
        }
        if let Some(stderr) = child.stderr.take() {
            output.follow(stderr);
        }
        Ok(Self { name, child, stdin, output })
    }

    /// Waits for a line, on either output, that `is_ready` accepts and returns it.
    ///
    /// # Errors
    ///
    /// [`Error::ProgramFailed`] if the program ends before, [`Error::Timeout`] if it stays
    /// silent for four minutes.
    pub async fn ready(&mut self, is_ready: impl Fn(&str) -> bool) -> Result<String, Error> {
        let mut changed = self.output.changed();
        let line = tokio::time::timeout(READY_LIMIT, async {
            loop {
                changed.borrow_and_update();
                if let Some(line) = self.output.find(&is_ready) {
                    return Some(line);
                }
                tokio::select! {
                    seen = changed.changed() => if seen.is_err() { return None },
                    _ = self.child.wait() => return None,
                }
            }
        })
        .await;
        match line {
            Ok(Some(line)) => Ok(line),
            Ok(None) => {
                // The last lines may still be on their way through the pipe.
                tokio::time::sleep(Duration::from_millis(50)).await;
                self.output.find(&is_ready).ok_or_else(|| Error::ProgramFailed {
                    program: self.name.clone(),
                    output: self.output.tail(),
                })
            }
            Err(_) => Err(Error::Timeout {
                what: format!("the ready line of `{}`", self.name),
                limit: READY_LIMIT,
                hint: self.output.tail(),
            }),
        }
    }

    /// Waits for the address that a server on Uvicorn prints, such as `http://127.0.0.1:41903`.
    ///
    /// # Errors
    ///
    /// Those of [`ready`](Self::ready).
    pub async fn uvicorn_address(&mut self) -> Result<String, Error> {
        let line = self.ready(|line| line.contains(UVICORN)).await?;
        let address = line.split_once(UVICORN).and_then(|(_, rest)| rest.split(' ').next());
        Ok(address.unwrap_or_default().to_owned())
    }

    /// The process id, while the program runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Everything the program wrote so far, both outputs mixed, the newest thousand lines.
    pub fn output(&self) -> String {
        self.output.tail()
    }

    /// Kills the program as a power cut would (`kill -9`) and waits until it is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if the system refuses.
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.child.kill().await.map_err(|source| self.failure(source))
    }

    /// Asks the program to end (`kill -TERM`) and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if the signal cannot be sent, [`Error::Timeout`] if it does not end.
    pub async fn terminate(&mut self) -> Result<ExitStatus, Error> {
        if let Some(id) = self.child.id() {
            let sent = Command::new("kill").arg("-TERM").arg(id.to_string()).status().await;
            sent.map_err(|source| Error::Program { program: "kill".to_owned(), source })?;
        }
        self.ended().await
    }

    /// Closes the program's standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until the program ends by itself.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if it cannot be waited for, [`Error::Timeout`] after four minutes.
    pub async fn ended(&mut self) -> Result<ExitStatus, Error> {
        match tokio::time::timeout(READY_LIMIT, self.child.wait()).await {
            Ok(status) => status.map_err(|source| self.failure(source)),
            Err(_) => Err(Error::Timeout {
                what: format!("the end of `{}`", self.name),
                limit: READY_LIMIT,
                hint: self.output.tail(),
            }),
        }
    }

    fn failure(&self, source: std::io::Error) -> Error {
        Error::Program { program: self.name.clone(), source }
    }
}

/// The lines of both outputs, and a signal for each new one.
#[derive(Clone, Debug)]
struct Output {
    lines: Arc<Mutex<Vec<String>>>,
    count: watch::Sender<u64>,
}

impl Default for Output {
    fn default() -> Self {
        Self { lines: Arc::default(), count: watch::Sender::new(0) }
    }
}

impl Output {
    /// Reads on until the pipe closes, so that the program never blocks on a full pipe.
    fn follow(&self, pipe: impl AsyncRead + Unpin + Send + 'static) {
        let output = self.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                output.push(line);
            }
        });
    }

    fn push(&self, line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.remove(0);
        }
        lines.push(line);
        self.count.send_modify(|count| *count += 1);
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    fn find(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().find(|line| wanted(line)).cloned()
    }

    fn tail(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}

#[cfg(test)]
mod tests {
    use tokio::process::Command;

    use super::{LASTING_PORTS, Program, free_port, lasting_port};
    use crate::error::Error;

    fn shell(script: &str) -> Program {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        Program::start(command).unwrap()
    }

    #[tokio::test]
    async fn ready_line_is_found_and_the_program_can_be_killed() {
        let mut program = shell("echo warming; echo listening on 1; exec sleep 60");
        let line = program.ready(|line| line.starts_with("listening")).await.unwrap();
        assert_eq!(line, "listening on 1");
        assert!(program.id().is_some());
        program.kill().await.unwrap();
        assert_eq!(program.id(), None);
    }

    #[tokio::test]
    async fn the_address_of_a_server_on_uvicorn_is_read() {
        let line = "INFO:     Uvicorn running on http://127.0.0.1:1 (Press CTRL+C to quit)";
        let mut program = shell(&format!("echo starting; echo '{line}' >&2; exec sleep 60"));
        assert_eq!(program.uvicorn_address().await.unwrap(), "http://127.0.0.1:1");
    }

    #[tokio::test]
    async fn early_end_shows_what_the_program_said() {
        let mut program = shell("echo no such file >&2; exit 3");
        let failure = program.ready(|line| line == "ready").await.unwrap_err();
        assert!(
            matches!(&failure, Error::ProgramFailed { output, .. } if output == "no such file"),
            "{failure}"
        );
    }

    #[tokio::test]
    async fn programs_end_on_request() {
        let mut program = shell("echo up; read line; exit 7");
        program.ready(|line| line == "up").await.unwrap();
        program.close_stdin();
        assert_eq!(program.ended().await.unwrap().code(), Some(7));
        let mut program = shell("exec sleep 60");
        assert_eq!(program.terminate().await.unwrap().code(), None);
    }

    #[test]
    fn free_ports_can_be_bound() {
        let port = free_port().unwrap();
        std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = lasting_port().unwrap();
        assert!(LASTING_PORTS.contains(&port), "{port}");
        std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    }
}
