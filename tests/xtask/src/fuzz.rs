//! `cargo xtask fuzz`: libFuzzer over the targets of `tests/fuzz`, with stable Rust.
//!
//! This program compiles the crates of the workspace with coverage counters: cargo calls it in
//! place of the compiler, as `RUSTC_WORKSPACE_WRAPPER`. Dependencies have no counters, so other
//! debug builds share them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, bail};
use wattle_needs::Program;

use crate::files;
use crate::native::NATIVE;
use crate::shell::{cargo, root, say, target_folder, variable};
use crate::step::run;

/// The environment variable under which cargo calls this program in place of the compiler.
const WRAPS: &str = "WATTLE_XTASK_WRAPS_RUSTC";

/// Compiler flags that report to libFuzzer the code that an input reaches and the values that it is
/// compared with.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Default fuzzing time of each target, in seconds.
const SECONDS: u32 = 60;

/// Maximum size of an input, in bytes. The largest seeds, files of applications, are smaller.
const INPUT_BYTES: u32 = 16 << 10;

/// Timeout of one execution, in seconds. Executions take milliseconds, so this is a hang on any
/// machine.
const EXECUTION_SECONDS: u32 = 10;

/// Memory limit of a process, in MiB. It has room for one compiled guest and the compiler.
const MEMORY_MIB: u32 = 2_048;

/// Maximum number of characters that are printed of a line of a panic message.
const LINE_CHARS: usize = 500;

/// The fuzzing program, below the target folder.
const BINARY: &str = "debug/wattle-fuzz";

/// Runs the compiler with coverage flags if cargo calls this program as a wrapper.
pub(crate) fn wrapped() -> Option<Result<ExitStatus>> {
    variable(WRAPS)?;
    let mut arguments = std::env::args_os().skip(1);
    let mut command = Command::new(arguments.next()?);
    let arguments: Vec<OsString> = arguments.collect();
    // Procedural macros and build scripts run during the build, without libFuzzer. With the input
    // `-` cargo only queries the compiler.
    let is = |word: &str| arguments.iter().any(|argument| argument == word);
    let counts = !is("proc-macro") && !is("build_script_build") && !is("-");
    command.args(&arguments).args(COVERAGE.iter().filter(|_| counts));
    Some(command.status().context("cannot start the compiler"))
}

