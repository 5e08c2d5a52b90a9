//! Child processes for tests: free ports, ready lines, and termination with the test.

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

/// Timeout for a program to become ready. A debug build of the host first compiles all components
/// of the demo, which takes a minute on a busy machine.
const READY_LIMIT: Duration = Duration::from_mins(4);

/// The text before the URL in the output of Uvicorn, a web server for Python.
const UVICORN: &str = "Uvicorn running on ";

/// Maximum number of retained output lines. Older ones are dropped.
const KEPT_LINES: usize = 1_000;

/// Returns a port of 127.0.0.1 that is currently free.
///
/// Another process may take the port before the program binds it. In this case start the program
/// again with another port. Prefer `--port 0` if a program prints its port.
///
/// # Errors
///
/// [`Error::Listen`] if no port is free.
pub fn free_port() -> Result<u16, Error> {
    let address = "127.0.0.1:0";
    TcpListener::bind(address)
        .and_then(|listener| listener.local_addr())
        .map(|bound| bound.port())
        .map_err(|source| Error::Listen { address: address.to_owned(), source })
}

/// Ports below the ephemeral ports of Linux and macOS.
const LASTING_PORTS: Range<u16> = 20_000..30_000;

/// Maximum number of ports that are tried.
const PORT_ATTEMPTS: u32 = 100;

/// Returns a free port of 127.0.0.1 for a program that restarts on the same port. The port is not
/// ephemeral, so no socket on port 0 takes it in between.
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

/// Returns the peak memory of a running process in bytes (`VmHWM`), by its id or as `self`. The
/// memory of child processes does not count.
///
/// Returns `None` on systems other than Linux, so a check of the peak is skipped there. Without
/// `/proc`, only the parent of a process learns its peak memory, and only after its end. The peak
/// of `getrusage` includes the memory of the parent.
///
/// # Errors
///
/// [`Error::File`] if the process has ended.
pub fn peak_rss_bytes(process: &str) -> Result<Option<u64>, Error> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let path = format!("/proc/{process}/status");
    let failed = |source| Error::File { path: path.clone(), source };
    let status = std::fs::read_to_string(&path).map_err(failed)?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    // A process that has ended has no memory until its parent has waited for it.
    let kilobytes = kilobytes.ok_or_else(|| failed(std::io::Error::other("no VmHWM")))?;
    Ok(Some(kilobytes * 1_024))
}

/// A running child process, killed when dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    /// The standard input, separate from the child, because waiting for a child closes its standard
    /// input.
    stdin: Option<ChildStdin>,
    output: Output,
}

impl Program {
    /// Starts `command` with captured output and an open standard input.
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

    /// Waits for a line of standard output or standard error that `is_ready` accepts, and returns
    /// the line.
    ///
    /// # Errors
    ///
    /// [`Error::ProgramFailed`] if the program ends first, [`Error::Timeout`] after four minutes.
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
                // The last lines may still be in the pipe.
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

    /// Waits for the URL that a server on Uvicorn prints, such as `http://127.0.0.1:41903`.
    ///
    /// # Errors
    ///
    /// As [`ready`](Self::ready).
    pub async fn uvicorn_address(&mut self) -> Result<String, Error> {
        let line = self.ready(|line| line.contains(UVICORN)).await?;
        let address = line.split_once(UVICORN).and_then(|(_, rest)| rest.split(' ').next());
        Ok(address.unwrap_or_default().to_owned())
    }

    /// Returns the process id while the program runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns the newest thousand lines of standard output and standard error, in the order of
    /// their arrival.
    pub fn output(&self) -> String {
        self.output.tail()
    }

    /// Kills the program with SIGKILL and waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if the signal cannot be sent.
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.child.kill().await.map_err(|source| self.failure(source))
    }

    /// Sends SIGTERM to the program and waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if the signal cannot be sent, [`Error::Timeout`] if the program does not
    /// end.
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

    /// Waits for the end of the program.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] if waiting fails, [`Error::Timeout`] after four minutes.
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

/// The lines of standard output and standard error, with a counter that signals new lines.
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
    /// Reads a pipe until it closes, so that the program never blocks on a full pipe.
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

    use super::{LASTING_PORTS, Program, free_port, lasting_port, peak_rss_bytes};
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
    async fn the_url_of_a_uvicorn_server_is_read() {
        let line = "INFO:     Uvicorn running on http://127.0.0.1:1 (Press CTRL+C to quit)";
        let mut program = shell(&format!("echo starting; echo '{line}' >&2; exec sleep 60"));
        assert_eq!(program.uvicorn_address().await.unwrap(), "http://127.0.0.1:1");
    }

    #[tokio::test]
    async fn a_program_that_ends_before_it_is_ready_is_an_error_with_its_output() {
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
    fn peak_memory_includes_freed_memory() {
        const BYTES: usize = 64 << 20;
        drop(std::hint::black_box(vec![1_u8; BYTES]));
        let peak = peak_rss_bytes("self").unwrap();
        assert_eq!(peak.is_some(), cfg!(target_os = "linux"));
        assert!(peak.is_none_or(|peak| peak >= BYTES as u64), "{peak:?}");
        assert_eq!(peak_rss_bytes("nobody").is_err(), cfg!(target_os = "linux"));
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
