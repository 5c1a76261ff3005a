//! Host name, memory and cores of the machine, if the system reports them in a file or in the environment.

use std::env;
use std::fs;

/// Memory of the machine in bytes, or the limit of the container; `None` if the system does not report it.
pub fn memory() -> Option<u64> {
    let total = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let kibibytes: u64 = text.lines().next()?.split_whitespace().nth(1)?.parse().ok()?;
        Some(kibibytes << 10)
    });
    let container_limit =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    total.into_iter().chain(container_limit).min()
}

/// The host name, if there is one.
pub(crate) fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| env::var("HOSTNAME").ok()).or_else(|| env::var("COMPUTERNAME").ok());
    name.map(|name| name.trim().to_owned())
}

/// The CPU affinity list of this process (such as `0-3,8`), if the system reports it.
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
