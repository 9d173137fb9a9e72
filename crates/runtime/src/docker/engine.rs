//! Questions to a container engine, over its socket.
//!
//! One at a time, by a thread that may wait.

use std::future::Future;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, CreateImageInfo};
use bollard::query_parameters::{
    CreateContainerOptions, CreateImageOptions, InspectContainerOptions, ListContainersOptions,
    RemoveContainerOptions, StartContainerOptions,
};
use tokio::runtime::Runtime;
use tokio_stream::StreamExt;

use super::failure::{failed, in_one_line, no_engine};
use super::{DIR_LABEL, ID_LABEL, name_of};
use crate::RuntimeError;

/// The engine's own default socket, where `DOCKER_HOST` says nothing.
const USUAL: &str = "unix:///var/run/docker.sock";

/// How long the engine may think about one question. (It streams while it pulls.)
const PATIENCE: Duration = Duration::from_secs(120);

/// How long it may take to say that it is there: one that stands still holds up nobody for long.
const GREETING: Duration = Duration::from_secs(5);

/// How long a container that was removed may take to go.
const GOING: Duration = Duration::from_secs(10);

/// An engine that answers.
#[derive(Debug)]
pub struct Engine {
    docker: bollard::Docker,
    runtime: Runtime,
}

/// What an image says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// `NAME=value`, as every command in it starts with.
    pub env: Vec<String>,
    /// Who commands run as: `name`, `number`, or either with a group after a colon.
    pub user: String,
}

/// How far the fetching of an image has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// The part of the image it is about; empty if it is about all of it.
    pub layer: String,
    /// In the engine's words.
    pub status: String,
    /// Bytes of that part, if they are known.
    pub current: u64,
    pub total: u64,
}

impl Step {
    fn of(step: CreateImageInfo) -> Self {
        let detail = step.progress_detail.unwrap_or_default();
        let bytes = |number: Option<i64>| number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        Self {
            layer: in_one_line(&step.id.unwrap_or_default()),
            status: in_one_line(&step.status.unwrap_or_default()),
            current: bytes(detail.current),
            total: bytes(detail.total),
        }
    }
}

/// A container of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The engine's number for it.
    pub container: String,
    pub sandbox: String,
    /// The directory of the sandbox.
    pub dir: String,
}

/// What is known about an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub name: String,
    pub version: String,
    pub address: String,
}

/// Where the engine is looked for.
pub fn address() -> String {
    let given = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
    given.unwrap_or_else(|| USUAL.to_owned())
}

