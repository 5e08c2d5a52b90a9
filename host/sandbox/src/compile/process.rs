//! The host's side of the compiling process: starts it, passes the component to it, enforces its
//! limits, and reads its result.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use wattle_graph::definition::{ByteSize, HumanDuration};
use wattle_run::memory_pool::Occupied;

use crate::code_cache::file::{CacheFile, CacheFileWriter};
use crate::compile::worker::WorkerHeader;
use crate::compile::{CompileError, CompileLimits};
use crate::load::Rejection;
use crate::load::code_room::{CodeRoom, Compiled};
use crate::load::prepare::Outline;

/// Maximum size of compiled code, in bytes. Compiled code is about four times as large as its
/// component.
const MAX_CODE_BYTES: u64 = 512 << 20;

/// Size of the parts in which code that does not fit in memory is written to the cache, in bytes.
const PART_BYTES: u64 = 1 << 20;

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
    room: &CodeRoom,
) -> Result<Compiled, CompileError> {
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
    let done = tokio::time::timeout(limits.wall, communicate(child, bytes, room)).await;
    let Ok(done) = done else {
        // The machine may have been busy, so another attempt may succeed.
        return Err(CompileError::Failed(limit_exceeded(&in_units(limits.wall))));
    };
    let ProcessOutput { status, received, stderr } = done.map_err(failed)?;
    match received {
        // The host has ended the process, so its status says nothing.
        Ok(Received::Unread(error)) => Err(error),
        _ if !status.success() => Err(exit_error(status, &stderr, limits)),
        Err(error) => Err(failed(error)),
        Ok(Received::Held { outline, code, memory }) => {
            Ok(Compiled { outline: *outline, code, memory })
        }
        Ok(Received::Stored { rejection, file, writer }) => {
            if let Err(error) = blocking(move || writer.finish()).await {
                file.warn(&error);
            }
            Err(CompileError::Failed(rejection))
        }
        Ok(Received::Refused(rejection)) if is_out_of_memory(&rejection.message) => {
            Err(out_of_memory(limits))
        }
        Ok(Received::Refused(rejection)) => Err(CompileError::Refused(rejection)),
    }
}

/// The output and exit status of a process.
struct ProcessOutput {
    status: ExitStatus,
    received: io::Result<Received>,
    stderr: String,
}

/// What the host has received from the standard output of a process.
enum Received {
    /// Code in reserved memory.
    Held { outline: Box<Outline>, code: Vec<u8>, memory: Occupied },
    /// Code that does not fit in memory, and is written to the cache.
    Stored { rejection: Rejection, file: CacheFile, writer: CacheFileWriter },
    /// A part of the output. The host does not read the rest.
    Unread(CompileError),
    /// The reason why the file is not a plugin.
    Refused(Rejection),
}

async fn communicate(mut child: Child, bytes: Bytes, room: &CodeRoom) -> io::Result<ProcessOutput> {
    let no_pipe = || io::Error::other("the process has no pipe");
    let mut stdin = child.stdin.take().ok_or_else(no_pipe)?;
    let stdout = child.stdout.take().ok_or_else(no_pipe)?;
    let stderr = child.stderr.take().ok_or_else(no_pipe)?;
    let feed = async move {
        // The exit status of a process that ends early gives the reason, a broken pipe does not.
        let _ = stdin.write_all(&bytes).await;
        drop(stdin);
    };
    let receive = async {
        let received = receive(stdout, room).await;
        if matches!(received, Ok(Received::Unread(_))) {
            child.start_kill()?;
        }
        received
    };
    let (received, stderr, ()) =
        tokio::join!(receive, read_at_most(stderr, MAX_STDERR_BYTES), feed);
    let stderr = String::from_utf8_lossy(&stderr?).into_owned();
    Ok(ProcessOutput { status: child.wait().await?, received, stderr })
}

