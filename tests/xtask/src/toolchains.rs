//! Guests that other toolchains build for tests: one for each toolchain with the settings that it
//! has by default, and those that use the SDKs for TypeScript, Python and C. A guest is built again
//! only if its sources, its SDK, the contract or the versions of the tools change.

mod default;
mod sdk;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use wattle_needs::clients::{GUESTS, TOOLCHAINS};
use wattle_needs::{Missing, Program};

use crate::clients::PYTHON_TOOLCHAINS;
use crate::files;
use crate::pages;
use crate::shell::{root, say, target_folder};
use crate::step::run;

/// The contract, relative to the root.
const CONTRACT: &str = "wit/wattle";

/// The file that pins the packages of the toolchains for Node.js, relative to the root.
const NODE_PIN: &str = "tests/clients/toolchains/package-lock.json";

/// The file that pins the packages for Python and the C compiler (zig), relative to the root.
const PYTHON_PIN: &str = "tests/clients/toolchains-py/requirements.txt";

/// The folder in which zig keeps the standard library of C that it has compiled.
const ZIG_CACHE: &str = "zig";

/// A guest.
struct Guest {
    /// The name of its file.
    name: &'static str,
    /// Name of the toolchain or the SDK that builds the guest, for the names of steps, such as
    /// `the Python SDK with misdeeds`.
    what: &'static str,
    /// The programs that it needs.
    programs: &'static [Program],
    /// Files and folders that are copied for the build: where they are, relative to the root, and
    /// where they go. Tools write beside the sources that they read.
    copied: &'static [(&'static str, &'static str)],
    /// Further files and folders on which the guest depends, relative to the root.
    read: &'static [&'static str],
    /// Returns the commands that build the guest.
    commands: fn(&Paths) -> Vec<Command>,
}

/// The paths of a build.
struct Paths {
    /// The folder with copied sources and packages for Node.js, in which commands run.
    folder: PathBuf,
    /// The folder with the programs for Python.
    python: PathBuf,
    /// The guest, relative to `folder`.
    guest: String,
}

impl Paths {
    fn new(guest: &Guest) -> Self {
        let clients = target_folder().join("clients");
        Self {
            folder: clients.join(TOOLCHAINS),
            python: clients.join(PYTHON_TOOLCHAINS).join("bin"),
            guest: format!("{GUESTS}/{}.wasm", guest.name),
        }
    }

    /// Returns a command in the folder of the build.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).args(arguments);
        command
    }

    /// Returns a command of zig's C compiler. Zig compiles its standard library once for each level
    /// of optimization, so all guests share one level. Without `-UNDEBUG`, zig leaves assertions
    /// out of optimized code, and without a size, the stack of each guest takes 16 MiB.
    fn zig(&self) -> Command {
        let mut command = self.command(self.python.join("python"), &["-m", "ziglang", "cc"]);
        command.args(["--target=wasm32-wasi", "-mexec-model=reactor", "-Os", "-s", "-UNDEBUG"]);
        command.arg("-Wl,-z,stack-size=524288");
        for cache in ["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"] {
            command.env(cache, self.folder.join(ZIG_CACHE));
        }
        command
    }
}

/// Returns all guests.
fn guests() -> impl Iterator<Item = &'static Guest> {
    default::GUESTS.iter().chain(sdk::GUESTS)
}

/// Builds the guests that are missing or outdated. The clients must be installed.
pub(crate) fn build() -> Result<()> {
    let folder = target_folder().join("clients").join(TOOLCHAINS);
    files::make(&folder.join(GUESTS))?;
    if pages::missing().is_none() {
        pages::install()?;
        let packages = folder.join(sdk::PACKAGES);
        files::make(packages.parent().unwrap_or(&folder))?;
        // The link of another clone must not remain.
        fs::remove_file(&packages).ok();
        symlink(pages::packages(), &packages)
            .with_context(|| format!("cannot create {}", packages.display()))?;
    }
    guests().try_for_each(|guest| {
        if let Some(missing) = missing(guest) {
            say(&format!("note: the guest of {} is not built: {missing}", guest.what));
            return Ok(());
        }
        build_one(guest)
    })
}

fn missing(guest: &Guest) -> Option<Missing> {
    guest.programs.iter().find_map(|program| program.find().err())
}

