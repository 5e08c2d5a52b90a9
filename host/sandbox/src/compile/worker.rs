//! The process that compiles one component: it reads the component from standard input, and writes
//! what it found and the code to standard output.
//!
//! It limits itself before it reads anything, so it needs no help from the system around it.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::engine;
use crate::load::Fault;
use crate::load::kind::FILE_BYTES;
use crate::load::prepare::{Outline, Prepared, prepare};

/// What a worker says before the code.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    /// The component, whose code follows.
    Prepared(Box<Outline>),
    /// Why it is no plugin.
    Refused {
        /// See `LoadError`.
        code: String,
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
}

/// What the process of a worker may use.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    /// CPU time in seconds.
    pub cpu_seconds: u64,
    /// Address space in bytes.
    pub memory_bytes: u64,
}

/// Does the work of one process. The exit code is 0 if an answer was written, also if that says
/// that the component is refused.
pub fn work(limits: WorkerLimits) -> ExitCode {
    match answer(limits) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The one who reads it is the host, which puts it into its own words.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn answer(limits: WorkerLimits) -> io::Result<()> {
    confine(limits)?;
    let mut bytes = Vec::new();
    // The host refuses larger files by itself.
    io::stdin().lock().take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let engine = engine::for_compiling().map_err(io::Error::other)?;
    let (answer, code) = match prepare(&engine, &bytes) {
        Ok(Prepared { outline, code }) => (Answer::Prepared(Box::new(outline)), code),
        Err(Fault { code, message, hint }) => {
            (Answer::Refused { code: code.to_owned(), message, hint }, Vec::new())
        }
    };
    let head = serde_json::to_vec(&answer)?;
    let length = u32::try_from(head.len()).map_err(io::Error::other)?;
    let mut out = io::stdout().lock();
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&head)?;
    out.write_all(&code)?;
    out.flush()
}

/// Takes away what compiling does not need: time and memory beyond the limits, files, and the dump
/// of a process that failed.
#[cfg(unix)]
fn confine(limits: WorkerLimits) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let exactly = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, exactly(0))?;
    setrlimit(Resource::Fsize, exactly(0))?;
    setrlimit(Resource::As, exactly(limits.memory_bytes))?;
    setrlimit(Resource::Cpu, exactly(limits.cpu_seconds))?;
    Ok(())
}

#[cfg(not(unix))]
fn confine(_limits: WorkerLimits) -> io::Result<()> {
    Ok(())
}
