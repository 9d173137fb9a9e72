//! What a running sandbox has changed, and snapshots of it.
//!
//! Changes are read from the layer on disk while programs go on. Where something must be of one
//! moment, everything inside is held still for as long as it takes.

use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ringfence_fs::LayerError;
use ringfence_fs::apply::{ApplyOptions, apply_mounted};
use ringfence_fs::changes::{Change, LayerView};
use ringfence_fs::diff::write_diff;
use ringfence_fs::layers::format::LayerDir;
use ringfence_link::channel::{CHUNK, Channel, Kind};
use ringfence_link::files::{Applied, Apply, Conflict};
use ringfence_link::warden::{Code, Failure, Reply};
use ringfence_runtime::cgroup::SandboxGroup;

use crate::environment::{check_text, invalid};
use crate::files::{BATCH, change_to_link, changes_to_link};
use crate::journal::event::FileCall;
use crate::journal::{Event, Text};
use crate::sandbox::{Sandbox, failure, internal};

/// Everything inside stands still while this lives.
struct Still<'g>(&'g SandboxGroup);

impl Drop for Still<'_> {
    fn drop(&mut self) {
        // A group that has gone has nothing in it to go on.
        let _ = self.0.thaw();
    }
}

impl Sandbox {
    pub(crate) fn changes(&self, caller: &Channel) -> Result<Option<Reply>, Failure> {
        let (_, changes) = self.recorded("changes", None, self.look())?;
        Ok(send_changes(caller, &changes).then_some(Reply::Ok))
    }

    pub(crate) fn diff(&self, caller: &Channel) -> Result<Option<Reply>, Failure> {
        let (view, changes) = self.recorded("diff", None, self.look())?;
        let mut out = BufWriter::with_capacity(CHUNK, Output { caller, hung_up: false });
        let written = write_diff(&view, &changes, &mut out).and_then(|()| out.flush());
        match written {
            Ok(()) => Ok(Some(Reply::Ok)),
            Err(_) if out.get_ref().hung_up => Ok(None),
            Err(e) => Err(internal(e)),
        }
    }

    /// What differs now. Should programs change too much under it, they are held still for a moment.
    fn look(&self) -> Result<(LayerView, Vec<Change>), Failure> {
        let path = {
            let mounted = self.mounted.lock();
            mounted.collect_mapped();
            mounted.layer().path().to_path_buf()
        };
        look_at(&path).or_else(|error| {
            let _mounted = self.mounted.lock();
            let Ok(_still) = self.hold_still() else { return Err(internal(error)) };
            look_at(&path).map_err(internal)
        })
    }

    pub(crate) fn apply(&self, caller: &Channel, apply: &Apply) -> Result<Option<Reply>, Failure> {
        let done = self.apply_to_host(apply);
        let applied = self.recorded("apply", apply.to.as_deref(), done)?;
        let refused = applied.refused.iter();
        let refused = refused.map(|r| (change_to_link(&r.change), r.because.as_bytes().to_vec()));
        let reply = Reply::Applied(Applied {
            refused: refused.collect(),
            conflicts: applied.conflicts.iter().map(conflict_to_link).collect(),
            written: applied.written,
        });
        Ok(send_changes(caller, &applied.changes).then_some(reply))
    }

    /// A directory that is not the base is written while nobody writes to the layer; to find out
    /// what would be written, nobody has to stop.
    fn apply_to_host(&self, apply: &Apply) -> Result<ringfence_fs::apply::Applied, Failure> {
        let to = apply.to.as_deref().map(host_path).transpose()?;
        let (force, dry_run) = (apply.force, apply.dry_run);
        if to.is_none() && !dry_run {
            return Err(stop_first());
        }
        let options = ApplyOptions { to, force, dry_run, policy: None };
        let mounted = self.mounted.lock();
        let _still = (!dry_run).then(|| self.hold_still()).transpose()?;
        mounted.collect_mapped();
        apply_mounted(mounted.layer(), &options).map_err(explain)
    }

    /// Freezes the layer of now and goes on in a new one at `path`. Returns where the frozen one is.
    pub(crate) fn freeze_layer(&self, path: &[u8]) -> Result<Vec<u8>, Failure> {
        self.recorded("freeze", Some(path), self.freeze_and_go_on(path))
    }

    fn freeze_and_go_on(&self, path: &[u8]) -> Result<Vec<u8>, Failure> {
        let next = host_path(path)?;
        let mut mounted = self.mounted.lock();
        let frozen = mounted.layer().path().to_path_buf();
        let _still = self.hold_still()?;
        mounted.collect_mapped();
        mounted.freeze(&next).map_err(explain)?;
        Ok(frozen.into_os_string().into_vec())
    }

    /// Whoever calls this has the mount to itself: two of these must not end each other.
    fn hold_still(&self) -> Result<Still<'_>, Failure> {
        // What could not be stopped for good must go on.
        let still = Still(&self.group);
        match self.group.freeze() {
            Ok(()) => Ok(still),
            Err(e) if e.kind() == io::ErrorKind::Unsupported => Err(failure(
                Code::Unsupported,
                "this host has no control group to hold the sandbox still with: stop it first",
            )),
            Err(e) => Err(internal(format!("the sandbox cannot be held still: {e}"))),
        }
    }

    fn recorded<T>(
        &self,
        operation: &'static str,
        to: Option<&[u8]>,
        result: Result<T, Failure>,
    ) -> Result<T, Failure> {
        let error = result.as_ref().err().map(|failure| match failure.code {
            Code::Unsupported => "unsupported".into(),
            Code::InvalidArgument => "invalid".into(),
            _ => "io".into(),
        });
        let call = FileCall { to: to.map(Text::new), error, ..FileCall::new(operation, b"/") };
        self.record(Event::FileCall(call));
        result
    }
}

/// The layer is not locked: this process has it.
fn look_at(path: &Path) -> Result<(LayerView, Vec<Change>), LayerError> {
    let view = LayerView::open(&LayerDir::inspect(path)?)?;
    let changes = view.changes()?;
    Ok((view, changes))
}

/// Says whether the caller is still there.
fn send_changes(caller: &Channel, changes: &[Change]) -> bool {
    let mut batches = changes.chunks(BATCH);
    batches.all(|batch| caller.send(&Reply::Changes(changes_to_link(batch)), &[]).is_ok())
}

fn conflict_to_link(conflict: &ringfence_fs::apply::Conflict) -> Conflict {
    Conflict {
        path: conflict.path.as_bytes().to_vec(),
        reason: conflict.reason.to_string(),
        yields_to_force: conflict.reason.yields_to_force(),
    }
}

fn host_path(path: &[u8]) -> Result<PathBuf, Failure> {
    check_text(path, "the path")?;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    match path.is_absolute() {
        true => Ok(path.into()),
        false => Err(invalid("a path of the host must be absolute")),
    }
}

fn stop_first() -> Failure {
    failure(
        Code::Unsupported,
        "changes are written to the base only while the sandbox does not run: stop it first",
    )
}

fn explain(error: LayerError) -> Failure {
    match error {
        LayerError::Mounted { .. } => stop_first(),
        LayerError::Exists { .. } => invalid(error.to_string()),
        other => internal(other),
    }
}

/// Sends what is written to it.
struct Output<'c> {
    caller: &'c Channel,
    hung_up: bool,
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.caller.send_bytes(Kind::Output, bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(e) => {
                self.hung_up = true;
                Err(io::Error::other(e))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
