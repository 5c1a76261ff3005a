//! What the machine is called and how large it is, where the system tells in a file or in the environment.

use std::env;
use std::fs;

/// Bytes of the machine's memory, or of what a container may use of it, where the system tells.
pub fn memory() -> Option<u64> {
    let total = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let kibibytes: u64 = text.lines().next()?.split_whitespace().nth(1)?.parse().ok()?;
        Some(kibibytes << 10)
    });
    let granted =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    total.into_iter().chain(granted).min()
}

/// The machine's name in its network, if it has one.
pub(crate) fn host_name() -> Option<String> {
    let named = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = named.or_else(|| env::var("HOSTNAME").ok()).or_else(|| env::var("COMPUTERNAME").ok());
    named.map(|name| name.trim().to_owned())
}

/// The cores that this process may use, as a list of numbers, where the system tells.
pub(crate) fn allowed_cores() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        if let Some(bytes) = memory() {
            assert!(bytes > 1 << 27, "{bytes}");
        }
    }
}
