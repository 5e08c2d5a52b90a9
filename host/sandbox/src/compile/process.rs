//! The host's side of the compiling process: starts it, passes the component to it, enforces its
//! limits, and reads its result.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::compile::worker::WorkerHeader;
use crate::compile::{CompileError, CompileLimits};
use crate::load::Rejection;
use crate::load::prepare::Prepared;

/// Maximum size of compiled code, in bytes. Compiled code is about four times as large as its
/// component.
const MAX_CODE_BYTES: u64 = 512 << 20;

/// Maximum length of a failed process's standard error that is kept, in bytes.
const MAX_STDERR_BYTES: u64 = 4 << 10;

/// Parts of the messages of a process that is out of memory: from Rust's allocator, from a buffer
/// that cannot grow, from the operating system for a memory mapping, and from the operating system
/// for the stack of a thread.
const OUT_OF_MEMORY_MESSAGES: &[&str] = &[
    "memory allocation of",
    "out of memory",
    "Cannot allocate memory",
    "os error 12",
    "Resource temporarily unavailable",
];

/// Compiles a component in a separate process.
pub(super) async fn compile(
    program: &Path,
    arguments: &[String],
    limits: &CompileLimits,
    bytes: Bytes,
) -> Result<Prepared, CompileError> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args([limits.cpu.as_secs().max(1).to_string(), limits.memory_bytes.to_string()])
        // The process gets neither secrets nor settings of the host.
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let failed = |error: io::Error| process_failed(&error.to_string());
    let child = command.spawn().map_err(failed)?;
    let done = tokio::time::timeout(limits.wall, communicate(child, bytes)).await;
    let Ok(done) = done else {
        // The machine may have been busy, so another attempt may succeed.
        return Err(CompileError::Failed(limit_exceeded("seconds", limits.wall.as_secs())));
    };
    let ProcessOutput { status, stdout, stderr } = done.map_err(failed)?;
    if !status.success() {
        return Err(exit_error(status, &stderr, limits));
    }
    if stdout.len() as u64 > MAX_CODE_BYTES {
        return Err(CompileError::Refused(limit_exceeded("bytes of code", MAX_CODE_BYTES)));
    }
    match parse_output(&stdout).map_err(failed)? {
        Ok(prepared) => Ok(prepared),
        Err(rejection) if is_out_of_memory(&rejection.message) => Err(out_of_memory(limits)),
        Err(rejection) => Err(CompileError::Refused(rejection)),
    }
}

/// The output and exit status of a process.
struct ProcessOutput {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: String,
}

async fn communicate(mut child: Child, bytes: Bytes) -> io::Result<ProcessOutput> {
    let no_pipe = || io::Error::other("the process has no pipe");
    let mut stdin = child.stdin.take().ok_or_else(no_pipe)?;
    let stdout = child.stdout.take().ok_or_else(no_pipe)?;
    let stderr = child.stderr.take().ok_or_else(no_pipe)?;
    let feed = async move {
        // The exit status of a process that ends early gives the reason, a broken pipe does not.
        let _ = stdin.write_all(&bytes).await;
        drop(stdin);
    };
    let (stdout, stderr, ()) = tokio::join!(
        read_at_most(stdout, MAX_CODE_BYTES + 1),
        read_at_most(stderr, MAX_STDERR_BYTES),
        feed
    );
    let (stdout, stderr) = (stdout?, String::from_utf8_lossy(&stderr?).into_owned());
    if stdout.len() as u64 > MAX_CODE_BYTES {
        child.start_kill()?;
    }
    Ok(ProcessOutput { status: child.wait().await?, stdout, stderr })
}

async fn read_at_most(pipe: impl AsyncRead + Unpin, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn parse_output(out: &[u8]) -> io::Result<Result<Prepared, Rejection>> {
    let cut = || io::Error::other("its output is incomplete");
    let (length, rest) = out.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (head, code) = rest.split_at_checked(length).ok_or_else(cut)?;
    Ok(match serde_json::from_slice(head)? {
        WorkerHeader::Prepared(outline) => Ok(Prepared { outline: *outline, code: code.to_vec() }),
        WorkerHeader::Refused { code, message, hint } => {
            let rejection = Rejection::from_parts(&code, &message, &hint);
            Err(rejection.ok_or_else(|| io::Error::other("its output has an unknown code"))?)
        }
    })
}

fn exit_error(status: ExitStatus, complaint: &str, limits: &CompileLimits) -> CompileError {
    if is_out_of_memory(complaint) {
        return out_of_memory(limits);
    }
    if exceeded_cpu_limit(status) {
        let seconds = limits.cpu.as_secs().max(1);
        return CompileError::OutOfTime(limit_exceeded("seconds of CPU time", seconds));
    }
    process_failed(&format!("the process ended with {status}: {}", complaint.trim()))
}

fn is_out_of_memory(text: &str) -> bool {
    OUT_OF_MEMORY_MESSAGES.iter().any(|words| text.contains(words))
}

/// Returns true if the system ended the process at its limit of CPU time. The system sends
/// `SIGXCPU` or `SIGKILL` at this limit, and no other process sends these signals.
#[cfg(unix)]
fn exceeded_cpu_limit(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::Signal;

    let signals = [Signal::XCPU, Signal::KILL].map(Signal::as_raw);
    status.signal().is_some_and(|signal| signals.contains(&signal))
}

#[cfg(not(unix))]
fn exceeded_cpu_limit(_status: ExitStatus) -> bool {
    false
}

fn out_of_memory(limits: &CompileLimits) -> CompileError {
    CompileError::Refused(limit_exceeded("bytes of memory", limits.memory_bytes))
}

fn limit_exceeded(unit: &str, allowed: u64) -> Rejection {
    Rejection::new(
        "limit",
        &format!("compiling it takes more than the limit of {allowed} {unit}"),
        "make the plugin smaller, or split it into several",
    )
}

fn process_failed(message: &str) -> CompileError {
    CompileError::Failed(Rejection::new(
        "invalid",
        &format!("the process that compiles it failed: {message}"),
        "load it again; if the same happens, please report it together with the file",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_buffer_that_cannot_grow_is_recognized_as_out_of_memory() {
        assert!(is_out_of_memory(&io::Error::from(io::ErrorKind::OutOfMemory).to_string()));
        assert!(!is_out_of_memory("the component has no memory"));
    }
}