/// Builds a guest, unless one of the same inputs exists.
fn build_one(guest: &Guest) -> Result<()> {
    let paths = Paths::new(guest);
    let file = paths.folder.join(&paths.guest);
    let mark = file.with_extension("inputs");
    let commands = (guest.commands)(&paths);
    let inputs = inputs(guest, &commands)?;
    if file.is_file() && fs::read(&mark).is_ok_and(|built| built == inputs) {
        return Ok(());
    }
    // If the build fails, an outdated guest must not remain.
    fs::remove_file(&file).ok();
    for (from, to) in guest.copied {
        put(&root().join(from), &paths.folder.join(to))?;
    }
    for mut command in commands {
        run(&format!("build the guest of {}", guest.what), &mut command)?;
    }
    fs::write(&mark, inputs).with_context(|| format!("cannot write {}", mark.display()))
}

/// Returns everything on which a guest depends: the commands, and the names and the content of the
/// files.
fn inputs(guest: &Guest, commands: &[Command]) -> Result<Vec<u8>> {
    let mut inputs = format!("{commands:?}\n").into_bytes();
    for path in guest.copied.iter().map(|(from, _)| from).chain(guest.read) {
        for file in files::below(&root().join(path))? {
            let name = file.strip_prefix(root()).unwrap_or(&file).display();
            inputs.extend(format!("{name}\n").into_bytes());
            let content = fs::read(&file);
            inputs.extend(content.with_context(|| format!("cannot read {}", file.display()))?);
        }
    }
    Ok(inputs)
}

/// Copies a file or a folder. A file that a folder no longer has is removed.
fn put(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::remove_dir_all(to).ok();
    }
    for file in files::below(from)? {
        let inner = file.strip_prefix(from).unwrap_or(Path::new(""));
        // A file has no path below itself.
        let copy = if inner.as_os_str().is_empty() { to.to_owned() } else { to.join(inner) };
        files::make(copy.parent().unwrap_or(to))?;
        files::copy(&file, &copy)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(guest: &Guest) -> Vec<Command> {
        (guest.commands)(&Paths::new(guest))
    }

    #[test]
    fn guests_depend_on_sources_contract_and_versions() {
        for guest in guests() {
            let inputs = inputs(guest, &commands(guest)).unwrap();
            let inputs = String::from_utf8_lossy(&inputs);
            let pin = if inputs.contains("componentize-qjs\"") { "0.4.5" } else { "==0.25.1" };
            for part in ["package wattle:plugin@0.1.0;", "interface node {", pin] {
                assert!(inputs.contains(part), "{}: {part}", guest.name);
            }
            for (source, _) in guest.copied {
                assert!(inputs.contains(source), "{}: {source}", guest.name);
            }
        }
    }

    #[test]
    fn toolchains_build_with_their_default_settings() {
        for switch in ["--sync", "--stub-wasi", "--disable"] {
            for guest in default::GUESTS {
                let commands = commands(guest);
                let mut arguments = commands.iter().flat_map(Command::get_args);
                assert!(!arguments.any(|argument| argument == switch), "{}", guest.name);
            }
        }
    }

    #[test]
    fn guests_in_c_are_built_as_authors_are_told() {
        let compile = Paths::new(&sdk::GUESTS[0]).zig();
        let arguments: Vec<_> = compile.get_args().map(|word| word.to_string_lossy()).collect();
        for file in ["plugins/sdk/c/README.md", "host/cli/templates/c/common/app.toml"] {
            // An array of TOML has quotes, and a comma between its items.
            let text = files::read(&root().join(file)).unwrap().replace("\",", " ");
            let text = text.replace('"', " ");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&arguments.join(" ")), "{file}: {arguments:?}");
        }
    }

    #[test]
    fn the_python_sdk_runs_on_the_same_packages_in_tests_and_in_guests() {
        let lines = |file: &str| {
            let text = files::read(&root().join(file)).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let tested = lines("plugins/sdk/python/requirements.txt");
        let tools = ["componentize-py==", "ziglang=="];
        for line in lines(PYTHON_PIN) {
            let is_tool = tools.iter().any(|tool| line.starts_with(tool));
            assert!(is_tool || tested.contains(&line), "{line}");
        }
    }
}
