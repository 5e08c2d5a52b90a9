//! The programs that tests need, where they are found, and the packages that have them.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Missing;

/// The oldest version of Node.js that builds the pages.
const NODE: (u32, u32) = (20, 19);

/// Names of the browser on different systems.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Where Debian has the programs of a PostgreSQL server, in a folder for each version.
const POSTGRES: &str = "/usr/lib/postgresql";

/// A program that tests or fuzzing need, or a font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The programs of a PostgreSQL server.
    Postgres,
    /// Node.js, new enough for the pages.
    Node,
    /// npm, which installs the clients and builds the pages.
    Npm,
    /// Chromium, or Chrome.
    Chromium,
    /// A font with Chinese characters, which the pages show.
    ChineseFont,
    /// Python 3 with what makes environments.
    Python,
    /// A C++ compiler, for libFuzzer.
    Cpp,
}

impl Program {
    /// Those that the tests need.
    pub const OF_TESTS: [Self; 6] =
        [Self::Postgres, Self::Node, Self::Npm, Self::Chromium, Self::ChineseFont, Self::Python];

    /// Where it is: the file of a program, the folder with the programs of PostgreSQL.
    ///
    /// # Errors
    ///
    /// [`Missing`] with the command that installs it.
    pub fn find(self) -> Result<PathBuf, Missing> {
        let found = match self {
            Self::Postgres => postgres(),
            Self::Node => node(),
            Self::Npm => working("npm", &["--version"]),
            Self::Chromium => BROWSERS.iter().find_map(|name| working(name, &["--version"])),
            Self::ChineseFont => font(),
            Self::Python => working("python3", &["-c", "import ensurepip, venv"]),
            Self::Cpp => working("c++", &["--version"]),
        };
        found
            .ok_or_else(|| Missing::new(self.name(), format!("apt-get install {}", self.package())))
    }

    /// Its name for people.
    pub fn name(self) -> String {
        match self {
            Self::Postgres => "PostgreSQL".to_owned(),
            Self::Node => format!("Node.js {}.{} or newer", NODE.0, NODE.1),
            Self::Npm => "npm".to_owned(),
            Self::Chromium => "Chromium".to_owned(),
            Self::ChineseFont => "a font with Chinese characters".to_owned(),
            Self::Python => "Python 3 with `venv`".to_owned(),
            Self::Cpp => "a C++ compiler".to_owned(),
        }
    }

    /// The Debian package that has it.
    pub fn package(self) -> &'static str {
        match self {
            Self::Postgres => "postgresql",
            Self::Node => "nodejs",
            Self::Npm => "npm",
            Self::Chromium => "chromium",
            Self::ChineseFont => "fonts-noto-cjk",
            Self::Python => "python3-venv",
            Self::Cpp => "g++",
        }
    }
}

/// The folder with `initdb` and `pg_ctl`: the newest of the packaged ones, or one in `PATH`.
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

fn node() -> Option<PathBuf> {
    let file = in_path("node")?;
    let version = Command::new(&file).arg("--version").output().ok()?.stdout;
    let version = String::from_utf8_lossy(&version);
    let mut numbers = version.trim().trim_start_matches('v').split('.').map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (version >= NODE).then_some(file)
}

/// The program that lists fonts, if it lists one. Chromium on Linux has its fonts from that list; other
/// systems come with a font.
fn font() -> Option<PathBuf> {
    let lister = match in_path("fc-list") {
        None if !cfg!(target_os = "linux") => return Some(PathBuf::new()),
        lister => lister?,
    };
    let listed = Command::new(&lister).arg(":lang=zh").output().ok()?;
    (!listed.stdout.is_empty()).then_some(lister)
}

/// A program in `PATH` that succeeds with these arguments. Some systems have a placeholder that
/// fails.
fn working(name: &str, arguments: &[&str]) -> Option<PathBuf> {
    let file = in_path(name)?;
    let mut command = Command::new(&file);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(file)
}

fn in_path(name: &str) -> Option<PathBuf> {
    search_path().map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[expect(clippy::disallowed_methods, reason = "programs are found as a shell finds them")]
fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}
