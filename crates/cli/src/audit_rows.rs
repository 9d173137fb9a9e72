//! One entry of the journal as one aligned line for people.

use ringfence_fs::diff::quoted;
use ringfence_warden::journal::event::{
    Access, CommandEnded, CommandLine, CommandStarted, Decision, EventsLost, FileCall, How,
    KeptOpen, PolicyInForce, SandboxStarted,
};
use ringfence_warden::journal::{Entry, Event, List, Text};

use crate::output::{Colour, Paint};

/// A command's text is shown up to here; `--json` has more of it.
const SHOWN: usize = 120;

/// The columns behind the time.
#[derive(Debug, Default)]
struct Row {
    command: String,
    what: String,
    details: String,
    outcome: String,
    rule: String,
}

/// Whatever a program could choose is quoted, so that it cannot move the reader's cursor.
pub(crate) fn row(entry: &Entry, paint: Paint) -> String {
    // The time of day within `2026-11-15T11:09:04.123456Z`.
    let time = entry.time.get(11..26).unwrap_or(&entry.time);
    let row = Row::of(&entry.event);
    let outcome = coloured(&format!("{:<8}", row.outcome), &entry.event, paint);
    let line = format!(
        "{:<15}  {:<12}  {:<9}  {:<40}  {outcome}  {}",
        quoted(time.as_bytes()),
        quoted(row.command.as_bytes()),
        quoted(row.what.as_bytes()),
        row.details,
        quoted(row.rule.as_bytes())
    );
    line.trim_end().to_owned()
}

fn coloured(outcome: &str, event: &Event, paint: Paint) -> String {
    match event {
        _ if event.is_denial() => paint.text(Colour::Red, outcome),
        Event::Access(_) => paint.text(Colour::Grey, outcome),
        Event::LimitHit(_) | Event::EventsLost(_) | Event::KeptOpen(_) => {
            paint.text(Colour::Yellow, outcome)
        }
        _ => outcome.to_owned(),
    }
}

impl Row {
    fn new(what: &str, details: impl AsRef<str>, outcome: impl Into<String>) -> Self {
        let details = quoted(details.as_ref().as_bytes()).into_owned();
        Self { what: what.into(), details, outcome: outcome.into(), ..Self::default() }
    }

    fn by(mut self, command: Option<&String>) -> Self {
        self.command = command.cloned().unwrap_or_default();
        self
    }

    fn of(event: &Event) -> Self {
        match event {
            Event::Access(access) => Self::access(access),
            Event::KeptOpen(kept) => Self::kept_open(kept),
            Event::FileCall(call) => Self::file_call(call),
            Event::CommandStarted(started) => Self::started(started),
            Event::CommandEnded(ended) => Self::ended(ended),
            Event::SandboxStarted(started) => Self::new("sandbox", in_force(started), "started"),
            Event::SandboxEnded(ended) => {
                Self::new("sandbox", &ended.reason, if ended.clean { "ended" } else { "unclean" })
            }
            Event::PolicyChanged(change) => Self::new("policy", rules(&change.policy), "changed"),
            Event::LimitHit(hit) => {
                Self::new("limit", word(&hit.limit), "hit").by(hit.command.as_ref())
            }
            Event::EventsLost(EventsLost { count, why }) => {
                Self::new("accesses", format!("{count} not recorded: {}", word(why)), "lost")
            }
            other => Self::of_life(other),
        }
    }

    fn of_life(event: &Event) -> Self {
        match event {
            Event::SessionOpened(it) => {
                let shell = it.shell.bytes();
                let shell = String::from_utf8_lossy(&shell);
                Self::new("session", format!("{} {shell}", it.session), "opened")
            }
            Event::SessionClosed(it) => Self::closed("session", &it.session, &it.reason),
            Event::ProcessOpened(it) => {
                Self::new("process", &it.process, "opened").by(Some(&it.command))
            }
            Event::ProcessClosed(it) => Self::closed("process", &it.process, &it.reason),
            Event::TerminalOpened(it) => {
                let size = format!("{} {}x{}", it.terminal, it.columns, it.rows);
                Self::new("terminal", size, "opened").by(Some(&it.command))
            }
            Event::TerminalClosed(it) => Self::closed("terminal", &it.terminal, &it.reason),
            Event::TerminalBytes(it) => Self::new(
                "terminal",
                format!("{} {} bytes", it.terminal, it.size),
                word(&it.direction),
            ),
            other => Self::of_journal(other),
        }
    }

