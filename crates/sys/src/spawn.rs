//! Starting programs: everything between fork and exec.
//!
//! The child runs on a copy of a process that may have had other threads, so it must not allocate,
//! lock or unwind. All it needs is made ready by [`Spawn::start`] before the fork; the functions
//! named `child_*` only make system calls on it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::Pid;

use crate::signals::{replace_mask, set_of};

/// A program to start. What is not said is inherited, except signals, which are reset, and
/// descriptors, which are closed unless they are listed.
#[derive(Debug, Default)]
pub struct Spawn<'a> {
    /// The files to try, in order, as with `execvp`.
    pub programs: Vec<CString>,
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub cwd: Option<CString>,
    /// These become descriptors 0, 1, 2 and so on.
    pub fds: Vec<BorrowedFd<'a>>,
    /// Begin a session of its own.
    pub new_session: bool,
    /// Becomes the controlling terminal of the new session.
    pub terminal: Option<BorrowedFd<'a>>,
    /// The cgroup (v2) to be born in.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// `tasks` files of cgroups (v1) to enter, open for writing.
    pub tasks: Vec<BorrowedFd<'a>>,
    /// Become this user and group, without supplementary groups.
    pub user: Option<(u32, u32)>,
    /// The signal to get when the thread that started it ends.
    pub death_signal: Option<i32>,
    /// Filters to install, one after the other; without privileges these are final.
    pub filters: &'a [Filter],
    pub no_new_privileges: bool,
}

/// A seccomp program, as the kernel wants it.
#[derive(Debug, Clone)]
pub struct Filter(Vec<libc::sock_filter>);

impl Filter {
    /// From instructions as (code, jump if true, jump if false, constant).
    pub fn new(instructions: impl IntoIterator<Item = (u16, u8, u8, u32)>) -> Self {
        let each = |(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k };
        Self(instructions.into_iter().map(each).collect())
    }

    /// Installs it for this thread and all it starts, for good. Needs `no_new_privs`.
    pub fn install(&self) -> io::Result<()> {
        match install(&self.program()) {
            true => Ok(()),
            false => Err(io::Error::last_os_error()),
        }
    }

    fn program(&self) -> libc::sock_fprog {
        libc::sock_fprog { len: self.0.len() as u16, filter: self.0.as_ptr().cast_mut() }
    }
}

fn install(program: &libc::sock_fprog) -> bool {
    let program = &raw const *program;
    // SAFETY: the instructions live as long as the filter they belong to (in a child: in the
    // parent's memory, copied by the fork).
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, program) == 0 }
}

/// A process that was started.
#[derive(Debug)]
pub struct Child {
    pub pid: Pid,
    pub pidfd: OwnedFd,
}

/// Which of the steps before the program ran failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Fork,
    Cgroup,
    Session,
    Descriptors,
    Directory,
    User,
    Confine,
    Exec,
}

const STEPS: [Step; 8] = [
    Step::Fork,
    Step::Cgroup,
    Step::Session,
    Step::Descriptors,
    Step::Directory,
    Step::User,
    Step::Confine,
    Step::Exec,
];

#[derive(Debug, thiserror::Error)]
#[error("{step:?}: {source}")]
pub struct SpawnError {
    pub step: Step,
    pub source: io::Error,
}

impl SpawnError {
    fn at(step: Step, source: impl Into<io::Error>) -> Self {
        Self { step, source: source.into() }
    }
}

/// What the child works with: plain numbers and pointers into memory of the parent, which stays
/// as it is until the child has called exec or ended.
struct Prepared {
    programs: Vec<*const libc::c_char>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    cwd: *const libc::c_char,
    fds: Vec<RawFd>,
    new_session: bool,
    terminal: RawFd,
    /// Where to enter the cgroup if it could not be done with the fork.
    cgroup: RawFd,
    tasks: Vec<RawFd>,
    user: Option<(u32, u32)>,
    death_signal: Option<i32>,
    filters: Vec<libc::sock_fprog>,
    no_new_privileges: bool,
    report: RawFd,
}

/// Descriptors are moved out of the way of the low numbers they will be copied to.
const FIRST_FREE: RawFd = 64;

