//! Landlock, as far as no crate is needed for it.

/// The version of Landlock that the running kernel offers; `None` if it has none or it is off.
pub fn abi() -> Option<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no attributes (a null pointer of size zero is what it
    // asks for), makes no descriptor and only answers with a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0usize,
            VERSION,
        )
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}
