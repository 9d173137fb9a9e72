//! A server of this process's own, for as long as it lasts: `run` and `shell` ask it as they would
//! ask any other, and with a directory of this host nothing is copied.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_runtime::users::HOST_LOCKS;
use ringfence_server::serve::{Options, ServeError, serve};
use ringfence_server::{Settings, Stored};
use ringfence_sys::files::Locked;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::connect::Server;
use crate::failure::Failure;

/// What `statfs` says of a tmpfs.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// A server that ends with this process.
#[derive(Debug)]
pub(crate) struct Private {
    pub(crate) server: Server,
    serving: JoinHandle<Result<(), ServeError>>,
    _place: Place,
}

impl Private {
    /// One whose sandboxes are among the others in `state`, and whose records nobody needs later.
    pub(crate) async fn for_sandboxes(state: &Path) -> Result<Self, Failure> {
        let sandboxes = state.join("sandboxes");
        make_private_dir(&sandboxes).map_err(|e| {
            Failure::bad_input(format!("cannot make {}: {e}", sandboxes.display()))
                .hint("name a directory with --state DIR or RINGFENCE_STATE")
        })?;
        let place = Place::make(state)?;
        let records = place.dir.clone();
        Self::start(place, settings(records, Some(sandboxes))?).await
    }

    /// One on the records of the server of this host, which does not run.
    pub(crate) async fn on_records(state: &Path) -> Result<Self, Failure> {
        let place = Place::make(state)?;
        Self::start(place, settings(state.join("server"), None)?).await
    }

    async fn start(place: Place, sandboxes: Settings) -> Result<Self, Failure> {
        let socket = place.dir.join("api.sock");
        let options = Options {
            listen: None,
            unix: Some(socket.clone()),
            tls: None,
            require_token: false,
            stop_sandboxes: false,
            sandboxes,
            stored: Stored::default(),
        };
        let (ready, is_ready) = oneshot::channel();
        let told = move |_| {
            // Who does not wait any more does not need to know.
            let _ = ready.send(());
        };
        let serving = tokio::spawn(serve(options, told, std::future::pending()));
        if is_ready.await.is_err() {
            return Err(why(serving).await);
        }
        let server = Server::at(&socket).await?;
        Ok(Self { server, serving, _place: place })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Why a server ended before it began.
async fn why(serving: JoinHandle<Result<(), ServeError>>) -> Failure {
    match serving.await {
        Ok(Err(error)) => Failure::bad_input(error),
        Ok(Ok(())) => Failure::broken("the private server ended"),
        Err(error) => Failure::broken(error),
    }
}

fn settings(records: PathBuf, private: Option<PathBuf>) -> Result<Settings, Failure> {
    Ok(Settings {
        state: records,
        program: std::env::current_exe().map_err(Failure::broken)?,
        users: HOST_LOCKS.into(),
        most_per_account: usize::MAX,
        lease: Duration::from_secs(60),
        abandoned: Duration::from_secs(10 * 60),
        journals_kept: Duration::from_secs(30 * 24 * 60 * 60),
        // Nobody can reach it there.
        host_network: true,
        private,
    })
}

/// A directory of this process alone, where what is gone with a restart belongs. It goes with this.
#[derive(Debug)]
struct Place {
    dir: PathBuf,
    _lock: Locked,
}

impl Place {
    fn make(state: &Path) -> Result<Self, Failure> {
        let mut last = None;
        for all in candidates(state) {
            match Self::make_in(&all) {
                Ok(place) => return Ok(place),
                Err(e) => last = Some((all, e)),
            }
        }
        let (all, e) = last.unwrap_or_else(|| (state.into(), ErrorKind::NotFound.into()));
        Err(Failure::bad_input(format!("cannot use {}: {e}", all.display())))
    }

    fn make_in(all: &Path) -> io::Result<Self> {
        make_private_dir(all)?;
        check_owner(all)?;
        sweep(all);
        let dir = all.join(format!("{}-{}", std::process::id(), random()?));
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        // Held before it can be found.
        let new = dir.join("own.new");
        let lock = Locked::take(fs::File::create(&new)?)?.ok_or(ErrorKind::WouldBlock)?;
        fs::rename(new, dir.join("own"))?;
        Ok(Self { dir, _lock: lock })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// What is in memory anyway if there is such a place, and else the state directory.
fn candidates(state: &Path) -> Vec<PathBuf> {
    let in_memory =
        |dir: &PathBuf| rustix::fs::statfs(dir.as_path()).is_ok_and(|fs| fs.f_type == TMPFS_MAGIC);
    let fleeting = match rustix::process::geteuid().is_root() {
        true => ["/run", "/dev/shm"].map(PathBuf::from).into_iter().find(in_memory),
        false => std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    };
    let fleeting =
        fleeting.filter(|dir| dir.is_absolute()).map(|dir| dir.join("ringfence-private"));
    fleeting.into_iter().chain([state.join("private")]).collect()
}

/// Somebody else may have been there first where everybody may make directories.
fn check_owner(dir: &Path) -> io::Result<()> {
    let data = dir.symlink_metadata()?;
    let own = data.is_dir() && data.uid() == rustix::process::geteuid().as_raw();
    match own && data.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// Removes what processes that were killed have left. One that is being made has no lock yet.
fn sweep(all: &Path) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for dir in entries.flatten().map(|entry| entry.path()) {
        let is_left = match fs::File::open(dir.join("own")) {
            Ok(file) => !Locked::is_held(&file),
            Err(e) => e.kind() == ErrorKind::NotFound && is_old(&dir),
        };
        if is_left {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

fn is_old(dir: &Path) -> bool {
    let age = fs::metadata(dir).and_then(|data| data.modified()).ok();
    age.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > Duration::from_secs(60))
}

fn random() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

fn make_private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_others_can_change_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let all = tempfile::tempdir().unwrap();
        let [own, open, link] = ["own", "open", "link"].map(|name| all.path().join(name));
        Place::make_in(&own).unwrap();
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Place::make_in(&open).is_err());
        symlink(&own, &link).unwrap();
        assert!(Place::make_in(&link).is_err());
    }

    #[test]
    fn a_place_goes_with_its_owner_and_is_swept_if_that_was_killed() {
        let all = tempfile::tempdir().unwrap();
        let kept = Place::make_in(all.path()).unwrap();
        let left = all.path().join("1-0");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("own"), "").unwrap();
        let begun = all.path().join("2-0");
        fs::create_dir(&begun).unwrap();
        sweep(all.path());
        assert!(kept.dir.exists() && begun.exists() && !left.exists());
        let dir = kept.dir.clone();
        drop(kept);
        assert!(!dir.exists());
    }
}
