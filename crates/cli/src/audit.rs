//! `ringfence audit`: what a sandbox did, and whether the record of it is whole.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ringfence_warden::journal::{
    Ending, Follow, Head, Lines, ReadError, StoredLine, Verified, VerifyError, follow, verify,
    verify_against,
};
use serde_json::json;

use crate::audit_rows::row;
use crate::failure::{Failure, NO};
use crate::output::{self, Paint};
use crate::state::{Found, StateArgs};

/// This much is collected before it is printed.
const BATCH: usize = 64 << 10;

/// Show what a sandbox did, or check that the record is whole
///
/// One line per entry: time (UTC), command, what, path or details, decision, rule. Entries are shown
/// as they are stored; `audit verify` says whether they can be relied on.
///
/// Exit codes: 0; 2 no such sandbox, or it has no journal; 3 an entry cannot be read.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  ringfence audit last
  ringfence audit last --denied
  ringfence audit sb_4f --json | jq 'select(.kind == \"command_ended\")'
  ringfence audit last --follow
  ringfence audit verify last"
)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,

    /// Only accesses that were refused
    #[arg(long)]
    denied: bool,

    /// Print the entries as they are stored, one JSON object per line
    #[arg(long)]
    json: bool,

    /// Go on as entries are written, until the sandbox ends
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    state: StateArgs,

    /// The sandbox: its id, a beginning of it, or `last` for the newest
    #[arg(required = true)]
    id: Option<String>,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    Verify(VerifyArgs),
}

/// Check that nothing in the record was changed, removed, inserted or cut off
///
/// It is checked against the head kept beside it. Who could write both files could have made both
/// anew: a head kept elsewhere (--head) tells that too.
///
/// Exit codes: 0 intact; 1 broken (the first bad entry is named); 2 no such sandbox.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence audit verify last
  ringfence audit verify sb_4f --json | jq -r .head > kept-elsewhere
  ringfence audit verify sb_4f --head \"$(cat kept-elsewhere)\"")]
struct VerifyArgs {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    /// The record must also contain this entry, as an earlier `verify --json` named it
    #[arg(long, value_name = "SEQ:HASH")]
    head: Option<Head>,

    #[command(flatten)]
    state: StateArgs,

    /// The sandbox: its id, a beginning of it, or `last` for the newest
    id: String,
}

pub(crate) fn run(args: &AuditArgs) -> Result<ExitCode, Failure> {
    if let Some(AuditCommand::Verify(args)) = &args.command {
        return check(args);
    }
    let found = args.state.find(args.id.as_deref().unwrap_or_default())?;
    let mut printer = Printer::new(args);
    match args.follow {
        true => printer.follow(follow(&found.dir, 0).map_err(|e| unreadable(&found, e))?),
        false => printer.all(Lines::open(&found.dir).map_err(|e| unreadable(&found, e))?),
    }
    .map_err(|e| unreadable(&found, e))?;
    Ok(ExitCode::SUCCESS)
}

fn unreadable(found: &Found, e: ReadError) -> Failure {
    match &e {
        ReadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Failure::bad_input(format!("sandbox {} has no journal", found.id))
        }
        ReadError::Io { .. } => Failure::bad_input(e),
        _ => Failure::broken(e)
            .hint(format!("see what happened to it: ringfence audit verify {}", found.id)),
    }
}

/// Prints entries, many at a time.
struct Printer {
    denied: bool,
    json: bool,
    paint: Paint,
    text: Vec<u8>,
    /// Nobody reads any more.
    done: bool,
}

impl Printer {
    fn new(args: &AuditArgs) -> Self {
        let (denied, json) = (args.denied, args.json);
        Self { denied, json, paint: Paint::for_stdout(), text: vec![], done: false }
    }

    fn all(&mut self, mut lines: Lines) -> Result<(), ReadError> {
        let result = lines.try_for_each(|line| self.add(&line?));
        // What came before an entry that cannot be read is still worth seeing.
        self.print();
        result
    }

    fn follow(&mut self, mut lines: Follow) -> Result<(), ReadError> {
        while let Some(line) = lines.next().filter(|_| !self.done) {
            self.add(&line?)?;
            while let Some(line) = lines.next_now() {
                self.add(&line?)?;
            }
            self.print();
        }
        Ok(())
    }

    fn add(&mut self, line: &StoredLine) -> Result<(), ReadError> {
        if self.done {
            return Ok(());
        }
        let entry = line.entry()?;
        if !self.denied || entry.event.is_denial() {
            match self.json {
                true => self.text.extend_from_slice(&line.bytes),
                false => self.text.extend_from_slice(row(&entry, self.paint).as_bytes()),
            }
            self.text.push(b'\n');
        }
        if self.text.len() > BATCH {
            self.print();
        }
        Ok(())
    }

    fn print(&mut self) {
        let mut out = io::stdout().lock();
        self.done |= out.write_all(&self.text).and_then(|()| out.flush()).is_err();
        self.text.clear();
    }
}

fn check(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let Found { id, dir } = args.state.find(&args.id)?;
    let result = match args.head {
        Some(head) => verify_against(&dir, &id, head),
        None => verify(&dir, &id),
    };
    if let Err(VerifyError::Io { .. }) = &result {
        return result.map(|_| ExitCode::SUCCESS).map_err(Failure::bad_input);
    }
    match args.json {
        true => output::print_json(&described(&id, &result))?,
        false => output::print(format!("{id}: {}\n", sentence(&result)).as_bytes())?,
    }
    Ok(if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

fn sentence(result: &Result<Verified, VerifyError>) -> String {
    let verified = match result {
        Ok(verified) => verified,
        Err(e) => return format!("broken at {e}"),
    };
    let seq = verified.head.seq;
    let entries = if seq == 1 { "1 entry".into() } else { format!("{seq} entries") };
    match verified.ending {
        Ending::InOrder => format!("intact, {entries}, closed in order"),
        Ending::BeingWritten => format!("intact, {entries} so far, being written"),
        Ending::NotClosed { .. } => format!("intact, ends at entry {seq}, not closed in order"),
    }
}

fn described(id: &str, result: &Result<Verified, VerifyError>) -> serde_json::Value {
    let verified = match result {
        Ok(verified) => verified,
        Err(VerifyError::Broken(broken)) => {
            let (entry, reason) = (broken.line, broken.reason.to_string());
            return json!({ "sandbox": id, "intact": false, "entry": entry, "reason": reason });
        }
        Err(e) => return json!({ "sandbox": id, "intact": false, "reason": e.to_string() }),
    };
    let ending = match verified.ending {
        Ending::InOrder => "in_order",
        Ending::BeingWritten => "being_written",
        Ending::NotClosed { .. } => "not_closed",
    };
    let (entries, head) = (verified.head.seq, verified.head.to_string());
    json!({ "sandbox": id, "intact": true, "entries": entries, "ending": ending, "head": head })
}
