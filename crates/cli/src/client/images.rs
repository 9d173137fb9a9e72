//! Images of sandboxes: fetching one shows how far it is.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use ringfence_wire::v1;

use super::connect::Server;
use super::trouble::told;
use crate::failure::Failure;

/// Makes sure that the image of a sandbox is there before the sandbox is asked for, which would not
/// say a word until then. Without an image there is nothing to do.
pub(crate) async fn fetch(
    server: &Server,
    wanted: &v1::CreateSandboxRequest,
) -> Result<(), Failure> {
    if wanted.image.is_empty() || wanted.runtime() != v1::RuntimeType::Docker {
        return Ok(());
    }
    let image = &wanted.image;
    let request = v1::FetchImageRequest { image: image.clone() };
    let mut steps = server.images().fetch_image(request).await.map_err(told)?.into_inner();
    let mut shown = None;
    while let Some(step) = steps.message().await.map_err(told)? {
        if !step.ready {
            shown.get_or_insert_with(|| Shown::begin(image)).step(step);
        }
    }
    Ok(())
}

/// Only for who waits: an image that is there has no steps.
struct Shown {
    bar: ProgressBar,
    /// Bytes of each part: how many there are, and how many of all.
    parts: BTreeMap<String, (i64, i64)>,
}

impl Shown {
    fn begin(image: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            eprintln!("ringfence: fetching the image {image}");
        }
        let style = ProgressStyle::with_template(
            "fetching {prefix} [{bar:30}] {bytes}/{total_bytes} {msg}",
        );
        let bar = ProgressBar::new(0).with_prefix(image.to_owned());
        Self {
            bar: style.map_or(bar.clone(), |style| bar.with_style(style)),
            parts: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: v1::FetchImageProgress) {
        if step.total > 0 && step.status.starts_with("Download") {
            self.parts.insert(step.layer, (step.current, step.total));
        }
        let (here, all) =
            self.parts.values().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        self.bar.set_length(all as u64);
        self.bar.set_position(here as u64);
        self.bar.set_message(step.status);
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
