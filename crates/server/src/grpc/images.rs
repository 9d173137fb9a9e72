//! The images of the container engine.

use std::ops::ControlFlow;

use ringfence_engine::FetchStep;
use ringfence_engine::problem::Result;
use ringfence_engine::sandboxes::create::check_image;
use ringfence_wire::v1;
use ringfence_wire::v1::image_service_server::ImageService;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status};

use super::Services;
use super::sandboxes::{Answer, answer, required};
use crate::caller::caller;
use crate::status::status_of;

/// Steps that wait for a slow reader, who does not get those that come meanwhile.
const WAITING: usize = 64;

type Steps = ReceiverStream<std::result::Result<v1::FetchImageProgress, Status>>;

#[tonic::async_trait]
impl ImageService for Services {
    type FetchImageStream = Steps;

    async fn fetch_image(&self, request: Request<v1::FetchImageRequest>) -> Answer<Steps> {
        answer(self.fetch_image(request))
    }
}

impl Services {
    fn fetch_image(&self, request: Request<v1::FetchImageRequest>) -> Result<Steps> {
        caller(&request)?;
        let image = request.into_inner().image;
        check_image(required("image", &image)?)?;
        let (send, receive) = mpsc::channel(WAITING);
        let sandboxes = self.sandboxes.clone();
        tokio::spawn(async move {
            let steps = send.clone();
            // Who has left does not want the rest.
            let tell = move |step| match steps.try_send(Ok(progress(step))) {
                Err(TrySendError::Closed(_)) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            let last = match sandboxes.fetch_image(&image, tell).await {
                Ok(()) => Ok(v1::FetchImageProgress { ready: true, ..Default::default() }),
                Err(problem) => Err(status_of(problem)),
            };
            let _ = send.send(last).await;
        });
        Ok(ReceiverStream::new(receive))
    }
}

fn progress(step: FetchStep) -> v1::FetchImageProgress {
    let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    v1::FetchImageProgress {
        layer: step.layer,
        status: step.status,
        current: bytes(step.current),
        total: bytes(step.total),
        ready: false,
    }
}
