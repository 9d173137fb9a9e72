//! How much memory a command had.

use ringfence_link::warden::SessionExec;

use super::limited;

/// The least that has to be seen of what [`HOLD`] takes.
const MUCH: u64 = 90_000_000;

/// Takes 100 MB, and is there for a moment.
const HOLD: &str = "python3 -c 'import time; b = b\"x\" * 100_000_000; time.sleep(0.5)'";
const HOLD_AND_TELL: &str = "python3 -c 'import time; b = b\"x\" * 100_000_000
open(\"/tmp/up\", \"w\"); time.sleep(0.8)'";
const TOLD: &str = "while [ ! -e /tmp/up ]; do sleep 0.02; done";

in_every_shell! {
    fn the_memory_of_a_program_is_in_the_bill_of_its_command_alone(s) {
        let outcome = s.run(HOLD).outcome;
        assert!((MUCH..2 * MUCH).contains(&outcome.peak_memory), "{outcome:?}");
        for text in [":", "true", "/bin/true", "sleep 0.1"] {
            let outcome = s.run(text).outcome;
            assert!((100_000..MUCH / 3).contains(&outcome.peak_memory), "{text}: {outcome:?}");
        }
    }

    fn every_process_of_a_command_is_looked_at(s) {
        let texts = [
            format!("{HOLD} | cat"),
            format!("true | {HOLD} | (sleep 0.1; cat)"),
            format!("({HOLD}; true)"),
            format!("x=$({HOLD})"),
            format!("{HOLD} & wait"),
        ];
        for text in texts {
            let outcome = s.run(text.as_str()).outcome;
            assert!(outcome.peak_memory >= MUCH, "{text}: {outcome:?}");
            let outcome = s.run(":").outcome;
            assert!(outcome.peak_memory < MUCH, "after {text}: {outcome:?}");
        }
    }

    /// Their cgroups know them also when their parents are gone.
    fn what_has_left_its_parents_is_looked_at(s) {
        if !s.is_tracked() {
            return;
        }
        let outcome = s.run(format!("(setsid {HOLD_AND_TELL} &); {TOLD}; sleep 0.3")).outcome;
        assert!(outcome.peak_memory >= MUCH, "{outcome:?}");
    }

    fn a_job_is_not_in_the_bill_of_later_commands(s) {
        s.ok(&format!("{HOLD_AND_TELL} &"));
        let outcome = s.run(format!("{TOLD}; sleep 0.3")).outcome;
        assert!((100_000..MUCH).contains(&outcome.peak_memory), "{outcome:?}");
    }

    fn a_shell_that_grows_is_in_the_bill(s) {
        let before = s.run(":").outcome.peak_memory;
        let outcome = s.run("x=$(head -c 30000000 /dev/zero | tr '\\0' x)").outcome;
        assert!(outcome.peak_memory > before + 25_000_000, "{before}: {outcome:?}");
    }

    fn what_was_seen_is_told_though_it_has_ended_early(s) {
        let outcome = s.exec(limited(format!("{HOLD}; sleep 100"), 2000)).outcome;
        assert!(outcome.timed_out && outcome.peak_memory >= MUCH, "{outcome:?}");
        let outcome = s.run(format!("{HOLD}; exit 3")).outcome;
        assert!(outcome.session_ended && outcome.peak_memory >= MUCH, "{outcome:?}");
    }

    /// A file that was read is in the memory of the host, and in nobody's bill.
    fn files_do_not_count(s) {
        s.ok("head -c 150000000 /dev/zero >/workspace/big");
        let outcome = s.run("cat /workspace/big >/dev/null; sleep 0.1").outcome;
        assert!((100_000..MUCH).contains(&outcome.peak_memory), "{outcome:?}");
    }

    fn the_memory_is_on_record(s) {
        s.exec(SessionExec::new(HOLD));
        let path = s.sandbox.config.dir.join("journal.jsonl");
        let recorded = || {
            let text = std::fs::read_to_string(&path).unwrap();
            let ends = text.lines().filter(|line| line.contains("command_ended"));
            let values = ends.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            let peaks = values.filter_map(|value| find(&value, "peak_memory_bytes"));
            peaks.max().unwrap_or(0)
        };
        crate::support::eventually("the end is on record", || recorded() >= MUCH);
    }
}

/// A number under a name, however deep.
fn find(value: &serde_json::Value, name: &str) -> Option<u64> {
    let map = value.as_object()?;
    map.get(name)
        .and_then(serde_json::Value::as_u64)
        .or_else(|| map.values().find_map(|v| find(v, name)))
}
