//! Isolation by a container engine: the same inside, in any image.
//!
//! The engine makes the namespaces and the root from the image; our init is the entry point. From
//! there on everything is as with bubblewrap: init speaks to the warden over a socket, is moved into
//! the sandbox's own control groups, and puts the same filters on itself. The engine is asked again
//! only when the container is to go, so it may be restarted meanwhile (if it keeps its containers).
//!
//! The workspace is attached by the warden itself, from its own mount namespace to the container's:
//! so it is never seen on the host, it goes with the warden however that ends, and there is no empty
//! directory that could be taken for it.

mod engine;
mod failure;
mod identity;
mod spec;

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringfence_link::socket::SocketPath;
use ringfence_sys::mounts::{attach_elsewhere, clone_mount};
use ringfence_sys::spawn::Child;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit, pidfd_open};

use crate::cgroup::SandboxGroup;
use crate::stage::may_show;
use crate::{Network, Runtime, RuntimeError, Start, Started};
pub use engine::{About, Engine, Found, Image, Step, address};
pub use spec::{Spec, container};

/// The labels by which containers of ours are found again.
const ID_LABEL: &str = "dev.ringfence.sandbox";
const DIR_LABEL: &str = "dev.ringfence.dir";

/// In the directory of a sandbox while there may be a container of it.
const MARK: &str = "container";
const LINK: &str = "link";

/// How long a container may take from its start to init's first sign of life.
const PATIENCE: Duration = Duration::from_secs(60);

const SOCKET_STEP: &str = "make init's socket";

/// What init waits for before it does anything.
pub const GO: u8 = b'g';

/// The runtime of a container engine, with the image to use.
#[derive(Debug, Clone)]
pub struct Docker {
    pub image: String,
    /// Be who the image says; its user is then in [`Start::user`], see [`Docker::user_of_image`].
    pub image_user: bool,
}

/// A container that runs, to be removed at the end.
#[derive(Debug)]
pub struct Container {
    name: String,
    dir: PathBuf,
}

/// What a sandbox's container is called.
fn name_of(id: &str) -> String {
    format!("ringfence-{id}")
}

impl Runtime for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    /// Init.
    fn own_processes(&self) -> u64 {
        1
    }

    fn start(&self, start: &Start, group: &SandboxGroup) -> Result<Started, RuntimeError> {
        let user = start.user.ok_or_else(needs_root)?;
        self.check_user(user, start.network)?;
        start.read_only.iter().try_for_each(|path| may_show(path))?;
        let engine = Engine::connect()?;
        let image = engine.image(&self.image)?.ok_or_else(|| self.no_image())?;
        let link =
            Link::make(&start.dir, Some(user)).map_err(|e| RuntimeError::io(SOCKET_STEP, e))?;
        let container = Container::run(&engine, start, &self.spec(start))?;
        match self.admit(&engine, &container.name, &link, start, group) {
            Ok((child, socket)) => {
                let env = self.variables(image);
                Ok(Started::in_container(child, socket, env, container))
            }
            Err(error) => {
                container.remove();
                Err(error)
            }
        }
    }
}

impl Docker {
    fn spec(&self, start: &Start) -> Spec {
        let files = getrlimit(Resource::Nofile);
        Spec {
            id: start.id.clone(),
            image: self.image.clone(),
            dir: start.dir.clone(),
            home: start.home.clone(),
            tmp: start.tmp.clone(),
            init: start.init.clone(),
            link: start.dir.join(LINK),
            read_only: start.read_only.clone(),
            user: start.user.filter(|_| !self.image_user),
            network: start.network,
            ipv6: Path::new("/proc/sys/net/ipv6/conf/lo").exists(),
            limits: start.limits.beside(self.own_processes()),
            open_files: (files.current, files.maximum),
        }
    }

