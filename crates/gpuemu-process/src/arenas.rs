//! Memory that threads took and gave back: for all of them to take again, or for others.

/// Keeps the allocator of the C library from making an arena for nearly every thread: each of them grows to what its
/// threads ever took at once, and a program with many short-lived threads comes to hold several times what it needs.
/// Elsewhere allocators have no such arenas.
pub fn share_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = i32::try_from(cores.max(2)).unwrap_or(i32::MAX);
        #[allow(unsafe_code, reason = "the only way to set it from inside; it takes two numbers and keeps them")]
        // SAFETY: mallopt may be called at any time, by any thread, with any numbers.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, arenas);
        }
    }
}

/// Gives memory that is not in use back to the system. The allocator of the C library does so only from the end of
/// what it has, where something small may lie for long. Takes a few milliseconds.
pub fn return_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[allow(unsafe_code, reason = "the only way to ask for it")]
        // SAFETY: malloc_trim may be called at any time, by any thread; it touches only memory that nobody has.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a helper of tests")]

    use super::*;

    fn resident_bytes() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    #[test]
    fn memory_below_something_that_stays_is_returned() {
        let many: Vec<Vec<u8>> = (0..4000).map(|_| vec![1; 16 << 10]).collect();
        let stays = vec![1_u8; 1000];
        let before = resident_bytes();
        drop(many);
        return_memory();
        let after = resident_bytes();
        assert!(after + (32 << 20) < before, "{before} bytes, then {after}");
        assert_eq!(stays.len(), 1000);
    }
}
