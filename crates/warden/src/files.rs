//! Calls about files of the workspace. Each is on record, whatever became of it.

pub mod convert;
mod transfer;

use std::borrow::Cow;
use std::ops::ControlFlow;

use ringfence_fs::files::{FileError, Files, View};
use ringfence_link::channel::Channel;
use ringfence_link::files::{self as link, FileCall, FileRequest};
use ringfence_link::warden::{Failure, Reply};
use ringfence_policy::WorkspacePath;

use crate::environment::invalid;
use crate::journal::event::{Decision, FileCall as Recorded, RuleName, Viewer};
use crate::journal::{Event, Text};
use crate::sandbox::Sandbox;

pub(crate) use convert::{change_to_link, changes_to_link};
use convert::{entry_to_link, to_failure};

/// Entries sent in one message.
pub(crate) const BATCH: usize = 512;

/// One call that is being answered.
struct Answering<'c> {
    sandbox: &'c Sandbox,
    caller: &'c Channel,
    files: Files,
    view: View,
}

/// What a call is about, for the record.
#[derive(Clone, Copy)]
struct About<'p> {
    operation: &'static str,
    path: &'p WorkspacePath,
    /// Where it is moved to, or a link leads.
    to: Option<&'p [u8]>,
}

impl<'p> About<'p> {
    fn new(operation: &'static str, path: &'p WorkspacePath) -> Self {
        Self { operation, path, to: None }
    }
}

impl Sandbox {
    pub(crate) fn file_call(
        &self,
        caller: &Channel,
        request: FileRequest,
    ) -> Result<Option<Reply>, Failure> {
        let view = match request.view {
            link::View::Owner => View::Owner,
            link::View::Agent => View::Agent,
        };
        let files = self.mounted.lock().files(view);
        Answering { sandbox: self, caller, files, view }.answer(request.call)
    }
}

impl Answering<'_> {
    fn answer(&self, call: FileCall) -> Result<Option<Reply>, Failure> {
        match call {
            FileCall::Stat { path, follow } => {
                let path = parsed(&path)?;
                self.entry(About::new("stat", &path), self.files.stat(&path, follow))
            }
            FileCall::List { path, recursive, files_only } => {
                self.list(&parsed(&path)?, recursive, files_only)
            }
            FileCall::Read { path, offset, length } => {
                self.read(&parsed(&path)?, offset, length.unwrap_or(u64::MAX))
            }
            FileCall::Write { path, mode, parents } => self.write(&parsed(&path)?, mode, parents),
            FileCall::MakeDirectory { path, mode, parents } => {
                let path = parsed(&path)?;
                self.entry(About::new("mkdir", &path), self.files.mkdir(&path, mode, parents))
            }
            FileCall::MakeSymlink { path, target, parents } => {
                let path = parsed(&path)?;
                let about = About { operation: "symlink", path: &path, to: Some(&target) };
                self.entry(about, self.files.symlink(&path, &target, parents))
            }
            FileCall::Remove { path, recursive } => {
                let path = parsed(&path)?;
                self.settle(About::new("remove", &path), self.files.remove(&path, recursive))?;
                Ok(Some(Reply::Ok))
            }
            FileCall::Rename { from, to } => {
                let (path, to) = (parsed(&from)?, parsed(&to)?);
                let about = About { operation: "rename", path: &path, to: Some(to.as_bytes()) };
                self.settle(about, self.files.rename(&path, &to))?;
                Ok(Some(Reply::Ok))
            }
        }
    }

    fn entry(
        &self,
        about: About<'_>,
        result: Result<ringfence_fs::files::Entry, FileError>,
    ) -> Result<Option<Reply>, Failure> {
        let entry = self.settle(about, result)?;
        Ok(Some(Reply::File(entry_to_link(entry))))
    }

    fn list(
        &self,
        path: &WorkspacePath,
        recursive: bool,
        files_only: bool,
    ) -> Result<Option<Reply>, Failure> {
        let mut batch = Vec::new();
        let mut take = |entry: ringfence_fs::files::Entry| {
            let entry = entry_to_link(entry);
            if files_only && entry.kind == link::EntryKind::Directory {
                return ControlFlow::Continue(());
            }
            batch.push(entry);
            match batch.len() < BATCH || self.send(Reply::Entries(std::mem::take(&mut batch))) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let listed = match recursive {
            true => self.files.walk(path, &mut take),
            false => self.files.list(path).map(|entries| {
                let _ = entries.into_iter().try_for_each(&mut take);
            }),
        };
        self.settle(About::new("list", path), listed)?;
        if !batch.is_empty() {
            self.send(Reply::Entries(batch));
        }
        Ok(Some(Reply::Ok))
    }

    /// Says whether the caller is still there.
    fn send(&self, reply: Reply) -> bool {
        self.caller.send(&reply, &[]).is_ok()
    }

    /// Puts a call on record and turns its error into what the caller hears.
    fn settle<T>(&self, about: About<'_>, result: Result<T, FileError>) -> Result<T, Failure> {
        self.record(about, result.as_ref().err(), None);
        result.map_err(|error| to_failure(&error))
    }

    fn record(&self, about: About<'_>, error: Option<&FileError>, other: Option<&'static str>) {
        let denial = error.and_then(|error| error.denial.as_ref());
        let kind = error.map(|error| error.kind().as_str()).or(other);
        let refused = denial.is_some() || kind == Some("denied");
        self.sandbox.record(Event::FileCall(Recorded {
            to: about.to.map(Text::new),
            view: match self.view {
                View::Owner => Viewer::Owner,
                View::Agent => Viewer::Agent,
            },
            decision: if refused { Decision::Denied } else { Decision::Granted },
            rule: denial.and_then(|denial| denial.rule.as_ref()).map(RuleName::from),
            error: kind.map(Cow::Borrowed),
            ..Recorded::new(about.operation, about.path.as_bytes())
        }));
    }
}

fn parsed(path: &[u8]) -> Result<WorkspacePath, Failure> {
    WorkspacePath::from_caller(path).map_err(|e| {
        let shown = String::from_utf8_lossy(path).into_owned();
        invalid(format!("{shown:?} is not a path in the workspace: {e}")).with("path", shown)
    })
}
