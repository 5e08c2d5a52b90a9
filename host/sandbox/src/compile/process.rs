//! The host's side of the compiling process: starts it, passes the component to it, enforces its
//! limits, and reads its result.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::compile::CompileLimits;
use crate::compile::worker::Answer;
use crate::load::Fault;
use crate::load::prepare::Prepared;

/// Maximum size of compiled code, in bytes. The code of the largest component has some four times
/// its size.
const CODE_BYTES: u64 = 512 << 20;

/// Maximum length of a failed process's standard error that is kept, in bytes.
const COMPLAINT_BYTES: u64 = 4 << 10;

/// Parts of the messages of a process that is out of memory: of Rust's allocator, of a buffer that
/// cannot grow, of the system for a mapping, and of the system for the stack of a thread.
const OUT_OF_MEMORY: &[&str] = &[
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
) -> Result<Prepared, Fault> {
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
    let child = command.spawn().map_err(|error| broken(&error.to_string()))?;
    let done = tokio::time::timeout(limits.wall, talk(child, bytes)).await;
    let Ok(done) = done else {
        return Err(over("seconds", limits.wall.as_secs()));
    };
    let Said { status, out, complaint } = done.map_err(|error| broken(&error.to_string()))?;
    if !status.success() {
        return Err(failed(status, &complaint, limits));
    }
    if out.len() as u64 > CODE_BYTES {
        return Err(over("bytes of code", CODE_BYTES));
    }
    match read(&out) {
        Ok(Ok(prepared)) => Ok(prepared),
        Ok(Err(fault)) if is_out_of_memory(&fault.message) => Err(out_of_memory(limits)),
        Ok(Err(fault)) => Err(fault),
        Err(error) => Err(broken(&error.to_string())),
    }
}

/// The output and exit status of a process.
struct Said {
    status: ExitStatus,
    out: Vec<u8>,
    complaint: String,
}

async fn talk(mut child: Child, bytes: Bytes) -> io::Result<Said> {
    let no_pipe = || io::Error::other("the process has no pipe");
    let mut stdin = child.stdin.take().ok_or_else(no_pipe)?;
    let stdout = child.stdout.take().ok_or_else(no_pipe)?;
    let stderr = child.stderr.take().ok_or_else(no_pipe)?;
    let feed = async move {
        // The exit status of a process that ends early gives the reason, a broken pipe does not.
        let _ = stdin.write_all(&bytes).await;
        drop(stdin);
    };
    let (out, complaint, ()) =
        tokio::join!(take(stdout, CODE_BYTES + 1), take(stderr, COMPLAINT_BYTES), feed);
    let (out, complaint) = (out?, String::from_utf8_lossy(&complaint?).into_owned());
    if out.len() as u64 > CODE_BYTES {
        child.start_kill()?;
    }
    Ok(Said { status: child.wait().await?, out, complaint })
}

async fn take(pipe: impl AsyncRead + Unpin, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn read(out: &[u8]) -> io::Result<Result<Prepared, Fault>> {
    let cut = || io::Error::other("its output is incomplete");
    let (length, rest) = out.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (head, code) = rest.split_at_checked(length).ok_or_else(cut)?;
    Ok(match serde_json::from_slice(head)? {
        Answer::Prepared(outline) => Ok(Prepared { outline: *outline, code: code.to_vec() }),
        Answer::Refused { code, message, hint } => {
            let fault = Fault::told(&code, &message, &hint);
            Err(fault.ok_or_else(|| io::Error::other("its output has an unknown code"))?)
        }
    })
}

fn failed(status: ExitStatus, complaint: &str, limits: &CompileLimits) -> Fault {
    if is_out_of_memory(complaint) {
        return out_of_memory(limits);
    }
    if was_out_of_time(status) {
        return over("seconds of CPU time", limits.cpu.as_secs().max(1));
    }
    broken(&format!("it ended with {status}: {}", complaint.trim()))
}

fn is_out_of_memory(text: &str) -> bool {
    OUT_OF_MEMORY.iter().any(|words| text.contains(words))
}

/// Returns true if the system ended the process at its limit of CPU time. It sends one of two
/// signals, and no other process sends them.
#[cfg(unix)]
fn was_out_of_time(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::Signal;

    let signals = [Signal::XCPU, Signal::KILL].map(Signal::as_raw);
    status.signal().is_some_and(|signal| signals.contains(&signal))
}

#[cfg(not(unix))]
fn was_out_of_time(_status: ExitStatus) -> bool {
    false
}

fn out_of_memory(limits: &CompileLimits) -> Fault {
    over("bytes of memory", limits.memory_bytes)
}

fn over(unit: &str, allowed: u64) -> Fault {
    Fault::new(
        "limit",
        &format!("compiling it takes more than the limit of {allowed} {unit}"),
        "make the plugin smaller, or split it into several",
    )
}

fn broken(message: &str) -> Fault {
    Fault::new(
        "invalid",
        &format!("the process that compiles it failed: {message}"),
        "load it again; if the same happens, please report it together with the file",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_cannot_grow_is_out_of_memory() {
        assert!(is_out_of_memory(&io::Error::from(io::ErrorKind::OutOfMemory).to_string()));
        assert!(!is_out_of_memory("the component has no memory"));
    }
}
