//! Compilation of components in limited processes of the binary.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use wattle::args::Args;
use wattle::load::compiler::{COMMAND, COMMAND_NICENESS, SERVER_NICENESS, process_compiler};
use wattle_graph::id::PluginName;
use wattle_kit::slow_component::slow_component;
use wattle_run::ports::Sandbox as _;
use wattle_run::ports::sandbox::{LoadEffort, LoadError};
use wattle_sandbox::{CodeCacheConfig, CompileLimits, Compiler, SandboxConfig, WasmSandbox};

/// An empty component: `(component)`.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

/// Returns a built component of this repository.
fn shipped() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/tools/date/date.wasm");
    std::fs::read(path).expect("`cargo xtask guests` has built the plugins")
}

fn sandbox(compiler: Compiler) -> Arc<WasmSandbox> {
    let config = SandboxConfig { compiler, max_instances: 4, ..SandboxConfig::default() };
    WasmSandbox::new(&config).unwrap()
}

fn by_binary(limits: CompileLimits) -> Compiler {
    process_compiler(env!("CARGO_BIN_EXE_wattle").into(), COMMAND_NICENESS, limits)
}

async fn refused(compiler: Compiler, bytes: Vec<u8>) -> LoadError {
    let name = PluginName::new("guest").unwrap();
    match sandbox(compiler).load(&name, bytes.into()).await {
        Ok(_) => panic!("the file was loaded"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_process_of_the_binary_has_the_same_result_as_this_process() {
    let name = PluginName::new("date").unwrap();
    let mut infos = Vec::new();
    for compiler in [Compiler::InProcess, by_binary(CompileLimits::default())] {
        let plugin = sandbox(compiler).load(&name, shipped().into()).await.unwrap();
        infos.push(plugin.info().clone());
    }
    assert!(!infos[0].tools.is_empty());
    assert_eq!(infos[0], infos[1]);
    let error = refused(by_binary(CompileLimits::default()), EMPTY.to_vec()).await;
    assert_eq!(error, refused(Compiler::InProcess, EMPTY.to_vec()).await);
    assert_eq!(error.code, "missing-export");
}

#[test]
fn only_a_server_compiles_with_a_lower_priority() {
    let niceness =
        |command: &str| Args::try_parse_from(["wattle", command]).unwrap().compile_niceness();
    assert_eq!(niceness("serve"), SERVER_NICENESS);
    for command in ["build", "dev", "test"] {
        assert_eq!(niceness(command), COMMAND_NICENESS, "{command}");
    }
}

/// Returns the nice value of a process.
#[cfg(target_os = "linux")]
fn nice_value(process: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The value is the 17th field after the name of the process, which is in parentheses.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(16).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_has_the_niceness_that_its_caller_selects() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// The highest nice value of Linux.
    const MAX_NICE: i32 = 19;
    for niceness in [COMMAND_NICENESS, SERVER_NICENESS] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
        command.args([COMMAND, niceness.to_string().as_str(), "60", "4294967296"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // The process reads after it has set its priority, and no pipe holds that many bytes.
        process.stdin.as_mut().unwrap().write_all(&vec![0; 2 << 20]).unwrap();
        let expected = (nice_value(std::process::id()) + i32::from(niceness)).min(MAX_NICE);
        assert_eq!(nice_value(process.id()), expected);
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[tokio::test]
async fn limits_of_a_process_fail_only_its_component() {
    let limits = CompileLimits { memory_bytes: 192 << 20, ..CompileLimits::default() };
    let error = refused(by_binary(limits), shipped()).await;
    assert_eq!(error.code, "limit", "{error}");
    assert!(error.to_string().contains("`guest`"), "{error}");
    assert!(error.message.contains("192MiB of memory"), "{error}");

    let limits = CompileLimits { wall: Duration::ZERO, ..CompileLimits::default() };
    let error = refused(by_binary(limits), shipped()).await;
    assert!(error.code == "limit" && error.message.contains("limit of 0ms"), "{error}");

    refused(by_binary(CompileLimits::default()), EMPTY.to_vec()).await;
}

#[tokio::test]
async fn a_module_that_crashes_its_compiler_is_refused() {
    // The packages of the module depend on each other in a cycle, and the library that reads them
    // overflows its stack.
    let module = include_bytes!("../circle.module").to_vec();
    let error = refused(by_binary(CompileLimits::default()), module).await;
    assert_eq!(error.code, "invalid", "{error}");
    assert!(error.message.contains("the process that compiles it failed"), "{error}");
}

#[tokio::test]
async fn a_program_that_cannot_compile_is_reported() {
    let broken = |program: &str| Compiler::Process {
        program: program.into(),
        arguments: Vec::new(),
        limits: CompileLimits::default(),
    };
    for program in ["/nowhere/wattle", "false", "true"] {
        let error = refused(broken(program), shipped()).await;
        assert_eq!(error.code, "invalid", "{error}");
        assert!(error.message.contains("the process that compiles it failed"), "{error}");
    }
}

/// A sandbox whose compiler is a shell script, and the number of times that the script has run.
struct Scripted {
    sandbox: Arc<WasmSandbox>,
    folder: tempfile::TempDir,
}

impl Scripted {
    fn new(script: &str, limits: CompileLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo >> '{}'; {script}", folder.path().join("runs").display());
        let compiler = Compiler::Process {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script, "sh".into()],
            limits,
        };
        Self { sandbox: sandbox(compiler), folder }
    }

    /// Loads a component within an effort. Returns the code of the error, or whether the component
    /// was loaded.
    async fn load(&self, bytes: &[u8], effort: LoadEffort) -> Result<bool, &'static str> {
        let (name, bytes) = (PluginName::new("guest").unwrap(), bytes.to_vec().into());
        let loaded = self.sandbox.load_within(&name, bytes, effort).await;
        loaded.map(|plugin| plugin.is_some()).map_err(|error| error.code)
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.folder.path().join("runs"));
        runs.unwrap_or_default().lines().count()
    }
}

/// Returns a script that compiles.
fn compile() -> String {
    let program = env!("CARGO_BIN_EXE_wattle");
    format!("exec '{program}' {COMMAND} {COMMAND_NICENESS} \"$@\"")
}

#[tokio::test]
async fn a_component_that_does_not_compile_is_compiled_once() {
    let refused = Scripted::new(&compile(), CompileLimits::default());
    let limits = CompileLimits { cpu: Duration::from_secs(1), ..CompileLimits::default() };
    let slow = Scripted::new(&compile(), limits);
    let (other, slow_bytes) = (shipped(), slow_component(0));
    for (scripted, bytes, code) in
        [(&refused, EMPTY, "missing-export"), (&slow, &slow_bytes[..], "limit")]
    {
        for _ in 0..3 {
            assert_eq!(scripted.load(bytes, LoadEffort::Full).await, Err(code));
            assert_eq!(scripted.runs(), 1);
        }
        // The failure is remembered, so a load without a compilation also returns it.
        assert_eq!(scripted.load(bytes, LoadEffort::Cached).await, Err(code));
    }
    // The process failed for a reason other than the component, so the failure is not remembered.
    let failed = Scripted::new("exit 1", CompileLimits::default());
    for runs in 1..3 {
        assert_eq!(failed.load(&other, LoadEffort::Full).await, Err("invalid"));
        assert_eq!(failed.runs(), runs);
    }
}

#[tokio::test]
async fn code_that_does_not_fit_goes_from_its_process_to_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let with_memory = |code_bytes| {
        let directory = folder.path().to_owned();
        let cache = Some(CodeCacheConfig { directory, key: [7; 32] });
        let compiler = by_binary(CompileLimits::default());
        let config = SandboxConfig { cache, compiler, code_bytes, ..SandboxConfig::default() };
        WasmSandbox::new(&SandboxConfig { max_instances: 4, ..config }).unwrap()
    };
    let name = PluginName::new("date").unwrap();
    let refused = with_memory(1).load(&name, shipped().into()).await;
    let Err(error) = refused else { panic!("the file was loaded") };
    assert_eq!(error.code, "limit", "{error}");
    assert!(error.message.contains("`limits.code_memory`"), "{error}");
    let large = with_memory(u64::MAX);
    let found = large.load_within(&name, shipped().into(), LoadEffort::Cached).await.unwrap();
    assert!(found.is_some(), "its code is in the cache");
}

#[tokio::test]
async fn a_brief_load_of_a_slow_component_gives_up() {
    // The script ends by a signal, like a process that has used up its CPU time.
    let slow = Scripted::new("kill -KILL $$", CompileLimits::default());
    let bytes = shipped();
    assert_eq!(slow.load(&bytes, LoadEffort::Cached).await, Ok(false));
    assert_eq!(slow.runs(), 0);
    assert_eq!(slow.load(&bytes, LoadEffort::Brief).await, Ok(false));
    assert_eq!(slow.load(&bytes, LoadEffort::Brief).await, Ok(false));
    assert_eq!(slow.runs(), 2);
    assert_eq!(slow.load(&bytes, LoadEffort::Full).await, Err("limit"));
    assert_eq!(slow.runs(), 3);
    let fast = Scripted::new(&compile(), CompileLimits::default());
    assert_eq!(fast.load(&bytes, LoadEffort::Cached).await, Ok(false));
    assert_eq!(fast.load(&bytes, LoadEffort::Brief).await, Ok(true));
}
