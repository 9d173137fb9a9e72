//! What each running command was refused and has changed, as the filesystem reports it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use ringfence_fs::events::{AccessEvent, EventSink, Events, Operation};
use ringfence_link::warden::Denied;
use ringfence_policy::WorkspacePath;

use crate::journal::event::{EventsLost, Lost};
use crate::journal::{Caller, Event, Journal};

/// Denials listed in a result; the rest is counted, and all are in the journal.
const LISTED: usize = 100;

#[derive(Debug, Default)]
struct Account {
    denied: Vec<Denied>,
    more: u64,
    changed: Option<HashSet<WorkspacePath>>,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: Mutex<HashMap<u64, Account>>,
    read: Mutex<u64>,
    advanced: Condvar,
}

/// What a command was refused, and which paths it may have changed (if that was asked for).
#[derive(Debug, Default)]
pub(crate) struct Closing {
    pub(crate) denied: Vec<Denied>,
    pub(crate) more: u64,
    pub(crate) changed: Option<HashSet<WorkspacePath>>,
}

impl Ledger {
    /// Begins to collect for a command.
    pub(crate) fn open(&self, command: u64, with_changes: bool) {
        let account = Account { changed: with_changes.then(HashSet::new), ..Account::default() };
        self.open.lock().insert(command, account);
    }

    /// Ends it, with everything that was reported before this call.
    pub(crate) fn close(&self, command: u64, sink: &EventSink) -> Closing {
        self.catch_up(sink.sent());
        let Account { denied, more, changed } =
            self.open.lock().remove(&command).unwrap_or_default();
        Closing { denied, more, changed }
    }

    /// Waits until as many events were read; the reader is never far behind, but the machine may be
    /// busy with something else.
    fn catch_up(&self, sent: u64) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut read = self.read.lock();
        while *read < sent && !self.advanced.wait_until(&mut read, deadline).timed_out() {}
    }

    /// Reads events until the filesystem is gone.
    pub(crate) fn follow(&self, events: &Events, journal: &Arc<Journal>) {
        while let Some(event) = events.next() {
            self.record(&event);
            let caller = Caller {
                program: None,
                command: (event.origin != 0).then(|| command_name(event.origin)),
                session: None,
            };
            let _ = journal.append(Event::access(&event, caller));
            let lost = events.take_lost();
            if lost > 0 {
                let lost = EventsLost { count: lost, why: Lost::Channel };
                let _ = journal.append(Event::EventsLost(lost));
            }
            *self.read.lock() += 1;
            self.advanced.notify_all();
        }
    }

    fn record(&self, event: &AccessEvent) {
        if event.origin == 0 || event.operation == Operation::KeptOpen {
            return;
        }
        let mut open = self.open.lock();
        let Some(account) = open.get_mut(&event.origin) else { return };
        if !event.granted {
            account.deny(event);
        } else if let Some(changed) = account.changed.as_mut().filter(|_| is_change(event)) {
            changed.insert(event.path.clone());
        }
    }
}

fn is_change(event: &AccessEvent) -> bool {
    use Operation::{Create, Link, Remove, Rename, SetAttributes, SetXattr, Write};
    matches!(event.operation, Write | Create | Remove | Rename | Link | SetAttributes | SetXattr)
}

impl Account {
    fn deny(&mut self, event: &AccessEvent) {
        let (operation, path) = (event.operation.as_str(), event.path.to_string());
        let same = |d: &&mut Denied| d.operation == operation && d.path == path;
        if let Some(known) = self.denied.iter_mut().find(same) {
            known.count += 1;
        } else if self.denied.len() < LISTED {
            self.denied.push(Denied {
                operation: operation.into(),
                path,
                needed: event.needed.as_str().into(),
                level: event.level.as_str().into(),
                rule: event.rule.as_ref().map(|rule| rule.pattern.clone()),
                priority: event.rule.as_ref().map(|rule| rule.priority),
                count: 1,
            });
        } else {
            self.more += 1;
        }
    }
}

/// How a command's number is written for people and in the journal.
pub(crate) fn command_name(number: u64) -> String {
    format!("cmd_{number}")
}
