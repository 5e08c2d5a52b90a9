//! Programs that tests need, their locations, and the Debian packages that contain them.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Missing;

/// The minimum version of Node.js for the build of the pages.
const NODE: (u32, u32) = (20, 19);

/// The minimum version of Python for the checks of the Python SDK.
const PYTHON: (u32, u32) = (3, 11);

/// Executable names of the browser on different systems. The first has no user interface, which
/// otherwise has windows and processes of its own, also without a screen.
const BROWSERS: [&str; 4] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// The folder in which Debian installs PostgreSQL servers, with a subfolder for each version.
const POSTGRES: &str = "/usr/lib/postgresql";

/// A program that tests or fuzzing need, or a font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The programs of a PostgreSQL server.
    Postgres,
    /// Node.js in a version that builds the pages.
    Node,
    /// npm, which installs the clients and builds the pages.
    Npm,
    /// Chromium without or with a user interface, or Chrome.
    Chromium,
    /// A font with Chinese characters, which the pages show.
    ChineseFont,
    /// Python in a version that the SDK supports, with the modules that create virtual environments.
    Python,
    /// A C++ compiler, for libFuzzer.
    Cpp,
}

impl Program {
    /// The programs and the font that the tests need.
    pub const OF_TESTS: [Self; 6] =
        [Self::Postgres, Self::Node, Self::Npm, Self::Chromium, Self::ChineseFont, Self::Python];

    /// Returns the file of the program. For PostgreSQL it is the folder with the programs.
    ///
    /// # Errors
    ///
    /// [`Missing`] with the command that installs the program.
    pub fn find(self) -> Result<PathBuf, Missing> {
        let found = match self {
            Self::Postgres => postgres(),
            Self::Node => node(),
            Self::Npm => working("npm", &["--version"]),
            Self::Chromium => BROWSERS.iter().find_map(|name| working(name, &["--version"])),
            Self::ChineseFont => font(),
            Self::Python => python(),
            Self::Cpp => working("c++", &["--version"]),
        };
        found
            .ok_or_else(|| Missing::new(self.name(), format!("apt-get install {}", self.package())))
    }

    /// Returns the display name.
    pub fn name(self) -> String {
        match self {
            Self::Postgres => "PostgreSQL".to_owned(),
            Self::Node => format!("Node.js {}.{} or newer", NODE.0, NODE.1),
            Self::Npm => "npm".to_owned(),
            Self::Chromium => "Chromium".to_owned(),
            Self::ChineseFont => "a font with Chinese characters".to_owned(),
            Self::Python => {
                format!("Python {}.{} or newer with `venv`", PYTHON.0, PYTHON.1)
            }
            Self::Cpp => "a C++ compiler".to_owned(),
        }
    }

    /// Returns the name of the Debian package.
    pub fn package(self) -> &'static str {
        match self {
            Self::Postgres => "postgresql",
            Self::Node => "nodejs",
            Self::Npm => "npm",
            Self::Chromium => "chromium-headless-shell",
            Self::ChineseFont => "fonts-noto-cjk",
            Self::Python => "python3-venv",
            Self::Cpp => "g++",
        }
    }
}

/// Returns the folder with `initdb` and `pg_ctl`: the newest packaged version, or a folder of
/// `PATH`.
fn postgres() -> Option<PathBuf> {
    let mut packaged: Vec<(u32, PathBuf)> = fs::read_dir(POSTGRES)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    packaged.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    packaged
        .into_iter()
        .map(|(_, folder)| folder)
        .chain(search_path())
        .find(|folder| ["initdb", "pg_ctl"].iter().all(|name| folder.join(name).is_file()))
}

/// Returns true if `PATH` has a program of Node.js, in any version. Unlike [`Program::find`], it
/// starts no process.
pub(crate) fn has_node() -> bool {
    in_path("node").is_some()
}

fn node() -> Option<PathBuf> {
    let file = in_path("node")?;
    let version = Command::new(&file).arg("--version").output().ok()?.stdout;
    let version = String::from_utf8_lossy(&version);
    let mut numbers = version.trim().trim_start_matches('v').split('.').map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (version >= NODE).then_some(file)
}

fn python() -> Option<PathBuf> {
    let program = format!(
        "import ensurepip, sys, venv; sys.exit(sys.version_info < ({}, {}))",
        PYTHON.0, PYTHON.1
    );
    working("python3", &["-c", &program])
}

/// Returns the program that lists fonts, if it lists a Chinese one. Chromium on Linux uses the
/// fonts of that list; other systems ship such a font.
fn font() -> Option<PathBuf> {
    let lister = match in_path("fc-list") {
        None if !cfg!(target_os = "linux") => return Some(PathBuf::new()),
        lister => lister?,
    };
    let listed = Command::new(&lister).arg(":lang=zh").output().ok()?;
    (!listed.stdout.is_empty()).then_some(lister)
}

/// Returns a program of `PATH` that succeeds with the given arguments. Some systems install a
/// placeholder that fails.
fn working(name: &str, arguments: &[&str]) -> Option<PathBuf> {
    let file = in_path(name)?;
    let mut command = Command::new(&file);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(file)
}

fn in_path(name: &str) -> Option<PathBuf> {
    search_path().map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[expect(clippy::disallowed_methods, reason = "a shell finds programs by the same variable")]
fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}
