//! A temporary PostgreSQL server in a temporary folder, which is in memory if there is room.
//!
//! PostgreSQL refuses to run as root, so a test that runs as root starts it as the user `postgres`
//! or `nobody`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use wattle_needs::{LeftOut, Missing, Program};

use crate::{error::Error, process::free_port};

/// Number of attempts to start. Another process may take the selected port before the server binds
/// it.
const START_ATTEMPTS: usize = 3;

/// Maximum number of connections. A test opens up to 40 stores on one server at once, and each of
/// them opens up to 20 connections while it is busy. The default of 100 is too small on a machine
/// that is slow enough for all of them to be busy.
const MAX_CONNECTIONS: u32 = 1_000;

/// The folder of Linux for files in memory.
const MEMORY: &str = "/dev/shm";

/// Free bytes of [`MEMORY`] below which servers are on the disk. A server takes 40 MB, and its log
/// up to a gigabyte; a few tests run at once.
const MEMORY_FREE: u64 = 4 << 30;

/// Users for the server if the test runs as root, in order of preference.
const USERS: [&str; 2] = ["postgres", "nobody"];

/// A running server with the superuser `postgres` and without a password. Dropping it stops the
/// server.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    account: Option<Account>,
    port: u16,
    /// Whether writes wait for the disk (`fsync`).
    flushes: bool,
}

/// The user that runs the server if the test runs as root.
#[derive(Clone, Debug)]
struct Account {
    user: u32,
    group: u32,
}

