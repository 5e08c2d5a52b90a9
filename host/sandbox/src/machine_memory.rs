//! The memory of the machine.

use std::fs;
use std::path::Path;

/// The folder of control groups on Linux.
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the memory that this process may use in bytes, if the system reports it: the memory of
/// the machine, or the limit of the control group of the process if that is smaller.
#[must_use]
pub fn usable_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| total_bytes(&text));
    let group = fs::read_to_string("/proc/self/cgroup").ok();
    let group = group.and_then(|text| group_limit_bytes(group_path(&text)?));
    machine.into_iter().chain(group).min()
}

/// Parses the total memory, in bytes, from the text of `/proc/meminfo`.
fn total_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1 << 10)
}

/// Parses the path of the control group of version 2 from the text of `/proc/self/cgroup`.
fn group_path(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::/"))
}

/// Returns the smallest memory limit of a control group and its ancestors, in bytes.
fn group_limit_bytes(path: &str) -> Option<u64> {
    let limit = |group: &Path| {
        let text = fs::read_to_string(Path::new(GROUPS).join(group).join("memory.max")).ok()?;
        // Without a limit, the file has the word `max`.
        text.trim().parse().ok()
    };
    Path::new(path).ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_memory_is_parsed() {
        let text = "MemTotal:       24684092 kB\nMemFree:        11495536 kB\n";
        assert_eq!(total_bytes(text), Some(24_684_092 << 10));
        assert_eq!(total_bytes("MemFree: 1 kB\n"), None);
        assert_eq!(total_bytes("MemTotal: much kB\n"), None);
    }

    #[test]
    fn path_of_the_control_group_is_parsed() {
        assert_eq!(group_path("0::/\n"), Some(""));
        let text = "4:memory:/old\n0::/system.slice/wattle.service\n";
        assert_eq!(group_path(text), Some("system.slice/wattle.service"));
        assert_eq!(group_path("4:memory:/old\n"), None);
    }
}