async fn read_at_most(pipe: impl AsyncRead + Unpin, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Reads the header, and the code if its memory can be reserved. Other code is written to the cache,
/// so that it is not compiled again when it fits.
async fn receive(mut stdout: impl AsyncRead + Unpin, room: &CodeRoom) -> io::Result<Received> {
    let length = u64::from(stdout.read_u32_le().await.map_err(read_error)?);
    if length > MAX_CODE_BYTES {
        return Ok(Received::Unread(too_much_code()));
    }
    let head = read_part(&mut stdout, length).await?;
    let (outline, code_bytes) = match serde_json::from_slice(&head)? {
        WorkerHeader::Prepared { outline, code_bytes } => (outline, code_bytes),
        WorkerHeader::Refused { code, message, hint } => {
            let rejection = Rejection::from_parts(&code, &message, &hint);
            let unknown = || io::Error::other("its output has an unknown code");
            return Ok(Received::Refused(rejection.ok_or_else(unknown)?));
        }
    };
    if code_bytes > MAX_CODE_BYTES {
        return Ok(Received::Unread(too_much_code()));
    }
    let rejection = match room.reserve(code_bytes) {
        Ok(memory) => {
            let code = read_part(&mut stdout, code_bytes).await?;
            return Ok(Received::Held { outline, code, memory });
        }
        Err(rejection) => rejection,
    };
    let Some(file) = room.file().cloned() else {
        return Ok(Received::Unread(CompileError::Failed(rejection)));
    };
    match store(&mut stdout, code_bytes, file.clone(), *outline).await {
        Ok(writer) => Ok(Received::Stored { rejection, file, writer }),
        Err(error) => {
            file.warn(&error);
            Ok(Received::Unread(CompileError::Failed(rejection)))
        }
    }
}

/// Writes code to a file of the cache. Only a part of the code is in memory at a time.
async fn store(
    stdout: &mut (impl AsyncRead + Unpin),
    code_bytes: u64,
    file: CacheFile,
    outline: Outline,
) -> io::Result<CacheFileWriter> {
    let mut writer = blocking(move || file.create(&outline)).await?;
    let mut left = code_bytes;
    while left > 0 {
        let part = read_part(stdout, left.min(PART_BYTES)).await?;
        left -= part.len() as u64;
        let write = move || writer.write(&part).map(|()| writer);
        writer = blocking(write).await?;
    }
    Ok(writer)
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Reads exactly `bytes` bytes into memory of this size.
async fn read_part(pipe: &mut (impl AsyncRead + Unpin), bytes: u64) -> io::Result<Vec<u8>> {
    let mut part = vec![0; bytes as usize];
    pipe.read_exact(&mut part).await.map_err(read_error)?;
    Ok(part)
}

fn read_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::other("its output is incomplete"),
        _ => error,
    }
}

fn too_much_code() -> CompileError {
    CompileError::Refused(limit_exceeded(&format!("{} of code", ByteSize(MAX_CODE_BYTES))))
}

