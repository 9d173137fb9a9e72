//! A sandbox for one command of this program, on a server of its own.

use std::path::PathBuf;

use ringfence_policy::Rule;
use ringfence_wire::v1;

use crate::client::connect::Server;
use crate::client::images;
use crate::client::trouble::told;
use crate::failure::Failure;
use crate::private::Private;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) codebase: v1::CreateCodebaseRequest,
    pub(crate) sandbox: v1::CreateSandboxRequest,
    pub(crate) rules: Vec<Rule>,
    pub(crate) base: PathBuf,
    pub(crate) state: PathBuf,
}

/// Where it is on this host, for whoever looks at it afterwards.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    pub(crate) layer: PathBuf,
    pub(crate) base: PathBuf,
    pub(crate) rules: Vec<Rule>,
}

/// A sandbox that runs for this process.
#[derive(Debug)]
pub(crate) struct OwnSandbox {
    pub(crate) sandbox: v1::Sandbox,
    pub(crate) place: Place,
    private: Private,
}

impl OwnSandbox {
    pub(crate) async fn start(wanted: Wanted) -> Result<Self, Failure> {
        let private = Private::for_sandboxes(&wanted.state).await?;
        let server = &private.server;
        images::fetch(server, &wanted.sandbox).await?;
        let codebase = server.codebases().create_codebase(wanted.codebase).await.map_err(told)?;
        let codebase_id = codebase.into_inner().id;
        let request = v1::CreateSandboxRequest { codebase_id, start: true, ..wanted.sandbox };
        let sandbox = server.sandboxes().create_sandbox(request).await.map_err(told)?.into_inner();
        // The id is from a server of ours, not from elsewhere.
        let dir = wanted.state.join("sandboxes").join(&sandbox.id);
        let place = Place { layer: dir.join("layer"), dir, base: wanted.base, rules: wanted.rules };
        Ok(Self { sandbox, place, private })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.private.server
    }

    /// Ends it and waits until nothing of it runs. The layer stays.
    pub(crate) async fn end(self) -> Result<(v1::Sandbox, Place), Failure> {
        let request = v1::StopSandboxRequest { sandbox_id: self.sandbox.id.clone() };
        self.server().sandboxes().stop_sandbox(request).await.map_err(told)?;
        Ok((self.sandbox, self.place))
    }
}
