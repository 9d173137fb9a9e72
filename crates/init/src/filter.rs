//! The system calls that nothing inside may make.
//!
//! A list of what is refused, not of what is allowed: programs of any kind must run, and the
//! namespaces, the missing capabilities and Landlock already stand. What is listed either reaches
//! far into the kernel (a history of holes), or gets around a wall (`open_by_handle_at`, typing on
//! a terminal, other system call tables).

use std::collections::BTreeMap;

use libc::{c_long, c_ulong};
use ringfence_sys::spawn::Filter;
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Refused with `EPERM`, whatever the arguments.
const REFUSED: &[c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Flags by which a clone would enter namespaces of its own.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
const CLONE_NEWTIME: i32 = 0x80;

/// Input typed by a program for its own terminal, or pasted on a console.
const REFUSED_IOCTLS: &[c_ulong] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Calls that change the process named by their first argument, and ask for no more than the same
/// user: one that names init could end it (by a limit of processor time) or make it useless.
const OF_A_PROCESS: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];
/// The same for calls whose first argument says what the second is the number of, with the values
/// for a process and for all processes of a user, of which init is one.
const OF_PROCESSES: &[(c_long, u64, u64)] = &[
    (libc::SYS_setpriority, libc::PRIO_PROCESS as u64, libc::PRIO_USER as u64),
    (libc::SYS_ioprio_set, 1, 3),
];
const INIT: u64 = 1;

const FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The filters for everything inside, init included.
pub(crate) fn for_all() -> Result<[Filter; 2], BackendError> {
    Ok([compile(refused()?, libc::EPERM)?, no_x32()])
}

/// The filter for what init starts; init itself needs the call. Its flags are in memory, where a
/// filter cannot look. Told that it does not exist, the C libraries fall back to `clone`.
pub(crate) fn for_programs() -> Result<[Filter; 1], BackendError> {
    Ok([compile(Rules::from([(libc::SYS_clone3, vec![])]), libc::ENOSYS)?])
}

fn refused() -> Result<Rules, BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, vec![])).collect();
    let ioctls = REFUSED_IOCTLS.iter().map(|request| when(&[(1, Eq, *request)]));
    // The kernel looks at the low half of the number only, and so must we.
    rules.insert(libc::SYS_ioctl, ioctls.collect::<Result<_, _>>()?);
    let flag = |flag: &i32| when(&[(0, MaskedEq(*flag as u64), *flag as u64)]);
    let clone: Vec<_> = NAMESPACES.iter().map(flag).collect::<Result<_, _>>()?;
    let mut unshare = clone.clone();
    unshare.push(flag(&CLONE_NEWTIME)?);
    rules.insert(libc::SYS_clone, clone);
    rules.insert(libc::SYS_unshare, unshare);
    rules.insert(libc::SYS_socket, sockets()?);
    for call in OF_A_PROCESS {
        rules.insert(*call, vec![when(&[(0, Eq, INIT)])?]);
    }
    for (call, process, user) in OF_PROCESSES {
        let (one, all) = (when(&[(0, Eq, *process), (1, Eq, INIT)])?, when(&[(0, Eq, *user)])?);
        rules.insert(*call, vec![one, all]);
    }
    Ok(rules)
}

/// Families with a use inside; of netlink only the part that lists interfaces and routes.
fn sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let other: Vec<_> = FAMILIES.iter().map(|family| (0, Ne, *family as u64)).collect();
    let netlink = libc::AF_NETLINK as u64;
    Ok(vec![when(&other)?, when(&[(0, Eq, netlink), (2, Ne, libc::NETLINK_ROUTE as u64)])?])
}

/// A rule that holds if all of these do, each about the low half of an argument.
fn when(conditions: &[(u8, seccompiler::SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let each = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, Dword, operator.clone(), *value)
    });
    SeccompRule::new(each.collect::<Result<_, _>>()?)
}

fn compile(rules: Rules, errno: i32) -> Result<Filter, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    // Calls through the table of another architecture end the process.
    let action = SeccompAction::Errno(errno as u32);
    let program: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()?;
    Ok(Filter::new(program.iter().map(|i| (i.code, i.jt, i.jf, i.k))))
}

/// The x32 table shares the architecture of x86-64 and differs by a bit in the call's number; its
/// calls would pass the rules above under other numbers.
fn no_x32() -> Filter {
    const X32_BIT: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    Filter::new([
        (LOAD_NUMBER, 0, 0, 0),
        (JUMP_IF_AT_LEAST, 0, 1, X32_BIT),
        (RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        (RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_filters_compile() {
        super::for_all().unwrap();
        super::for_programs().unwrap();
    }
}