/// Fuzzes the named targets, or all of them. Fails if a target fails.
pub(crate) fn fuzz(arguments: &[&str]) -> Result<()> {
    let Plan { names, seconds } = Plan::read(arguments)?;
    Program::Cpp.find()?;
    build()?;
    say(&format!("==> fuzz {} targets for {seconds} s each", names.len()));
    let (queue, found) = (Mutex::new(VecDeque::from(names)), Mutex::new(Vec::new()));
    let work = || {
        while let Some(name) = lock(&queue).pop_front() {
            match one(&name, seconds) {
                Ok(told) => say(&told),
                Err(error) => {
                    say(&format!("    {name}: {error:#}"));
                    lock(&found).push(name);
                }
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if found.is_empty() { Ok(()) } else { bail!("these targets failed: {}", found.join(", ")) }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The targets to fuzz.
struct Plan {
    /// Names of targets. Each has a folder of seeds.
    names: Vec<String>,
    /// Fuzzing time of each target, in seconds.
    seconds: u32,
}

impl Plan {
    fn read(arguments: &[&str]) -> Result<Self> {
        let seeds = seeds();
        let folders =
            fs::read_dir(&seeds).with_context(|| format!("cannot read {}", seeds.display()))?;
        let mut all: Vec<String> =
            folders.filter_map(|folder| folder.ok()?.file_name().into_string().ok()).collect();
        all.sort();
        let mut plan = Self { names: Vec::new(), seconds: SECONDS };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match *word {
                "--seconds" => {
                    let number = words.next().context("`--seconds` needs a number")?;
                    plan.seconds =
                        number.parse().with_context(|| format!("`{number}` is not a number"))?;
                }
                name if all.iter().any(|known| known == name) => plan.names.push(name.to_owned()),
                other => bail!("unknown target `{other}`; the targets are {}", all.join(", ")),
            }
        }
        if plan.names.is_empty() {
            plan.names = all;
        }
        Ok(plan)
    }
}

fn seeds() -> PathBuf {
    root().join("tests/fuzz/corpus")
}

fn build() -> Result<()> {
    // The file to which cargo writes this program. The path of the running executable may be stale
    // after a rebuild.
    let this = target_folder().join("debug").join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
    let build = ["--bin", "wattle-fuzz", "--features", "wattle-fuzz/libfuzzer"];
    let mut command = cargo();
    command
        .arg("build")
        .args(NATIVE)
        .args(build)
        .env("RUSTC_WORKSPACE_WRAPPER", this)
        .env(WRAPS, "1");
    run("build the fuzz targets", &mut command)
}

/// Fuzzes one target and returns a summary. Inputs that reach new code are kept below the target
/// folder and are the start of the next execution.
fn one(name: &str, seconds: u32) -> Result<String> {
    let folder = target_folder().join("fuzz").join(name);
    let corpus = folder.join("corpus");
    files::make(&corpus)?;
    let list = folder.join("seeds");
    fs::write(&list, seed_files(name)?)
        .with_context(|| format!("cannot write {}", list.display()))?;
    let log = folder.join("log");
    let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = Command::new(target_folder().join(BINARY));
    command.arg(&corpus).arg(format!("-seed_inputs=@{}", list.display()));
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={INPUT_BYTES}"));
    command.arg(format!("-timeout={EXECUTION_SECONDS}"));
    command.arg(format!("-rss_limit_mb={MEMORY_MIB}"));
    command.arg(format!("-artifact_prefix={}/", folder.display()));
    command.arg("-print_final_stats=1");
    let words = root().join("tests/fuzz/dictionary").join(name);
    if words.is_file() {
        command.arg(format!("-dict={}", words.display()));
    }
    // libFuzzer ignores this argument, which is the name of the target.
    command.args(["-ignore_remaining_args=1", name]);
    command.stdout(output.try_clone()?).stderr(output);
    let status = command.status().context("cannot start the fuzz targets")?;
    let told = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let told = String::from_utf8_lossy(&told);
    if status.success() { Ok(summary(name, &told)) } else { Err(finding(name, &log, &told)) }
}

/// Returns the seeds of a target as a list for libFuzzer. A folder would give them in the order of
/// the file system.
fn seed_files(name: &str) -> Result<String> {
    let folder = seeds().join(name);
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path().display().to_string()))
        .collect::<Result<Vec<String>>>()?;
    files.sort();
    Ok(files.join(","))
}

/// Summarizes the output of libFuzzer in one line.
fn summary(name: &str, told: &str) -> String {
    let last = told.lines().rev().find(|line| line.contains(" cov: ")).unwrap_or_default();
    let word = |key: &str| last.split_once(key).and_then(|(_, rest)| rest.split(' ').next());
    let coverage = word(" cov: ").unwrap_or("?");
    let corpus = word(" corp: ").unwrap_or("?");
    let done = told.lines().rev().find(|line| line.starts_with("Done "));
    let done = done.and_then(|line| line.strip_prefix("Done ")).unwrap_or("?");
    format!("    {name}: {done}, coverage {coverage}, corpus {corpus}")
}

/// Returns an error with the panic, the failing input and the command that repeats the execution.
fn finding(name: &str, log: &Path, told: &str) -> anyhow::Error {
    let written = told.lines().rev().find_map(|line| line.split_once("Test unit written to "));
    let Some((_, input)) = written else {
        return anyhow::anyhow!("the target exited; see {}", log.display());
    };
    let panic = told.lines().skip_while(|line| !line.contains("panicked at"));
    let panic = panic.take_while(|line| *line != "stack backtrace:");
    // libFuzzer prints only inputs of up to about 200 bytes.
    let small = told.lines().rev().find(|line| line.starts_with("Base64: "));
    let said: String =
        panic.chain(small).map(|line| format!("\n      {}", cut(line, LINE_CHARS))).collect();
    let binary = target_folder().join(BINARY);
    anyhow::anyhow!(
        "the target failed; see {}{said}\n      input: {input}\n      reproduce: {} {input} \
         -ignore_remaining_args=1 {name}\n      after the fix, add the input to {}",
        log.display(),
        binary.display(),
        seeds().join(name).display()
    )
}

fn cut(line: &str, chars: usize) -> &str {
    line.char_indices().nth(chars).map_or(line, |(end, _)| &line[..end])
}
