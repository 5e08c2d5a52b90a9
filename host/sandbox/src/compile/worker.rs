//! The process that compiles one component: it reads the component from standard input, and writes
//! the outline and the code to standard output.
//!
//! The process sets its own limits before it reads anything, so the limits need no container or
//! service manager.

use std::io::{self, Read as _, Write};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::load::Rejection;
use crate::load::file_kind::MAX_FILE_BYTES;
use crate::load::prepare::{Outline, Prepared, prepare};

/// The header that a worker writes before the code.
#[derive(Serialize, Deserialize)]
pub(super) enum WorkerHeader {
    /// The component was compiled. The code follows.
    Prepared {
        /// The outline of the component.
        outline: Box<Outline>,
        /// Size of the code, in bytes.
        code_bytes: u64,
    },
    /// The reason why the file is not a plugin.
    Refused {
        /// Code of the error, see `LoadError`.
        code: String,
        /// Description of the problem.
        message: String,
        /// How to fix the problem.
        hint: String,
    },
}

/// Limits of a worker process, and its priority.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    /// Increment of the nice value; with 0, the priority is that of the starting process.
    pub niceness: u8,
    /// CPU time in seconds.
    pub cpu_seconds: u64,
    /// Address space in bytes.
    pub memory_bytes: u64,
}

/// Compiles one component. The exit code is 0 if a header was written, even if the header rejects
/// the component.
pub fn run(limits: WorkerLimits) -> ExitCode {
    match compile_stdin(limits) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The host reads this line and puts it into a message of its own.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn compile_stdin(limits: WorkerLimits) -> io::Result<()> {
    confine(limits)?;
    let mut bytes = Vec::new();
    // The host rejects larger files itself.
    io::stdin().lock().take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let (answer, code) = match prepare(&bytes) {
        Ok(Prepared { outline, code }) => {
            let (outline, code_bytes) = (Box::new(outline), code.len() as u64);
            (WorkerHeader::Prepared { outline, code_bytes }, code)
        }
        Err(Rejection { code, message, hint }) => {
            (WorkerHeader::Refused { code: code.to_owned(), message, hint }, Vec::new())
        }
    };
    let mut out = io::stdout().lock();
    answer.write(&mut out)?;
    out.write_all(&code)?;
    out.flush()
}

impl WorkerHeader {
    /// Writes the length of the header in bytes, and the header.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let head = serde_json::to_vec(self)?;
        let length = u32::try_from(head.len()).map_err(io::Error::other)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&head)
    }
}

/// Restricts this process to what compilation needs: limits its CPU time and memory, sets its
/// priority, and prevents writes to files and core dumps.
#[cfg(unix)]
fn confine(limits: WorkerLimits) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, nice, setrlimit};

    nice(i32::from(limits.niceness))?;
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