    /// Who the image says one is, as the host numbers users. `start` says where things are, and the
    /// user in it does not matter.
    ///
    /// A name means what the image's own lists say, and engines read those in ways of their own: so
    /// a container is made for the question, unless the image gives numbers.
    pub fn user_of_image(&self, start: &Start) -> Result<(u32, u32), RuntimeError> {
        let engine = Engine::connect()?;
        let image = engine.image(&self.image)?.ok_or_else(|| self.no_image())?;
        if let Some(ids) = identity::numbers(&image.user) {
            return Ok(ids);
        }
        let link = Link::make(&start.dir, None).map_err(|e| RuntimeError::io(SOCKET_STEP, e))?;
        let container = Container::run(&engine, start, &self.spec(start))?;
        let asked = first_process(&engine, &container.name)
            .and_then(|child| link.accept(&child))
            .and_then(|stream| {
                let peer = socket_peercred(&stream);
                peer.map_err(|e| RuntimeError::io("ask who init is", e))
            });
        container.remove();
        asked.map(|peer| (peer.uid.as_raw(), peer.gid.as_raw()))
    }

    /// On the network of the host, root is trusted for being root.
    fn check_user(&self, (uid, _): (u32, u32), network: Network) -> Result<(), RuntimeError> {
        if !self.image_user || uid != 0 || network != Network::Host {
            return Ok(());
        }
        Err(RuntimeError::Refused {
            message: format!(
                "root, the user of the image {}, cannot have the network of the host",
                self.image
            ),
            hint: "do without the image's user, or use the network `none` or `bridge`".into(),
        })
    }

    /// Those of the image; but where files and terminals are ours, so are the variables about them.
    fn variables(&self, image: Image) -> Vec<String> {
        const OURS: [&str; 4] = ["HOME", "USER", "TERM", "TMPDIR"];
        let is_theirs = |variable: &String| {
            variable.split_once('=').is_some_and(|(name, _)| !OURS.contains(&name))
        };
        let name = self.image_user.then(|| identity::name(&image.user)).flatten();
        let user = name.map(|name| format!("USER={name}"));
        image.env.into_iter().filter(is_theirs).chain(user).collect()
    }

    /// From a container that was started to an init that has its place: its groups, its workspace.
    fn admit(
        &self,
        engine: &Engine,
        name: &str,
        link: &Link,
        start: &Start,
        group: &SandboxGroup,
    ) -> Result<(Child, OwnedFd), RuntimeError> {
        let user = start.user.unwrap_or_default();
        let child = first_process(engine, name)?;
        // That it is who speaks shows that the number is still its own.
        let mut stream = link.accept(&child)?;
        let entered = group.take_in(child.pid.as_raw_pid());
        entered.map_err(|e| RuntimeError::io("enter the sandbox's control groups", e))?;
        let show = |e| RuntimeError::io("show the workspace to the container", e);
        let workspace = clone_mount(&start.workspace).map_err(show)?;
        attach_elsewhere(workspace, &child.pidfd, c"/workspace").map_err(show)?;
        // Without it everything works, but for the questions who one is.
        let _ = identity::introduce(&start.dir, &child, user, self.image_user);
        stream.write_all(&[GO]).map_err(|e| RuntimeError::io("reach init", e))?;
        Ok((child, stream.into()))
    }

    fn no_image(&self) -> RuntimeError {
        RuntimeError::Unsupported {
            message: format!("there is no image {} here", self.image),
            hint: format!("bring it here with `docker pull {}`", self.image),
        }
    }
}

/// What everybody but root is told.
pub fn needs_root() -> RuntimeError {
    RuntimeError::Unsupported {
        message: "the runtime docker needs a server that runs as root: nobody else can show the \
                  workspace to a container"
            .into(),
        hint: "run as root, or use the runtime bwrap".into(),
    }
}

impl Container {
    /// Makes it and starts it; whatever failed, there is none then.
    fn run(engine: &Engine, start: &Start, spec: &Spec) -> Result<Self, RuntimeError> {
        let container = Self { name: name_of(&start.id), dir: start.dir.clone() };
        container.mark().map_err(|e| RuntimeError::io("mark the sandbox", e))?;
        // One that a crash has left has the name, and nothing to say.
        engine.remove(&container.name)?;
        engine.run(&container.name, spec::container(spec))?;
        Ok(container)
    }

    fn mark(&self) -> io::Result<()> {
        fs::write(self.dir.join(MARK), &self.name)
    }

    /// Removes it, however far it has come. What cannot be removed now is found by its mark.
    pub(crate) fn remove(&self) {
        if Engine::connect().is_ok_and(|engine| engine.remove(&self.name).is_ok()) {
            unmark(&self.dir);
        }
    }
}