impl Engine {
    /// The one that `DOCKER_HOST` names, or the usual one.
    pub fn connect() -> Result<Self, RuntimeError> {
        let address = address();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| RuntimeError::io("prepare to ask a container engine", e))?;
        let ask = async {
            let docker = bollard::Docker::connect_with_host(&address)?;
            docker.with_timeout(GREETING).negotiate_version().await
        };
        let docker = runtime.block_on(ask).map_err(|e| no_engine(&address, &e))?;
        Ok(Self { docker: docker.with_timeout(PATIENCE), runtime })
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.runtime.block_on(answer)
    }

    pub fn about(&self) -> Result<About, RuntimeError> {
        let version = self.wait(self.docker.version());
        let version = version.map_err(|e| failed("ask the container engine", &e))?;
        // Podman's platform is the machine.
        let parts = version.components.unwrap_or_default();
        let name = match parts.iter().any(|part| part.name.starts_with("Podman")) {
            true => "Podman".into(),
            false => version.platform.map(|platform| platform.name).unwrap_or_default(),
        };
        let name = if name.is_empty() { "Docker".into() } else { name };
        Ok(About { name, version: version.version.unwrap_or_default(), address: address() })
    }

    /// What the engine has under this name; nothing if it has none.
    pub fn image(&self, name: &str) -> Result<Option<Image>, RuntimeError> {
        let found = match self.wait(self.docker.inspect_image(name)) {
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => return Ok(None),
            found => found.map_err(|e| failed(format!("look for the image {name}"), &e))?,
        };
        fits(name, found.os.as_deref(), found.architecture.as_deref())?;
        let config = found.config.unwrap_or_default();
        let (env, user) = (config.env.unwrap_or_default(), config.user.unwrap_or_default());
        Ok(Some(Image { env, user }))
    }

    /// Fetches an image. Each step is told as it comes; who does not want to go on says so.
    pub fn pull(
        &self,
        name: &str,
        mut tell: impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), RuntimeError> {
        let options = CreateImageOptions {
            from_image: Some(with_tag(name)),
            ..CreateImageOptions::default()
        };
        let pulled = self.runtime.block_on(async {
            let mut steps = std::pin::pin!(self.docker.create_image(Some(options), None, None));
            while let Some(step) = steps.next().await {
                if tell(Step::of(step?)).is_break() {
                    break;
                }
            }
            Ok::<_, Error>(())
        });
        pulled.map_err(|e| super::failure::not_pulled(name, &e))
    }

    /// Makes a container and starts it. Whatever failed, there is none then.
    pub fn run(&self, name: &str, spec: ContainerCreateBody) -> Result<(), RuntimeError> {
        let options = CreateContainerOptions { name: Some(name.into()), ..Default::default() };
        let made = self.wait(self.docker.create_container(Some(options), spec));
        made.map_err(|e| failed("make the container", &e))?;
        let started = self.wait(self.docker.start_container(name, None::<StartContainerOptions>));
        started.map_err(|e| {
            let _ = self.remove(name);
            failed("start the container", &e)
        })
    }

    /// The first process of a container, as the host numbers it.
    pub fn pid(&self, name: &str) -> Result<Option<i32>, RuntimeError> {
        let found = self.inspected(name)?;
        let pid = found.and_then(|found| found.state?.pid);
        Ok(pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0))
    }

    fn inspected(
        &self,
        name: &str,
    ) -> Result<Option<bollard::models::ContainerInspectResponse>, RuntimeError> {
        let asked = self.docker.inspect_container(name, None::<InspectContainerOptions>);
        match self.wait(asked) {
            Ok(found) => Ok(Some(found)),
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
            Err(e) => Err(failed("look at the container", &e)),
        }
    }

    /// Ends and removes a container, and waits until it is gone. That there is none is fine.
    pub fn remove(&self, name: &str) -> Result<(), RuntimeError> {
        let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
        match self.wait(self.docker.remove_container(name, Some(options))) {
            // One that removes itself is being removed already.
            Ok(()) | Err(Error::DockerResponseServerError { status_code: 404 | 409, .. }) => {}
            Err(e) => return Err(failed("remove the container", &e)),
        }
        let deadline = std::time::Instant::now() + GOING;
        while self.inspected(name)?.is_some() {
            if std::time::Instant::now() > deadline {
                let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
                return Err(RuntimeError::io("remove the container", late));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// All containers that are some sandbox's, of whichever server. An image can give its labels to
    /// anybody's container, so the name and the directory must say the same.
    pub fn ours(&self) -> Result<Vec<Found>, RuntimeError> {
        let filters = [("label".to_owned(), vec![ID_LABEL.to_owned()])].into();
        let options =
            ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
        let listed = self.wait(self.docker.list_containers(Some(options)));
        let listed = listed.map_err(|e| failed("list containers", &e))?;
        let found = listed.into_iter().filter_map(|container| {
            let mut labels = container.labels?;
            let (sandbox, dir) = (labels.remove(ID_LABEL)?, labels.remove(DIR_LABEL)?);
            let name = format!("/{}", name_of(&sandbox));
            let is_ours = container.names?.contains(&name) && Path::new(&dir).ends_with(&sandbox);
            is_ours.then_some(Found { container: container.id?, sandbox, dir })
        });
        Ok(found.collect())
    }
}

/// An image that was not made for this machine would fail at its first program.
fn fits(name: &str, os: Option<&str>, architecture: Option<&str>) -> Result<(), RuntimeError> {
    let here = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let is = |found: Option<&str>, wanted: &str| found.is_none_or(|f| f.is_empty() || f == wanted);
    if is(os, "linux") && is(architecture, here) {
        return Ok(());
    }
    let (os, architecture) = (os.unwrap_or("?"), architecture.unwrap_or("?"));
    Err(RuntimeError::Unsupported {
        message: format!("the image {name} is for {os}/{architecture}, and this is linux/{here}"),
        hint: format!("name an image for linux/{here}"),
    })
}

/// Without a tag or digest, an engine would fetch every tag there is.
fn with_tag(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.contains([':', '@']) {
        true => name.to_owned(),
        false => format!("{name}:latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_tag_means_the_latest() {
        for (name, full) in [
            ("alpine", "alpine:latest"),
            ("alpine:3", "alpine:3"),
            ("host:5000/team/alpine", "host:5000/team/alpine:latest"),
            ("host:5000/alpine@sha256:00", "host:5000/alpine@sha256:00"),
        ] {
            assert_eq!(with_tag(name), full);
        }
    }

    #[test]
    fn images_for_other_machines_are_refused_by_name() {
        let here = if std::env::consts::ARCH == "x86_64" { "amd64" } else { "arm64" };
        assert!(fits("x", Some("linux"), Some(here)).is_ok());
        assert!(fits("x", None, Some("")).is_ok());
        for (os, architecture) in [("linux", "s390x"), ("windows", here)] {
            let error = fits("x", Some(os), Some(architecture)).unwrap_err();
            assert!(error.to_string().contains(&format!("{os}/{architecture}")), "{error}");
        }
    }
}