fn exit_error(status: ExitStatus, complaint: &str, limits: &CompileLimits) -> CompileError {
    if is_out_of_memory(complaint) {
        return out_of_memory(limits);
    }
    if exceeded_cpu_limit(status) {
        // The system counts whole seconds.
        let allowed = in_units(Duration::from_secs(limits.cpu.as_secs().max(1)));
        return CompileError::OutOfTime(limit_exceeded(&format!("{allowed} of CPU time")));
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
    let allowed = ByteSize(limits.memory_bytes);
    CompileError::Refused(limit_exceeded(&format!("{allowed} of memory")))
}

/// Returns a time in the units of the configuration.
fn in_units(time: Duration) -> String {
    HumanDuration::from_ms(time.as_millis() as u64).to_string()
}

fn limit_exceeded(allowed: &str) -> Rejection {
    Rejection::new(
        "limit",
        &format!("compiling it takes more than the limit of {allowed}"),
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

    #[cfg(unix)]
    mod with_a_script {
        use std::fs;

        use wattle_run::memory_pool::MemoryPool;

        use super::*;
        use crate::engine::Abi;
        use crate::load::contract::ComponentWorld;

        /// The size of the code that a process announces, in bytes.
        const CODE_BYTES: u64 = 100;

        /// Writes the header of a compiled component, and its code.
        const COMPILE: &str = "/bin/cat \"$0\"; printf %0100d 0";

        fn code() -> Vec<u8> {
            vec![b'0'; CODE_BYTES as usize]
        }

        fn outline() -> Outline {
            let contract = ComponentWorld {
                version: "0.1.0".to_owned(),
                imports: Vec::new(),
                exports: Vec::new(),
                wasi: false,
                is_typed: false,
            };
            let abi = Abi::Synchronous;
            Outline { contract, manifest: None, docs: None, size_bytes: 1, abi }
        }

        /// Runs a shell script instead of a compiler. The file `$0` has the header.
        async fn run(script: &str, room: &CodeRoom) -> Result<Compiled, CompileError> {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("header");
            let outline = Box::new(outline());
            let header = WorkerHeader::Prepared { outline, code_bytes: CODE_BYTES };
            header.write(&mut fs::File::create(&path).unwrap()).unwrap();
            let arguments = ["-c".to_owned(), script.to_owned(), path.display().to_string()];
            let limits = CompileLimits::default();
            compile(Path::new("/bin/sh"), &arguments, &limits, Bytes::new(), room).await
        }

        #[tokio::test]
        async fn code_that_does_not_fit_is_not_read() {
            let room = CodeRoom::new(MemoryPool::new(CODE_BYTES - 1), None);
            // A host that waits for the code finds it incomplete.
            let refused = run("/bin/cat \"$0\"", &room).await.map(|compiled| compiled.code);
            let Err(CompileError::Failed(rejection)) = refused else { panic!("{refused:?}") };
            assert!(rejection.message.contains("`limits.code_memory`"), "{rejection:?}");
        }

        #[tokio::test]
        async fn code_has_its_memory_until_it_is_dropped() {
            let memory = MemoryPool::new(CODE_BYTES);
            let room = CodeRoom::new(memory.clone(), None);
            let Ok(compiled) = run(COMPILE, &room).await else { panic!("it was refused") };
            assert_eq!(compiled.code, code());
            assert_eq!(compiled.outline, outline());
            assert!(memory.reserve(1).is_err());
            drop(compiled);
            for failing in ["/bin/cat \"$0\"; printf 0".to_owned(), format!("{COMPILE}; exit 1")] {
                let failed = run(&failing, &room).await.map(|compiled| compiled.code);
                assert!(matches!(failed, Err(CompileError::Failed(_))), "{failed:?}");
                assert!(memory.reserve(CODE_BYTES).is_ok(), "{failing}");
            }
        }

        #[tokio::test]
        async fn code_that_does_not_fit_is_written_to_the_cache() {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            let file = |name: &str| CacheFile::new(path(name), blake3::Hasher::new_keyed(&[7; 32]));
            file("expected").put(&outline(), &code());
            let files = || fs::read_dir(folder.path()).unwrap().count();
            let room = CodeRoom::new(MemoryPool::new(CODE_BYTES - 1), Some(file("found")));
            for failing in ["/bin/cat \"$0\"; printf 0".to_owned(), format!("{COMPILE}; exit 1")] {
                assert!(run(&failing, &room).await.is_err());
                assert_eq!(files(), 1, "{failing}");
            }
            let refused = run(COMPILE, &room).await.map(|compiled| compiled.code);
            assert!(matches!(refused, Err(CompileError::Failed(_))), "{refused:?}");
            assert_eq!(fs::read(path("found")).unwrap(), fs::read(path("expected")).unwrap());
            assert_eq!(files(), 2);
        }
    }
}
