//! A server of this process's own, for as long as it lasts: `run` and `shell` ask it as they would
//! ask any other, and with a directory of this host nothing is copied.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_runtime::users::HOST_LOCKS;
use ringfence_server::serve::{Options, ServeError, serve};
use ringfence_server::{Belongs, Settings, Stored};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::connect::Server;
use crate::failure::Failure;
use crate::place::{Place, make_private_dir};

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
        let place = Place::fleeting(state)?;
        let records = place.dir.clone();
        Self::start(place, settings(records, Belongs::Command(sandboxes))?).await
    }

    /// One on the records of the server of this host, which does not run.
    pub(crate) async fn on_records(state: &Path) -> Result<Self, Failure> {
        let place = Place::fleeting(state)?;
        Self::start(place, settings(state.join("server"), Belongs::Host)?).await
    }

    async fn start(place: Place, sandboxes: Settings) -> Result<Self, Failure> {
        let socket = place.socket().ok_or_else(|| Failure::broken("a socket has no room"))?;
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

/// What no other user can reach is told.
pub(crate) fn settings(records: PathBuf, belongs: Belongs) -> Result<Settings, Failure> {
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
        fetch_images: true,
        belongs,
    })
}