impl Postgres {
    /// Starts a server for a test. Writes survive a crash of the server, but not of the machine.
    ///
    /// # Errors
    ///
    /// [`LeftOut`], which [`need!`](wattle_needs::need) handles, if PostgreSQL is not installed or
    /// no user can run it.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is installed but does not start.
    pub fn for_test() -> Result<Self, LeftOut> {
        match Self::start_with(false) {
            Ok(server) => Ok(server),
            Err(Error::Missing(missing)) => Err(missing.into()),
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Creates a cluster and starts its server on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if PostgreSQL is not installed, or if no user can run it. Other variants
    /// if PostgreSQL is installed but does not start.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(true)
    }

    fn start_with(flushes: bool) -> Result<Self, Error> {
        let programs = Program::Postgres.find()?;
        let account = if runs_as_root() { Some(find_account()?) } else { None };
        let around = place(flushes);
        let folder = tempfile::Builder::new()
            .prefix("wattle-pg-")
            .tempdir_in(&around)
            .map_err(|source| file_error(&around, source))?;
        if let Some(account) = &account {
            std::os::unix::fs::chown(folder.path(), Some(account.user), Some(account.group))
                .map_err(|source| file_error(folder.path(), source))?;
        }
        let mut server = Self { folder, programs, account, port: 0, flushes };
        server.create_cluster()?;
        server.start_server()?;
        Ok(server)
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns `postgres://postgres@127.0.0.1:<port>/postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Returns the URL of another database of this server, which must exist.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates an empty database and returns its URL, so that tests can share one server.
    ///
    /// # Errors
    ///
    /// [`Error::ProgramFailed`] if it already exists.
    pub fn create_database(&self, name: &str) -> Result<String, Error> {
        let mut createdb = self.program("createdb");
        createdb.args(["-h", "127.0.0.1", "-U", "postgres", "-p"]);
        createdb.arg(self.port.to_string()).arg(name);
        run(createdb)?;
        Ok(self.url_of(name))
    }

    /// Stops the server without a shutdown, like a power failure. [`Postgres::restart`] then
    /// recovers it.
    ///
    /// # Errors
    ///
    /// [`Error::ProgramFailed`] if the server is not running.
    pub fn crash(&self) -> Result<(), Error> {
        run(self.stop_command())
    }

    /// Starts a stopped server again on the same port.
    ///
    /// # Errors
    ///
    /// [`Error::ProgramFailed`] if the server does not start.
    pub fn restart(&self) -> Result<(), Error> {
        run(self.start_command(self.port))
    }

    /// Copies the template cluster, or creates it with `initdb` first. `initdb` takes a second of
    /// CPU time, a copy a tenth of that.
    fn create_cluster(&self) -> Result<(), Error> {
        let template = self.template()?;
        if template.is_dir() {
            return copy(&template, &self.data());
        }
        let mut initdb = self.program("initdb");
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale"]);
        initdb.arg("--no-sync").arg("-D").arg(self.data());
        run(initdb)?;
        // Concurrent tests each create a draft, and the first complete one becomes the template.
        let around = template.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(around).map_err(|source| file_error(around, source))?;
        let draft = tempfile::tempdir_in(around).map_err(|source| file_error(around, source))?;
        let cluster = draft.path().join("data");
        copy(&self.data(), &cluster)?;
        match fs::rename(&cluster, &template) {
            Err(_) if template.is_dir() => Ok(()),
            renamed => renamed.map_err(|source| file_error(&template, source)),
        }
    }

    /// Returns the path of the template: below cargo's target folder, by PostgreSQL's version and
    /// the user.
    fn template(&self) -> Result<PathBuf, Error> {
        let mut initdb = self.program("initdb");
        let asked = initdb.arg("--version").output();
        let program = format!("{initdb:?}");
        let mut maker = asked.map_err(|source| Error::Program { program, source })?.stdout;
        maker.extend(self.account.iter().flat_map(|account| account.user.to_le_bytes()));
        let own = env::current_exe().unwrap_or_default();
        let target = own.ancestors().nth(3).map_or_else(env::temp_dir, Path::to_path_buf);
        let hash = blake3::hash(&maker).to_hex();
        Ok(target.join("tmp").join(format!("postgres-{}", &hash[..16])))
    }

    fn start_server(&mut self) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            let port = free_port()?;
            match run(self.start_command(port)) {
                Ok(()) => {
                    self.port = port;
                    return Ok(());
                }
                Err(failure) if attempt == START_ATTEMPTS => return Err(failure),
                Err(_) => attempt += 1,
            }
        }
    }

    fn start_command(&self, port: u16) -> Command {
        let mut start = self.program("pg_ctl");
        let socket_folder = self.folder.path().display();
        let flush = if self.flushes { "on" } else { "off" };
        let options = format!(
            "-p {port} -k {socket_folder} -c listen_addresses=127.0.0.1 -c shared_buffers=16MB \
             -c max_connections={MAX_CONNECTIONS} -c fsync={flush} -c full_page_writes={flush}"
        );
        start.args(["start", "--wait", "--silent", "-o"]).arg(options);
        start.arg("-D").arg(self.data()).arg("-l").arg(self.log());
        start
    }

    fn stop_command(&self) -> Command {
        let mut stop = self.program("pg_ctl");
        stop.args(["stop", "--wait", "--silent", "--mode=immediate", "-D"]).arg(self.data());
        stop
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        let mut command = if let Some(account) = &self.account {
            let mut command = Command::new("setpriv");
            command.arg(format!("--reuid={}", account.user));
            command.arg(format!("--regid={}", account.group));
            command.arg("--clear-groups").arg("--").arg(path);
            command
        } else {
            Command::new(path)
        };
        // The user may lack access to the current folder.
        command.current_dir(self.folder.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Stopping fails only if the server is already down.
        let _ = run(self.stop_command());
    }
}

/// Returns the folder for the folders of servers.
///
/// A cluster has a thousand files. During the tests it takes 0.8 s of CPU time to create them on
/// ext4, which skips the inodes of recently deleted files one by one, and 0.1 s in memory. A server
/// that flushes is on the disk, because its callers measure it.
fn place(flushes: bool) -> PathBuf {
    let has_room = || {
        let free = rustix::fs::statvfs(MEMORY).map(|it| it.f_bavail.saturating_mul(it.f_frsize));
        free.is_ok_and(|free| free >= MEMORY_FREE)
    };
    if !flushes && has_room() { PathBuf::from(MEMORY) } else { env::temp_dir() }
}

/// Copies a folder with the owners and modes of its files.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(from).arg(to);
    run(copy)
}

/// Returns true if the effective user is root, who then owns `/proc/self`.
fn runs_as_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|folder| folder.uid() == 0)
}

fn find_account() -> Result<Account, Error> {
    let path = Path::new("/etc/passwd");
    let accounts = fs::read_to_string(path).map_err(|source| file_error(path, source))?;
    USERS.iter().find_map(|name| account_in(&accounts, name)).ok_or_else(|| {
        let what = "a user `postgres` or `nobody`, since PostgreSQL does not run as root,";
        Error::Missing(Missing::new(what, "adduser --system postgres"))
    })
}

fn account_in(accounts: &str, name: &str) -> Option<Account> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let user = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Account { user, group })
    })
}

/// Runs a program to its end. Its output goes to a file, because the server that `pg_ctl` starts
/// would keep a pipe open.
fn run(mut command: Command) -> Result<(), Error> {
    let program = format!("{command:?}");
    let failed = |source| Error::Program { program: program.clone(), source };
    let mut output = tempfile::tempfile().map_err(failed)?;
    command.stdin(std::process::Stdio::null());
    command.stdout(output.try_clone().map_err(failed)?);
    command.stderr(output.try_clone().map_err(failed)?);
    let status = command.status().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    use std::io::{Read as _, Seek as _};
    let mut text = String::new();
    output.rewind().and_then(|()| output.read_to_string(&mut text)).map_err(failed)?;
    Err(Error::ProgramFailed { program, output: text })
}

fn file_error(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use wattle_needs::need;

    use super::{Postgres, account_in};

    #[test]
    fn server_runs_crashes_restarts_and_stops() {
        let server = need!(Postgres::for_test());
        let port = server.port();
        let address = server.create_database("asset").unwrap();
        assert_eq!(address, format!("postgres://postgres@127.0.0.1:{port}/asset"));
        server.crash().unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap_err();
        server.restart().unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
        let folder = server.folder.path().to_owned();
        drop(server);
        TcpStream::connect(("127.0.0.1", port)).unwrap_err();
        assert!(!folder.exists());
    }

    #[test]
    fn user_and_group_of_an_account_are_found_by_its_name() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533::/:/bin/false\n";
        let account = account_in(accounts, "nobody").unwrap();
        assert_eq!((account.user, account.group), (65_534, 65_533));
        assert!(account_in(accounts, "postgres").is_none());
    }
}