    fn of_journal(event: &Event) -> Self {
        match event {
            Event::JournalCreated(it) => Self::new("journal", &it.sandbox, "created"),
            Event::JournalResumed(it) if it.closed => Self::new("journal", "", "resumed"),
            Event::JournalResumed(_) => Self::new("journal", "was not closed in order", "resumed"),
            Event::Oversized(it) => Self::new("entry", format!("{} bytes", it.size), "left out"),
            _ => Self::new("entry", "of a kind this version does not know", ""),
        }
    }

    fn closed(what: &str, id: &str, reason: &str) -> Self {
        Self::new(what, format!("{id}: {reason}"), "closed")
    }

    fn access(access: &Access) -> Self {
        let mut row = Self::new(&access.operation, "", word(&access.decision));
        row.details = path(&access.path);
        if access.count > 1 {
            row.details += &format!(" ({} times)", access.count);
        }
        let rule = access.rule.as_ref().map(|rule| rule.text.clone());
        let denied = access.decision == Decision::Denied;
        row.rule = rule.unwrap_or_else(|| if denied { "no rule".into() } else { String::new() });
        row.by(access.command.as_ref())
    }

    /// The owner's name stands where that of a command would.
    fn file_call(call: &FileCall) -> Self {
        let mut row = Self::new(&call.operation, "", word(&call.decision));
        row.command = format!("api {}", word(&call.view));
        row.details = path(&call.path);
        if let Some(to) = &call.to {
            row.details += &format!(" -> {}", path(to));
        }
        if let (Some(error), Decision::Granted) = (&call.error, call.decision) {
            row.outcome = error.replace('_', " ");
        }
        row.rule = call.rule.as_ref().map(|rule| rule.text.clone()).unwrap_or_default();
        row
    }

    fn kept_open(kept: &KeptOpen) -> Self {
        let mut row = Self::new("open file", "", "kept");
        row.details = path(&kept.path);
        row.rule = kept.rule.as_ref().map(|rule| rule.text.clone()).unwrap_or_default();
        row.by(kept.command.as_ref())
    }

    fn started(started: &CommandStarted) -> Self {
        let what = match started.how {
            How::Exec => "exec",
            How::Session => "session",
            How::Process => "process",
            How::Terminal => "terminal",
        };
        let mut row = Self::new(what, "", "started");
        row.details = match &started.line {
            CommandLine::Shell(text) => shortened(&text.bytes()),
            CommandLine::Argv(argv) => shortened(&joined(argv)),
        };
        row.by(Some(&started.command))
    }

    fn ended(ended: &CommandEnded) -> Self {
        let outcome = match (ended.exit_code, ended.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "ended".into(),
        };
        let mut row = Self::new("command", bill(ended), outcome);
        row.rule = remarks(ended);
        row.by(Some(&ended.command))
    }
}

fn path(path: &Text) -> String {
    quoted(&path.bytes()).into_owned()
}

fn joined(argv: &List) -> Vec<u8> {
    argv.items().iter().map(Text::bytes).collect::<Vec<_>>().join(&b' ')
}

fn shortened(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} ...", quoted(&text.as_bytes()[..end])),
        None => quoted(text.as_bytes()).into_owned(),
    }
}

/// The name of a variant as the journal writes it, in words.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}

fn in_force(started: &SandboxStarted) -> String {
    let SandboxStarted { runtime, uid, network, policy, .. } = started;
    format!("{runtime}, uid {uid}, network {network}, {}", rules(policy))
}

fn rules(policy: &PolicyInForce) -> String {
    format!("{} rules", policy.rules)
}

fn bill(ended: &CommandEnded) -> String {
    let mut bill = seconds(ended.duration_us);
    if let Some(cpu) = ended.cpu_us {
        bill += &format!(", cpu {}", seconds(cpu));
    }
    if let Some(memory) = ended.peak_memory_bytes {
        bill += &format!(", {:.1} MiB", memory as f64 / f64::from(1 << 20));
    }
    bill + &format!(", {} bytes out", ended.stdout_bytes + ended.stderr_bytes)
}

fn seconds(microseconds: u64) -> String {
    format!("{:.3} s", microseconds as f64 / 1e6)
}

fn remarks(ended: &CommandEnded) -> String {
    let remarks = [
        (ended.timed_out, "timed out"),
        (ended.cancelled, "cancelled"),
        (ended.oom_killed, "out of memory"),
        (ended.session_ended, "session ended"),
    ];
    let told: Vec<_> = remarks.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    told.join(", ")
}