impl Spawn<'_> {
    /// Starts the program; returns once it runs.
    pub fn start(&self) -> Result<Child, SpawnError> {
        let out_of_the_way = |fd: &BorrowedFd<'_>| fcntl_dupfd_cloexec(fd, FIRST_FREE);
        let fds: Vec<OwnedFd> = self
            .fds
            .iter()
            .map(out_of_the_way)
            .collect::<Result<_, _>>()
            .map_err(|e| SpawnError::at(Step::Descriptors, e))?;
        let (reader, writer) = report_pipe().map_err(|e| SpawnError::at(Step::Descriptors, e))?;
        let mut prepared = self.prepare(&fds, &writer);
        let (pid, pidfd) = fork(&mut prepared).map_err(|e| SpawnError::at(Step::Fork, e))?;
        drop((writer, prepared, fds));
        match read_report(&reader) {
            None => Ok(Child { pid, pidfd }),
            Some(error) => {
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
                Err(error)
            }
        }
    }

    fn prepare(&self, fds: &[OwnedFd], report: &OwnedFd) -> Prepared {
        let terminated = |list: &[CString]| {
            let each = list.iter().map(|text| text.as_ptr());
            each.chain(std::iter::once(null())).collect()
        };
        Prepared {
            programs: terminated(&self.programs),
            argv: terminated(&self.argv),
            env: terminated(&self.env),
            cwd: self.cwd.as_ref().map_or(null(), |cwd| cwd.as_ptr()),
            fds: fds.iter().map(|fd| fd.as_raw_fd()).collect(),
            new_session: self.new_session,
            terminal: self.terminal.map_or(-1, |fd| fd.as_raw_fd()),
            cgroup: self.cgroup.map_or(-1, |fd| fd.as_raw_fd()),
            tasks: self.tasks.iter().map(|fd| fd.as_raw_fd()).collect(),
            user: self.user,
            death_signal: self.death_signal,
            filters: self.filters.iter().map(Filter::program).collect(),
            no_new_privileges: self.no_new_privileges || !self.filters.is_empty(),
            report: report.as_raw_fd(),
        }
    }
}

/// The writing end is the only one, so that its closing can be seen.
fn report_pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((reader, fcntl_dupfd_cloexec(&writer, FIRST_FREE)?))
}

/// Nothing is reported if the program runs: exec closes the pipe.
fn read_report(reader: &OwnedFd) -> Option<SpawnError> {
    let mut report = [0u8; 8];
    let mut filled = 0;
    while filled < report.len() {
        match rustix::io::read(reader, &mut report[filled..]) {
            Ok(0) => return None,
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| report[at + i]));
    let step = STEPS.get(word(0) as usize).copied().unwrap_or(Step::Exec);
    Some(SpawnError::at(step, io::Error::from_raw_os_error(word(4) as i32)))
}

/// `struct clone_args` of clone3(2).
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Forks; the child never returns from here.
fn fork(prepared: &mut Prepared) -> io::Result<(Pid, OwnedFd)> {
    let mut pidfd: RawFd = -1;
    let mut args = CloneArgs {
        flags: libc::CLONE_PIDFD as u64,
        pidfd: &raw mut pidfd as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    let into = prepared.cgroup;
    if into >= 0 {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = into as u64;
        prepared.cgroup = -1;
    }
    // Signals wait until the child has reset its handlers: one that arrived in between would run
    // the parent's.
    let mask = replace_mask(&set_of(1..=64));
    let mut result = clone3(&args);
    if result == 0 {
        child(prepared)
    }
    let refused = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::EBUSY, libc::EOPNOTSUPP];
    let code = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if result < 0 && refused.contains(&code) {
        // An older kernel, a container that hides the call, or a group that must be entered by
        // writing to it: the plain way.
        prepared.cgroup = into;
        // SAFETY: the child calls nothing but system calls (see `child`), the parent goes on.
        result = unsafe { libc::fork() } as i64;
        if result == 0 {
            child(prepared)
        }
        pidfd = -1;
    }
    let failure = io::Error::last_os_error();
    replace_mask(&mask);
    let pid = Pid::from_raw(result.max(0) as i32).ok_or(failure)?;
    let pidfd = match pidfd {
        // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
        0.. => unsafe { OwnedFd::from_raw_fd(pidfd) },
        _ => rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?,
    };
    Ok((pid, pidfd))
}

fn clone3(args: &CloneArgs) -> i64 {
    // SAFETY: the arguments are valid for the call and have the size that is passed. Without
    // CLONE_VM the child has its own copy of all memory and its own stack.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const *args, size_of::<CloneArgs>()) }
}

