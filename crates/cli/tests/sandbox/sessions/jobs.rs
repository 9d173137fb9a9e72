//! What a command leaves running.

use ringfence_link::warden::SessionExec;

use crate::support::eventually;

use super::log::read;
use super::{gone, long, there};

in_every_shell! {
    fn a_job_does_not_hold_up_its_command(s) {
        let job = long();
        s.ok(&format!("sleep {job} &"));
        there(&job, 1);
        assert_eq!(s.ok("kill -0 $! && echo up"), "up\n");
    }

    fn jobs_are_kept(s) {
        let job = long();
        s.ok(&format!("sleep {job} &"));
        there(&job, 1);
        assert!(s.run("jobs").out().contains(&job));
        // A signal may meet these shells' child before it has become the program.
        eventually("the job has ended", || {
            s.run("kill %1");
            crate::support::processes_with(&job).is_empty()
        });
    }

    fn jobs_can_be_waited_for(s) {
        let wait = s.gate("gate");
        s.ok(&format!("sh -c '{wait}; exit 6' &"));
        let (call, _) = s.begin(SessionExec::new("echo waiting; wait $!"));
        crate::sessions::until(&call, "waiting");
        s.open_gate("gate");
        assert_eq!(crate::support::collect(&call).unwrap().code(), 6);
    }

    fn a_job_can_be_brought_to_the_foreground(s) {
        let wait = s.gate("gate");
        s.ok(&format!("sh -c '{wait}; echo end' &"));
        let (call, _) = s.begin(SessionExec::new("echo now; fg %1 >/dev/null"));
        crate::sessions::until(&call, "now");
        s.open_gate("gate");
        assert_eq!(crate::support::collect(&call).unwrap().code(), 0);
        assert_eq!(s.run("jobs").out(), "");
    }

    fn what_a_job_prints_later_goes_to_the_log(s) {
        let wait = s.gate("gate");
        s.ok(&format!("({wait}; echo late; echo late2 >&2) &"));
        assert_eq!(s.ok("echo now"), "now\n");
        s.open_gate("gate");
        eventually("the log has it", || {
            let (log, _) = read(s, 0);
            log.contains("late\n") && log.contains("late2\n")
        });
        assert_eq!(s.run("echo clean").out(), "clean\n");
    }

    fn a_job_that_prints_much_is_never_held_up(s) {
        s.ok("(head -c 30000000 /dev/zero; echo end >/tmp/end) &");
        eventually("it has printed all", || s.sandbox.sh("test -s /tmp/end").code() == 0);
        let (log, from) = read(s, 0);
        assert!(log.len() <= 1 << 20 && from > 20_000_000, "{from} {}", log.len());
        assert_eq!(s.run("echo clean").out(), "clean\n");
    }

    fn a_job_that_never_stops_printing_is_no_obstacle(s) {
        let run = s.run("yes & echo fg >&2");
        assert!(run.err().contains("fg\n"), "{run:?}");
        assert_eq!(s.run("echo clean").out(), "clean\n");
        eventually("it is in the log", || read(s, 0).0.starts_with("y\n"));
        s.run("kill -9 $!");
        assert_eq!(s.run("echo clean").out(), "clean\n");
    }

    fn a_stream_that_was_kept_open_goes_to_the_log(s) {
        s.ok("exec 5>&1");
        assert_eq!(s.ok("echo a"), "a\n");
        assert_eq!(s.ok("echo late >&5; echo b"), "b\n");
        eventually("the log has it", || read(s, 0).0 == "late\n");
        s.ok("exec 5>&-");
    }

    /// 47
    fn closing_ends_everything(s) {
        let job = long();
        let leave = if s.is_tracked() { "setsid" } else { "env" };
        s.run(format!("sleep {job} & {leave} sleep {job} & ({leave} sleep {job} &)"));
        there(&job, 3);
        s.run(format!("sleep {job} &"));
        there(&job, 4);
        crate::sessions::close(&s.sandbox, &s.id).unwrap();
        let left = crate::support::processes_with(&job);
        let all_gone = left.is_empty() || !s.is_tracked();
        assert!(all_gone, "when it has answered, all is gone: {left:?}");
        gone(&job);
    }

    fn the_end_of_the_shell_ends_its_jobs(s) {
        let job = long();
        let leave = if s.is_tracked() { "setsid" } else { "env" };
        s.run(format!("sleep {job} & {leave} sleep {job} &"));
        there(&job, 2);
        assert!(s.run("kill -9 $$").outcome.session_ended);
        gone(&job);
    }

    fn many_jobs_leave_nothing_behind(s) {
        for _ in 0..100 {
            s.run("true &");
        }
        eventually("their groups are gone", || {
            s.run("true");
            groups(&s.sandbox) <= 2
        });
        let pid = s.ok("echo $$");
        let count = format!("ls /proc/{}/fd | wc -l", pid.trim());
        assert!(s.sandbox.ok(&count).trim().parse::<u32>().unwrap() < 12);
    }

    fn a_child_that_stops_itself_is_a_job(s) {
        s.ok("v=1");
        let run = s.run("sh -c 'kill -STOP $$; echo resumed'");
        assert!(!run.outcome.timed_out && run.code() != 0, "{run:?}");
        assert!(s.run("jobs").out().contains("topped"));
        assert_eq!(s.run("fg >/dev/null").code(), 0);
        eventually("what it prints is in the log", || read(s, 0).0.contains("resumed\n"));
        assert_eq!(s.ok("echo $v"), "1\n");
    }

    fn a_job_changes_files_for_the_command_that_started_it(s) {
        let wait = s.gate("gate");
        s.ok(&format!("({wait}; echo x >/workspace/job) &"));
        let text = "cat /tmp/second; echo y >/workspace/own";
        let exec = SessionExec { changes: true, ..SessionExec::new(text) };
        s.gate("second");
        let (call, _) = s.begin(exec);
        s.open_gate("gate");
        eventually("the job has written", || s.sandbox.sh("test -s /workspace/job").code() == 0);
        s.open_gate("second");
        let run = crate::support::collect(&call).unwrap();
        let changes = run.outcome.changes.unwrap();
        let names: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        if s.is_tracked() {
            assert!(names.len() == 1 && names[0].ends_with("own"), "{names:?}");
        }
    }
}

/// How many groups of sessions a sandbox has, where it has any.
pub(crate) fn groups(sandbox: &crate::support::Sandbox) -> usize {
    let init = sandbox.info().init_pid;
    let text = std::fs::read_to_string(format!("/proc/{init}/cgroup")).unwrap_or_default();
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    let Some(path) = path else { return 0 };
    let roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
    let found = roots.iter().find_map(|root| {
        let dir = std::path::PathBuf::from(format!("{root}{path}"));
        [dir.clone(), dir.parent()?.to_path_buf()]
            .into_iter()
            .find_map(|dir| count(&dir).filter(|count| *count > 0))
    });
    found.unwrap_or(0)
}

fn count(dir: &std::path::Path) -> Option<usize> {
    let entries = std::fs::read_dir(dir).ok()?.flatten();
    let ours = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with('s') && name.contains('-') && entry.path().is_dir()
    });
    Some(ours.count())
}