fn unmark(dir: &Path) {
    let _ = fs::remove_file(dir.join(MARK));
    let _ = fs::remove_dir_all(dir.join(LINK));
    let _ = fs::remove_dir_all(dir.join("etc"));
}

/// Removes what is left of the container of a sandbox whose warden has gone. Most have none, and
/// nobody is asked then.
pub fn remove_leftovers(dir: &Path, id: &str) -> Result<(), RuntimeError> {
    if !dir.join(MARK).exists() {
        return Ok(());
    }
    // By a thread of its own: the caller's may be one that must not wait for itself.
    let remove = || Engine::connect()?.remove(&name_of(id));
    let removed = std::thread::scope(|scope| scope.spawn(remove).join());
    let failed = |_| Err(RuntimeError::io("remove the container", ErrorKind::Other));
    removed.unwrap_or_else(failed)?;
    unmark(dir);
    Ok(())
}

/// The socket that init comes to. The directory is below one that only root can enter, and inside
/// nobody is there before init.
struct Link {
    listener: UnixListener,
    path: PathBuf,
}

impl Link {
    /// For that user alone; or for whoever is inside, if that is not known yet.
    fn make(dir: &Path, user: Option<(u32, u32)>) -> io::Result<Self> {
        let dir = dir.join(LINK);
        let _ = fs::remove_dir_all(&dir);
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        let path = dir.join(spec::SOCKET);
        let listener = SocketPath::of(&path).and_then(UnixListener::bind)?;
        let mode = if user.is_some() { 0o700 } else { 0o777 };
        for path in [&path, &dir] {
            if let Some((uid, gid)) = user {
                chown(path, Some(uid), Some(gid))?;
            }
            fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        Ok(Self { listener, path })
    }

    /// Takes the one connection of the container's first process; anybody else is turned away.
    fn accept(&self, child: &Child) -> Result<UnixStream, RuntimeError> {
        let failed = |e: io::Error| RuntimeError::io("hear from init", e);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut set = [
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::new(&child.pidfd, PollFlags::IN),
            ];
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| failed(ErrorKind::TimedOut.into()))?;
            match poll(&mut set, Some(&left)) {
                Err(Errno::INTR) => continue,
                Err(e) => return Err(failed(e.into())),
                Ok(0) => return Err(failed(ErrorKind::TimedOut.into())),
                Ok(_) if set[0].revents().is_empty() => return Err(ended()),
                Ok(_) => {}
            }
            let (stream, _) = self.listener.accept().map_err(failed)?;
            let peer = socket_peercred(&stream).map_err(|e| failed(e.into()))?;
            if peer.pid == child.pid {
                let _ = fs::remove_file(&self.path);
                return Ok(stream);
            }
        }
    }
}

fn first_process(engine: &Engine, name: &str) -> Result<Child, RuntimeError> {
    let pid = engine.pid(name)?.and_then(Pid::from_raw).ok_or_else(ended)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| ended())?;
    Ok(Child { pid, pidfd })
}

pub(crate) fn ended() -> RuntimeError {
    RuntimeError::Unsupported {
        message: "the container has ended before init could speak".into(),
        hint: "the engine's own log says why".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_the_network_of_the_host_in_no_image() {
        let docker = |image_user| Docker { image: "i".into(), image_user };
        for network in [Network::None, Network::Bridge] {
            assert!(docker(true).check_user((0, 0), network).is_ok());
        }
        assert!(docker(true).check_user((1, 0), Network::Host).is_ok());
        let error = docker(true).check_user((0, 1), Network::Host).unwrap_err();
        assert!(error.to_string().contains("root") && error.hint().is_some(), "{error}");
    }

    #[test]
    fn variables_about_what_is_ours_are_ours() {
        let env = ["A=1", "HOME=/root", "PATH=/x:/y", "USER=root", "odd", "TERM=x", "TMPDIR=/x"];
        let image = || Image { env: env.map(str::to_owned).to_vec(), user: "app:app".into() };
        let docker = |image_user| Docker { image: "i".into(), image_user };
        assert_eq!(docker(false).variables(image()), ["A=1", "PATH=/x:/y"]);
        assert_eq!(docker(true).variables(image()), ["A=1", "PATH=/x:/y", "USER=app"]);
    }
}
