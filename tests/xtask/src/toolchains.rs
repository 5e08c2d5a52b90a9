//! Guests that other toolchains build for tests, with the settings that each has by default. A
//! guest is built again only if its sources, the contract or the versions of the tools change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use wattle_needs::clients::{GUESTS, TOOLCHAINS};
use wattle_needs::{Missing, Program};

use crate::clients::{LOCK, PYTHON_TOOLCHAINS};
use crate::files;
use crate::python::REQUIREMENTS;
use crate::shell::{root, say, target_folder};
use crate::step::run;

/// The world of the guests.
const WORLD: &str = "plugin";

/// The file of the world, in the folder of the toolchains.
const WORLD_FILE: &str = "wit/world.wit";

/// The folder of the contract, from which the world takes its interfaces.
const CONTRACT: &str = "wit/deps/wattle";

/// The folder in which zig keeps the standard library of C that it has compiled.
const ZIG_CACHE: &str = "zig";

/// A toolchain, whose guest has its name.
struct Toolchain {
    name: &'static str,
    /// The language or engine, for step names.
    what: &'static str,
    /// The source of the guest, in the folder of the toolchains.
    source: &'static str,
    /// The programs that it needs.
    programs: &'static [Program],
    /// The files that pin the versions of its tools, below `tests/clients`.
    pins: &'static [(&'static str, &'static str)],
    /// Returns the commands that build the guest.
    commands: fn(&Paths) -> Vec<Command>,
}

/// The packages for Node.js.
const NODE_PIN: (&str, &str) = (TOOLCHAINS, LOCK);

/// The packages for Python.
const PYTHON_PIN: (&str, &str) = (PYTHON_TOOLCHAINS, REQUIREMENTS);

const ALL: &[Toolchain] = &[
    Toolchain {
        name: "quickjs",
        what: "QuickJS",
        source: "plugin.js",
        programs: &[Program::Node, Program::Npm],
        pins: &[NODE_PIN],
        commands: quickjs,
    },
    Toolchain {
        name: "starlingmonkey",
        what: "StarlingMonkey",
        source: "plugin.js",
        programs: &[Program::Node, Program::Npm],
        pins: &[NODE_PIN],
        commands: starlingmonkey,
    },
    Toolchain {
        name: "python",
        what: "Python",
        source: "python/plugin.py",
        programs: &[Program::Python],
        pins: &[PYTHON_PIN],
        commands: componentize_py,
    },
    Toolchain {
        name: "c",
        what: "C",
        source: "plugin.c",
        programs: &[Program::Python, Program::Node, Program::Npm],
        pins: &[PYTHON_PIN, NODE_PIN],
        commands: c,
    },
];

/// The paths of a build.
struct Paths {
    /// The folder with sources and packages for Node.js, in which commands run.
    folder: PathBuf,
    /// The folder with the programs for Python.
    python: PathBuf,
    /// The guest, relative to `folder`.
    guest: String,
}

impl Paths {
    fn new(toolchain: &Toolchain) -> Self {
        let clients = target_folder().join("clients");
        Self {
            folder: clients.join(TOOLCHAINS),
            python: clients.join(PYTHON_TOOLCHAINS).join("bin"),
            guest: format!("{GUESTS}/{}.wasm", toolchain.name),
        }
    }

    /// Returns a command in the folder of the build.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).args(arguments);
        command
    }
}

/// Builds the guests that are missing or outdated. The clients must be installed.
pub(crate) fn build() -> Result<()> {
    let from = root().join("tests/clients").join(TOOLCHAINS);
    let to = target_folder().join("clients").join(TOOLCHAINS);
    files::make(&to.join(GUESTS))?;
    // A file that the contract no longer has must be removed.
    fs::remove_dir_all(to.join("wit")).ok();
    put(&from.join(WORLD_FILE), &to.join(WORLD_FILE))?;
    for file in contract()? {
        put(&file, &to.join(CONTRACT).join(file.file_name().unwrap_or_default()))?;
    }
    ALL.iter().try_for_each(|toolchain| {
        if let Some(missing) = missing(toolchain) {
            say(&format!("note: no guest of {} is built: {missing}", toolchain.what));
            return Ok(());
        }
        put(&from.join(toolchain.source), &to.join(toolchain.source))?;
        build_one(toolchain)
    })
}

fn missing(toolchain: &Toolchain) -> Option<Missing> {
    toolchain.programs.iter().find_map(|program| program.find().err())
}

