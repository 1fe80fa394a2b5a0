//! Memory that many threads took and gave back is for all of them to take again.

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