/// The child's part. Ends by exec or by reporting why not.
fn child(p: &Prepared) -> ! {
    let (step, errno) = child_steps(p);
    let mut report = [0u8; 8];
    report[..4].copy_from_slice(&(step as u32).to_ne_bytes());
    report[4..].copy_from_slice(&errno.to_ne_bytes());
    child_write(p.report, &report);
    // SAFETY: ends the process without running anything of the parent's.
    unsafe { libc::_exit(127) }
}

/// The reason of the last failed call. (Reading it does not allocate.)
fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Returns the step that failed and why; on success it does not return.
fn child_steps(p: &Prepared) -> (Step, i32) {
    child_reset_signals();
    if !child_enter_groups(p) {
        return (Step::Cgroup, errno());
    }
    if !child_begin_session(p) {
        return (Step::Session, errno());
    }
    if !child_place_descriptors(p) {
        return (Step::Descriptors, errno());
    }
    if !child_become_user(p) {
        return (Step::User, errno());
    }
    // SAFETY: a NUL-terminated path that outlives the call.
    if !p.cwd.is_null() && unsafe { libc::chdir(p.cwd) } != 0 {
        return (Step::Directory, errno());
    }
    if !child_confine(p) {
        return (Step::Confine, errno());
    }
    (Step::Exec, child_exec(p))
}

fn child_reset_signals() {
    for signal in 1..=64 {
        // SAFETY: the default action needs no handler; numbers that cannot be set are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    replace_mask(&set_of(std::iter::empty()));
}

fn child_enter_groups(p: &Prepared) -> bool {
    if p.cgroup >= 0 {
        // SAFETY: a literal path and an open directory descriptor.
        let procs = unsafe {
            libc::openat(p.cgroup, c"cgroup.procs".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC)
        };
        if procs < 0 || !child_write(procs, b"0") {
            return false;
        }
    }
    p.tasks.iter().all(|tasks| child_write(*tasks, b"0"))
}

fn child_write(fd: RawFd, bytes: &[u8]) -> bool {
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) == bytes.len() as isize }
}

fn child_begin_session(p: &Prepared) -> bool {
    // SAFETY: no arguments.
    if p.new_session && unsafe { libc::setsid() } < 0 {
        return false;
    }
    // SAFETY: an integer argument on an open descriptor.
    p.terminal < 0 || unsafe { libc::ioctl(p.terminal, libc::TIOCSCTTY, 0) } == 0
}

/// All sources are above every target, so none is overwritten before it was copied. Whatever else
/// is open is closed by exec.
fn child_place_descriptors(p: &Prepared) -> bool {
    for (target, source) in p.fds.iter().enumerate() {
        // SAFETY: integer arguments.
        if unsafe { libc::dup2(*source, target as RawFd) } < 0 {
            return false;
        }
    }
    // SAFETY: integer arguments; marks the rest close-on-exec. Kernels before 5.11 do not know the
    // flag; there we rely on every descriptor having been opened with it.
    unsafe {
        libc::syscall(libc::SYS_close_range, p.fds.len(), u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    true
}

fn child_become_user(p: &Prepared) -> bool {
    let Some((uid, gid)) = p.user else { return true };
    // The raw calls change this one thread, which is the only one of its process.
    // SAFETY: an empty list.
    let groups = unsafe { libc::syscall(libc::SYS_setgroups, 0, null::<libc::gid_t>()) };
    // SAFETY: integer arguments.
    let group = unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) };
    // SAFETY: integer arguments.
    let user = unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
    (groups, group, user) == (0, 0, 0)
}

fn child_confine(p: &Prepared) -> bool {
    // A change of user clears the death signal, so it comes after it. 0 asks for none.
    let signal = p.death_signal.unwrap_or(0);
    // SAFETY: integer arguments.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) } != 0 {
        return false;
    }
    // SAFETY: integer arguments.
    if p.no_new_privileges && unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return false;
    }
    p.filters.iter().all(install)
}

/// Tries each candidate and returns why none ran; one that exists and may not be run is the better
/// reason than one that does not exist.
fn child_exec(p: &Prepared) -> i32 {
    let mut reason = libc::ENOENT;
    for program in p.programs.iter().take_while(|program| !program.is_null()) {
        // SAFETY: NUL-terminated strings in null-terminated lists.
        unsafe { libc::execve(*program, p.argv.as_ptr(), p.env.as_ptr()) };
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => reason = libc::EACCES,
            other => return other,
        }
    }
    reason
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}