/// Builds a guest, unless one of the same inputs exists.
fn build_one(toolchain: &Toolchain) -> Result<()> {
    let paths = Paths::new(toolchain);
    let guest = paths.folder.join(&paths.guest);
    let mark = guest.with_extension("inputs");
    let commands = (toolchain.commands)(&paths);
    let inputs = inputs(toolchain, &commands)?;
    if guest.is_file() && fs::read(&mark).is_ok_and(|built| built == inputs) {
        return Ok(());
    }
    // If the build fails, an outdated guest must not remain.
    fs::remove_file(&guest).ok();
    for mut command in commands {
        run(&format!("build the guest of {}", toolchain.what), &mut command)?;
    }
    fs::write(&mark, inputs).with_context(|| format!("cannot write {}", mark.display()))
}

/// Returns everything on which a guest depends: the commands and the content of the files.
fn inputs(toolchain: &Toolchain, commands: &[Command]) -> Result<Vec<u8>> {
    let clients = root().join("tests/clients");
    let own = clients.join(TOOLCHAINS);
    let mut files = vec![own.join(toolchain.source), own.join(WORLD_FILE)];
    files.extend(toolchain.pins.iter().map(|(folder, file)| clients.join(folder).join(file)));
    files.extend(contract()?);
    let mut inputs = format!("{commands:?}\n").into_bytes();
    for file in files {
        inputs.extend(fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(inputs)
}

/// Returns the files of the contract, sorted by name.
fn contract() -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(root().join("wit/wattle"))?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = files.collect::<Result<_>>()?;
    files.sort();
    Ok(files)
}

/// Copies a file and creates its folder.
fn put(from: &Path, to: &Path) -> Result<()> {
    files::make(to.parent().unwrap_or(to))?;
    files::copy(from, to)
}

fn quickjs(paths: &Paths) -> Vec<Command> {
    let program = "node_modules/componentize-qjs/cli.mjs";
    let (world, guest) = ("wit", paths.guest.as_str());
    let arguments = [program, "--wit", world, "--js", "plugin.js", "--output", guest];
    vec![paths.command("node", &arguments)]
}

fn starlingmonkey(paths: &Paths) -> Vec<Command> {
    let program = "node_modules/@bytecodealliance/componentize-js/src/cli.js";
    let world = ["--wit", "wit", "--world-name", WORLD];
    let mut command = paths.command("node", &[program, "plugin.js"]);
    command.args(world).args(["--out", &paths.guest]);
    vec![command]
}

fn componentize_py(paths: &Paths) -> Vec<Command> {
    let world = ["--wit-path", "wit", "--world", WORLD];
    let mut command = paths.command(paths.python.join("componentize-py"), &world);
    command.args(["componentize", "plugin", "--python-path", "python", "--output", &paths.guest]);
    vec![command]
}

/// The compiler makes a module for `wasm32-wasip1`. The second command adds the component type, and
/// the host makes a component of it.
fn c(paths: &Paths) -> Vec<Command> {
    let module = format!("{GUESTS}/c.module.wasm");
    let mut compile = paths.command(paths.python.join("python"), &["-m", "ziglang", "cc"]);
    compile.args(["--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-s"]);
    // Zig leaves assertions out of optimized code.
    compile.args(["-UNDEBUG", "-Wall", "-Wextra", "-Werror", "-o", &module, "plugin.c"]);
    for cache in ["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"] {
        compile.env(cache, paths.folder.join(ZIG_CACHE));
    }
    let program = "node_modules/@bytecodealliance/jco/src/jco.js";
    let mut embed = paths.command("node", &[program, "embed", &module]);
    embed.args(["--wit", "wit", "--world-name", WORLD, "--output", &paths.guest]);
    vec![compile, embed]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(toolchain: &Toolchain) -> Vec<Command> {
        (toolchain.commands)(&Paths::new(toolchain))
    }

    #[test]
    fn guests_depend_on_sources_contract_and_versions() {
        for toolchain in ALL {
            let inputs = inputs(toolchain, &commands(toolchain)).unwrap();
            let inputs = String::from_utf8(inputs).unwrap();
            let source = root().join("tests/clients").join(TOOLCHAINS).join(toolchain.source);
            for part in [
                files::read(&source).unwrap().as_str(),
                "package wattle:plugin@0.1.0;",
                "world plugin {",
                if toolchain.name == "python" { "componentize-py==" } else { "componentize-qjs" },
            ] {
                assert!(inputs.contains(part), "{}: {part}", toolchain.name);
            }
        }
    }

    #[test]
    fn toolchains_build_with_their_default_settings() {
        for switch in ["--sync", "--stub-wasi", "--disable"] {
            for toolchain in ALL {
                let commands = commands(toolchain);
                let mut arguments = commands.iter().flat_map(Command::get_args);
                assert!(!arguments.any(|argument| argument == switch), "{}", toolchain.name);
            }
        }
    }
}
